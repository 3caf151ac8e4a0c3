"""The journal of a session: one JSON line a record, each on the disk before the experiment goes on.

Whatever happens to the process, the machine or the disk, what `Journal.append` has returned from is kept. A record
that the disk refused is cut off again, so that a journal is a whole number of records but for the moment of writing;
what a kill or a power cut leaves of a line is cut off when the session is opened again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from apps.experiment.journal.errors import JournalFault
from apps.experiment.journal.lock import Lock
from apps.experiment.journal.names import SessionFolder, require_code, require_impersonal
from apps.experiment.journal.own_files import flush_folder, put
from apps.experiment.journal.reading import Contents, read_journal
from apps.experiment.journal.schema import FORMAT, Record, checked
from haptics.errors import ConfigurationError, RecordingError

_UNBORN = ".journal."


class Journal:
    """Writes the journal of one session; nobody else can meanwhile. Made by `create` or `open`.

    Attributes
    ----------
    place : SessionFolder
        The session.
    records : list of dict
        Every record, those of earlier runs too; the first is the header.
    torn : int
        Bytes of an unfinished last line that were cut off when it was opened.
    """

    def __init__(self, place: SessionFolder, lock: Lock, contents: Contents) -> None:
        self.place = place
        self.records = contents.records
        self.torn = contents.torn
        self._lock = lock
        self._length = contents.length
        self._broken = ""
        self._writing = threading.Lock()
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(place.journal, flags)
        if contents.torn:
            os.ftruncate(self._descriptor, contents.length)
            os.fsync(self._descriptor)

    @classmethod
    def create(cls, place: SessionFolder, header: Mapping[str, Any], sidecar: Mapping[str, Any] | None = None) -> Self:
        """Begin a session: make its folder, write ``session.json``, then the journal with its first record.

        Parameters
        ----------
        place : SessionFolder
            The session's folder; it must have no journal yet.
        header : mapping
            Fields of the record ``header``; ``format``, ``participant`` and ``session`` are filled in.
        sidecar : mapping, optional
            What ``session.json`` says besides the header: settings in full, calibration, room, posture ...

        Raises
        ------
        ConfigurationError
            If there is a journal, somebody else writes, or the header is none.
        JournalFault
            If it cannot be written.
        """
        require_code(place.participant)
        require_impersonal(header.get("fields") or {})
        fields = {**header, "format": FORMAT, "participant": place.participant, "session": place.session}
        record = _stamped("header", 0, fields)
        lock = _locked(place)
        try:
            if os.path.lexists(place.journal):
                raise ConfigurationError(
                    f"{place.folder} has a journal: resume that session, or choose another participant or session."
                )
            write_sidecar(place, {**fields, **(sidecar or {})})
            _bear(place.journal, _line(record))
            return cls(place, lock, read_journal(place.journal))
        except OSError as error:
            lock.close()
            raise _refused(place.journal, "header", error) from error
        except BaseException:
            lock.close()
            raise

    @classmethod
    def open(cls, place: SessionFolder) -> Self:
        """Open the journal of a session that was begun, to go on with it; an unfinished last line is cut off.

        Raises
        ------
        ConfigurationError
            If somebody else writes it.
        RecordingError
            If it cannot be read, or is none.
        JournalFault
            If it cannot be written.
        """
        lock = _locked(place)
        try:
            contents = read_journal(place.journal)
            require_same(place, contents)
            return cls(place, lock, contents)
        except OSError as error:
            lock.close()
            raise _refused(place.journal, "what comes next", error) from error
        except BaseException:
            lock.close()
            raise

    @staticmethod
    def read(path: Path) -> list[Record]:
        """Return the records of a journal (or of a session's folder); see `read_journal`."""
        return read_journal(SessionFolder.of(path).journal).records

    def append(self, kind: str, /, **fields: Any) -> Record:
        """Write a record to the disk and return it as it stands there.

        Raises
        ------
        ValueError
            If it is not as its kind must be: a mistake of the program, nothing is written.
        JournalFault
            If the disk refuses it, or did so before.
        """
        with self._writing:
            if self._broken:
                raise JournalFault(self._broken)
            record = _stamped(kind, len(self.records), fields)
            try:
                self._write(_line(record))
            except OSError as error:
                fault = _refused(self.place.journal, kind, error)
                self._broken = str(fault)
                raise fault from error
            self.records.append(record)
            return record

    def close(self) -> None:
        """Let others write. Closing twice does nothing."""
        with self._writing:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            self._broken = self._broken or f"{self.place.journal} is closed"
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        """Append a line and wait for the disk; after an exception of any kind nothing of it is left."""
        found = os.fstat(self._descriptor)
        if found.st_size != self._length or not found.st_nlink:
            raise OSError(0, "somebody else has changed or removed it")
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._length)
                os.fsync(self._descriptor)
            raise
        self._length += len(line)


def write_sidecar(place: SessionFolder, facts: Mapping[str, Any]) -> None:
    """Replace ``session.json`` in one step; what is there must be one, and no link.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    put(place.sidecar, json.dumps({"haptics": "session", **facts}, indent=2, allow_nan=False) + "\n")


def _stamped(kind: str, number: int, fields: Mapping[str, Any]) -> Record:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    stamps = {"record": kind, "number": number, "utc": now, "monotonic_ns": time.monotonic_ns()}
    doubled = stamps.keys() & fields.keys()
    if doubled:
        raise ValueError(f"{kind}: {', '.join(doubled)} is the journal's own")
    return checked({**stamps, **fields})


def _line(record: Record) -> bytes:
    return (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _locked(place: SessionFolder) -> Lock:
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalFault(f"{place.folder} cannot be made ({error.strerror}); name a folder that can be") from error
    return Lock(place.lock)


def _bear(path: Path, line: bytes) -> None:
    """Make the journal with its first line in one step, so that none is ever without; the lock keeps others away."""
    for left in path.parent.glob(f"{_UNBORN}*"):  # of somebody who was killed here
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_UNBORN, dir=path.parent) as hidden:
        unborn = Path(hidden) / path.name
        with open(unborn, "xb") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        os.rename(unborn, path)
    flush_folder(path.parent)
    flush_folder(path.parent.parent)


def require_same(place: SessionFolder, contents: Contents) -> None:
    """Raise `RecordingError` if a journal is under the name of another participant or session."""
    told = (contents.header["participant"], contents.header["session"])
    if told != (place.participant, place.session):
        raise RecordingError(
            f"{place.journal} is of participant {told[0]!r}, session {told[1]}: it is under another one's name."
        )


def _refused(path: Path, kind: str, error: OSError) -> JournalFault:
    if isinstance(error, JournalFault):
        return error
    return JournalFault(
        f"{path} could not be written ({error.strerror or error}): {kind} is not kept, everything before it is. "
        f"Free the disk, then haptics experiment resume {path.parent}"
    )
