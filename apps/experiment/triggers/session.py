"""Triggers of a session: start of the process, its log, and the records of the journal.

The log ``triggers.jsonl`` in the folder of the session receives every code when it is sent. At the end of every trial
its new lines become an event ``triggers`` of the journal. A log that a killed session has left is added to the journal
when the session is resumed.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from apps.experiment.journal.journal import Journal, parsed
from apps.experiment.journal.schema import TRIGGERS, TRIGGERS_OPENED
from apps.experiment.triggers.ports import DEVICE, EVENTS, LARGEST_CODE, TriggerSettings
from apps.experiment.triggers.process import MOST_WAITING, Event, start
from apps.front_ends.messages import Quit
from apps.settings.config import SessionConfig
from haptics.errors import ConfigurationError, DeviceFault, RecordingError
from haptics.shared import SharedFile

LOG = "triggers.jsonl"

_LARGEST_LOG = 100_000_000
"""Maximum size of a log [bytes]."""

_PER_RECORD = 100
"""Maximum number of codes in a record of the journal."""

_START, _END = 20.0, 5.0
"""Time for the process to open the output, and for the process of a killed session to end [s]."""

_ENDED = (
    "triggers: their process ended unexpectedly, so the session was stopped; continue it with its folder and resume."
)

_FIELDS = ("event", "code", "tick", "marker", "due_ns", "sent_ns")


class Triggers:
    """Triggers of a session that runs in real time.

    Parameters
    ----------
    settings : TriggerSettings
        Output and codes; ``port`` is not ``none``.
    journal : Journal
        Journal of the session.
    fifo : bool
        Whether the process requests FIFO scheduling.

    Attributes
    ----------
    front : FrontEnd
        The process, as a stream of the session's service.

    Raises
    ------
    HapticError
        If the output cannot be opened, or the log of a killed session is damaged.
    """

    def __init__(self, settings: TriggerSettings, journal: Journal, fifo: bool = True) -> None:
        self._settings = settings
        self._path = journal.place.folder / LOG
        _recover(self._path, journal)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._log = _Log(os.open(self._path, flags, 0o666), self._path)
        except OSError as error:
            raise DeviceFault(f"{self._path} cannot be made ({error.strerror}); free the disk.") from error
        self._shared = SharedFile("output") if settings.port == DEVICE else None
        self.front = start(settings, self._path, fifo, self._shared.path if self._shared is not None else None)
        try:
            until = time.monotonic() + _START
            while not self._log.opened:
                self._require_running(self._log.read())
                if time.monotonic() > until:
                    raise DeviceFault(f"triggers: {settings.port} was not opened within {_START:g} s.")
                time.sleep(0.01)
            journal.append("event", name=TRIGGERS_OPENED, port=settings.port, address=settings.address)
        except BaseException:
            self.close()
            raise

    def connect(self, session: SessionConfig) -> SessionConfig:
        """Return a configuration whose device sets its digital output, if that is the output of the triggers."""
        if self._shared is None:
            return session
        return replace(session, device_settings={**session.device_settings, "output": str(self._shared.path)})

    def send(self, name: str, tick: int, marker: int, answer: Any = None) -> None:
        """Send the code of an event that rows do not contain. Never blocks."""
        code = self._settings.code(name, answer=answer)
        if code:
            self.front.send(Event(name, code, tick, marker))

    def collect(self, write: Callable[..., None]) -> None:
        """Write the codes that were sent since the last call to the journal.

        Parameters
        ----------
        write : callable
            Writes an event of the journal.

        Raises
        ------
        DeviceFault
            If the output or the process has failed.
        """
        sent = self._log.read()
        _add(sent, write)
        self._require_running(sent)

    def finish(self, write: Callable[..., None]) -> None:
        """End the process when every code is sent, write the last ones to the journal, and delete the log.

        Raises
        ------
        DeviceFault
            If the output or the process has failed.
        """
        was_open = self.front.open
        self.front.send(Quit())
        until = time.monotonic() + _END + 2.0 * self._settings.reset * MOST_WAITING
        while self.front.open and time.monotonic() < until:  # the last codes may wait for the end of earlier ones
            self.front.messages()
            time.sleep(0.005)
        sent_all = not self.front.open
        self.front.close()
        _add(self._log.read(), write)
        self._path.unlink(missing_ok=True)
        if self._log.error or not was_open:
            raise DeviceFault(self._log.error or _ENDED)
        if not sent_all:
            raise DeviceFault("triggers: the last codes were not sent in time; check the receiver.")

    def close(self) -> None:
        """End the process. The log remains for the session to be resumed, unless `finish` was called."""
        self.front.close()
        self._log.close()
        if self._shared is not None:
            self._shared.close()

    def _require_running(self, sent: list[dict[str, Any]]) -> None:
        self.front.messages()  # updates `open`
        if self._log.error:
            raise DeviceFault(self._log.error)
        if not self.front.open and not sent:
            raise DeviceFault(_ENDED)


class _Log:
    """Incremental reader of the log; owns the descriptor."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor, self._path = descriptor, path
        self._offset = self._number = 0
        self.opened, self.error = False, ""

    def read(self) -> list[dict[str, Any]]:
        """Return the codes of new complete lines.

        Raises
        ------
        RecordingError
            If a line is invalid, or the log is too large.
        """
        found: list[dict[str, Any]] = []
        while True:
            data = os.pread(self._descriptor, 1 << 16, self._offset)
            whole = data.rfind(b"\n") + 1
            if not whole:
                if len(data) == 1 << 16:
                    raise RecordingError(f"{self._path}: has a line of more than {1 << 16} bytes; move it away.")
                return found
            self._offset += whole
            if self._offset > _LARGEST_LOG:
                raise RecordingError(f"{self._path}: is larger than {_LARGEST_LOG} bytes; move it away.")
            for line in data[:whole].splitlines():
                self._number += 1
                try:
                    record = parsed(line)
                    if not isinstance(record, dict):
                        raise ValueError("is no JSON object")
                    if "opened" in record:
                        self.opened = True
                    elif "error" in record:
                        self.error = str(record["error"])[:500]
                    else:
                        found.append(_checked(record))
                except (ValueError, TypeError, RecursionError) as error:
                    raise RecordingError(f"{self._path}, line {self._number}: {error}; move it away.") from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of the log. Raise `ValueError` if its fields or values are invalid."""
    good = tuple(record) == _FIELDS and record["event"] in EVENTS and 1 <= record["code"] <= LARGEST_CODE
    if not good or not all(type(record[name]) is int and -(2**62) < record[name] < 2**62 for name in _FIELDS[1:]):
        raise ValueError(f"is no code that was sent, with {', '.join(_FIELDS)}")
    return record


def _add(sent: list[dict[str, Any]], write: Callable[..., Any]) -> None:
    """Write codes as events of the journal, with `write` as in `Triggers.collect`."""
    for first in range(0, len(sent), _PER_RECORD):
        write(TRIGGERS, sent=sent[first : first + _PER_RECORD])


def _recover(path: Path, journal: Journal) -> None:
    """Add the log of a killed session to the journal, without the codes that the journal has, and delete it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordingError(f"{path} cannot be read ({error.strerror}); move it away.") from error
    log = _Log(descriptor, path)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RecordingError(f"{path} is no file; move it away.")
        until = time.monotonic() + _END
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() > until:
                    raise ConfigurationError(
                        f"{path} is in use by the triggers of the killed session: end that process first."
                    ) from error
                time.sleep(0.05)
        known = 0
        for record in journal.records:
            if record["record"] == "event" and record["name"] == TRIGGERS_OPENED:
                known = 0
            elif record["record"] == "event" and record["name"] == TRIGGERS:
                known += len(record["sent"])
        _add(log.read()[known:], lambda name, **fields: journal.append("event", name=name, **fields))
        path.unlink()
    finally:
        log.close()
