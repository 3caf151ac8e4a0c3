"""Shared memory between processes that the operating system frees with the last process that uses it.

On Linux it is an anonymous file in memory (``memfd_create(2)``). The creating process holds the descriptor, and other
processes open the file as ``/proc/PID/fd/N``. Existing mappings outlive the descriptor. Only descriptors and mappings
of live processes keep the file in existence, so a killed process cannot leave it behind.

On systems without such files, or where a process cannot open the descriptors of another, a named file is used instead.
It is removed at every regular end, and by the servo if the application dies. If both die, it remains.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError


class SharedFile:
    """A new, empty file that other processes of the same user can map.

    Pickled copies in other processes contain the path but do not own the file.

    Parameters
    ----------
    kind : str
        Content of the file; part of its name in tools that inspect the memory of a process.

    Attributes
    ----------
    path : Path
        Path under which any process can open the file until `close`.
    """

    def __init__(self, kind: str) -> None:
        try:  # descriptors of a process with privileges from its executable are not accessible to others
            anonymous = hasattr(os, "memfd_create") and os.stat("/proc/self/fd").st_uid == os.geteuid()
        except OSError:
            anonymous = False
        if anonymous:
            descriptor = os.memfd_create(f"haptics-{kind}")
            self.path = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
            self._release: Callable[[], object] = weakref.finalize(self, os.close, descriptor)
        else:
            memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # otherwise in the temporary folder
            descriptor, name = tempfile.mkstemp(f".{kind}", f"haptics-{os.getpid()}-", memory)
            os.close(descriptor)
            self.path = Path(name)
            self._release = weakref.finalize(self, self.path.unlink, True)

    def close(self) -> None:
        """Unlink the file. Existing mappings stay valid. Closing twice has no effect."""
        self._release()

    def remove_orphaned(self) -> None:
        """Remove a named file on behalf of its creator, which has died."""
        with contextlib.suppress(OSError):
            self.path.unlink()

    def __getstate__(self) -> dict[str, Any]:
        """Return the path only; the descriptor belongs to this process."""
        return {"path": self.path}


def map_new(path: Path, size: int) -> mmap.mmap:
    """Map `size` bytes [1] of an empty or new file at `path` for writing.

    Raises
    ------
    OSError
        If the file cannot be created or is not empty.
    ConfigurationError
        If the memory is insufficient.
    """
    with open(path, "ab+") as file:
        if file.tell():
            raise FileExistsError(f"{path} is not empty.")
        try:  # allocate all pages: writing to a page that cannot be allocated kills the process
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:  # macOS cannot allocate pages, only set the size
                os.ftruncate(file.fileno(), size)
        except OSError as error:
            raise ConfigurationError(f"no room in memory for {size} bytes ({error.strerror}): free some.") from error
        return mmap.mmap(file.fileno(), size)


# --- mailbox ----------------------------------------------------------------------------------------------------------
#
# One-way transfer of the latest value of a record, from one writer to readers in other processes.
#
# The record is in a mapped file and protected by a sequence lock: the version is odd while the writer is active.
# Readers never block the writer, and the servo compares only one integer to detect a change.

_RECORD_OFFSET = 64
_ATTEMPTS = 3


class Mailbox:
    """Latest value of a record of `dtype` in the file at `path`, which must be new or empty for `create`.

    Attributes
    ----------
    sequence : (1,) int64 array
        Twice the number of published values; odd during a write.
    record : (1,) structured array
        The mapped record. Aligned 8-byte fields may be accessed individually (each is written with one store); values
        that belong together must use `publish` and `read`.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], *, create: bool = False) -> None:
        size = _RECORD_OFFSET + dtype.itemsize
        self.path = path
        try:
            if create:
                mapping = map_new(path, size)
            else:
                with open(path, "rb+") as file:
                    mapping = mmap.mmap(file.fileno(), size)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{path} cannot be used to pass settings: {error}") from error
        self.sequence: NDArray[np.int64] = np.frombuffer(mapping, "<i8", 1)
        self.record = np.frombuffer(mapping, dtype, 1, _RECORD_OFFSET)

    @property
    def version(self) -> int:
        """Number of published values."""
        return int(self.sequence[0]) >> 1

    @property
    def addresses(self) -> tuple[int, int]:
        """Addresses of the sequence counter and of the record."""
        return self.sequence.ctypes.data, self.record.ctypes.data

    def publish(self, value: Any) -> int:
        """Replace the record by `value` and return its version (one writer only)."""
        self.sequence[0] += 1
        self.record[0] = value
        self.sequence[0] += 1
        return self.version

    def read(self) -> tuple[int, Any] | None:
        """Return the version and the latest complete value, as a (1,) structured array.

        None while the writer is active or if it died during a write: keep the present value and try again later.
        """
        for _ in range(_ATTEMPTS):
            before = int(self.sequence[0])
            value = self.record.copy()
            if before % 2 == 0 and before == int(self.sequence[0]):
                return before >> 1, value
        return None
