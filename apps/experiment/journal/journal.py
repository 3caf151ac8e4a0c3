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
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from apps.experiment.journal.folder import (
    JournalFault,
    Lock,
    SessionFolder,
    flush_folder,
    put,
    require_code,
    require_impersonal,
    write_durably,
)
from apps.experiment.journal.schema import FORMAT, GROUP, Record, checked
from haptics.errors import ConfigurationError, RecordingError
from haptics.files import open_nonblocking

LARGEST_JOURNAL = 200_000_000
"""Maximum size of a journal [bytes]."""

LONGEST_LINE = 8_000_000
"""Maximum length of a line [bytes]. The first line contains the whole design."""

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
    def create(
        cls,
        place: SessionFolder,
        header: Mapping[str, Any],
        sidecar: Mapping[str, Any] | None = None,
        write_others: Callable[[], None] = lambda: None,
    ) -> Self:
        """Create the session's folder, ``session.json``, and the journal with its first record.

        Parameters
        ----------
        place : SessionFolder
            Folder of the session, without a journal.
        header : mapping
            Fields of the record ``header``; ``format``, ``participant`` and ``session`` are added.
        sidecar : mapping, optional
            Additional content of ``session.json``: complete settings, calibration, room, posture ...
        write_others : callable, optional
            Writes further files of the session before the journal, when no other process can begin the session.

        Raises
        ------
        ConfigurationError
            If a journal of this or another experiment exists, another process writes it, or the header is invalid.
        JournalFault
            If the journal cannot be written.
        """
        require_code(place.participant)
        require_impersonal(header.get("fields") or {})
        fields = {**header, "format": FORMAT, "participant": place.participant, "session": place.session}
        record = _stamped("header", 0, fields)
        with _locking(place, "header") as lock:
            if os.path.lexists(place.journal):
                raise ConfigurationError(
                    f"{place.folder} has a journal: resume that session, or choose another participant or session."
                )
            if others := sorted(one.name for one in place.folder.glob("*_journal.jsonl")):
                raise ConfigurationError(
                    f"{place.folder} has the journal {others[0]} of another experiment: choose another session or "
                    "folder (--out)."
                )
            write_others()
            write_sidecar(place, {**fields, **(sidecar or {})})
            _create_file(place.journal, _line(record))
            return cls(place, lock, read_journal(place.journal))

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
        with _locking(place, "the next record") as lock:
            contents = read_journal(place.journal)
            require_same(place, contents)
            return cls(place, lock, contents)

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
            raise OSError(0, "another process has changed or removed it")
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


def _stamped(kind: str, number: int, fields: Mapping[str, Any]) -> Record:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    stamps = {"record": kind, "number": number, "utc": now, "monotonic_ns": time.monotonic_ns()}
    doubled = stamps.keys() & fields.keys()
    if doubled:
        raise ValueError(f"{kind}: {', '.join(doubled)} is the journal's own")
    return checked({**stamps, **fields})


def _line(record: Record) -> bytes:
    return (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()


@contextlib.contextmanager
def _locking(place: SessionFolder, kind: str) -> Iterator[Lock]:
    """Create and lock the folder of a session, and release the lock after an exception.

    `kind` is the record that is lost in this case.
    """
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalFault(f"{place.folder} cannot be made ({error.strerror}); name a folder that can be") from error
    lock = Lock(place.lock)
    try:
        yield lock
    except BaseException as error:
        lock.close()
        if isinstance(error, OSError):
            raise _refused(place.journal, kind, error) from error
        raise


def _create_file(path: Path, line: bytes) -> None:
    """Create the journal together with its first line, so that a journal is never empty.

    Requires the lock.
    """
    for left in path.parent.glob(f"{_UNBORN}*"):  # remains of a killed process
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_UNBORN, dir=path.parent) as hidden:
        unborn = Path(hidden) / path.name
        write_durably(unborn, line)
        os.rename(unborn, path)
    flush_folder(path.parent)
    flush_folder(path.parent.parent)


