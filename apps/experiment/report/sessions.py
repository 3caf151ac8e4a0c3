"""Input of the report: sessions of one experiment, with their trials and timing certificates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from apps.experiment.journal import SessionFolder, decode, read_journal, replay, sessions_below, trial_rows
from apps.experiment.journal.schema import OWN_FRICTION, Record
from apps.experiment.journal.state import SessionState
from apps.experiment.journal.tables import Measure, Row
from apps.experiment.trial import TASKS, Task
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.json_files import parse_json, read_small_text

Table = Mapping[str, Any]


@dataclass(frozen=True)
class SessionData:
    """Session of a participant.

    Attributes
    ----------
    place : SessionFolder
        Folder of the session.
    state : SessionState
        State from the journal.
    rows : list of dict
        Table of trials with all complete attempts.
    certificates : list of dict
        Timing certificates with the names of their recordings.
    damaged : list of str
        Errors of unreadable recordings. Their answers are still in the journal.
    """

    place: SessionFolder
    state: SessionState
    rows: list[Row]
    certificates: list[dict[str, Any]]
    damaged: list[str]

    @property
    def header(self) -> dict[str, Any]:
        """The first record of the journal."""
        return self.state.header

    @property
    def friction(self) -> dict[str, Any] | None:
        """Event of the friction measurement before the first block, or None if there was no measurement."""
        return next((one for one in self.state.events if one["name"] == OWN_FRICTION), None)

    @cached_property
    def counted(self) -> list[Row]:
        """Attempts that count, in the order of the trials."""
        return sorted((row for row in self.rows if row["counts"]), key=lambda row: int(row["trial"]))


@dataclass(frozen=True)
class Person:
    """Participant with all sessions.

    Attributes
    ----------
    code : str
        Code of the participant.
    sessions : tuple of SessionData
        Sessions in order.
    """

    code: str
    sessions: tuple[SessionData, ...]

    @property
    def rows(self) -> list[Row]:
        """All attempts of all sessions."""
        return [row for session in self.sessions for row in session.rows]

    @property
    def tested(self) -> list[Row]:
        """Test trials that count."""
        return self.of_kind("test")

    def of_kind(self, kind: str) -> list[Row]:
        """Return the trials of a kind that count."""
        return [row for session in self.sessions for row in session.counted if row["kind"] == kind]

    @property
    def observer(self) -> dict[str, Any] | None:
        """Table of the simulated observer, or None for a participant."""
        found: dict[str, Any] | None = self.sessions[0].header["observer"]
        return found


@dataclass(frozen=True)
class Experiment:
    """All sessions of an experiment.

    Attributes
    ----------
    name : str
        Name of the experiment.
    people : tuple of Person
        Participants in the order of their codes.
    """

    name: str
    people: tuple[Person, ...]

    @property
    def sessions(self) -> list[SessionData]:
        """All sessions."""
        return [session for person in self.people for session in person.sessions]

    @property
    def design(self) -> dict[str, Any]:
        """Tables of the experiment file of the first session."""
        found: dict[str, Any] = self.sessions[0].header["design"]
        return found

    def table(self, name: str) -> Table:
        """Return a table of the experiment file, empty if missing."""
        found = self.design.get(name)
        return found if isinstance(found, dict) else {}

    @property
    def task_name(self) -> str:
        """Name of the task."""
        return str(self.table("experiment").get("task", "discrimination"))

    @property
    def task(self) -> Task:
        """Task of the experiment.

        Raises
        ------
        ConfigurationError
            If this version has no such task.
        """
        if self.task_name not in TASKS:
            raise ConfigurationError(f"experiment.task = {self.task_name!r}: must be one of {', '.join(TASKS)}.")
        return TASKS[self.task_name]

    @property
    def axis(self) -> str:
        """Setting that varied."""
        found = next((row["axis"] for row in self._rows()), None)
        return str(found or self.table("stimulus").get("axis", "law.force"))

    @property
    def unit(self) -> str:
        """Unit of the axis."""
        return str(next((row["axis_unit"] for row in self._rows()), ""))

    @property
    def simulated(self) -> bool:
        """Whether a simulated observer answered in any session."""
        return any(session.header["observer"] is not None for session in self.sessions)

    def _rows(self) -> Sequence[Row]:
        return next((session.rows for session in self.sessions if session.rows), [])


def read_experiment(folders: Sequence[Path], measure: Measure | None = None) -> Experiment:
    """Return the experiment with the sessions in the folders.

    Parameters
    ----------
    folders : sequence of Path
        Folders of sessions, or parents of such folders.
    measure : callable, optional
        Function that fills the stimulus columns from recordings.

    Raises
    ------
    RecordingError
        If a journal is invalid.
    ConfigurationError
        If the sessions are of several experiments, or a blind session has not ended.
    """
    places = {place.folder.resolve(): place for folder in folders for place in sessions_below(folder)}
    sessions = [_session(place, measure) for place in places.values()]
    names = sorted({str(session.header["experiment"]) for session in sessions})
    if len(names) > 1:
        raise ConfigurationError(
            f"The folders hold sessions of {len(names)} experiments ({', '.join(names)}); name folders of one of them."
        )
    people: dict[str, list[SessionData]] = {}
    for session in sessions:
        people.setdefault(session.place.participant, []).append(session)
    in_order = [Person(code, tuple(_by_number(found))) for code, found in sorted(people.items())]
    return Experiment(names[0], tuple(in_order))


def _by_number(sessions: list[SessionData]) -> list[SessionData]:
    return sorted(sessions, key=lambda one: one.place.session)


def _session(place: SessionFolder, measure: Measure | None) -> SessionData:
    state = replay(read_journal(place.journal).records)
    rows = trial_rows(place, None if measure is None else partial(_measured, measure))
    if state.header["blind"] is not None:
        rows = [row | decode(place).stimuli.get(str(row["condition"]), {}) for row in rows]
    return SessionData(place, state, rows, *_certificates(place, state))


def _measured(measure: Measure, recording: Path, trial: Record) -> dict[str, Any]:
    """Return the stimulus columns of a trial, or the error if its recording cannot be read."""
    try:
        return measure(recording, trial)
    except RecordingError as error:
        return {"stimulus_missing": str(error)}


def _certificates(place: SessionFolder, state: SessionState) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the certificates of the existing recordings, and the errors of unreadable ones."""
    found, damaged = [], []
    for block in state.block_starts:
        if block["recording"] is None:
            continue
        file = place.inside(block["recording"]) / "recording.json"
        if not file.is_file():
            continue
        try:
            certificate = parse_json(read_small_text(file)).get("certificate") or {}
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            damaged.append(f"{place.stem}, {block['recording']}: cannot be read ({error}).")
            continue
        found.append({"recording": block["recording"], "block": block["block"], **certificate})
    return found, damaged
