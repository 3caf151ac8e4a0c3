"""Lock of a session's folder, which permits a single writer."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import platform
from pathlib import Path

from apps.experiment.journal.errors import JournalFault
from haptics.errors import ConfigurationError

_LONGEST = 300


class Lock:
    """Lock of a session's folder, held until `close` or the end of the process.

    Parameters
    ----------
    path : Path
        The lock file. It is never deleted, because a recreated file could be locked twice.

    Raises
    ------
    ConfigurationError
        If another process writes the session.
    JournalFault
        If the file cannot be created or locked.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise JournalFault(f"{path} cannot be opened ({error.strerror}); it must be a file of its own") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._say_whose()
        except OSError as error:
            holder = self._holder()
            os.close(self._descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise ConfigurationError(
                    f"{path.parent} is being written by {holder}: end that session first, or choose another one."
                ) from error
            raise JournalFault(f"{path} cannot be locked ({error.strerror}); use a folder on another disk") from error

    def close(self) -> None:
        """Release the lock.

        May be called repeatedly.
        """
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _say_whose(self) -> None:
        whose = json.dumps({"process": os.getpid(), "station": platform.node()[:100]})
        with contextlib.suppress(OSError):  # informative only, and the disk may be full
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, whose.encode(), 0)

    def _holder(self) -> str:
        try:
            told = json.loads(os.pread(self._descriptor, _LONGEST, 0))
            return f"process {int(told['process'])} on {str(told['station'])!a}"
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return "another process"
