"""Input of the report: sessions of one experiment, with their trials and timing certificates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.experiment.journal.blinding import decode
from apps.experiment.journal.exclusion import TRAINING, LeftOut, require_any, select_included
from apps.experiment.journal.folder import SessionFolder, sessions_below
from apps.experiment.journal.journal import SessionState, read_journal, replay, require_same
from apps.experiment.journal.schema import OWN_FRICTION, TRIGGERS, Record
from apps.experiment.journal.tables import Measure, Row, Session, trial_rows
from apps.experiment.trial import TASKS, Task
from haptics.errors import ConfigurationError, RecordingError
from haptics.files import parse_json, read_small_text

DEFAULT_TASK = "discrimination"
"""Task of sessions whose journal does not name one."""

Table = Mapping[str, Any]


@dataclass(frozen=True)
class SessionData(Session):
    """Session for the report.

    Attributes
    ----------
    certificates : list of dict
        Timing certificates with the names of their recordings.
    damaged : list of str
        Errors of unreadable recordings. Their answers are still in the journal.
    """

    certificates: list[dict[str, Any]]
    damaged: list[str]

    @property
    def friction(self) -> Record | None:
        """Event of the friction measurement before the first block, or None if there was no measurement."""
        return next((one for one in self.state.events if one["name"] == OWN_FRICTION), None)

    @functools.cached_property
    def trigger_delays(self) -> dict[str, list[float]]:
        """Time from the start of the tick until each trigger was sent, by event [s]."""
        found: dict[str, list[float]] = {}
        for record in self.state.events:
            sent = record.get("sent") if record["name"] == TRIGGERS else None
            for one in sent if isinstance(sent, list) else ():
                try:
                    found.setdefault(str(one["event"])[:40], []).append(1e-9 * (one["sent_ns"] - one["due_ns"]))
                except (LookupError, TypeError):  # not written by this program
                    continue
        return found

    @functools.cached_property
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
        Sessions in order, all of a simulated observer or none.
    """

    code: str
    sessions: tuple[SessionData, ...]

    def trials(self, kind: str = "test") -> list[Row]:
        """Return the trials of a kind that count."""
        return [row for session in self.sessions for row in session.counted if row["kind"] == kind]

    @property
    def group(self) -> str | None:
        """Group of the participant, or None without groups."""
        return self.sessions[0].state.group

    @property
    def observer(self) -> dict[str, Any] | None:
        """Table of the simulated observer, or None for a participant."""
        observer: dict[str, Any] | None = self.sessions[0].header["observer"]
        return observer


class Experiment:
    """All sessions of an experiment.

    Parameters
    ----------
    name : str
        Name of the experiment.
    people : sequence of Person
        Participants in the order of their codes.

    Attributes
    ----------
    sessions : list of SessionData
        All sessions.
    design : dict
        Tables of the experiment file of the first session.
    task_name : str
        Name of the task.
    axis, unit : str
        Setting that varied, and its unit.
    simulated : bool
        Whether a simulated observer answered in any session.
    designs : int
        Number of different experiment files.
    left_out : tuple of LeftOut
        Sessions of excluded participants, and training.
    """

    def __init__(self, name: str, people: Sequence[Person], left_out: Sequence[LeftOut] = ()) -> None:
        self.name, self.people, self.left_out = name, tuple(people), tuple(left_out)
        self.sessions = [session for person in people for session in person.sessions]
        self.design: dict[str, Any] = self.sessions[0].header["design"]
        self.task_name = _task_of(self.sessions[0])
        first = next((session.rows[0] for session in self.sessions if session.rows), {})
        self.axis = str(first.get("axis") or self.table("stimulus").get("axis", "law.force"))
        self.unit = str(first.get("axis_unit", ""))
        self.simulated = any(session.header["observer"] is not None for session in self.sessions)
        self.designs = len({session.header["design_sha256"] for session in self.sessions})

    def table(self, name: str) -> Table:
        """Return a table of the experiment file, empty if missing."""
        found = self.design.get(name)
        return found if isinstance(found, dict) else {}

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


