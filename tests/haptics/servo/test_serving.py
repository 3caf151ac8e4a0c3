"""A run without a clock and the application that records it: who waits for whom."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from haptics.servo.job import SILENCE
from haptics.servo.loop import AT_ONCE
from haptics.servo.serving import _Recorder

CAPACITY = 4 * AT_ONCE


class Running:
    """A servo whose trace is full, and what the application says of it."""

    def __init__(self, silent: float = 0.0) -> None:
        self.stopped = False
        self.trace = SimpleNamespace(count=CAPACITY, capacity=CAPACITY)
        now = time.monotonic_ns() - round(1e9 * silent)
        self.record = {"recorded": np.zeros(1, np.int64), "heartbeat_ns": np.full(1, now, np.int64)}

    def stop(self) -> None:
        self.stopped = True

    def waits(self, application: int) -> threading.Thread:
        """Have it look whether it may go on."""
        me: Any = self
        thread = threading.Thread(target=_Recorder(me, me, application), daemon=True)
        thread.start()
        return thread


def test_it_waits_until_there_is_room_for_what_it_does_at_once() -> None:
    servo = Running(silent=-60.0)  # heard of until long after
    thread = servo.waits(os.getppid())
    for recorded, goes_on in ((AT_ONCE, False), (2 * AT_ONCE, True)):
        servo.record["recorded"][0] = recorded
        thread.join(10.0 if goes_on else 0.1)
        assert thread.is_alive() is not goes_on
    assert not servo.stopped


@pytest.mark.parametrize(("silent", "alive"), [(SILENCE + 1.0, True), (0.0, False)])
def test_it_ends_where_nobody_records_any_more(silent: float, alive: bool) -> None:
    servo = Running(silent)
    thread = servo.waits(os.getppid() if alive else -1)
    thread.join(10.0)
    assert not thread.is_alive()
    assert servo.stopped
