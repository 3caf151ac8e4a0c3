"""The thread that knows how long a program was kept from running."""

from __future__ import annotations

import threading
import time

import pytest

from tests.late import PAUSE, Lateness


def test_a_test_that_turns_the_clock_of_its_process_does_not_touch_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    wait = threading.Event().wait
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", lambda duration: called.append("sleep"))
        patch.setattr(time, "monotonic", lambda: called.append("monotonic") or 1e9)
        lateness = Lateness()
        wait(10.0 * PAUSE)
        lateness.close()
        wait(10.0 * PAUSE)
    assert called == []
    assert lateness.take() < 1e6