def read_experiment(folders: Sequence[Path], measure: Measure | None = None) -> Experiment:
    """Return the experiment with the sessions in the folders, without training and excluded participants.

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
        If the sessions are of several experiments or tasks, a session is given twice, a participant has sessions with
        and without a simulated observer, a blind session has not ended, or all sessions are left out.
    """
    places = {place.folder.resolve(): place for folder in folders for place in sessions_below(folder)}
    included, left_out = select_included(places.values())
    states = {}
    for place in included:
        contents = read_journal(place.journal)
        require_same(place, contents)
        states[place] = replay(contents.records)
    left_out += [LeftOut(one.participant, one.session, TRAINING) for one in included if states[one].training]
    sessions = [_session(place, state, measure) for place, state in states.items() if not state.training]
    require_any(sessions, left_out)
    names = sorted({str(session.header["experiment"]) for session in sessions})
    if len(names) > 1:
        raise ConfigurationError(
            f"The folders hold sessions of {len(names)} experiments ({', '.join(names)}); name folders of one of them."
        )
    _require_one(sessions, "tasks", lambda session: {_task_of(session)})
    _require_one(sessions, "axes", lambda session: {str(row["axis"]) for row in session.rows})
    people: dict[str, list[SessionData]] = {}
    for session in sorted(sessions, key=lambda one: one.place.session):
        earlier = people.setdefault(session.place.participant, [])
        if earlier and earlier[-1].place.session == session.place.session:
            raise ConfigurationError(
                f"{session.place.folder} and {earlier[-1].place.folder} are both {session.place.stem}; name one."
            )
        if earlier and (earlier[0].header["observer"] is None) != (session.header["observer"] is None):
            raise ConfigurationError(
                f"A simulated observer answered in some sessions of {session.place.participant} only: name the folders "
                "of the sessions that belong together."
            )
        earlier.append(session)
    return Experiment(names[0], [Person(code, tuple(found)) for code, found in sorted(people.items())], left_out)


def _task_of(session: SessionData) -> str:
    table = session.header["design"].get("experiment")
    return str(table.get("task", DEFAULT_TASK)) if isinstance(table, dict) else DEFAULT_TASK


def _require_one(sessions: Sequence[SessionData], noun: str, of: Callable[[SessionData], set[str]]) -> None:
    """Raise `ConfigurationError` if a property differs between the sessions."""
    found = sorted(set().union(*map(of, sessions)))
    if len(found) > 1:
        raise ConfigurationError(
            f"The sessions have {len(found)} {noun} ({', '.join(found)}); name the folders of those with one of them."
        )


def _session(place: SessionFolder, state: SessionState, measure: Measure | None) -> SessionData:
    def measured(recording: Path, trial: Record) -> dict[str, Any]:
        """Return the stimulus columns of a trial, or the error if its recording cannot be read."""
        try:
            return {} if measure is None else measure(recording, trial)
        except RecordingError as error:
            return {"stimulus_missing": str(error)}

    rows = trial_rows(place, None if measure is None else measured)
    if rows and state.header["blind"] is not None:
        decode(place)  # raises unless the session has ended
    elif rows and state.sealed:
        raise ConfigurationError(f"{place.folder}: its group is blind, and the session has not ended; leave it out.")
    certificates, damaged = [], []
    for block in state.block_starts:
        name = block["recording"]
        file = place.inside(name) / "recording.json" if name is not None else None
        if file is None or not file.is_file():
            continue
        try:
            certificate = parse_json(read_small_text(file)).get("certificate") or {}
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            damaged.append(f"{place.stem}, {name}: cannot be read ({error}).")
            continue
        certificates.append({"recording": name, "block": block["block"], **certificate})
    return SessionData(place, state, rows, certificates, damaged)
