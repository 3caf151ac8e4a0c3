"""One-way transfer of the latest value of a record, from one writer to readers in other processes.

The record is in a mapped file and protected by a sequence lock: the version is odd while the writer is active. Readers
never block the writer, and the servo compares only one integer to detect a change.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.shared import map_new

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
            mapping = map_new(path, size) if create else _map(path, size)
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


def _map(path: Path, size: int) -> mmap.mmap:
    with open(path, "rb+") as file:
        return mmap.mmap(file.fileno(), size)
