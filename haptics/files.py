"""Atomic writes, and safe readers of untrusted TOML, JSON and NumPy files.

A file is replaced completely or not at all. Readers bound all sizes and reject objects. For any content, the readers of
TOML and NumPy files return plain values or raise `ConfigurationError` with a one-sentence message.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
import struct
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError


def write_atomically(path: str | Path, text: str) -> None:
    """Write a text file atomically.

    On failure, an existing file remains unchanged.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    try:
        where = Path(os.path.realpath(path))  # follow a link and replace its target
        with tempfile.TemporaryDirectory(prefix=f".{where.name}.", dir=where.parent) as folder:
            whole = Path(folder) / where.name
            with whole.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            whole.replace(where)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}).") from error


def replace_owned(path: Path, data: bytes, magic: bytes) -> None:
    """Replace a file of an earlier run; refuse a link and a file that does not begin with `magic`.

    Raises
    ------
    OSError
        If the file cannot be written, or `path` is not a file of this kind.
    """
    with replacing_owned(path, lambda start: start == magic, len(magic)) as descriptor:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)


@contextlib.contextmanager
def replacing_owned(path: Path, is_ours: Callable[[bytes], bool], length: int) -> Iterator[int]:
    """Yield the descriptor of a new file that atomically replaces `path` on success.

    It never writes through a link and never replaces a file of another kind.

    Parameters
    ----------
    path : Path
        Path of the file; its folder must exist.
    is_ours : callable
        Returns True if the existing file may be replaced, given its first bytes. Empty files may always be replaced.
    length : int
        Number of bytes to pass to `is_ours`.

    Raises
    ------
    OSError
        If the file cannot be created, or `path` is something else.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            raise FileExistsError(f"{path} is a link: remove it, or choose another name")
        if not stat.S_ISREG(mode):
            raise FileExistsError(f"{path} is no file: choose another name")
        with open(path, "rb") as file:
            start = file.read(length)
        if start and not is_ours(start):
            raise FileExistsError(f"{path} was not written by this program: move it away, or choose another name")
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        yield descriptor
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    finally:
        os.close(descriptor)


# --- reading ----------------------------------------------------------------------------------------------------------

_MAX_TEXT_BYTES = 4_000_000  # maximum size of a TOML file [bytes]

MAX_ARRAY_BYTES = 1_000_000_000
"""Maximum total size of the arrays of an NPZ file [bytes]."""

MAX_ARRAYS = 1000
MAX_NESTING = 32
"""Maximum nesting depth of tables and lists."""

_LONGEST_HEADER = 10_000
_MAGIC = b"\x93NUMPY"
_NUMBERS = re.compile(r"[<>|=]?[fiub](1|2|4|8|16)")
_OBJECTS = re.compile(r"[<>|=]?O\d*")
_NO_ARCHIVE = (
    *(OSError, EOFError, ValueError, OverflowError, MemoryError, RuntimeError),  # RuntimeError: encrypted
    *(zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError),  # NotImplementedError: another compression
)


# --- TOML -------------------------------------------------------------------------------------------------------------


def read_toml(path: str | Path, label: str = "", remedy: str = "") -> dict[str, Any]:
    """Return the content of a TOML file.

    Parameters
    ----------
    path : str or Path
        The file.
    label : str
        Name of the file in messages (``device.parameters = 'a.toml'``); by default its path.
    remedy : str
        Advice in the message if the file cannot be read.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, is not TOML, or exceeds the limits.
    """
    label = label or str(path)
    data = read_small(path, label, remedy)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{label}: is no TOML (byte {error.start} is not UTF-8).") from error
    return parse_toml(text, label)


def read_small(path: str | Path, label: str = "", remedy: str = "") -> bytes:
    """Return the bytes of a file of at most 4 MB; see `read_toml` for `label` and `remedy`.

    Raises
    ------
    ConfigurationError
        If the file cannot be read or is larger.
    """
    label = label or str(path)
    try:
        with open(path, "rb", opener=open_nonblocking) as file:
            data = file.read(_MAX_TEXT_BYTES + 1)
    except (OSError, ValueError) as error:  # the name contains a null byte
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{label}: cannot be read ({reason}){'; ' if remedy else ''}{remedy}.") from error
    if len(data) > _MAX_TEXT_BYTES:
        raise ConfigurationError(f"{label}: is too large; must be at most {_MAX_TEXT_BYTES // 1_000_000} MB.")
    return data


def sha256_of(path: str | Path, label: str = "") -> str:
    """Return the SHA-256 of a small file; raises like `read_small`."""
    return hashlib.sha256(read_small(path, label)).hexdigest()


def open_nonblocking(path: str, flags: int) -> int:
    """Open a file without blocking on a pipe that has no writer; such a pipe reads as empty."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def parse_toml(text: str, label: str) -> dict[str, Any]:
    """Return the content of the TOML document `text`; `label` is its name in messages.

    Raises
    ------
    ConfigurationError
        If it is not TOML, is nested too deeply, or contains integers beyond 64 bits, which TOML excludes.
    """
    try:
        content = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigurationError(f"{label}: is nested too deeply; {MAX_NESTING} levels at most.") from error
    except ValueError as error:
        reason = error if isinstance(error, tomllib.TOMLDecodeError) else "a whole number has too many digits"
        raise ConfigurationError(f"{label}: is no TOML ({reason}).") from error
    left: list[tuple[Any, int]] = [(content, 0)]
    while left:
        value, depth = left.pop()
        if depth > MAX_NESTING:
            raise ConfigurationError(f"{label}: is nested too deeply; {MAX_NESTING} levels at most.")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ConfigurationError(f"{label}: is no TOML (a whole number is beyond 64 bits).")
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left.extend((member, depth + 1) for member in members)
    return content


