"""Journal of a session: a JSON line for each record, written to disk before the experiment continues.

A record is durable once `Journal.append` has returned, even if the process, the computer or the disk fails. A record
that the disk refuses is truncated again, so that the journal contains complete records except while one is written.
Incomplete lines after a kill or a power failure are truncated when the session is opened again.
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
    """Exclusive writer of the journal of a session, created by `create` or `open`.

    Attributes
    ----------
    place : SessionFolder
        Folder of the session.
    records : list of dict
        All records including earlier runs. The first is the header.
    torn : int
        Bytes of an incomplete last line that were truncated on opening.
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
        """Create the session's folder, ``session.json``, and the journal with its first record.

        Parameters
        ----------
        place : SessionFolder
            Folder of the session, without a journal.
        header : mapping
            Fields of the record ``header``; ``format``, ``participant`` and ``session`` are added.
        sidecar : mapping, optional
            Additional content of ``session.json``: complete settings, calibration, room, posture ...

        Raises
        ------
        ConfigurationError
            If a journal exists, another process writes it, or the header is invalid.
        JournalFault
            If the journal cannot be written.
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
        """Open an existing journal for appending, and truncate an incomplete last line.

        Raises
        ------
        ConfigurationError
            If another process writes the journal.
        RecordingError
            If the journal cannot be read or is invalid.
        JournalFault
            If the journal cannot be written.
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
        """Return the records of a journal, or of a session's folder; see `read_journal`."""
        return read_journal(SessionFolder.of(path).journal).records

    def append(self, kind: str, /, **fields: Any) -> Record:
        """Write a record to disk and return it as written.

        Raises
        ------
        ValueError
            If the fields do not match the kind, which is a programming error. Nothing is written.
        JournalFault
            If the record, or an earlier one, cannot be written.
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
        """Close the journal and release the lock.

        May be called repeatedly.
        """
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
        """Append a line and flush it to disk.

        After any exception the line is removed again.
        """
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
    """Replace ``session.json`` atomically.

    An existing file must be a session file and not a link.

    Raises
    ------
    OSError
        If the file cannot be written.
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
    """Create the journal together with its first line, so that a journal is never empty.

    Requires the lock.
    """
    for left in path.parent.glob(f"{_UNBORN}*"):  # remains of a killed process
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
    """Raise `RecordingError` if a journal is in the folder of another participant or session."""
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
