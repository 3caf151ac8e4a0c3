"""Latches: the latest numbers, whole, whoever writes and whoever reads, in Python or without."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from devices.common.latch import Latch, copy_latest, leave
from haptics.jit import kernel
from haptics.parts import fence

SIZE = 5


@kernel
def look_on(place: int, rows: Any) -> int:
    """Copy the latest numbers until every row has others; return how often there were none, or no whole ones."""
    failures, k = 0, 0
    while k < len(rows):
        if not copy_latest(place, rows[k]):
            failures += 1
        elif k == 0 or rows[k, 0] != rows[k - 1, 0]:
            k += 1
    return failures


@kernel
def look(place: int, numbers: Any) -> bool:
    """Copy once."""
    return copy_latest(place, numbers)


@kernel
def leave_on(place: int, numbers: Any, going_on: Any) -> int:
    """Leave the same number everywhere, another one each time, as long as it is to go on."""
    turns = 0
    while going_on[0] != 0:
        turns += 1
        for i in range(len(numbers)):
            numbers[i] = turns
        leave(place, numbers)
        for _ in range(100):  # without a pause nobody in Python would ever have a turn of his own
            fence()
    return turns


@kernel
def leave_once(place: int, numbers: Any) -> None:
    """Leave numbers once."""
    leave(place, numbers)


def meanwhile(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def assert_whole_and_in_order(rows: np.ndarray) -> None:
    np.testing.assert_array_equal(rows, np.repeat(rows[:, :1], SIZE, axis=1))
    assert (np.diff(rows[:, 0]) > 0.0).all(), "nothing old comes after something new"


def test_a_kernel_never_sees_half_of_what_a_thread_writes() -> None:
    latch, going_on = Latch(SIZE), [True]

    def write() -> None:
        number = 0.0
        while going_on:
            number += 1.0
            latch.publish(*[number] * SIZE)

    rows = np.zeros((4000, SIZE))
    look(latch.place, rows[0].copy()), look_on(Latch(SIZE).place, rows[:0])  # compiled before
    writer = meanwhile(write)
    look_on(latch.place, rows)
    going_on.clear()
    writer.join()
    assert_whole_and_in_order(rows)


def test_a_thread_never_sees_half_of_what_a_kernel_writes() -> None:
    latch, going_on, turns = Latch(SIZE), np.zeros(1, np.int64), list[int]()
    leave_on(latch.place, np.zeros(SIZE), going_on)  # compiled before
    going_on[0] = 1
    writer = meanwhile(lambda: turns.append(leave_on(latch.place, np.zeros(SIZE), going_on)))
    rows, until = list[tuple[float, ...]](), time.monotonic() + 60.0
    while len(rows) < 2000 and time.monotonic() < until:
        numbers = latch.read()
        if not rows or numbers != rows[-1]:
            rows.append(numbers)
    going_on[0] = 0
    writer.join()
    assert len(rows) == 2000
    assert_whole_and_in_order(np.array(rows))
    assert latch.read() == (turns[0],) * SIZE


def test_who_was_put_to_sleep_in_the_midst_of_writing_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    latch, numbers = Latch(2), np.zeros(2)
    latch.publish(1.0, 2.0)

    class Sleepy:
        """Fills the slot, and then its thread has no turn for long."""

        def pack_into(self, memory: memoryview, place: int, *values: float) -> None:
            whole.pack_into(memory, place, 8.0, 9.0)
            raise InterruptedError

    whole = latch._numbers
    with monkeypatch.context() as patch:
        patch.setattr(latch, "_numbers", Sleepy())
        with pytest.raises(InterruptedError):
            latch.publish(3.0, 4.0)
    assert look(latch.place, numbers)
    assert latch.read() == tuple(numbers) == (1.0, 2.0)
    latch.publish(5.0, 6.0)
    assert look(latch.place, numbers)
    assert latch.read() == tuple(numbers) == (5.0, 6.0)


def test_before_there_is_anything_a_kernel_is_told_so() -> None:
    latch, numbers = Latch(2), np.ones(2)
    assert not look(latch.place, numbers)
    assert latch.read() == (0.0, 0.0)
    leave_once(latch.place, np.array((3.0, -4.0)))
    assert look(latch.place, numbers)
    assert latch.read() == tuple(numbers) == (3.0, -4.0)