def format_toml(tables: Mapping[str, Any], prefix: str = "") -> str:
    """Format nested tables as TOML: numbers, texts, flags, lists of them, and tables by name.

    Values of None are omitted. Numbers are written with full precision.
    """
    values = {key: value for key, value in tables.items() if value is not None and not isinstance(value, Mapping)}
    lines = [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in values.items()]
    head = [f"[{prefix}]"] if prefix and lines else []
    block = "\n".join([*head, *lines])
    below = [
        format_toml(table, f"{prefix}.{_toml_key(key)}" if prefix else _toml_key(key))
        for key, table in tables.items()
        if isinstance(table, Mapping)
    ]
    return "\n\n".join(filter(None, [block, *(text.rstrip("\n") for text in below)])) + "\n"


def _toml_key(key: str) -> str:
    bare = key and key.isascii() and all(character.isalnum() or character in "-_" for character in key)
    return key if bare else _toml_text(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _toml_text(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml_value, value))}]"
    return repr(int(value)) if isinstance(value, Integral) else repr(float(value))


def _toml_text(text: str) -> str:
    escaped = (
        f"\\{character}" if character in '"\\' else character if character.isprintable() else f"\\U{ord(character):08x}"
        for character in text
    )
    return f'"{"".join(escaped)}"'


# --- NumPy arrays -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Header:
    """Header of a ``.npy`` file; only the shape has been validated.

    Attributes
    ----------
    descr : object
        Format of the elements as written in the file: a string, or a list of columns.
    fortran_order : bool
        Whether the first index varies fastest.
    shape : tuple of int
        Non-negative sizes.
    """

    descr: Any
    fortran_order: bool
    shape: tuple[int, ...]


def read_header(file: IO[bytes]) -> Header:
    """Read the header of a ``.npy`` file and leave `file` positioned after it.

    Raises
    ------
    ValueError
        If the header is not valid.
    """
    start = file.read(8)
    if len(start) < 8 or start[:6] != _MAGIC or start[6] not in (1, 2, 3):
        raise ValueError("it does not begin as a NumPy file does")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header would have {length} bytes")
    text = file.read(length)
    if b"\\" in text:  # recordings have no backslash in headers, and Python warns about some escapes
        raise ValueError("its header is damaged")
    try:
        facts = ast.literal_eval(text.decode("utf-8" if start[6] == 3 else "latin-1"))
        descr, order, shape = facts["descr"], facts["fortran_order"], facts["shape"]
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("its header is damaged") from error
    if not isinstance(order, bool) or not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("its header is damaged")
    return Header(descr, order, shape)


def read_npz(path: str | Path) -> dict[str, NDArray[Any]]:
    """Return the numeric arrays of an NPZ file by name; other arrays, such as strings, are omitted.

    Raises
    ------
    ConfigurationError
        If the file is not an NPZ file, is damaged, contains objects, or is larger than `MAX_ARRAY_BYTES`.
    """
    if not Path(path).is_file():
        raise ConfigurationError(f"{path}: there is no such file.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_ARRAYS or sum(member.file_size for member in members) > MAX_ARRAY_BYTES:
                raise ValueError(f"more than {MAX_ARRAYS} arrays or {MAX_ARRAY_BYTES // 1_000_000} MB")
            found = {
                one.filename.removesuffix(".npy"): array_from_npy(archive.read(one), one.filename) for one in members
            }
    except _NO_ARCHIVE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigurationError(f"{path}: is not an NPZ file of numbers ({reason}).") from error
    return {name: array for name, array in found.items() if array is not None}


def array_from_npy(data: bytes, name: str) -> NDArray[Any] | None:
    """Return the array in the bytes of a ``.npy`` file; None if it is not numeric.

    Raises
    ------
    ValueError
        With the `name`, if the file is damaged or contains objects or columns.
    """
    file = io.BytesIO(data)
    try:
        header = read_header(file)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if not isinstance(header.descr, str) or _OBJECTS.fullmatch(header.descr):
        raise ValueError(f"{name} holds objects or columns; must hold numbers")
    if not _NUMBERS.fullmatch(header.descr):
        return None
    try:
        kind = np.dtype(header.descr)
    except TypeError as error:
        raise ValueError(f"{name}: unknown format {header.descr!r}") from error
    count = math.prod(header.shape)
    if count * kind.itemsize != len(data) - file.tell() or max(header.shape, default=0) > MAX_ARRAY_BYTES:
        raise ValueError(f"{name}: is cut short or has the wrong shape")
    values = np.frombuffer(data, kind, count, file.tell()).copy()
    return values.reshape(header.shape, order="F" if header.fortran_order else "C")


# --- JSON -------------------------------------------------------------------------------------------------------------

MAX_JSON_BYTES = 100_000_000
"""Maximum size of a metadata file or journal [bytes]."""


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Append one JSON line to a journal and flush it to the operating system."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(value, allow_nan=False) + "\n")


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace the content of `path` atomically: readers see the old file or the new one."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def parse_json(text: str) -> Any:
    """Parse JSON; raise `ValueError` for nan and infinity, which JSON does not have."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def complete_lines(path: Path) -> list[str]:
    """Return the complete lines of a journal, without a last line truncated by a crash."""
    if not path.exists():
        return []
    return [line for line in read_small_text(path).splitlines(keepends=True) if line.endswith("\n")]


def read_small_text(path: Path) -> str:
    """Return the text of a file; raise `OSError` or `ValueError` if it is not a text file or is too large."""
    if not path.is_file():
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(f"{path.name} is too large")
    return path.read_text(encoding="utf-8")
