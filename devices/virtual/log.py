"""What a virtual device received and when, in a file that survives the death of the process.

The file is an ordinary ``.npy`` of `CAPACITY` rows of dtype `LOG_ROW`, mapped into memory and used as a ring: anyone
can ``numpy.load`` it at any time, also after ``kill -9``. Rows with ``monotonic_ns == 0`` were never written; sort the
others by ``monotonic_ns`` to get them in order. The clock is the system's monotonic one, shared by all processes.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from haptics.errors import DeviceOpenError

CAPACITY = 16384
"""Rows of the ring: 16 s at 1 kHz."""

LOG_ROW = np.dtype([("monotonic_ns", "<i8"), ("time", "<f8"), ("command", "<f8", (2,))])
"""One command: when it arrived [ns, monotonic clock], the device's time [s], the command ([N] or [m])."""


class CommandLog:
    """The log file of one device; an existing file at `path` is replaced.

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
            rows: Any = np.lib.format.open_memmap(Path(path), mode="w+", dtype=LOG_ROW, shape=(CAPACITY,))
        except OSError as error:
            raise DeviceOpenError(
                f"device.log = {path}: the file cannot be made ({error.strerror or error}); name one in a folder that "
                "exists and is writable, or leave the setting out."
            ) from error
        # Columns as plain arrays: storing through a memmap costs several times as much.
        plain = rows.view(np.ndarray)
        self._stamps, self._times, self._commands = plain["monotonic_ns"], plain["time"], plain["command"]
        self._count = 0

    def append(self, device_time: float, x: float, y: float) -> None:
        """Add the command (x, y) that arrives now, at `device_time` [s]."""
        slot = self._count % CAPACITY
        self._times[slot] = device_time
        self._commands[slot, 0] = x
        self._commands[slot, 1] = y
        self._stamps[slot] = time.monotonic_ns()
        self._count += 1
