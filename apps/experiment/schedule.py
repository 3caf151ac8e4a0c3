"""Schedule of the sessions of a participant: days, windows, and the check before a session begins or continues.

Days are calendar days in the time zone of the schedule, so that Monday evening and Tuesday morning are one day apart.
A session belongs to the day on which it was begun or last resumed, which its journal records in the event `SCHEDULED`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from apps.experiment.forms.forms import CONSENT
from apps.experiment.journal.folder import MOST_SESSIONS, SessionFolder, require_reason, task_label
from apps.experiment.journal.journal import SessionState, read_journal, replay, require_same
from apps.experiment.journal.schema import CARRIED, THRESHOLDS, Record, is_number
from apps.experiment.procedures.settings import Carried
from apps.experiment.settings import ScheduleSettings
from haptics.errors import ConfigurationError, RecordingError

SCHEDULED = "schedule"
"""Name of the event with the day of a session (``date``) and, outside its window, the kind of deviation and reason."""

DEVIATIONS = ("order", "clock", "early", "late")
"""Kinds of deviations from the schedule.

The previous session is missing or has not ended; the clock has gone back; before or after the window.
"""

_FIRST_YEAR, _LAST_YEAR = 1970, 2200
_WIDEST = 100.0
"""Limit of a standard deviation of ln(threshold)."""

_FOLDER = re.compile(r"ses-\d{2,3}")


@dataclass(frozen=True)
class Window:
    """Days on which a session may begin.

    Attributes
    ----------
    first, last : date or None
        First and last day, None without a limit.
    """

    first: date | None
    last: date | None

    def __str__(self) -> str:
        if self.first is not None and self.last is not None:
            return f"from {self.first} to {self.last}"
        return f"from {self.first}" if self.first is not None else f"until {self.last}" if self.last else "on any day"


def parse_day(text: object) -> date:
    """Return a date of the form ``2026-11-28``.

    Raises
    ------
    ValueError
        If the text has another form, or the year is far from the present.
    """
    if not isinstance(text, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError("must be a date such as 2026-11-28")
    day = date.fromisoformat(text)
    if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
        raise ValueError(f"must be a date from {_FIRST_YEAR} to {_LAST_YEAR}")
    return day


def today_in(zone: tzinfo | None) -> date:
    """Return the current day in a time zone; None is the time zone of the computer."""
    return datetime.now().astimezone(zone).date()


def day_of(state: SessionState, zone: tzinfo | None) -> date:
    """Return the day on which a session was begun or last resumed; without a record of it, that of its last record.

    Raises
    ------
    RecordingError
        If the journal has no valid day.
    """
    try:
        if events := scheduled_events(state):
            return parse_day(events[-1].get("date"))
        return parse_day(datetime.fromisoformat(state.last_utc).astimezone(zone).date().isoformat())
    except (ValueError, OverflowError) as error:
        participant, session = state.header["participant"], state.header["session"]
        raise RecordingError(f"participant {participant}, session {session}: its day is invalid ({error}).") from error


def read_state(place: SessionFolder) -> SessionState:
    """Return the state of a session.

    Raises
    ------
    RecordingError
        If the journal cannot be read, or belongs to another participant or session.
    """
    contents = read_journal(place.journal)
    require_same(place, contents)
    return replay(contents.records)


def window_of(schedule: ScheduleSettings, session: int, previous: date | None) -> Window:
    """Return the days on which a session may begin, from the day of the previous session."""
    gap = session - 2
    if previous is None or not 0 <= gap < schedule.sessions - 1:
        return Window(None, None)
    last = previous + timedelta(days=schedule.maximum_days[gap]) if schedule.maximum_days else None
    return Window(previous + timedelta(days=schedule.minimum_days[gap]), last)


def sessions_of(out: Path, code: str, experiment: str) -> dict[int, SessionFolder]:
    """Return the sessions of a participant in an experiment, by number."""
    folder, task, found = out / f"sub-{code}", task_label(experiment), {}
    for path in folder.glob("ses-*"):
        if _FOLDER.fullmatch(path.name):
            place = SessionFolder(path, code, int(path.name[4:]), task)
            if place.journal.is_file():
                found[place.session] = place
    return dict(sorted(found.items()))


def next_session(out: Path, code: str, experiment: str) -> int:
    """Return the number after the participant's last session."""
    return min(max(sessions_of(out, code, experiment), default=0) + 1, MOST_SESSIONS)


def first_due_day(schedule: ScheduleSettings, out: Path, code: str, experiment: str, session: int) -> date | None:
    """Return the first day of the window of a session, None without a previous session.

    Raises
    ------
    RecordingError
        If the journal of the previous session cannot be read.
    """
    previous = sessions_of(out, code, experiment).get(session - 1)
    if previous is None:
        return None
    return window_of(schedule, session, day_of(read_state(previous), schedule.zone)).first


@dataclass(frozen=True)
class Deviation:
    """Reason why a session must not begin or continue today.

    Attributes
    ----------
    kind : str
        One of `DEVIATIONS`, recorded in the journal if the session is run nevertheless.
    words : str
        Description with dates.
    """

    kind: str
    words: str


