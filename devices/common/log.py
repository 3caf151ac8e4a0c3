"""Log of the commands of a virtual device: a ring buffer in a file that survives the process.

The file is a ``.npy`` file with `CAPACITY` rows of dtype `LOG_ROW`, mapped into memory and used as a ring buffer. It
can be read with ``numpy.load`` at any time, also after ``kill -9``. Rows with ``monotonic_ns == 0`` were never written.
Sort the others by ``monotonic_ns`` to restore their order. The clock is the monotonic clock of the system, which all
processes share.
"""

from __future__ import annotations

import io
import mmap
import os
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from haptics.errors import DeviceOpenError
from haptics.files import replacing_owned
from haptics.jit import fence, kernel, record_at
from haptics.servo.kernels import SCRATCH, monotonic_ns

DEVICE_LOG = "device_log.npy"
"""Name of the log in a recording."""

CAPACITY = 16384
"""Number of rows of the ring buffer: 16 s at 1 kHz."""

LOG_ROW = np.dtype([("monotonic_ns", "<i8"), ("time", "<f8"), ("command", "<f8", (2,))])
"""One command: time of arrival [ns, monotonic clock], time of the device [s], command ([N] or [m])."""


_ROW_BYTES = LOG_ROW.itemsize

# Kernel record of a log: address of its rows, number of commands, buffer for the clock.
_HEAD = np.dtype([("rows", "<i8"), ("count", "<i8"), ("scratch", "<i8", (SCRATCH,))])


@kernel
def log_command(place: int, device_time: float, x: float, y: float) -> None:
    """Append the command (x, y) with the present time and `device_time` [s] to the log at `place`."""
    log = record_at(place, _HEAD)
    row = record_at(log.rows + log.count % CAPACITY * _ROW_BYTES, LOG_ROW)
    row.time = device_time
    row.command[0], row.command[1] = x, y
    fence()
    row.monotonic_ns = monotonic_ns(log.scratch)
    log.count += 1


_header = io.BytesIO()
npy.write_array_header_1_0(
    _header, {"descr": npy.dtype_to_descr(LOG_ROW), "fortran_order": False, "shape": (CAPACITY,)}
)
HEADER = _header.getvalue()
SIZE = len(HEADER) + CAPACITY * LOG_ROW.itemsize
"""Size of a log file, including its header [bytes]."""


class CommandLog:
    """Log file of a device; it replaces an older log at `path`, but no other file.

    Disk space for the whole file is allocated before it is mapped, because writing to a page without disk space would
    kill the process.

    Parameters
    ----------
    path : str
        File to create; its folder must exist.

    Attributes
    ----------
    address : int
        Address for `log_command`, valid as long as this object exists.

    Raises
    ------
    DeviceOpenError
        If the file cannot be created.
    """

    def __init__(self, path: str) -> None:
        try:
            with replacing_owned(Path(path), HEADER.__eq__, len(HEADER)) as descriptor:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(descriptor, 0, SIZE)
                else:  # macOS cannot allocate, only set the size
                    os.ftruncate(descriptor, SIZE)
                mapping = mmap.mmap(descriptor, SIZE)
                mapping[: len(HEADER)] = HEADER
        except (OSError, ValueError) as error:  # ValueError: invalid file name
            raise DeviceOpenError(
                f"device.log = {path}: the file cannot be made ({getattr(error, 'strerror', None) or error}); name one "
                "in a folder that exists, is writable and has room, or leave the setting out."
            ) from error
        self._rows = np.frombuffer(mapping, LOG_ROW, CAPACITY, len(HEADER))
        self._head = np.zeros(1, _HEAD)
        self._head["rows"] = self._rows.ctypes.data
        self.address = self._head.ctypes.data

    def append(self, device_time: float, x: float, y: float) -> None:
        """Append the command (x, y) with the present time and `device_time` [s]."""
        log_command(self.address, device_time, x, y)
