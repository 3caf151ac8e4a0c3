"""Export to Psych-DS: one CSV for each session, and a description of every column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apps.experiment.exports.about import about, readme
from apps.experiment.exports.folder import write_json, write_text
from apps.experiment.exports.sessions import Session
from apps.experiment.journal import COLUMNS, Column, csv_of

_TYPES = {"text": "string", "number": "number", "whole": "integer", "flag": "boolean"}


def export_psych_ds(folder: Path, sessions: Sequence[Session]) -> None:
    """Write the Psych-DS data set."""
    told = about(sessions)
    description: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": told.name,
        "description": told.words,
        "schemaVersion": "Psych-DS 1.5.0",
        "keywords": ["psychophysics", "haptics", "friction"],
        "variableMeasured": [_variable(column) for column in COLUMNS],
    }
    write_json(folder, "dataset_description.json", description)
    write_text(folder, "README.md", readme(told, sessions))
    for session in sessions:
        place = session.place
        name = f"study-{place.task}_participant-{place.participant}_session-{place.session:02d}_data.csv"
        write_text(folder, f"data/{name}", csv_of(session.rows))


def _variable(column: Column) -> dict[str, Any]:
    """Return the schema.org PropertyValue of a column."""
    told: dict[str, Any] = {"@type": "PropertyValue", "name": column.name, "description": column.doc}
    told["valueType"] = _TYPES[column.kind]
    if column.unit:
        told["unitText"] = column.unit
    if column.levels:
        told["valueReference"] = [f"{level}: {meaning}" for level, meaning in column.levels.items()]
    return told
