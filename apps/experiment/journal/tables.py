"""Table of trials, generated from the journal and from the stimuli in the recordings, and its columns."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.experiment.journal.folder import SessionFolder, put
from apps.experiment.journal.journal import Attempt, SessionState, read_journal, replay
from apps.experiment.journal.schema import Record
from haptics.errors import HapticError

AXIS_UNIT = "unit of the axis"
"""Unit of columns that depend on the axis of the experiment. The column ``axis_unit`` contains it."""


@dataclass(frozen=True)
class Column:
    """A column of the table of trials.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : str
        ``text``, ``number``, ``whole`` or ``flag`` (true or false).
    doc : str
        Description.
    unit : str
        SI unit, or `AXIS_UNIT`.
    levels : dict
        Meaning of each value, if the values are limited.
    """

    name: str
    kind: str
    doc: str
    unit: str = ""
    levels: dict[str, str] = field(default_factory=dict)


_KINDS = {
    "test": "a trial that counts for the result",
    "practice": "an easy trial with feedback before the test",
    "catch-null": "two equal stimuli, or none",
    "catch-easy": "a difference that nobody misses",
}
_OUTCOMES = {
    "ok": "the trial counts",
    "repeat": "it was disturbed, or against the rules of exploration, and was run again",
    "aborted": "it was broken off",
}
_RESPONSES = {
    "1": "the first interval",
    "2": "the second interval",
    "yes": "there was something",
    "no": "there was nothing",
    "same": "they were the same",
    "different": "they were not the same",
}

TRIAL_COLUMNS: tuple[Column, ...] = (
    Column("participant", "text", "code of the participant"),
    Column("session", "whole", "session of the participant, from 1"),
    Column("experiment", "text", "name of the experiment"),
    Column("observer", "text", "the simulated observer that answered; empty where a person did"),
    Column("block", "whole", "block of the session, from 1"),
    Column("trial", "whole", "trial of the session, from 1; a trial that was repeated has several rows"),
    Column("attempt", "whole", "which attempt at the trial, from 1"),
    Column("kind", "text", "kind of trial", levels=_KINDS),
    Column("counts", "flag", "whether this attempt is the one that counts"),
    Column("condition", "text", "condition"),
    Column("track", "text", "track of the procedure"),
    Column("axis", "text", "the setting that varied"),
    Column("axis_unit", "text", "its unit"),
    Column("reference", "number", "value of the reference", AXIS_UNIT),
    Column("level", "number", "level that the procedure chose: above the reference in a discrimination", AXIS_UNIT),
    Column("comparison_interval", "whole", "the interval that had the comparison, 1 or 2"),
    Column("response", "text", "what was answered: a word, or a number", levels=_RESPONSES),
    Column("correct", "flag", "whether that was right; empty where nothing is right or wrong"),
    Column("reaction_time_s", "number", "from the end of the last interval to the answer, by the tick clock", "s"),
    Column("response_tick", "whole", "tick of the answer in the recording"),
    Column("source", "text", "what it was given with"),
    Column("key", "text", "key or button"),
    Column("outcome", "text", "whether the trial counts", levels=_OUTCOMES),
    Column("reasons", "text", "why it does not, separated by semicolons"),
    Column("started_utc", "text", "when the trial began (ISO 8601)"),
    Column("ended_utc", "text", "when it ended (ISO 8601)"),
    Column("recording", "text", "folder of the recording, relative to the session's"),
    Column("marker_1", "whole", "marker of the rows of the first interval in it"),
    Column("marker_2", "whole", "marker of the rows of the second interval in it"),
    Column("asked_1", "number", "asked: the axis in the first interval as the procedure chose it", AXIS_UNIT),
    Column("asked_2", "number", "asked: the axis in the second interval as the procedure chose it", AXIS_UNIT),
)
"""Columns from the journal."""


_SOURCES = {
    "model": "delivered, and the model of the device's own friction",
    "sensor": "the device's force sensor",
    "truth": "the virtual hand or plant itself",
}


def _of_interval(number: int) -> tuple[Column, ...]:
    which = ("first", "second")[number - 1]
    return (
        Column(f"delivered_{number}", "number", f"delivered: what the {which} interval's commands rendered", AXIS_UNIT),
        Column(f"delivered_flagged_{number}", "number", "share of its ticks that were limited", "1"),
        Column(f"felt_{number}", "number", f"felt: the {which} interval at the hand", AXIS_UNIT),
        Column(f"felt_low_{number}", "number", f"lower end of the 95 % interval of felt_{number}", AXIS_UNIT),
        Column(f"felt_high_{number}", "number", f"upper end of the 95 % interval of felt_{number}", AXIS_UNIT),
        Column(f"ticks_{number}", "whole", f"ticks of the {which} interval"),
        Column(f"speed_{number}", "number", f"mean sliding speed in the {which} interval", "m/s"),
    )


STIMULUS_COLUMNS: tuple[Column, ...] = (
    *_of_interval(1),
    *_of_interval(2),
    Column("delivered_exact", "flag", "whether every tick that was not flagged had exactly the force of the law"),
    Column("felt_source", "text", "where felt comes from", levels=_SOURCES),
    Column("late_share", "number", "share of the trial's ticks that came late", "1"),
    Column("longest_gap_s", "number", "longest time between two ticks of the trial", "s"),
    Column("stimulus_missing", "text", "why delivered and felt are empty"),
)
"""Columns from the recordings. Specified, delivered and felt stimuli are kept separate."""

COLUMNS = (*TRIAL_COLUMNS, *STIMULUS_COLUMNS)
"""Columns of every table, in order. `columns_of` adds the group and the factors."""

_FACTOR = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MOST_FACTORS = 20


def factors_of(header: Record) -> dict[str, dict[str, str]]:
    """Return the level of each condition, by factor and condition, of the design in a header."""
    found: dict[str, dict[str, str]] = {}
    conditions = header["design"].get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        levels = condition.get("factors") if isinstance(condition, dict) else None
        for factor, level in levels.items() if isinstance(levels, dict) else ():
            if _FACTOR.fullmatch(factor) and (factor in found or len(found) < _MOST_FACTORS):
                found.setdefault(factor, {})[str(condition.get("name"))] = str(level)
    return found


def columns_of(states: Iterable[SessionState]) -> tuple[Column, ...]:
    """Return the columns of the table of some sessions: `COLUMNS`, the group if any, and each factor of the designs."""
    levels: dict[str, dict[str, str]] = {}
    groups: dict[str, str] = {}
    for state in states:
        if state.group is not None:
            groups[state.group] = f"participants of the group {state.group}"
        for factor, found in factors_of(state.header).items():
            levels.setdefault(factor, {}).update({level: f"level {level} of the factor" for level in found.values()})
    own = [Column(f"factor_{name}", "text", f"level of the factor {name}", levels=one) for name, one in levels.items()]
    group = (Column("group", "text", "group of the participant", levels=groups),) if groups else ()
    return (*COLUMNS, *group, *own)


def text_of(value: Any, missing: str = "") -> str:
    """Return a value as file text: numbers with all digits, ``true`` or ``false``, and `missing` for None."""
    if value is None:
        return missing
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


Row = dict[str, Any]
"""Row of a table: values by the name of their column."""


@dataclass(frozen=True)
class Session:
    """Session of a participant with its table of trials.

    Attributes
    ----------
    place : SessionFolder
        Folder of the session.
    state : SessionState
        State from the journal.
    rows : list of dict
        Table of trials with all complete attempts.
    """

    place: SessionFolder
    state: SessionState
    rows: list[Row]

    @property
    def header(self) -> Record:
        """The first record of the journal."""
        return self.state.header


Measure = Callable[[Path, Record], dict[str, Any]]
"""Function that returns the stimulus columns of a trial.

