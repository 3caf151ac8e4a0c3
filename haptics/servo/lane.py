"""A one-way lane: the latest value of one record, from one writer to any readers in other processes, under a seqlock.

The record lies in a mapped file under a sequence lock: the version is odd while the writer is at work. Readers never
block the writer, and the servo only compares one integer to see that nothing has changed.
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


class Lane:
    """The latest value of a record of `dtype`, in the file at `path`, which must be new or empty to `create` one.

    Attributes
    ----------
    sequence : (1,) int64 array
        Twice the number of values published; odd while one is being written.
    record : (1,) structured array
        The mapped record itself. Aligned 8-byte fields may be read and written here one by one (each is written in
        one store); values that belong together go through `publish` and `read`.
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
        """Number of values published so far."""
        return int(self.sequence[0]) >> 1

    @property
    def places(self) -> tuple[int, int]:
        """Where the version (twice, and one more while the writer is at work) and the record lie in memory."""
        return self.sequence.ctypes.data, self.record.ctypes.data

    def publish(self, value: Any) -> int:
        """Replace the record by `value` and return its version (one writer only)."""
        self.sequence[0] += 1
        self.record[0] = value
        self.sequence[0] += 1
        return self.version

    def read(self) -> tuple[int, Any] | None:
        """Return the version and the latest complete value, as a (1,) structured array.

        None while the writer is in the middle of a value, or if it died there: keep what you have and ask again.
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
