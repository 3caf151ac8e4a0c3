"""Journal of trials that a program runs itself, instead of the command ``haptics experiment``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from apps.experiment.journal import Journal, SessionFolder, replay
from apps.experiment.journal.exclusion import ExclusionLog
from apps.experiment.journal.journal import SessionState, apply_record
from apps.experiment.journal.schema import Record
from apps.experiment.journal.tables import write_table
from apps.experiment.schedule import SCHEDULED, first_due_day, require_due, today_in
from apps.experiment.settings import ScheduleSettings
from apps.session.record import made_by
from haptics.errors import ConfigurationError
from haptics.settings import build

if TYPE_CHECKING:
    from apps.experiment.procedures.methods import Procedure


class TrialLog:
    """Session of an experiment whose trials the caller runs; created, or continued, by `open`.

    Every step is on the disk when its method returns. A session that was interrupted continues with the trial at which
    it was: open it again with the same arguments, and pass the recorded answers to the procedures (`replay`).

    Attributes
    ----------
    place : SessionFolder
        Folder of the session; recordings must lie in it.
    state : SessionState
        State by the journal: attempts, blocks, events.
    resumed : bool
        Whether the session continues an earlier one.

    Examples
    --------
    >>> from apps.experiment import TrialLog, make_procedure, trial_seed
    >>> table = {"kind": "staircase", "start": 1.0, "minimum": 0.1, "maximum": 2.0, "reversals": 6}
    >>> staircase = make_procedure(table, guess=0.5, seed=trial_seed(4, "P01", 1, 1, 0))
    >>> with TrialLog.open("data", "P01", "wood or ice", axis="law.force", seed=4) as session:
    ...     number_before = session.replay(staircase)
    ...     block = session.begin_block()
    ...     while not staircase.finished:
    ...         level = staircase.level()
    ...         trial, markers = session.begin_trial(level, values=(2.0, 2.0 + level), comparison=2)
    ...         session.finish_trial("2", correct=level > 0.4)
    ...         staircase.add_outcome(level, level > 0.4)
    ...     table = session.finish()
    >>> session.state.test_trials == staircase.trials
    True
    """

    def __init__(self, journal: Journal, axis: str, *, resumed: bool) -> None:
        self._journal, self._axis = journal, axis
        self.place, self.resumed = journal.place, resumed
        self.state: SessionState = replay(journal.records)
        self._block = max(self.state.blocks, default=0)

    @classmethod
    def open(
        cls,
        out: str | Path,
        participant: str,
        experiment: str,
        *,
        axis: str,
        session: int = 1,
        seed: int = 0,
        design: Mapping[str, Any] | None = None,
        fields: Mapping[str, Any] | None = None,
        device: str = "",
        observer: str = "",
        schedule: Mapping[str, Any] | None = None,
        outside_window: str = "",
    ) -> Self:
        """Create the session in ``OUT/sub-PARTICIPANT/ses-NN``, or continue it.

        Parameters
        ----------
        out : str or Path
            Folder of the experiment's data.
        participant : str
            Code of the participant, such as ``P01``: letters and digits, not a name.
        experiment : str
            Name of the experiment.
        axis : str
            Setting that varies, such as ``law.force``; all levels and values have its unit.
        session : int
            Number of the session, from 1.
        seed : int
            Seed of everything random, for the record.
        design : mapping, optional
            Constants of your program for the record: plain tables, lists, numbers, texts.
        fields : mapping, optional
            Data about the participant that do not tell who it is, such as ``{"handedness": "left"}``.
        device : str
            Name of the device.
        observer : str
            Name of a simulated observer; empty for a human participant. Exports contain it.
        schedule : mapping, optional
            Table ``schedule`` of an experiment file. A session outside its window is refused. A simulated observer
            comes on the first day of the window.
        outside_window : str
            Reason to run the session although the schedule does not allow it; it is recorded.

        Raises
        ------
        ConfigurationError
            If an argument is invalid, the participant is excluded, or the session was begun with other arguments, has
            ended, is open in another process, or is outside its window.
        RecordingError
            If the journal is damaged.
        """
        place = SessionFolder.new(Path(out), participant, session, experiment)
        try:
            given = {**(design or {}), "axis": axis} | ({"schedule": dict(schedule)} if schedule else {})
            constants = json.loads(json.dumps(given, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"design: must be tables, lists, texts and finite numbers ({error}).") from error
        ExclusionLog(Path(out)).require_included(place.participant)
        settings = build(ScheduleSettings, schedule or {}, "schedule")
        if outside_window and not settings.sessions:
            raise ConfigurationError("outside_window: is given without a schedule.")
        text = json.dumps(constants, sort_keys=True)
        header = {
            "experiment": experiment,
            "design": constants,
            "design_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "seed": seed,
            "fields": dict(fields or {}),
            "observer": {"name": observer} if observer else None,
            "device": {"name": device} if device else {},
            "versions": made_by()["versions"],
            "blind": None,
            "slot": None,
        }
        if not place.journal.exists():
            facts = _require_due(settings, place, Path(out), experiment, outside_window, simulated=bool(observer))
            try:
                created = cls(Journal.create(place, header), axis, resumed=False)
            except ValueError as error:
                raise ConfigurationError(f"{error}.") from error
            if facts is not None:
                created.event(SCHEDULED, **facts)
            return created
        journal = Journal.open(place)
        try:
            for name in ("experiment", "design", "seed", "fields", "observer"):
                if journal.records[0][name] != header[name]:
                    raise ConfigurationError(
                        f"{place.folder}: the session was begun with {name} = {journal.records[0][name]!r}, not "
                        f"{header[name]!r}; continue it with the same value, or choose another session."
                    )
            found = cls(journal, axis, resumed=True)
            if found.state.end is not None:
                raise ConfigurationError(f"{place.folder}: the session has ended; choose another session.")
            if settings.sessions and not observer:
                facts = _require_due(settings, place, Path(out), experiment, outside_window, simulated=False)
                found.event(SCHEDULED, **facts or {})
        except BaseException:
            journal.close()
            raise
        return found

    # --- steps --------------------------------------------------------------------------------------------------------

    def replay(self, procedure: Procedure, condition: str = "") -> int:
        """Give the answers of all trials of a condition that count to a new procedure; return their number.

        The procedure must use the levels that were passed to `begin_trial`.
        """
        answers = [
            (one.start["level"], one.response["correct"])
            for one in self.state.counted_attempts.values()
            if one.start["condition"] == condition and one.start["kind"] == "test" and one.response is not None
        ]
        for level, correct in answers:
            procedure.add_outcome(level, bool(correct))
        return len(answers)

    def begin_block(self, recording: str | Path | None = None, conditions: Sequence[str] = ("",)) -> int:
        """Begin the next block, or the present one again after an interruption; return its number.

        Parameters
        ----------
        recording : str or Path, optional
            Folder of the block's recording, in the session's folder, such as `ScriptSession.folder`.
        conditions : sequence of str
            Conditions in the block.

        Raises
        ------
        ConfigurationError
            If the recording is elsewhere.
        """
        relative = None
        if recording is not None:
            folder, base = Path(recording).resolve(), self.place.folder.resolve()
            if not folder.is_relative_to(base):
                raise ConfigurationError(f"{recording}: must be in the session's folder {base}; see TrialLog.place.")
            relative = folder.relative_to(base).as_posix()
        ended = (one for one in self.state.events if one["name"] == _BLOCK_ENDED)
        if self._block not in self.state.blocks or any(one["block"] == self._block for one in ended):
            self._block += 1
        attempt = self.state.blocks.get(self._block, 0) + 1
        conditions = list(conditions)
        self._append("block_start", block=self._block, conditions=conditions, recording=relative, attempt=attempt)
        return self._block

    def finish_block(self) -> None:
        """End the present block: the next `begin_block` begins another one, also after an interruption."""
        self.event(_BLOCK_ENDED, block=self._block)

    def begin_trial(
        self,
        level: float | None,
        *,
        values: Sequence[float | None],
        condition: str = "",
        comparison: int | None = None,
        reference: float | None = None,
        kind: str = "test",
        track: str | None = None,
    ) -> tuple[int, tuple[int, ...]]:
        """Begin the next trial, or the last one again if it did not count.

        Parameters
        ----------
        level : float or None
            Level that the procedure chose.
        values : sequence of float or None
            Value of the axis in each of up to 9 intervals.
        condition : str
            Condition.
        comparison : int, optional
            Interval with the comparison, from 1.
        reference : float, optional
            Value of the reference.
        kind : {"test", "practice", "catch-null", "catch-easy"}
            Kind of trial.
        track : str, optional
            Track of the procedure.

        Returns
        -------
        (int, tuple of int)
            Number of the trial, and for each interval the marker of its rows (`ScriptSession.mark`), by which the
            table of trials finds the delivered and felt stimuli. Rows between intervals have the marker 0.
        """
        if len(values) > _MOST_INTERVALS:
            raise ConfigurationError(
                f"begin_trial: {len(values)} values; a trial has at most {_MOST_INTERVALS} intervals."
            )
        if not self._block:
            raise ConfigurationError("begin_trial: no block has been begun; call begin_block first.")
        last = self.state.attempts[-1] if self.state.attempts else None
        trial = 1 if last is None else last.trial + last.counts
        number = self.state.attempts_at(trial) + 1
        markers = tuple(10 * (len(self.state.attempts) + 1) + k for k in range(1, len(values) + 1))
        self._append(
            "trial_start",
            trial=trial,
            block=self._block,
            attempt=number,
            kind=kind,
            condition=condition,
            track=track,
            reference=reference,
            level=level,
            comparison_interval=comparison,
            values=list(values),
            axis=self._axis,
            markers=list(markers),
        )
        return trial, markers

    def finish_trial(
        self,
        response: str | float | None,
        *,
        correct: bool | None = None,
        reaction_time: float | None = None,
        tick: int | None = None,
        source: str = "button",
        key: str | None = None,
        repeat: Sequence[str] = (),
    ) -> None:
        """Record the answer to the present trial and end it.

        Parameters
        ----------
        response : {"1", "2", "yes", "no", "same", "different"}, float or None
            The answer; None if it is missing.
        correct : bool, optional
            Whether it is right; None where nothing is right or wrong.
        reaction_time : float, optional
            Time from the end of the last interval to the answer [s].
        tick : int, optional
            Tick of the answer, as returned by `ScriptSession.wait_for_button`.
        source : {"button", "key", "screen", "observer"}
            What the answer was given with.
        key : str, optional
            Name of the key or button.
        repeat : sequence of str
            Reasons why the trial does not count; the next trial then repeats it.
        """
        now = self.state.interrupted
        if now is None or now.response is not None:  # a trial that was killed after its answer is run again
            raise ConfigurationError("finish_trial: no trial has been begun; call begin_trial first.")
        which, reasons = {"trial": now.trial, "attempt": now.number}, [str(reason) for reason in repeat]
        if response is not None:
            self._append(
                "response",
                **which,
                response=response,
                correct=correct,
                reaction_time_s=reaction_time,
                tick=tick,
                source=source,
                key=key,
            )
        self._append("trial_end", **which, outcome="repeat" if reasons else "ok", reasons=reasons)

    def event(self, name: str, **details: Any) -> None:
        """Record an event with further details, as plain values."""
        self._append("event", name=name, **details)

    def finish(self, reason: str = "completed") -> Path:
        """End the session, which cannot be continued afterwards, and write its table of trials.

        Returns
        -------
        Path
            The table (``_beh.tsv``), with the columns `COLUMNS`.
        """
        self._append("end", reason=reason, trials=self.state.test_trials, repeated=self.state.repeated)
        return write_table(self.place)

    def _append(self, kind: str, /, **fields: Any) -> None:
        try:
            record: Record = self._journal.append(kind, **{name: _plain(value) for name, value in fields.items()})
        except ValueError as error:
            raise ConfigurationError(f"{error}.") from error
        apply_record(self.state, record)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()


_MOST_INTERVALS = 9
"""Maximum number of intervals of a trial. Their markers differ in the last digit, which is 0 between intervals."""

_BLOCK_ENDED = "block-ended"
"""Event at the end of a block."""


def _require_due(
    settings: ScheduleSettings, place: SessionFolder, out: Path, experiment: str, reason: str, *, simulated: bool
) -> dict[str, Any] | None:
    """Return the fields of the event `SCHEDULED`, None without a schedule; raise if the session is not due."""
    if not settings.sessions:
        return None
    day = first_due_day(settings, out, place.participant, experiment, place.session) if simulated else None
    today = day or today_in(settings.zone)
    return require_due(settings, place, out, experiment, today, reason, option="outside_window")


def _plain(value: Any) -> Any:
    """Return a value with NumPy scalars converted to Python's."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
