"""What a journal says has happened: trials and their attempts, what was answered, what was interrupted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from apps.experiment.journal.schema import Record
from haptics.errors import RecordingError


@dataclass
class Attempt:
    """One attempt at a trial.

    Attributes
    ----------
    start : dict
        Its record ``trial_start``.
    response : dict or None
        Its record ``response``.
    end : dict or None
        Its record ``trial_end``; None if it was interrupted.
    redone : bool
        Whether an event ``redo`` with its ``trial`` came later: it counts no more, and the trial is run again.
    recording : str or None
        Folder of the recording that its block had then, relative to the session's.
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
        """Which attempt at it, from 1."""
        return int(self.start["attempt"])

    @property
    def counts(self) -> bool:
        """Whether it ended and counts."""
        return self.end is not None and self.end["outcome"] == "ok" and not self.redone


@dataclass
class SessionState:
    """What has happened in a session.

    Attributes
    ----------
    header : dict
        The first record.
    attempts : list of Attempt
        Every attempt at every trial, in order.
    blocks : dict
        Blocks that were begun, and how often.
    block_starts : list of dict
        The records ``block_start``.
    events, notes : list of dict
        The records of these kinds.
    end : dict or None
        The record ``end``, if the session ended and was not taken up again.
    last_utc : str
        When the last record was written.
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
    def answered(self) -> dict[int, Attempt]:
        """The attempt that counts of every trial that has one, in the order of the trials."""
        return {one.trial: one for one in sorted(self.attempts, key=lambda one: one.trial) if one.counts}

    @property
    def interrupted(self) -> Attempt | None:
        """The last attempt, if it was begun and not ended; its response may have been given."""
        return self.attempts[-1] if self.attempts and self.attempts[-1].end is None else None

    @property
    def repeated(self) -> int:
        """Attempts that ended and do not count."""
        return sum(one.end is not None and not one.counts for one in self.attempts)

    def recordings_of(self, attempt: Attempt) -> list[str]:
        """Return the recordings that may have an attempt: that of its block then, and those made after it."""
        block = attempt.start["block"]
        named = [one["recording"] for one in self.block_starts if one["block"] == block and one["recording"]]
        return named[named.index(attempt.recording) :] if attempt.recording in named else []

    def attempts_at(self, trial: int) -> int:
        """Return how often a trial has been begun."""
        return len(self._of_trial.get(trial, ()))

    def add(self, attempt: Attempt) -> None:
        """Take an attempt that begins."""
        self.attempts.append(attempt)
        self._of_trial.setdefault(attempt.trial, []).append(attempt)

    def redo(self, trial: int) -> None:
        """Let what was answered in a trial count no more."""
        for attempt in self._of_trial.get(trial, ()):
            attempt.redone = True

    def counted(self, trial: int) -> bool:
        """Whether a trial has an attempt that counts."""
        return any(one.counts for one in self._of_trial.get(trial, ()))

    def age(self, now: datetime | None = None) -> timedelta:
        """Return how long ago the last record was written, by the clocks of the machines that wrote and ask.

        Raises
        ------
        RecordingError
            If the record's time is none.
        """
        try:
            written = datetime.fromisoformat(self.last_utc)
            return (now or datetime.now(UTC)) - written
        except (ValueError, TypeError) as error:
            raise RecordingError(f"utc = {self.last_utc[:40]!r} in the journal is no date and time.") from error


def replay(records: Iterable[Mapping[str, object]]) -> SessionState:
    """Return what the records of a journal say, as `Journal.read` gives them.

    Raises
    ------
    RecordingError
        If they contradict each other, naming the line.
    """
    state: SessionState | None = None
    for line, record in enumerate(map(dict, records), 1):
        if state is None:
            state = SessionState(record)
        try:
            take(state, record)
        except ValueError as error:
            raise RecordingError(f"journal, line {line}: {error}.") from error
        state.last_utc = str(record["utc"])
    if state is None:
        raise RecordingError("the journal is empty.")
    return state


def take(state: SessionState, record: Record) -> None:
    """Take one more record into account.

    Raises
    ------
    ValueError
        In words, if it contradicts those before it.
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
