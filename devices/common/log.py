"""The log of commands that a virtual device received: a ring buffer in a file that outlives the process.

The file is an ordinary ``.npy`` of `CAPACITY` rows of dtype `LOG_ROW`, mapped into memory and used as a ring buffer:
anyone can ``numpy.load`` it at any time, also after ``kill -9``. Rows with ``monotonic_ns == 0`` were never written;
sort the others by ``monotonic_ns`` to get them in order. The clock is the system's monotonic one, shared by all
processes.
"""

from __future__ import annotations

import io
import mmap
import os
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from haptics.errors import DeviceOpenError
from haptics.files import in_place_of_own
from haptics.jit import kernel
from haptics.parts import fence, record_at
from haptics.servo.system_kernels import SCRATCH, monotonic_ns

DEVICE_LOG = "device_log.npy"
"""Name of the log in a recording."""

CAPACITY = 16384
"""Rows of the ring buffer: 16 s at 1 kHz."""

LOG_ROW = np.dtype([("monotonic_ns", "<i8"), ("time", "<f8"), ("command", "<f8", (2,))])
"""One command: when it arrived [ns, monotonic clock], the device's time [s], the command ([N] or [m])."""


_ROW_BYTES = LOG_ROW.itemsize

_HEAD = np.dtype([("rows", "<i8"), ("count", "<i8"), ("scratch", "<i8", (SCRATCH,))])
"""A log as kernels know it: where its rows lie, how many commands there were, room for the clock."""


@kernel
def log_command(place: int, device_time: float, x: float, y: float) -> None:
    """Add the command (x, y) that arrives now, at `device_time` [s], to the log at `place`."""
    log = record_at(place, _HEAD)
    row = record_at(log.rows + log.count % CAPACITY * _ROW_BYTES, LOG_ROW)
    row.time = device_time
    row.command[0], row.command[1] = x, y
    fence()
    row.monotonic_ns = monotonic_ns(log.scratch)
    log.count += 1


def _header() -> bytes:
    """Return what every log begins with."""
    header = io.BytesIO()
    facts = {"descr": npy.dtype_to_descr(LOG_ROW), "fortran_order": False, "shape": (CAPACITY,)}
    npy.write_array_header_1_0(header, facts)
    return header.getvalue()


HEADER = _header()
SIZE = len(HEADER) + CAPACITY * LOG_ROW.itemsize
"""Bytes of a log, from its first row on."""


class CommandLog:
    """The log file of one device; an older log at `path` is replaced, anything else there is left alone.

    The whole file has its place on the disk before it is mapped: a store into a page that the disk cannot hold would
    kill the process.

    Parameters
    ----------
    path : str
        File to make; its folder must exist.

    Raises
    ------
    DeviceOpenError
        If the file cannot be made.
    """

    def __init__(self, path: str) -> None:
        try:
            with in_place_of_own(Path(path), HEADER.__eq__, len(HEADER)) as descriptor:
                mapping = _mapped(descriptor)
        except (OSError, ValueError) as error:  # ValueError: no name of a file
            raise DeviceOpenError(
                f"device.log = {path}: the file cannot be made ({getattr(error, 'strerror', None) or error}); name one "
                "in a folder that exists, is writable and has room, or leave the setting out."
            ) from error
        self._rows = np.frombuffer(mapping, LOG_ROW, CAPACITY, len(HEADER))
        self._head = np.zeros(1, _HEAD)
        self._head["rows"] = self._rows.ctypes.data

    def append(self, device_time: float, x: float, y: float) -> None:
        """Add the command (x, y) that arrives now, at `device_time` [s]."""
        log_command(self.place, device_time, x, y)

    @property
    def place(self) -> int:
        """Where `log_command` finds it, as long as this object lives."""
        return self._head.ctypes.data


def _mapped(descriptor: int) -> mmap.mmap:
    """Give a new file its full size with real pages, and map it."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, SIZE)
    else:  # macOS cannot allocate, only set the size
        os.ftruncate(descriptor, SIZE)
    mapping = mmap.mmap(descriptor, SIZE)
    mapping[: len(HEADER)] = HEADER
    return mapping
