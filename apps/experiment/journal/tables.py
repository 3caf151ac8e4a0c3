"""Table of trials, generated from the journal and from the stimuli in the recordings."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from apps.experiment.journal.columns import COLUMNS, STIMULUS_COLUMNS, TRIAL_COLUMNS, cells_of, text_of
from apps.experiment.journal.names import SessionFolder
from apps.experiment.journal.own_files import put
from apps.experiment.journal.reading import read_journal
from apps.experiment.journal.schema import Record
from apps.experiment.journal.state import Attempt, SessionState, replay
from haptics.errors import HapticError

Row = dict[str, Any]

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
    """Return a row with `COLUMNS` for every complete attempt, in order, None where values are missing.

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
    """
    place = session if isinstance(session, SessionFolder) else SessionFolder.of(session)
    state = replay(read_journal(place.journal).records)
    unit_of = _units()
    ended = [one for one in state.attempts if one.end is not None]
    return [_row(state, one, unit_of(one.start["axis"])) | _stimulus(state, place, one, measure) for one in ended]


def _row(state: SessionState, attempt: Attempt, unit: str) -> Row:
    header, start, response, end = state.header, attempt.start, attempt.response or {}, attempt.end or {}
    observer = header["observer"]
    told = {
        **{name: start[name] for name in ("block", "trial", "attempt", "kind", "condition", "track", "axis")},
        **{name: start[name] for name in ("reference", "level", "comparison_interval")},
        **{name: response.get(name) for name in ("correct", "reaction_time_s", "source", "key")},
        "participant": header["participant"],
        "session": header["session"],
        "experiment": header["experiment"],
        "observer": None if observer is None else str(observer.get("name", "simulated")),
        "counts": attempt.counts,
        "axis_unit": unit,
        "response": None if response.get("response") is None else text_of(response["response"]),
        "response_tick": response.get("tick"),
        "outcome": end["outcome"],
        "reasons": "; ".join(end["reasons"]) or None,
        "started_utc": start["utc"],
        "ended_utc": end["utc"],
        "recording": attempt.recording,
        **_two("marker", start["markers"]),
        **_two("asked", start["values"]),
    }
    return {column.name: told[column.name] for column in TRIAL_COLUMNS}


def _two(name: str, values: list[Any]) -> Row:
    return {f"{name}_{number}": values[number - 1] if len(values) >= number else None for number in (1, 2)}


def _stimulus(state: SessionState, place: SessionFolder, attempt: Attempt, measure: Measure | None) -> Row:
    """Return the stimulus columns from the first recording of the block that contains the trial.

    A block without a clock is computed and recorded again from its beginning when a session is resumed.
    """
    empty: Row = dict.fromkeys(column.name for column in STIMULUS_COLUMNS)
    if measure is None or attempt.recording is None:
        return empty | {"stimulus_missing": "not recorded" if attempt.recording is None else "not measured"}
    tried = []
    for relative in state.recordings_of(attempt):
        folder = place.inside(relative)
        found = (
            measure(folder, attempt.start) if folder.is_dir() else {"stimulus_missing": "the recording is not there"}
        )
        tried.append(empty | {name: found[name] for name in empty if name in found} | {"recording": relative})
        if found.get("stimulus_missing") is None or found.get("ticks_1") is not None:
            return tried[-1]
    return tried[0]


def _units() -> Callable[[str], str]:
    """Return a function that looks up the unit of an axis in the declarations of laws and elements."""
    known: dict[str, str] = {}

    def unit_of(axis: str) -> str:
        if axis not in known:
            known[axis] = _declared_unit(axis)
        return known[axis]

    return unit_of


def _declared_unit(axis: str) -> str:
    """Return the declared unit of an axis, empty for parameters of user-defined laws."""
    import dataclasses

    from haptics.elements.tables import LAWS, MODELS
    from haptics.scenes import Wall

    table, _, name = axis.partition(".")
    models = (one for pair in MODELS.values() for one in pair.values())
    classes: Iterable[Any] = {"law": LAWS.values(), "wall": (Wall,)}.get(table, models)
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
    rows = trial_rows(place, measure)
    put(place.table, tsv_of(rows))
    put(place.table.with_suffix(".json"), json.dumps(description(), indent=2, ensure_ascii=False) + "\n")
    return place.table


def description() -> dict[str, Any]:
    """Return the BIDS description of every column."""
    return {column.name: column.as_bids() for column in COLUMNS}


def tsv_of(rows: Iterable[Row]) -> str:
    """Return the table in BIDS format.

    Columns are separated by tabs without quotes, missing values are ``n/a``, and line breaks are replaced by spaces.
    """
    lines = ["\t".join(column.name for column in COLUMNS)]
    for row in rows:
        lines.append("\t".join(_BREAKS.sub(" ", text_of(one, "n/a")) or "n/a" for one in cells_of(row, COLUMNS)))
    return "\n".join(lines) + "\n"


def csv_of(rows: Iterable[Row]) -> str:
    """Return the table as CSV according to RFC 4180, with empty cells for missing values."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([column.name for column in COLUMNS])
    for row in rows:
        writer.writerow([text_of(one) for one in cells_of(row, COLUMNS)])
    return text.getvalue()
