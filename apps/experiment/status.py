"""Status of an experiment: which participant is due, as data, as text, and as a page.

Groups, conditions and orders are not shown, so that a blind experiment stays blind.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from pathlib import Path
from typing import Any

from apps.experiment.forms.catalogue import base_language
from apps.experiment.journal.exclusion import ExclusionLog
from apps.experiment.journal.folder import SessionFolder, sessions_below
from apps.experiment.journal.journal import SessionState
from apps.experiment.schedule import (
    DEVIATIONS,
    Window,
    day_of,
    read_state,
    refused,
    scheduled_events,
    today_in,
    window_of,
)
from apps.experiment.settings import ScheduleSettings
from apps.shared.html import document
from haptics.errors import ConfigurationError, HapticError, RecordingError
from haptics.settings import build

STATES = ("overdue", "due", "open", "later", "finished", "stopped", "excluded", "unreadable")
"""States of participants, in the order of the page.

The next session had to begin earlier; may begin today; the last session has not ended; the next session may not begin
yet; all sessions have ended; the participant did not consent; the experimenter excluded the participant; a journal
cannot be read.
"""


_LONGEST = 60
"""Maximum length of a shown text from a journal."""


@dataclass(frozen=True)
class SessionStatus:
    """Session that has begun.

    Attributes
    ----------
    session : int
        Number of the session.
    day : date
        Day on which it was begun or last resumed.
    last_utc : str
        Time of its last record.
    reason : str or None
        Reason of its end, None if it has not ended.
    outside : str
        Deviation from the schedule with which it was run, empty without one.
    """

    session: int
    day: date
    last_utc: str
    reason: str | None
    outside: str


@dataclass(frozen=True)
class ParticipantStatus:
    """Status of a participant.

    Attributes
    ----------
    participant : str
        Code of the participant.
    state : str
        One of `STATES`.
    session : int or None
        Number of the session that is due next or has not ended, None after the last one.
    window : Window
        Days on which this session may begin.
    sessions : tuple of SessionStatus
        Sessions that have begun.
    error : str
        Reason why a journal cannot be read.
    exclusion : str
        Reason of the exclusion, empty if the participant is not excluded.
    replaced_by, replaces : str or None
        Participant who replaces this one, and participant whom this one replaces.
    """

    participant: str
    state: str
    session: int | None
    window: Window
    sessions: tuple[SessionStatus, ...]
    error: str = ""
    exclusion: str = ""
    replaced_by: str | None = None
    replaces: str | None = None


@dataclass(frozen=True)
class ExperimentStatus:
    """Status of an experiment.

    Attributes
    ----------
    experiment, title, language : str
        Name, title and language of the experiment.
    schedule : ScheduleSettings
        Schedule in the newest journal.
    today : date
        Day of the status.
    participants : tuple of ParticipantStatus
        Participants, the most urgent first.
    """

    experiment: str
    title: str
    language: str
    schedule: ScheduleSettings
    today: date
    participants: tuple[ParticipantStatus, ...]


def read_status(out: Path, today: date | None = None) -> list[ExperimentStatus]:
    """Return the status of every experiment in a folder of all sessions.

    Parameters
    ----------
    out : Path
        Folder of all sessions.
    today : date, optional
        Day of the status; default: the current day in the time zone of the schedule.

    Raises
    ------
    RecordingError
        If there is no session.
    ConfigurationError
        If the log of exclusions is invalid.
    """
    known: dict[str, dict[str, list[tuple[SessionFolder, SessionState | str]]]] = {}
    for place in _places(out):
        people = known.setdefault(place.task, {})
        people.setdefault(place.participant, []).append((place, _state_of(place)))
    root = next(place.folder.resolve().parents[1] for people in known.values() for [(place, _), *_] in people.values())
    exclusions = ExclusionLog(root)  # also for the folder of one participant
    return [_experiment(task, people, exclusions, today) for task, people in sorted(known.items())]


def _places(out: Path) -> list[SessionFolder]:
    """Return all sessions in the folder, without folders that are not sessions."""
    found = []
    for folder in sorted({path.parent for path in out.glob("sub-*/ses-*/*_journal.jsonl")}):
        try:
            found.append(SessionFolder.of(folder))
        except RecordingError:
            continue
    return found or sessions_below(out)


def _state_of(place: SessionFolder) -> SessionState | str:
    """Return the state of a session, or the error if its journal cannot be read."""
    try:
        return read_state(place)
    except HapticError as error:
        return str(error)


def _experiment(
    task: str,
    people: Mapping[str, Sequence[tuple[SessionFolder, SessionState | str]]],
    exclusions: ExclusionLog,
    today: date | None,
) -> ExperimentStatus:
    states = [state for sessions in people.values() for _, state in sessions if isinstance(state, SessionState)]
    newest = max(states, key=lambda one: str(one.header["utc"]), default=None)
    design: Mapping[str, Any] = {} if newest is None else newest.header["design"]
    table = design.get("schedule")
    try:
        schedule = build(ScheduleSettings, dict(table) if isinstance(table, dict) else {}, "schedule")
    except ConfigurationError:  # of a later version, or changed by hand
        schedule = ScheduleSettings()
    today = today or today_in(schedule.zone)
    found = []
    for code, sessions in people.items():
        one = _participant(code, sessions, schedule, today)
        if code in exclusions.excluded:
            reason = exclusions.excluded[code].reason
            one = dataclasses.replace(one, state="excluded", session=None, window=Window(None, None), exclusion=reason)
        replaced = exclusions.replaced_by(code, task), exclusions.replacement_of(code, task)
        found.append(dataclasses.replace(one, replaces=replaced[0], replaced_by=replaced[1]))
    found.sort(key=lambda one: (STATES.index(one.state), one.window.last or date.max, one.participant))
    about = design.get("experiment")
    about = about if isinstance(about, dict) else {}
    name = task if newest is None else str(newest.header["experiment"])
    title, language = str(about.get("title") or name), str(about.get("language", "en"))
    return ExperimentStatus(name, title, language, schedule, today, tuple(found))


def _participant(
    code: str, sessions: Sequence[tuple[SessionFolder, SessionState | str]], schedule: ScheduleSettings, today: date
) -> ParticipantStatus:
    begun: list[SessionStatus] = []
    any_day, stopped = Window(None, None), False
    for place, state in sorted(sessions, key=lambda one: one[0].session):
        try:
            if isinstance(state, str):
                raise RecordingError(state)
            day = day_of(state, schedule.zone)
        except RecordingError as error:
            return ParticipantStatus(code, "unreadable", None, any_day, tuple(begun), str(error))
        kinds = (one.get("outside") for one in scheduled_events(state))
        outside = next((one for one in kinds if one in DEVIATIONS), "")
        reason = None if state.end is None else str(state.end["reason"])[:_LONGEST]
        begun.append(SessionStatus(place.session, day, state.last_utc[:16], reason, outside))
        stopped = stopped or refused(state)
    if stopped:
        return ParticipantStatus(code, "stopped", None, any_day, tuple(begun))
    days = {one.session: one.day for one in begun}
    unfinished = next((one.session for one in begun if one.reason is None), None)
    following = unfinished or begun[-1].session + 1
    window = window_of(schedule, following, days.get(following - 1))
    if unfinished is not None:
        found = "open"
    elif following > schedule.sessions:
        return ParticipantStatus(code, "finished", None, any_day, tuple(begun))
    elif window.first is not None and today < window.first:
        found = "later"
    else:
        found = "overdue" if window.last is not None and today > window.last else "due"
    return ParticipantStatus(code, found, following, window, tuple(begun))


# --- output ---


def as_json(status: ExperimentStatus) -> dict[str, Any]:
    """Return the status for the command line."""
    people = []
    for one in status.participants:
        first, last = one.window.first, one.window.last
        people.append(
            {
                "participant": one.participant,
                "state": one.state,
                "session": one.session,
                "first_day": first and first.isoformat(),
                "last_day": last and last.isoformat(),
                "sessions": [dataclasses.asdict(each) | {"day": each.day.isoformat()} for each in one.sessions],
                "error": one.error,
                "exclusion": one.exclusion,
                "replaced_by": one.replaced_by,
                "replaces": one.replaces,
            }
        )
    return {
        "experiment": status.experiment,
        "date": status.today.isoformat(),
        "sessions": status.schedule.sessions or None,
        "counts": dict(Counter(one.state for one in status.participants)),
        "participants": people,
    }


_WORDS: dict[str, dict[str, Any]] = {
    "en": {
        "title": "Who is due",
        "lead": "{title}, on {today}",
        "nobody": "No participant is due.",
        "head": ("Participant", "Session", "From", "Until", "Days left", "Sessions so far", "Remarks"),
        "of": "{session} of {sessions}",
        "last": "last record {time} UTC",
        "session": "session {session}: {words}",
        "overdue": "Overdue",
        "due": "Due",
        "open": "Not ended",
        "later": "Not yet due",
        "finished": "Finished",
        "stopped": "Stopped",
        "excluded": "Excluded",
        "training": "training",
        "replaced_by": "replaced by {code}",
        "replaces": "replaces {code}",
        "unreadable": "Not readable",
        "order": "run out of order",
        "clock": "run although the clock had gone back",
        "early": "run before its window",
        "late": "run after its window",
    },
    "de": {
        "title": "Wer ist fällig?",
        "lead": "{title}, am {today}",
        "nobody": "Niemand ist fällig.",
        "head": ("Code", "Sitzung", "Ab", "Bis", "Tage übrig", "Bisherige Sitzungen", "Bemerkungen"),
        "of": "{session} von {sessions}",
        "last": "letzter Eintrag {time} UTC",
        "session": "Sitzung {session}: {words}",
        "overdue": "Überfällig",
        "due": "Fällig",
        "open": "Nicht beendet",
        "later": "Noch nicht fällig",
        "finished": "Abgeschlossen",
        "stopped": "Abgebrochen",
        "excluded": "Ausgeschlossen",
        "training": "Training",
        "replaced_by": "ersetzt durch {code}",
        "replaces": "Ersatz für {code}",
        "unreadable": "Nicht lesbar",
        "order": "außer der Reihe",
        "clock": "trotz zurückgestellter Uhr",
        "early": "vor ihrem Zeitraum",
        "late": "nach ihrem Zeitraum",
        "ended by a person": "von einer Person beendet",
        "practice not passed": "Übung nicht bestanden",
        "consent refused": "Einwilligung verweigert",
    },
}
"""Words of the page by language."""

LANGUAGES = tuple(_WORDS)
"""Languages of the page."""


def _cells(status: ExperimentStatus, one: ParticipantStatus, words: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a participant, in the order of the columns."""
    sessions, last = status.schedule.sessions, one.window.last
    session = "" if one.session is None else str(one.session)
    if session and sessions:
        session = words["of"].format(session=session, sessions=sessions)
        session += f" ({words['training']})" if one.session in status.schedule.training else ""
    remarks = [text for text in (one.exclusion, one.error) if text]
    for name in ("replaced_by", "replaces"):
        remarks += [words[name].format(code=code)] if (code := getattr(one, name)) else []
    for each in one.sessions:
        found = [words.get(each.reason, each.reason)] if each.reason not in (None, "completed") else []
        found += [words[each.outside]] if each.outside else []
        found += [words["last"].format(time=each.last_utc.replace("T", " "))] if each.reason is None else []
        remarks += [words["session"].format(session=each.session, words=", ".join(found))] if found else []
    return (
        one.participant,
        session,
        "" if one.window.first is None else one.window.first.isoformat(),
        "" if last is None else last.isoformat(),
        "" if last is None else str((last - status.today).days),
        ", ".join(each.day.isoformat() for each in one.sessions),
        "; ".join(remarks),
    )


