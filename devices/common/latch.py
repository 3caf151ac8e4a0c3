"""Latches (seqlocks with two slots): the latest of several numbers, between threads that may run without Python.

A latch counts what was left in it and has two slots. What comes next is written into the slot that does not hold the
latest numbers; then the count goes up. Who reads looks at the count once more afterwards: if it has changed, the slot
may have been written to meanwhile, and the numbers are copied again. So nobody ever waits: neither the one who writes,
nor the one who reads, be it that the interpreter has put the other one to sleep in the midst of his work.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from haptics.jit import merged_kernel
from haptics.parts import fence, float_at, integer_at, record_at

_WORD = 8

_INTEGER = np.dtype([("value", "<i8")])
_FLOAT = np.dtype([("value", "<f8")])

_ATTEMPTS = 100
"""Whoever writes needs far longer for one turn than copying does."""


class Latch:
    """The latest of so many numbers, all of them floats; one thread writes, any may read.

    Parameters
    ----------
    size : int
        How many numbers.

    Attributes
    ----------
    place : int
        Where `copy_latest` and `leave` find it, as long as this object lives.
    """

    def __init__(self, size: int) -> None:
        self._words = np.zeros(1 + 2 * size, np.int64)
        self._memory = memoryview(self._words.data).cast("B")
        self._numbers = struct.Struct(f"={size}d")
        self._slots = _WORD, _WORD * (1 + size)
        self.place = int(self._words.ctypes.data)

    def publish(self, *numbers: float) -> None:
        """Replace the numbers."""
        count = int(self._words[0]) + 1
        self._numbers.pack_into(self._memory, self._slots[count & 1], *numbers)
        self._words[0] = count

    def read(self) -> tuple[float, ...]:
        """Return the latest numbers, zeros before there were any."""
        while True:
            count = int(self._words[0])
            numbers = self._numbers.unpack_from(self._memory, self._slots[count & 1])
            if int(self._words[0]) == count:
                return numbers


@merged_kernel
def copy_latest(place: int, numbers: Any) -> bool:
    """Copy the numbers of the latch at `place`, as many as it has; tell whether they are there, and whole.

    If not, `numbers` is of no use.
    """
    for _ in range(_ATTEMPTS):
        count = integer_at(place)
        slot = place + _WORD * (1 + (count & 1) * len(numbers))
        for i in range(len(numbers)):
            numbers[i] = float_at(slot + _WORD * i)
        if integer_at(place) == count:
            return bool(count > 0)
    return False


@merged_kernel
def leave(place: int, numbers: Any) -> None:
    """Replace the numbers of the latch at `place`, as many as it has."""
    head = record_at(place, _INTEGER)
    count = head.value + 1
    slot = place + _WORD * (1 + (count & 1) * len(numbers))
    fence()  # the previous count must be visible before the slot changes
    for i in range(len(numbers)):
        number = record_at(slot + _WORD * i, _FLOAT)
        number.value = numbers[i]
    fence()
    head.value = count
