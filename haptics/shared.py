"""Shared memory of several processes, through a path, that is gone with the last of them, however they end.

On Linux it is a file in memory without a name (``memfd_create(2)``). The process that made it holds it by a descriptor,
and while it does, the others open it as ``/proc/PID/fd/N``; whoever has mapped it keeps it. No kill, at no moment, can
leave such a file behind: there is nothing to it but the descriptors and mappings of processes that live.

Where a system has no such files, or does not let others see a process's descriptors, a file with a name takes their
place. It is removed in every orderly end and by the servo of an application that died; if both die it stays.
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

from haptics.errors import ConfigurationError


class SharedFile:
    """A new, empty file that other processes of the same user can map.

    An object that was sent to another process knows the path and owns nothing.

    Parameters
    ----------
    kind : str
        What will be in it, for people who look at a process's memory.

    Attributes
    ----------
    path : Path
        What to open it by, in any process, until `close`.
    """

    def __init__(self, kind: str) -> None:
        if _nameless_files():
            descriptor = os.memfd_create(f"haptics-{kind}")
            self.path = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
            self._release: Callable[[], object] = weakref.finalize(self, os.close, descriptor)
        else:
            descriptor, name = tempfile.mkstemp(f".{kind}", f"haptics-{os.getpid()}-", _folder())
            os.close(descriptor)
            self.path = Path(name)
            self._release = weakref.finalize(self, self.path.unlink, True)

    def close(self) -> None:
        """Let nobody open it any more; who has mapped it keeps it. Closing twice does nothing."""
        self._release()

    def remove_for_the_dead(self) -> None:
        """Remove the name that it may have, in another process, when the one that made it has died."""
        with contextlib.suppress(OSError):
            self.path.unlink()

    def __getstate__(self) -> dict[str, Any]:
        """Leave what belongs to this process behind."""
        return {"path": self.path}


def map_new(path: Path, size: int) -> mmap.mmap:
    """Map `size` bytes [1] of a file at `path` that is empty or does not exist yet, for writing.

    Raises
    ------
    OSError
        If the file cannot be made, or has something in it.
    ConfigurationError
        If there is no room for it.
    """
    with open(path, "ab+") as file:
        if file.tell():
            raise FileExistsError(f"{path} is not empty.")
        _reserve(file.fileno(), size)
        return mmap.mmap(file.fileno(), size)


def _reserve(descriptor: int, size: int) -> None:
    """Give a new file its full size with real pages: a store into a page that cannot be had kills a process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:  # macOS cannot allocate, only set the size
            os.ftruncate(descriptor, size)
    except OSError as error:
        raise ConfigurationError(f"no room in memory for {size} bytes ({error.strerror}): free some.") from error


def _nameless_files() -> bool:
    """Tell whether this system has nameless files that another process of the same user may open.

    The descriptors of a process that got privileges from its program file belong to root: others may not see them.
    """
    try:
        return hasattr(os, "memfd_create") and os.stat("/proc/self/fd").st_uid == os.geteuid()
    except OSError:
        return False


def _folder() -> Path:
    """Return the folder for files with names: in memory where the system has one, else the temporary folder."""
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
