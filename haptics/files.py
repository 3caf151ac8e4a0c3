"""Atomic writes: a file is replaced completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

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
    _require_own(path, is_ours, length)
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


def _require_own(path: Path, is_ours: Callable[[bytes], bool], length: int) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise FileExistsError(f"{path} is a link: remove it, or choose another name")
    if not stat.S_ISREG(found.st_mode):
        raise FileExistsError(f"{path} is no file: choose another name")
    with open(path, "rb") as file:
        start = file.read(length)
    if start and not is_ours(start):
        raise FileExistsError(f"{path} is a file of somebody's: move it away, or choose another name")
