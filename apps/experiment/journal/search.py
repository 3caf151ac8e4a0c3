"""Search for a word in files of any kind, also in archives and compressed files within archives.

The files may be hostile: depth, size and number of members are limited.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Self

from haptics.files import open_nonblocking

_DEEPEST = 4
"""Number of nested archives and compressions in a file that are searched."""

_LARGEST_UNPACKED = 1 << 33
"""Number of bytes of a file that are searched, with the contents of all archives in it."""

_LARGEST_NESTED = 1 << 28
"""Largest ZIP archive within an archive that is searched; it is copied to a temporary file."""

_MOST_MEMBERS = 100_000
"""Number of members of all archives in a file that are searched."""

_CHUNK = 1 << 20
_OVERLAP = 128  # of two chunks that are searched; longer than a code

_UNPACK: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
"""Function that opens a compressed file, by the first bytes of the file."""

_UNKNOWN = (b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
"""First bytes of archives and compressed files that cannot be read: 7z, RAR, Zstandard, LZ4."""


class _Unsearched(Exception):
    """A limit of the search is exceeded, or the format is unknown."""


def contains(path: Path, word: re.Pattern[bytes]) -> bool | None:
    """Return whether a regular file contains a word, None if it could not be searched completely."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with open(path, "rb", opener=open_nonblocking) as file:
            return _Search(word).search(file, 0)
    except Exception:  # damaged archives raise errors of many kinds
        return None


class _Search:
    """Search for a word in a file, its archives and their archives, within limits of depth, size and count."""

    def __init__(self, word: re.Pattern[bytes]) -> None:
        self._word = word
        self._bytes, self._members = _LARGEST_UNPACKED, _MOST_MEMBERS

    def search(self, file: IO[bytes], depth: int) -> bool:
        """Search a file from its start; only the file on the disk (`depth` 0) must be seekable."""
        start = _read_fully(file, _CHUNK)
        if start.startswith(_UNKNOWN):
            raise _Unsearched
        unpack = next((one for magic, one in _UNPACK.items() if start.startswith(magic)), None)
        is_tar = start[257:262] == b"ustar"
        is_zip = start.startswith((b"PK\3\4", b"PK\5\6"))
        if depth == 0 and not is_zip and unpack is None and not is_tar:
            is_zip = zipfile.is_zipfile(file)
            file.seek(len(start))
        if unpack is None and not is_zip and not is_tar:
            return self._search_text(start, file)
        if depth >= _DEEPEST:
            raise _Unsearched
        whole: IO[bytes] = _Continued(start, file, self._spend)  # type: ignore[assignment]
        if unpack is not None:
            with unpack(whole) as contents:
                return self.search(contents, depth + 1)
        if is_tar:
            return self._search_tar(whole, depth)
        if depth == 0:
            return self._search_zip(file, depth)
        with tempfile.SpooledTemporaryFile(max_size=1 << 24) as stream:
            while data := whole.read(_CHUNK):
                stream.write(data)
                if stream.tell() > _LARGEST_NESTED:
                    raise _Unsearched
            return self._search_zip(stream, depth)

    def _search_zip(self, file: IO[bytes], depth: int) -> bool:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                self._count()
                if self._word.search(member.filename.encode(errors="replace")):
                    return True
                with archive.open(member) as contents:
                    if self.search(contents, depth + 1):
                        return True
        return False

    def _search_tar(self, file: IO[bytes], depth: int) -> bool:
        with tarfile.open(fileobj=file, mode="r|", tarinfo=_Header) as archive:
            for member in archive:
                self._count()
                names = f"{member.name}\n{member.linkname}".encode(errors="replace")
                if self._word.search(names):
                    return True
                contents = archive.extractfile(member) if member.isreg() else None
                if contents is not None and self.search(contents, depth + 1):
                    return True
            while archive.fileobj is not None and (rest := archive.fileobj.read(_CHUNK)):
                if rest.strip(b"\0"):  # a damaged header ends the iteration without an error
                    raise _Unsearched
        return False

    def _search_text(self, data: bytes, file: IO[bytes]) -> bool:
        """Search the first bytes of a file that have been read, and the rest of it."""
        chunk, data, size = data, b"", 0
        while chunk:
            self._spend(len(chunk))
            data, size = data[-_OVERLAP:] + chunk, size + len(chunk)
            if any(end < len(data) for end in self._ends(data, size)):
                return True
            chunk = file.read(_CHUNK)
        return any(True for _ in self._ends(data, size))

    def _ends(self, data: bytes, size: int) -> Iterator[int]:
        """Yield the ends of the word in the last `data` of `size` bytes; one at their start may be part of another."""
        return (one.end() for one in self._word.finditer(data) if one.start() or len(data) == size)

    def _spend(self, count: int) -> None:
        self._bytes -= count
        if self._bytes < 0:
            raise _Unsearched

    def _count(self) -> None:
        self._members -= 1
        if self._members < 0:
            raise _Unsearched


class _Header(tarfile.TarInfo):
    """Header in a tar archive; a long extended header would be read into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the header in 512 bytes."""
        found = super().frombuf(buf, encoding, errors)
        if found.size > _CHUNK and not (found.isreg() or found.issparse()):
            raise _Unsearched
        return found


class _Continued:
    """Readable file that begins with bytes that have been read already, and counts the others."""

    def __init__(self, start: bytes, file: IO[bytes], spend: Callable[[int], None]) -> None:
        self._start, self._file, self._spend = start, file, spend

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes."""
        if not self._start:
            data = self._file.read(size)
            self._spend(len(data))
            return data
        size = len(self._start) if size < 0 else size
        data, self._start = self._start[:size], self._start[size:]
        return data


def _read_fully(file: IO[bytes], size: int) -> bytes:
    """Return `size` bytes, fewer only at the end of the file."""
    data = b""
    while len(data) < size and (chunk := file.read(size - len(data))):
        data += chunk
    return data
