"""Atomic writes: files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from haptics.errors import ConfigurationError


def write_whole(path: str | Path, text: str) -> None:
    """Write a file atomically, all of it or nothing: whatever happens, one that was there is not half overwritten.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    try:
        where = Path(os.path.realpath(path))  # the file, where it is a link to one
        with tempfile.TemporaryDirectory(prefix=f".{where.name}.", dir=where.parent) as folder:
            whole = Path(folder) / where.name
            with whole.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            whole.replace(where)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}).") from error


def replace_own(path: Path, data: bytes, magic: bytes) -> None:
    """Replace a file that an earlier run may have made; what is a link, or does not begin with `magic`, is left alone.

    Raises
    ------
    OSError
        If it cannot be written, or something else is there.
    """
    with in_place_of_own(path, lambda start: start == magic, len(magic)) as descriptor:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)


@contextlib.contextmanager
def in_place_of_own(path: Path, is_ours: Callable[[bytes], bool], length: int) -> Iterator[int]:
    """Give the descriptor of a new file that takes the place of `path` at the end, in one step.

    Nothing is ever written through a link, nor in place of what is not ours.

    Parameters
    ----------
    path : Path
        The name; its folder must exist.
    is_ours : callable
        Tells from the first bytes of what is there whether it may be replaced. An empty file may.
    length : int
        How many bytes it wants to see.

    Raises
    ------
    OSError
        If nothing can be made there, or something else is there.
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