def _refused(path: Path, kind: str, error: OSError) -> JournalFault:
    if isinstance(error, JournalFault):
        return error
    return JournalFault(
        f"{path} could not be written ({error.strerror or error}): {kind} is not kept, everything before it is. "
        f"Free the disk, then haptics experiment resume {path.parent}"
    )


def write_sidecar(place: SessionFolder, facts: Mapping[str, Any]) -> None:
    """Replace ``session.json`` atomically.

    An existing file must be a session file and not a link.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    put(place.sidecar, json.dumps({"haptics": "session", **facts}, indent=2, allow_nan=False) + "\n")


@dataclass(frozen=True)
class Contents:
    """Content of a journal.

    Attributes
    ----------
    records : list of dict
        All records in order. The first one is the header.
    length : int
        Size of the complete lines [bytes].
    torn : int
        Size of an incomplete last line [bytes], which remains after a kill or power failure. The record was never
        confirmed.
    """

    records: list[Record]
    length: int
    torn: int


def read_journal(path: Path) -> Contents:
    """Read a journal, validate every line, and ignore an incomplete last line.

    Raises
    ------
    RecordingError
        If the file cannot be read or is invalid. The message contains the line number, from 1, and the error.

    Examples
    --------
    >>> from apps.experiment import TrialLog, read_journal
    >>> with TrialLog.open("data", "P01", "wood or ice", axis="law.force") as log:
    ...     block = log.begin_block()
    >>> [record["record"] for record in read_journal(log.place.journal).records]
    ['header', 'block_start']
    """
    try:
        with open(path, "rb", opener=open_nonblocking) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RecordingError(f"{path} is no file.")
            data = file.read(LARGEST_JOURNAL + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    if len(data) > LARGEST_JOURNAL:
        raise RecordingError(f"{path} is too large; a journal has at most {LARGEST_JOURNAL // 1_000_000} MB.")
    length = data.rfind(b"\n") + 1
    if not length:
        raise RecordingError(f"{path} holds no whole record: the session was killed before it began. Begin it again.")
    records: list[Record] = []
    for number, line in enumerate(data[:length].split(b"\n")[:-1]):
        try:
            if len(line) > LONGEST_LINE:
                raise ValueError(f"has {len(line)} bytes; {LONGEST_LINE} at most")
            record = parsed(line)
            if number == 0 and isinstance(record, dict) and record.get("record") == "header":
                found = record.get("format")
                if type(found) is int and found > FORMAT:
                    raise ValueError(
                        f"is of format {str(found)[:20]}; this version reads up to {FORMAT}: use a newer one"
                    )
            record = checked(record)
            if record["number"] != number:
                raise ValueError(
                    f"number = {record['number']}: must be {number}; lines are missing, doubled or out of order"
                )
            if (record["record"] == "header") != (number == 0):
                raise ValueError(f"is a record {record['record']!r}: the header comes first, and once")
            records.append(record)
        except (ValueError, RecursionError) as error:
            words = error if isinstance(error, ValueError) else "is nested too deeply"
            raise RecordingError(f"{path}, line {number + 1}: {words}.") from error
    return Contents(records, length, len(data) - length)


def parsed(data: bytes) -> Any:
    """Parse JSON strictly.

    Raise `ValueError` for duplicate names, nan and infinity.
    """
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON ({error.msg} at character {error.pos})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"is no text (byte {error.start} is not UTF-8)") from error


def _no_constant(word: str) -> None:
    raise ValueError(f"holds {word}, which is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("has a name twice")
    return found


def require_same(place: SessionFolder, contents: Contents) -> None:
    """Raise `RecordingError` if a journal is in the folder of another participant or session."""
    owner = (contents.records[0]["participant"], contents.records[0]["session"])
    if owner != (place.participant, place.session):
        raise RecordingError(
            f"{place.journal} is of participant {owner[0]!r}, session {owner[1]}: it is under another one's name."
        )


# --- state of a session ---


@dataclass
class Attempt:
    """Attempt at a trial.

    Attributes
    ----------
    start : dict
        Record ``trial_start``.
    response : dict or None
        Record ``response``.
    end : dict or None
        Record ``trial_end``, or None if the attempt was interrupted.
    redone : bool
        Whether an event ``redo`` with its ``trial`` followed. The attempt then does not count, and the trial is
        repeated.
    recording : str or None
        Folder of the recording of its block at that time, relative to the session's folder.
    """

    start: Record
    response: Record | None = None
    end: Record | None = None
    redone: bool = False
    recording: str | None = None

    @property
    def trial(self) -> int:
        """Number of the trial."""
        return int(self.start["trial"])

    @property
    def number(self) -> int:
        """Number of the attempt, from 1."""
        return int(self.start["attempt"])

    @property
    def counts(self) -> bool:
        """Whether the attempt is complete and counts."""
        return self.end is not None and self.end["outcome"] == "ok" and not self.redone


@dataclass
class SessionState:
    """State of a session, reconstructed from its journal.

    Attributes
    ----------
    header : dict
        The first record.
    attempts : list of Attempt
        All attempts at all trials, in order.
    blocks : dict
        Number of starts of each block.
    block_starts : list of dict
        Records of the kind ``block_start``.
    events, notes : list of dict
        Records of these kinds.
    end : dict or None
        Record ``end``, if the session ended and was not resumed.
    last_utc : str
        Time of the last record.
    of_trial : dict
        Attempts at each trial.
    """

    header: Record
    attempts: list[Attempt] = field(default_factory=list)
    blocks: dict[int, int] = field(default_factory=dict)
    block_starts: list[Record] = field(default_factory=list)
    events: list[Record] = field(default_factory=list)
    notes: list[Record] = field(default_factory=list)
    end: Record | None = None
    last_utc: str = ""
    of_trial: dict[int, list[Attempt]] = field(default_factory=dict, repr=False)

    @property
    def counted_attempts(self) -> dict[int, Attempt]:
        """The attempt that counts for each trial, in the order of the trials."""
        return {one.trial: one for one in sorted(self.attempts, key=lambda one: one.trial) if one.counts}

    @property
    def interrupted(self) -> Attempt | None:
        """The last attempt if it is incomplete.

        It may have a response.
        """
        return self.attempts[-1] if self.attempts and self.attempts[-1].end is None else None

    @property
    def group(self) -> str | None:
        """Group of the participant, or None without groups."""
        found = next((one.get("group") for one in self.events if one["name"] == GROUP), None)
        return found if isinstance(found, str) else None

    @property
    def sealed(self) -> bool:
        """Whether the session is blind, or its group is, and it has not ended."""
        groups = self.header["design"].get("groups")
        blind = self.header["blind"] is not None or (isinstance(groups, dict) and groups.get("blind") is True)
        return blind and self.end is None

    @property
    def training(self) -> bool:
        """Whether the schedule declares the session as training, which is not analysed or exported."""
        schedule = self.header["design"].get("schedule")
        sessions = schedule.get("training") if isinstance(schedule, dict) else None
        return isinstance(sessions, list) and self.header["session"] in sessions

    @property
    def test_trials(self) -> int:
        """Number of trials that count, without practice."""
        return sum(one.start["kind"] != "practice" for one in self.counted_attempts.values())

    @property
    def repeated(self) -> int:
        """Number of complete attempts that do not count."""
        return sum(one.end is not None and not one.counts for one in self.attempts)

    def recordings_of(self, attempt: Attempt) -> list[str]:
        """Return the recordings of the block from the start of an attempt on, which may contain it."""
        block = attempt.start["block"]
        named = [one["recording"] for one in self.block_starts if one["block"] == block and one["recording"]]
        return named[named.index(attempt.recording) :] if attempt.recording in named else []

    def attempts_at(self, trial: int) -> int:
        """Return the number of attempts at a trial."""
        return len(self.of_trial.get(trial, ()))

    def age(self, now: datetime | None = None) -> timedelta:
        """Return the time since the last record, by the clocks of the writing and the current computer.

        Parameters
        ----------
        now : datetime, optional
            Current time.

        Raises
        ------
        RecordingError
            If the time of the record is invalid.
        """
        try:
            written = datetime.fromisoformat(self.last_utc)
            return (now or datetime.now(UTC)) - written
        except (ValueError, TypeError) as error:
            raise RecordingError(f"utc = {self.last_utc[:40]!r} in the journal is no date and time.") from error


def replay(records: Iterable[Mapping[str, object]]) -> SessionState:
    """Return the state that results from the records of a journal, as read by `Journal.read`.

    Raises
    ------
    RecordingError
        If records are inconsistent. The message contains the line.

    Examples
    --------
    >>> from apps.experiment import TrialLog, read_journal, replay
    >>> with TrialLog.open("data", "P01", "wood or ice", axis="law.force") as log:
    ...     block = log.begin_block()
    ...     trial, markers = log.begin_trial(0.5, values=(2.0, 2.5), comparison=2)  # N
    >>> state = replay(read_journal(log.place.journal).records)
    >>> len(state.counted_attempts), state.interrupted.trial
    (0, 1)
    """
    state: SessionState | None = None
    for line, record in enumerate(map(dict, records), 1):
        if state is None:
            state = SessionState(record)
        try:
            apply_record(state, record)
        except ValueError as error:
            raise RecordingError(f"journal, line {line}: {error}.") from error
    if state is None:
        raise RecordingError("the journal is empty.")
    return state


def apply_record(state: SessionState, record: Record) -> None:
    """Update the state with a record.

    Raises
    ------
    ValueError
        If the record is inconsistent with the earlier ones.
    """
    kind, state.last_utc = record["record"], str(record["utc"])
    if kind == "note":
        state.notes.append(record)
        return
    state.end = record if kind == "end" else None
    if kind == "event":
        state.events.append(record)
        if record["name"] == "redo" and type(record.get("trial")) is int:
            for attempt in state.of_trial.get(record["trial"], ()):
                attempt.redone = True
    elif kind == "block_start":
        block, expected = record["block"], state.blocks.get(record["block"], 0) + 1
        if record["attempt"] != expected:
            raise ValueError(f"attempt = {record['attempt']}: block {block} is begun for the {expected}. time")
        state.blocks[block] = expected
        state.block_starts.append(record)
    elif kind == "trial_start":
        _begin_trial(state, record)
    elif kind in ("response", "trial_end"):
        now = state.interrupted
        if now is None or (record["trial"], record["attempt"]) != (now.trial, now.number):
            raise ValueError(f"{kind} of trial {record['trial']}, attempt {record['attempt']}, which is not being run")
        if kind == "trial_end":
            now.end = record
        elif now.response is not None:
            raise ValueError(f"trial {now.trial} is answered twice")
        else:
            now.response = record


def _begin_trial(state: SessionState, record: Record) -> None:
    trial, expected = record["trial"], state.attempts_at(record["trial"]) + 1
    if record["attempt"] != expected:
        raise ValueError(f"attempt = {record['attempt']}: trial {trial} is begun for the {expected}. time")
    if record["block"] not in state.blocks:
        raise ValueError(f"trial {trial} is in block {record['block']}, which was not begun")
    if any(one.counts for one in state.of_trial.get(trial, ())):
        raise ValueError(f"trial {trial} has ended already and counts")
    recording = next(one["recording"] for one in reversed(state.block_starts) if one["block"] == record["block"])
    state.attempts.append(Attempt(record, recording=recording))
    state.of_trial.setdefault(trial, []).append(state.attempts[-1])
