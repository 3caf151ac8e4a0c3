"""The ticks of a recording in less room, and as they were again, to the last byte.

Neighbouring rows differ little: each column is put apart, every row but the first is replaced by the bits in which it
differs from the one before (exclusive or), and bytes of the same weight come together before they are compressed. So
most of them are zero. Nothing is rounded. ``ticks.npz`` is a file of NumPy's; what it holds besides the columns is the
head of ``ticks.npy``.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from haptics.errors import RecordingError
from haptics.recording.json_files import parsed_json, small_text
from haptics.recording.recording import METADATA, ROWS_SHA256, TICKS, stated_hash

PACKED = "ticks.npz"
"""In the folder of a recording, in place of ``ticks.npy``."""

_HEAD = "head"
_MOST = 1 << 33
"""A recording larger than this is not unpacked [bytes]."""


def pack(folder: Path) -> int:
    """Pack a recording that was closed in order; return how many bytes that saves, 0 where it is packed already.

    Its ticks are removed only when what was written has been read back and is the same.

    Raises
    ------
    RecordingError
        If the ticks are not those of its description, or what was written is not the same.
    OSError
        If it cannot be written.
    """
    ticks, packed = folder / TICKS, folder / PACKED
    if not ticks.exists():
        return 0
    data = ticks.read_bytes()
    _require_same(folder, data, ticks)
    unborn = folder / f".{PACKED}.part"
    with open(unborn, "wb") as file:
        np.savez_compressed(file, **_planes(data))
        file.flush()
        os.fsync(file.fileno())
    if _joined(unborn) != data:
        raise RecordingError(f"{unborn} does not hold the ticks of {ticks}: nothing was removed.")
    os.replace(unborn, packed)
    ticks.unlink()
    return len(data) - packed.stat().st_size


def unpack(folder: Path) -> int:
    """Make a recording as it was; return how many bytes that takes, 0 where it is so already.

    Raises
    ------
    RecordingError
        If what was packed is not what the description says.
    OSError
        If it cannot be written.
    """
    packed, ticks = folder / PACKED, folder / TICKS
    if ticks.exists() or not packed.exists():
        return 0
    data = _joined(packed)
    _require_same(folder, data, packed)
    unborn = folder / f".{TICKS}.part"
    with open(unborn, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unborn, ticks)
    size = packed.stat().st_size
    packed.unlink()
    return len(data) - size


def _require_same(folder: Path, data: bytes, where: Path) -> None:
    metadata = parsed_json(small_text(folder / METADATA))
    length = _Head.of(data).length if ROWS_SHA256 in metadata else 0
    found = hashlib.sha256(data[length:])
    found.update(data[:length])
    if stated_hash(metadata) != found.hexdigest():
        raise RecordingError(
            f"{where} is not what {folder / METADATA} says of its ticks: it was changed, or not closed."
        )


@dataclass(frozen=True)
class _Head:
    """What the head of a table says: the type of a row, how many there are, and its own length [bytes]."""

    row: np.dtype[Any]
    count: int
    length: int

    @classmethod
    def of(cls, data: bytes) -> _Head:
        """Read it; `ValueError` if it is none of ours."""
        stream = io.BytesIO(data)
        if npy.read_magic(stream) != (1, 0):
            raise ValueError("another version of NumPy's format")
        shape, fortran, row = npy.read_array_header_1_0(stream)
        if fortran or len(shape) != 1 or row.hasobject or not row.fields or shape[0] * row.itemsize > _MOST:
            raise ValueError("no table of rows")
        return cls(row, shape[0], stream.tell())

    @property
    def columns(self) -> list[slice]:
        """Which bytes of a row belong together, eight and less at a time: the numbers of a vector are apart."""
        found = []
        for kind, start in ((one[0], one[1]) for one in (self.row.fields or {}).values()):
            size = kind.base.itemsize
            found += [slice(at, at + size) for at in range(start, start + kind.itemsize, size)]
        return found


def _planes(data: bytes) -> dict[str, Any]:
    """Return the head of a table, and the planes of bytes of each column, (bytes, rows)."""
    head = _Head.of(data)
    raw = np.frombuffer(data, np.uint8, offset=head.length).reshape(head.count, head.row.itemsize)
    changed = raw.copy()
    changed[1:] ^= raw[:-1]
    planes = {f"column{k}": np.ascontiguousarray(changed[:, part].T) for k, part in enumerate(head.columns)}
    return {_HEAD: np.frombuffer(data[: head.length], np.uint8), **planes}


def _joined(path: Path) -> bytes:
    """Return the bytes of the table that was packed.

    Raises
    ------
    RecordingError
        If it is none.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as planes:
            first = planes[_HEAD].tobytes()
            head = _Head.of(first)
            raw = np.zeros((head.count, head.row.itemsize), np.uint8)
            for number, part in enumerate(head.columns):
                raw[:, part] = np.bitwise_xor.accumulate(planes[f"column{number}"], axis=1).T
            return bytes(first + raw.tobytes())
    except (OSError, ValueError, LookupError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise RecordingError(f"{path} holds no packed ticks ({error}).") from error
