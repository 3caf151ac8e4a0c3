"""Export to BIDS 1.10: tables of trials as ``beh`` data, recordings of the blocks as ``motion`` data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apps.experiment.exports.about import About, about, readme
from apps.experiment.exports.folder import write_json, write_text
from apps.experiment.exports.motion import Motion, write_motion
from apps.experiment.exports.sessions import Session
from apps.experiment.journal import tsv_of
from apps.experiment.journal.columns import text_of
from apps.experiment.journal.tables import description
from haptics.recording.recording import ORIGIN_UTC, Recording

VERSION = "1.10.0"
"""Version of BIDS."""


def export_bids(folder: Path, sessions: Sequence[Session]) -> None:
    """Write the BIDS data set.

    Raises
    ------
    RecordingError
        If a recording cannot be read.
    """
    told = about(sessions)
    write_json(folder, "dataset_description.json", _dataset(told, sessions))
    write_text(folder, "README.md", readme(told, sessions))
    _write_participants(folder, sessions)
    for session in sessions:
        _write_session(folder, session)


def _dataset(told: About, sessions: Sequence[Session]) -> dict[str, Any]:
    versions = sorted({str(session.state.header["versions"].get("haptics", "unknown")) for session in sessions})
    return {
        "Name": told.name,
        "BIDSVersion": VERSION,
        "DatasetType": "raw",
        "GeneratedBy": [{"Name": "haptics", "Version": ", ".join(versions), "Description": told.words}],
    }


def _write_participants(folder: Path, sessions: Sequence[Session]) -> None:
    """Write one row for each participant, with the data noted in the first session."""
    first = {session.place.participant: session for session in reversed(sessions)}
    names = sorted({name for session in first.values() for name in session.fields} - {"participant_id", "observer"})
    lines = ["\t".join(["participant_id", "observer", *names])]
    for participant, session in sorted(first.items()):
        observer = session.state.header["observer"]
        cells = [None if observer is None else "simulated", *(session.fields.get(name) for name in names)]
        lines.append("\t".join([f"sub-{participant}", *(_cell(one) for one in cells)]))
    write_text(folder, "participants.tsv", "\n".join(lines) + "\n")
    told = {name: {"Description": f"{name.replace('_', ' ')}, as noted before the first trial"} for name in names}
    observer_told = {"Description": "whether a simulated observer answered; n/a where a person did"}
    write_json(folder, "participants.json", {"observer": observer_told, **told})


def _cell(value: Any) -> str:
    plain = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else text_of(value, "n/a")
    return " ".join(plain.split()) or "n/a"


def _write_session(folder: Path, session: Session) -> None:
    place = session.place
    where = f"sub-{place.participant}/ses-{place.session:02d}"
    runs = {recording: run for run, recording in enumerate(session.recordings, 1)}
    names = {recording: f"motion/{place.stem}_tracksys-handle_run-{run:02d}" for recording, run in runs.items()}
    scans = ["filename\tacq_time"]
    for recording, name in names.items():
        opened = Recording(place.inside(recording))
        if len(opened.rows):
            write_motion(folder, f"{where}/{name}", Motion.of(opened, place.task))
            scans.append(f"{name}_motion.tsv\t{_instant(opened.metadata.get(ORIGIN_UTC))}")
    rows = [row | {"recording": _named(names, row["recording"])} for row in session.rows]
    write_text(folder, f"{where}/beh/{place.stem}_beh.tsv", tsv_of(rows))
    write_json(folder, f"{where}/beh/{place.stem}_beh.json", _described(session))
    if len(scans) > 1:
        write_text(
            folder, f"{where}/sub-{place.participant}_ses-{place.session:02d}_scans.tsv", "\n".join([*scans, ""])
        )


def _named(names: dict[str, str], recording: str | None) -> str | None:
    return None if recording not in names else f"{names[recording]}_motion.tsv"


def _described(session: Session) -> dict[str, Any]:
    columns = description()
    columns["recording"]["Description"] = "the recording of the trial's block, relative to the session's folder"
    task = {"TaskName": session.state.header["experiment"]}
    table = session.state.header["design"].get("experiment")
    title = table.get("title") if isinstance(table, dict) else None
    if isinstance(title, str) and title:
        task["TaskDescription"] = title
    return task | columns


def _instant(utc: Any) -> str:
    """Return the time of tick 0 in BIDS format: UTC date and time."""
    return f"{utc[:26]}Z" if isinstance(utc, str) and utc[26:] in ("+00:00", "Z") else "n/a"
