"""Export as a wide table with one row for each trial, for JASP, jamovi, pandas and R."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from apps.experiment.exports.folder import write_text
from apps.experiment.exports.sessions import Session
from apps.experiment.journal import COLUMNS, csv_of
from apps.experiment.journal.columns import text_of


def export_csv(folder: Path, sessions: Sequence[Session]) -> None:
    """Write ``trials.csv``, ``participants.csv``, a description of the columns, and ``read.R``."""
    write_text(folder, "trials.csv", csv_of(row for session in sessions for row in session.rows))
    write_text(folder, "participants.csv", _csv(_participants(sessions)))
    columns = [[one.name, one.kind, one.unit, one.doc] for one in COLUMNS]
    write_text(folder, "columns.csv", _csv([["name", "kind", "unit", "description"], *columns]))
    script = resources.files("apps.experiment.exports") / "read.R"
    write_text(folder, "read.R", script.read_text(encoding="utf-8"))


def _participants(sessions: Sequence[Session]) -> list[list[Any]]:
    """Return a row for each session: participant, design, device, time, end, data about the participant."""
    names = sorted({name for session in sessions for name in session.fields})
    plain = ["participant", "session", "experiment", "seed", "slot", "design_sha256", "blind"]
    own = ["observer", "device", "begun_utc", "end_reason", "trials", "repeated"]
    rows: list[list[Any]] = [[*plain, *own, *(f"field_{name}" for name in names)]]
    for session in sessions:
        state, header = session.state, session.state.header
        rows.append(
            [
                *(header[name] for name in plain),
                None if header["observer"] is None else header["observer"].get("name", "simulated"),
                header["device"].get("name"),
                header["utc"],
                None if state.end is None else state.end["reason"],
                len(state.counted_attempts),
                state.repeated,
                *(session.fields.get(name) for name in names),
            ]
        )
    return rows


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([text_of(one) for one in row] for row in rows)
    return text.getvalue()