def as_text(status: ExperimentStatus) -> str:
    """Return the status as text."""
    words = _WORDS["en"]
    rows = [("", *words["head"])]
    rows += [(words[one.state], *_cells(status, one, words)) for one in status.participants]
    rows = [tuple("".join(one if one.isprintable() else " " for one in cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    used = [k for k, column in enumerate(zip(*rows[1:], strict=True)) if any(column)] if len(rows) > 1 else []
    lines = [words["lead"].format(title=status.experiment, today=status.today)]
    for row in rows:
        lines.append("  ".join(row[k].ljust(widths[k]) for k in used).rstrip())
    return "\n".join(lines)


_STYLE = """
nav { margin: 14px 0 4px; }
nav a { display: inline-block; color: #0072B2; margin: 0 18px 6px 0; }
a:focus-visible { outline: 3px solid #E69F00; outline-offset: 2px; }
table { width: 100%; table-layout: fixed; }
th, td { padding: 5px 14px 5px 0; width: 10%; overflow-wrap: anywhere; }
th { white-space: nowrap; }
th:nth-child(1) { width: 13%; }
th:nth-child(6) { width: 20%; }
th:nth-child(7) { width: 27%; }
td span { white-space: nowrap; }
h2 { border-left: 6px solid #999999; padding-left: 8px; }
h2.overdue { border-color: #D55E00; }
h2.due { border-color: #009E73; }
h2.open, h2.unreadable { border-color: #E69F00; }
@media (max-width: 940px) {
  section { margin: 0; padding: 16px; }
  table, tbody, tr, td { display: block; }
  tr:first-child { display: none; }
  tr { border-bottom: 1px solid #cccccc; padding: 6px 0; }
  td { border: none; padding: 1px 0 1px 11em; width: auto; min-height: 1.45em; }
  td::before { content: attr(data-name); float: left; width: 10em; margin-left: -11em; color: #555555; }
  td:empty { display: none; }
  td:first-child { padding-left: 0; font-weight: bold; }
  td:first-child::before { content: none; }
}
"""


def as_page(statuses: Sequence[ExperimentStatus], language: str = "") -> str:
    """Return the status as HTML.

    Parameters
    ----------
    statuses : sequence of ExperimentStatus
        Experiments, each with a section.
    language : str
        One of `LANGUAGES`; default: the language of the first experiment, or English.
    """
    language = language or base_language(statuses[0].language)
    language = language if language in _WORDS else "en"
    words = _WORDS[language]
    sections = [_section(status, words) for status in statuses]
    return document(f"{words['title']}: {statuses[0].title}", sections, _STYLE, language)


def _section(status: ExperimentStatus, words: Mapping[str, Any]) -> str:
    counts = Counter(one.state for one in status.participants)
    lead = words["lead"].format(title=status.title, today=status.today)
    parts = ["<section>", f"<h1>{escape(words['title'])}</h1>", f'<p class="lead">{escape(lead)}</p>']
    anchor = {state: f"{status.experiment}-{state}" for state in STATES}
    links = [
        f'<a href="#{escape(anchor[state])}">{escape(words[state])}: {counts[state]}</a>'
        for state in STATES
        if counts[state]
    ]
    parts.append(f"<nav>{''.join(links)}</nav>")
    if not counts["due"] and not counts["overdue"]:
        parts.append(f"<p>{escape(words['nobody'])}</p>")
    for state in STATES:
        rows = [_cells(status, one, words) for one in status.participants if one.state == state]
        if rows:
            parts.append(f'<h2 class="{state}" id="{escape(anchor[state])}">{escape(words[state])}</h2>')
            parts.append(_table(words["head"], rows))
    return "\n".join([*parts, "</section>"])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, which is shown as a list on a narrow screen. A date is not wrapped."""
    lines = [f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>"]
    for row in rows:
        cells = (re.sub(r"\d{4}-\d\d-\d\d", r"<span>\g<0></span>", escape(cell)) for cell in row)
        both = zip(head, cells, strict=True)
        entries = "".join(f'<td data-name="{escape(name)}">{cell}</td>' for name, cell in both)
        lines.append(f"<tr>{entries}</tr>")
    return f"<table>{''.join(lines)}</table>"
