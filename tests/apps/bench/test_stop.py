from __future__ import annotations

import os
import signal

import pytest

from apps.bench.stop import Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_wish_for_the_end_waits_until_somebody_looks(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Stop() as stop:
        stop.check()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        with pytest.raises(KeyboardInterrupt):
            stop.check()
    assert signal.getsignal(number) is before


def test_it_can_be_told_not_to_wait_and_still_interrupts_once_only() -> None:
    reached = []
    with Stop() as stop:
        with pytest.raises(KeyboardInterrupt), stop.at_once():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                reached.append("after the first")
            finally:
                os.kill(os.getpid(), signal.SIGINT)
                reached.append("after the second")
        assert reached == ["after the second"]


def test_what_was_asked_before_is_not_forgotten() -> None:
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), stop.at_once():
            pytest.fail("there was something to stop")
