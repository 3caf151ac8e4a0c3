"""Latches (seqlocks with two slots) that share the newest values between threads and kernels.

A latch has a counter and two slots. The writer fills the slot that does not contain the newest values, and then
increments the counter. The reader compares the counter before and after copying. If it has changed, the slot may have
been overwritten, and the reader copies again. Neither side ever waits for the other, even if the interpreter suspends
it during the access.
"""

from __future__ import annotations

import os
import select
import struct
import threading
import weakref
from typing import Any

import numpy as np

from haptics.jit import fence, float_at, integer_at, merged_kernel, record_at

_WORD = 8

_INTEGER = np.dtype([("value", "<i8")])
_FLOAT = np.dtype([("value", "<f8")])

_ATTEMPTS = 100  # maximum number of read attempts; a write takes much longer than a copy

_WITHOUT_EVENTS = 1e-3  # polling interval on systems where no event can wake a thread that waits for a file [s]


class Latch:
    """Newest values of a fixed number of floats; one thread writes, any thread reads.

    Parameters
    ----------
    size : int
        Number of values.

    Attributes
    ----------
    place : int
        Address for `copy_latest` and `publish_to`, valid as long as this object exists.
    """

    def __init__(self, size: int) -> None:
        self._words = np.zeros(1 + 2 * size, np.int64)
        self._memory = memoryview(self._words.data).cast("B")
        self._numbers = struct.Struct(f"={size}d")
        self._slots = _WORD, _WORD * (1 + size)
        self.place = int(self._words.ctypes.data)

    def publish(self, *numbers: float) -> None:
        """Replace the values."""
        count = int(self._words[0]) + 1
        self._numbers.pack_into(self._memory, self._slots[count & 1], *numbers)
        self._words[0] = count

    def read(self) -> tuple[float, ...]:
        """Return the newest values, zeros before the first write."""
        while True:
            count = int(self._words[0])
            numbers = self._numbers.unpack_from(self._memory, self._slots[count & 1])
            if int(self._words[0]) == count:
                return numbers


@merged_kernel
def copy_latest(place: int, numbers: Any) -> bool:
    """Copy the values of the latch at `place` to `numbers`, which must have the same size.

    Return False if nothing was written yet, or no consistent copy was possible; `numbers` is then invalid.
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
def publish_to(place: int, numbers: Any) -> None:
    """Replace the values of the latch at `place`; `numbers` must have the same size."""
    head = record_at(place, _INTEGER)
    count = head.value + 1
    slot = place + _WORD * (1 + (count & 1) * len(numbers))
    fence()  # the previous count must be visible before the slot changes
    for i in range(len(numbers)):
        number = record_at(slot + _WORD * i, _FLOAT)
        number.value = numbers[i]
    fence()
    head.value = count


# --- waking a thread --------------------------------------------------------------------------------------------------


class Wake:
    """Wake-up signal for one waiting thread.

    Attributes
    ----------
    descriptor : int
        Event (``eventfd(2)``) that a kernel can signal (`haptics.device.Port`), valid as long as this object exists; -1
        if the system does not support it.
    """

    def __init__(self) -> None:
        self.descriptor = -1
        self._event = threading.Event()
        if hasattr(os, "eventfd"):
            self.descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            weakref.finalize(self, os.close, self.descriptor)  # not earlier: a thread may still use it

    def call(self) -> None:
        """Signal the waiting thread; never blocks."""
        if self.descriptor >= 0:
            os.eventfd_write(self.descriptor, 1)
        else:
            self._event.set()

    def wait(self, timeout: float, *files: Any) -> None:
        """Wait for a signal, until one of `files` can be read, or for the `timeout` [s].

        A signal before the call counts once.
        """
        if self.descriptor >= 0:
            if self.descriptor in select.select((self.descriptor, *files), (), (), timeout)[0]:
                os.eventfd_read(self.descriptor)
        elif files:
            select.select(files, (), (), min(timeout, _WITHOUT_EVENTS))
        else:
            self._event.wait(timeout)
            self._event.clear()
