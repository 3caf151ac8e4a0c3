"""An opening that waits can be called off, once, and in its own thread only."""

from __future__ import annotations

import threading
import time

import pytest

from haptics import Coulomb, MasslessImpedance, Servo
from haptics.clock import Clock, cancelled_by, go_on, pause
from haptics.errors import OpeningCancelled
from haptics.servo.loop import End
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice


def test_a_pause_lasts_as_long_as_asked() -> None:
    begun = time.monotonic()
    with cancelled_by(lambda: False):
        pause(0.05)
    assert time.monotonic() - begun >= 0.05


def test_a_pause_ends_when_it_is_called_off_and_what_undoes_it_does_not() -> None:
    begun = time.monotonic()
    with cancelled_by(lambda: time.monotonic() - begun > 0.05):
        with pytest.raises(OpeningCancelled):
            pause(60.0)
        pause(0.0)  # of a driver that undoes what it had begun
        go_on()
    assert time.monotonic() - begun < 30.0


def test_other_threads_are_not_called_off() -> None:
    ended = threading.Event()

    def read_on() -> None:
        pause(0.0)
        go_on()
        ended.set()

    with cancelled_by(lambda: True):
        thread = threading.Thread(target=read_on)
        thread.start()
        thread.join()
    assert ended.is_set()


class Slow(BenchDevice):
    """Waits in `open` for somebody who never comes, and would then arm its motors."""

    armed = False

    def open(self) -> None:
        super().open()
        pause(60.0)
        self.armed = True


@pytest.mark.parametrize("reason", [End.STOPPED, End.APPLICATION_LOST])
def test_a_run_that_is_to_end_while_its_device_is_opened_has_no_tick(trace: Trace, reason: End) -> None:
    device, asked = Slow(Clock(1e-3)), 0

    def supervisor() -> End | None:
        nonlocal asked
        asked += 1
        return reason if asked > 3 else None

    servo = Servo(
        device, MasslessImpedance(Coulomb(4.0), 6000.0, 10.0), trace, clock=device.clock, supervisor=supervisor
    )
    opened: list[bool] = []
    assert servo.run(1.0, lambda: opened.append(True)) is reason
    assert (device.opened, device.armed, opened, trace.count, device.written) == (1, False, [], 0, [])


def test_a_run_that_is_stopped_before_it_begins_opens_nothing(trace: Trace) -> None:
    device = Slow(Clock(1e-3))
    servo = Servo(device, MasslessImpedance(Coulomb(4.0), 6000.0, 10.0), trace, clock=device.clock)
    servo.stop()
    assert servo.run(1.0) is End.STOPPED
    assert device.opened == 0
