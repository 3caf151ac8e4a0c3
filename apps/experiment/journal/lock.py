"""One writer at a time: the lock of a session's folder."""

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
    """Holds a session's folder for this process until it is closed, or the process ends, however that is.

    Parameters
    ----------
    path : Path
        The lock file; it stays where it is, for a file that comes and goes could be locked twice.

    Raises
    ------
    ConfigurationError
        If somebody else writes the session.
    JournalFault
        If the file cannot be made or locked.
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
        """Let others write. Closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _say_whose(self) -> None:
        whose = json.dumps({"process": os.getpid(), "station": platform.node()[:100]})
        with contextlib.suppress(OSError):  # only a courtesy, and the disk may be full
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, whose.encode(), 0)

    def _holder(self) -> str:
        try:
            told = json.loads(os.pread(self._descriptor, _LONGEST, 0))
            return f"process {int(told['process'])} on {str(told['station'])!a}"
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return "another process"
