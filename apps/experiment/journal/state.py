"""State of a session reconstructed from its journal: attempts, answers, interruptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from apps.experiment.journal.schema import Record
from haptics.errors import RecordingError


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
    """State of a session.

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
    """

    header: Record
    attempts: list[Attempt] = field(default_factory=list)
    blocks: dict[int, int] = field(default_factory=dict)
    block_starts: list[Record] = field(default_factory=list)
    events: list[Record] = field(default_factory=list)
    notes: list[Record] = field(default_factory=list)
    end: Record | None = None
    last_utc: str = ""
    _of_trial: dict[int, list[Attempt]] = field(default_factory=dict, repr=False)

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
        return len(self._of_trial.get(trial, ()))

    def add(self, attempt: Attempt) -> None:
        """Add an attempt that begins."""
        self.attempts.append(attempt)
        self._of_trial.setdefault(attempt.trial, []).append(attempt)

    def redo(self, trial: int) -> None:
        """Mark the attempts at a trial as not counting."""
        for attempt in self._of_trial.get(trial, ()):
            attempt.redone = True

    def counted(self, trial: int) -> bool:
        """Return True if a trial has an attempt that counts."""
        return any(one.counts for one in self._of_trial.get(trial, ()))

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
    """
    state: SessionState | None = None
    for line, record in enumerate(map(dict, records), 1):
        if state is None:
            state = SessionState(record)
        try:
            apply_record(state, record)
        except ValueError as error:
            raise RecordingError(f"journal, line {line}: {error}.") from error
        state.last_utc = str(record["utc"])
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
    kind = record["record"]
    if kind == "note":
        state.notes.append(record)
        return
    state.end = record if kind == "end" else None
    if kind == "event":
        state.events.append(record)
        if record["name"] == "redo" and type(record.get("trial")) is int:
            state.redo(record["trial"])
    elif kind == "block_start":
        _begin_block(state, record)
    elif kind == "trial_start":
        _begin_trial(state, record)
    elif kind in ("response", "trial_end"):
        _go_on(state, record)


def _begin_block(state: SessionState, record: Record) -> None:
    block, expected = record["block"], state.blocks.get(record["block"], 0) + 1
    if record["attempt"] != expected:
        raise ValueError(f"attempt = {record['attempt']}: block {block} is begun for the {expected}. time")
    state.blocks[block] = expected
    state.block_starts.append(record)


def _begin_trial(state: SessionState, record: Record) -> None:
    trial, expected = record["trial"], state.attempts_at(record["trial"]) + 1
    if record["attempt"] != expected:
        raise ValueError(f"attempt = {record['attempt']}: trial {trial} is begun for the {expected}. time")
    if record["block"] not in state.blocks:
        raise ValueError(f"trial {trial} is in block {record['block']}, which was not begun")
    if state.counted(trial):
        raise ValueError(f"trial {trial} has ended already and counts")
    recording = next(one["recording"] for one in reversed(state.block_starts) if one["block"] == record["block"])
    state.add(Attempt(record, recording=recording))


def _go_on(state: SessionState, record: Record) -> None:
    now = state.interrupted
    kind = record["record"]
    if now is None or (record["trial"], record["attempt"]) != (now.trial, now.number):
        raise ValueError(f"{kind} of trial {record['trial']}, attempt {record['attempt']}, which is not being run")
    if kind == "trial_end":
        now.end = record
    elif now.response is not None:
        raise ValueError(f"trial {now.trial} is answered twice")
    else:
        now.response = record