Its arguments are the recording folder and the ``trial_start`` record.
"""

_BREAKS = re.compile(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def from_recordings(folder: Path, trial: Record) -> Row:
    """Measure the stimulus of a trial in its recording.

    If this fails, ``stimulus_missing`` contains the reason.
    """
    from apps.experiment.stimulus import measure  # requires compiled code

    try:
        return measure(folder, trial)
    except (HapticError, OSError) as error:
        return {"stimulus_missing": str(error)}
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError, ValueError) as error:
        return {"stimulus_missing": f"the recording is not as it should be ({type(error).__name__}: {error})"}


def trial_rows(session: Path | SessionFolder, measure: Measure | None = from_recordings) -> list[Row]:
    """Return a row for every complete attempt, in order, None where values are missing.

    A row has `COLUMNS`, ``group`` if the participant has one, and ``factor_NAME`` for each factor of the design.

    Parameters
    ----------
    session : Path or SessionFolder
        Session or its folder.
    measure : callable or None
        Function that fills the stimulus columns, which are empty if it is None.

    Raises
    ------
    RecordingError
        If the journal is invalid.

    Examples
    --------
    >>> from apps.experiment import TrialLog, trial_rows
    >>> with TrialLog.open("data", "P01", "wood or ice", axis="law.force") as log:
    ...     block = log.begin_block()
    ...     trial, markers = log.begin_trial(0.5, values=(2.0, 2.5), comparison=2)  # N
    ...     log.finish_trial("2", correct=True)
    >>> [row] = trial_rows(log.place)
    >>> row["asked_2"], row["delivered_2"], row["stimulus_missing"]
    (2.5, None, 'not recorded')
    """
    place = session if isinstance(session, SessionFolder) else SessionFolder.of(session)
    state = replay(read_journal(place.journal).records)
    ended, factors = [one for one in state.attempts if one.end is not None], factors_of(state.header)
    return [
        _row(state, one)
        | _stimulus(state, place, one, measure)
        | ({} if state.group is None else {"group": state.group})
        | {f"factor_{name}": levels.get(one.start["condition"]) for name, levels in factors.items()}
        for one in ended
    ]


def _row(state: SessionState, attempt: Attempt) -> Row:
    """Return the columns from the journal."""
    header, start, response, end = state.header, attempt.start, attempt.response or {}, attempt.end or {}
    observer = header["observer"]
    cells = {
        **header,
        **start,
        **{name: response.get(name) for name in ("correct", "reaction_time_s", "source", "key")},
        "observer": None if observer is None else str(observer.get("name", "simulated")),
        "counts": attempt.counts,
        "axis_unit": _unit_of(start["axis"]),
        "response": None if response.get("response") is None else text_of(response["response"]),
        "response_tick": response.get("tick"),
        "outcome": end["outcome"],
        "reasons": "; ".join(end["reasons"]) or None,
        "started_utc": start["utc"],
        "ended_utc": end["utc"],
        "recording": attempt.recording,
    }
    for name, values in (("marker", start["markers"]), ("asked", start["values"])):
        cells |= {f"{name}_{number}": values[number - 1] if len(values) >= number else None for number in (1, 2)}
    return {column.name: cells[column.name] for column in TRIAL_COLUMNS}


def _stimulus(state: SessionState, place: SessionFolder, attempt: Attempt, measure: Measure | None) -> Row:
    """Return the stimulus columns from the first recording of the block that contains the trial.

    A block without a clock is computed and recorded again from its beginning when a session is resumed.
    """
    empty: Row = dict.fromkeys(column.name for column in STIMULUS_COLUMNS)
    if measure is None or attempt.recording is None:
        return empty | {"stimulus_missing": "not recorded" if attempt.recording is None else "not measured"}
    tried = []
    for relative in state.recordings_of(attempt):
        folder, found = place.inside(relative), {"stimulus_missing": "the recording is not there"}
        if folder.is_dir():
            found = measure(folder, attempt.start)
        tried.append(empty | {name: found[name] for name in empty if name in found} | {"recording": relative})
        if found.get("stimulus_missing") is None or found.get("ticks_1") is not None:
            return tried[-1]
    return tried[0]


@functools.cache
def _unit_of(axis: str) -> str:
    """Return the declared unit of an axis, empty for parameters of user-defined laws."""
    from haptics.elements.tables import LAWS, MODELS
    from haptics.scenes import Texture, Wall

    table, _, name = axis.partition(".")
    models = (one for pair in MODELS.values() for one in pair.values())
    classes: Iterable[Any] = {"law": LAWS.values(), "wall": (Wall,), "texture": (Texture,)}.get(table, models)
    fields = (field for one in classes if dataclasses.is_dataclass(one) for field in dataclasses.fields(one))
    return next((str(field.metadata.get("unit", "")) for field in fields if field.name == name), "")


# --- files ---


def write_table(place: SessionFolder, measure: Measure | None = from_recordings) -> Path:
    """Write the table of a session and its description (``_beh.tsv``, ``_beh.json``).

    Return the table's path.

    Raises
    ------
    RecordingError
        If the journal is invalid.
    OSError
        If a file cannot be written, or a different file exists.
    """
    rows, columns = trial_rows(place, measure), columns_of([replay(read_journal(place.journal).records)])
    put(place.table, tsv_of(rows, columns))
    put(place.table.with_suffix(".json"), json.dumps(description(columns), indent=2, ensure_ascii=False) + "\n")
    return place.table


def description(columns: Iterable[Column] = COLUMNS) -> dict[str, Any]:
    """Return the BIDS description of every column."""
    found: dict[str, Any] = {}
    for column in columns:
        described: dict[str, Any] = {"LongName": column.name.replace("_", " "), "Description": column.doc}
        if column.levels:
            described["Levels"] = dict(column.levels)
        if column.unit:
            described["Units"] = column.unit
        found[column.name] = described
    return found


def tsv_of(rows: Iterable[Row], columns: Iterable[Column] = COLUMNS) -> str:
    """Return the table in BIDS format.

    Columns are separated by tabs without quotes, missing values are ``n/a``, and line breaks are replaced by spaces.
    """
    names = [column.name for column in columns]
    lines = ["\t".join(names)]
    for row in rows:
        lines.append("\t".join(_BREAKS.sub(" ", text_of(one, "n/a")) or "n/a" for one in map(row.get, names)))
    return "\n".join(lines) + "\n"


def csv_of(rows: Iterable[Row], columns: Iterable[Column] = COLUMNS) -> str:
    """Return the table as CSV with a header."""
    names = [column.name for column in columns]
    return csv_text([names, *(map(row.get, names) for row in rows)])


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows of cells as CSV according to RFC 4180, with empty cells for missing values."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(map(text_of, row) for row in rows)
    return text.getvalue()