def deviation_of(
    schedule: ScheduleSettings, place: SessionFolder, out: Path, experiment: str, today: date
) -> tuple[date | None, Deviation | None]:
    """Return the day of the previous session, and why `place` must not begin or continue today, None if it may.

    A deviation that was recorded when the session began is accepted when it continues.

    Raises
    ------
    ConfigurationError
        If the schedule has fewer sessions.
    RecordingError
        If a journal of the participant cannot be read.
    """
    session, code = place.session, place.participant
    if session > schedule.sessions:
        raise ConfigurationError(
            f"session {session} of {code}: the experiment has {schedule.sessions} (schedule.sessions)."
        )
    known = sessions_of(out, code, experiment)
    resumed = session in known
    if resumed:
        own = read_state(known[session])
        if (day := day_of(own, schedule.zone)) > today:
            return None, _clock(today, f"session {session}", day)
    if session == 1:
        return None, None
    previous, found = None, None
    if session - 1 not in known:
        found = Deviation("order", f"session {session - 1} of {code} is not in {out}")
    else:
        state = read_state(known[session - 1])
        previous = day_of(state, schedule.zone)
        window = window_of(schedule, session, previous)
        if state.end is None:
            found = Deviation("order", f"session {session - 1} of {code} has not ended: resume it first")
        elif refused(state):
            found = Deviation("order", f"{code} did not consent in session {session - 1}")
        elif today < previous:
            found = _clock(today, f"session {session - 1}", previous)
        elif window.first is not None and today < window.first and not resumed:
            found = Deviation("early", f"session {session} of {code} is due {window}, and today is {today}")
        elif window.last is not None and today > window.last:
            words = f"session {session} of {code} had to {'continue' if resumed else 'begin'} {window}"
            found = Deviation("late", f"{words}, and today is {today}")
    if resumed and found is not None and any(one.get("outside") == found.kind for one in scheduled_events(own)):
        found = None
    return previous, found


def scheduled_events(state: SessionState) -> list[Record]:
    """Return the events with the days of a session."""
    return [one for one in state.events if one["name"] == SCHEDULED]


def _clock(today: date, session: str, day: date) -> Deviation:
    return Deviation("clock", f"today is {today} by the clock of this computer, but {session} was on {day}: set it")


def refused(state: SessionState) -> bool:
    """Return True if the participant did not consent in a session."""
    return any(one["name"] == CONSENT and one.get("agreed") is not True for one in state.events)


def carried_thresholds(state: SessionState) -> dict[str, Carried]:
    """Return the thresholds with which the tracks of a session begin, from its event `CARRIED`.

    Raises
    ------
    RecordingError
        If the event is invalid.
    """
    event = next((one for one in state.events if one["name"] == CARRIED), None)
    return {} if event is None else _thresholds(state, event, "spread")


def earlier_thresholds(
    schedule: ScheduleSettings, out: Path, code: str, experiment: str, session: int
) -> dict[str, dict[str, Any]]:
    """Return the tracks of the event `CARRIED` for a new session: the last threshold of each track, and its session.

    Raises
    ------
    RecordingError
        If a journal of the participant cannot be read.
    """
    tracks: dict[str, dict[str, Any]] = {}
    for number, place in sessions_of(out, code, experiment).items():
        if number >= session:
            break
        state = read_state(place)
        for event in state.events:
            if event["name"] == THRESHOLDS:
                for label, (level, log_sd) in _thresholds(state, event, "log_sd").items():
                    spread = math.hypot(log_sd, schedule.spread)
                    tracks[label] = {"level": level, "spread": spread, "session": number}
    return tracks


def _thresholds(state: SessionState, event: Record, name: str) -> dict[str, Carried]:
    """Return level and standard deviation `name` of each track in an event."""
    found = {}
    try:
        for label, one in event["tracks"].items():
            level, spread = one["level"], one[name] or 0.0
            if not (is_number(level) and is_number(spread) and level > 0.0 and 0.0 <= spread < _WIDEST):
                raise ValueError(f"threshold of {label[:40]!r}")
            found[label] = Carried(float(level), float(spread))
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        participant, session = state.header["participant"], state.header["session"]
        words = f"the event {event['name']} is invalid ({error})"
        raise RecordingError(f"participant {participant}, session {session}: {words}.") from error
    return found


def require_due(
    schedule: ScheduleSettings,
    place: SessionFolder,
    out: Path,
    experiment: str,
    today: date,
    reason: str = "",
    *,
    option: str = "--outside-window",
) -> dict[str, Any]:
    """Return the fields of the event `SCHEDULED` for a session that begins or continues today.

    Parameters
    ----------
    schedule : ScheduleSettings
        Table ``schedule``.
    place : SessionFolder
        Folder of the session.
    out : Path
        Folder of all sessions.
    experiment : str
        Name of the experiment.
    today : date
        Current day in the time zone of the schedule.
    reason : str
        Reason for a session outside its window, which is recorded. Without it such a session is refused.
    option : str
        Name of the option or argument of the caller that gives the reason, for messages.

    Raises
    ------
    ConfigurationError
        If the session is outside its window, the reason is invalid, or the schedule has fewer sessions.
    RecordingError
        If a journal of the participant cannot be read.
    """
    if reason:
        reason = require_reason(reason, option)
    previous, deviation = deviation_of(schedule, place, out, experiment, today)
    if deviation is not None and not reason:
        remedy = f"add {option} REASON" if option.startswith("--") else f"pass the reason as {option}"
        raise ConfigurationError(f"{deviation.words}. Nothing was written. To do it nevertheless, {remedy}.")
    facts: dict[str, Any] = {"date": today.isoformat(), "days": None if previous is None else (today - previous).days}
    if deviation is not None:
        facts |= {"outside": deviation.kind, "words": deviation.words, "reason": reason}
    return facts
