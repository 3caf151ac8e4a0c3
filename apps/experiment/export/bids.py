"""Export to BIDS 1.10: tables of trials as ``beh`` data, recordings of the blocks as ``motion`` data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.export.formats import about, readme, write_json, write_text
from apps.experiment.export.forms import forms_of, wide_rows
from apps.experiment.journal.tables import Session, columns_of, description, text_of, tsv_of
from haptics.device import Causality
from haptics.errors import RecordingError
from haptics.recording.recording import ORIGIN_UTC, Recording
from haptics.records import Rows

VERSION = "1.10.0"
"""Version of BIDS."""

_ROWS_AT_ONCE = 5000
_AXES = ("x", "y")
_VECTORS = ("position", "velocity", "force", "command", "command_unlimited", "friction_force", "hand_force")
_NUMBERS = ("tick", "marker", "gate", "status", "buttons")
_COLUMNS = ("time", "period_error", *_VECTORS, *_NUMBERS)


def export_bids(folder: Path, sessions: Sequence[Session], facts: Mapping[str, Any] | None = None) -> None:
    """Write the BIDS data set, with further `facts` in ``dataset_description.json``.

    Raises
    ------
    RecordingError
        If a recording cannot be read.
    """
    name, words = about(sessions)
    versions = sorted({str(session.header["versions"].get("haptics", "unknown")) for session in sessions})
    data_set = {
        "Name": name,
        "BIDSVersion": VERSION,
        "DatasetType": "raw",
        "GeneratedBy": [{"Name": "haptics", "Version": ", ".join(versions), "Description": words}],
        **(facts or {}),
    }
    write_json(folder, "dataset_description.json", data_set)
    write_text(folder, "README.md", readme(sessions))
    _write_participants(folder, sessions)
    for session in sessions:
        _write_session(folder, session)


def _write_participants(folder: Path, sessions: Sequence[Session]) -> None:
    """Write one row for each participant, with the data noted in the first session."""
    first = {session.place.participant: session for session in reversed(sessions)}
    group = ["group"] if any(session.state.group is not None for session in sessions) else []
    reserved = {"participant_id", "observer", *group}
    names = sorted({name for session in first.values() for name in session.header["fields"]})
    heads = [f"field_{name}" if name in reserved else name for name in names]
    lines = ["\t".join(["participant_id", "observer", *group, *heads])]
    for participant, session in sorted(first.items()):
        observer = None if session.header["observer"] is None else "simulated"
        cells = []
        own = [session.state.group] if group else []
        for value in (observer, *own, *(session.header["fields"].get(name) for name in names)):
            structured = isinstance(value, list | dict)
            plain = json.dumps(value, ensure_ascii=False) if structured else text_of(value, "n/a")
            cells.append(" ".join(plain.split()) or "n/a")
        lines.append("\t".join([f"sub-{participant}", *cells]))
    write_text(folder, "participants.tsv", "\n".join(lines) + "\n")
    fields = {
        head: {"Description": f"{name.replace('_', ' ')}, as noted before the first trial"}
        for head, name in zip(heads, names, strict=True)
    }
    answered = {"Description": "whether a simulated observer answered; n/a where a person did"}
    described = {name: {"Description": "group to which the participant was assigned"} for name in group}
    write_json(folder, "participants.json", {"observer": answered, **described, **fields})


def _write_session(folder: Path, session: Session) -> None:
    place, header = session.place, session.header
    where, prefix = f"sub-{place.participant}/ses-{place.session:02d}", f"motion/{place.stem}_tracksys-handle_run-"
    starts = [one["recording"] for one in session.state.block_starts if one["recording"] is not None]
    recordings = [name for name in dict.fromkeys(starts) if place.inside(name).is_dir()]
    names = {recording: f"{prefix}{run:02d}" for run, recording in enumerate(recordings, 1)}
    scans = ["filename\tacq_time"]
    for recording, name in names.items():
        opened = Recording(place.inside(recording))
        if len(opened.rows):
            write_motion(folder, f"{where}/{name}", opened, place.task)
            utc = opened.metadata.get(ORIGIN_UTC)  # time of tick 0
            start = "n/a"
            if isinstance(utc, str) and utc[26:] in ("+00:00", "Z"):
                start = f"{utc[:26]}Z"
            scans.append(f"{name}_motion.tsv\t{start}")
    files = {recording: f"{name}_motion.tsv" for recording, name in names.items()}
    rows = [row | {"recording": files.get(row["recording"])} for row in session.rows]
    own = columns_of([session.state])
    columns = description(own)
    columns["recording"]["Description"] = "the recording of the trial's block, relative to the session's folder"
    task, table = {"TaskName": header["experiment"]}, header["design"].get("experiment")
    title = table.get("title") if isinstance(table, dict) else None
    if isinstance(title, str) and title:
        task["TaskDescription"] = title
    write_text(folder, f"{where}/beh/{place.stem}_beh.tsv", tsv_of(rows, own))
    write_json(folder, f"{where}/beh/{place.stem}_beh.json", task | columns)
    _write_forms(folder, where, session)
    if len(scans) > 1:
        name = f"sub-{place.participant}_ses-{place.session:02d}_scans.tsv"
        write_text(folder, f"{where}/{name}", "\n".join([*scans, ""]))


def _write_forms(folder: Path, where: str, session: Session) -> None:
    """Write a table for each form, with a row for each time that it was completed, and its description."""
    place, forms = session.place, forms_of(session)
    for name, rows in wide_rows(session).items():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        lines = ["\t".join(columns)]
        for row in rows:
            lines.append("\t".join(" ".join(text_of(row.get(one), "n/a").split()) or "n/a" for one in columns))
        task = f"form{name.replace('_', '')}"
        stem = f"{where}/beh/sub-{place.participant}_ses-{place.session:02d}_task-{task}_beh"
        described: dict[str, Any] = {
            "TaskName": task,
            "TaskDescription": f"questionnaire {name} of the experiment {session.header['experiment']}",
            "after_blocks": {"Description": "number of test blocks that were finished before the form"},
            "completed_utc": {"Description": "when the form was completed (ISO 8601)"},
        }
        form = forms.get(name)
        for item in form.asked if form is not None else ():
            described[item.name] = {"Description": item.text}
            described[item.name] |= {"Levels": item.options} if item.options else {}
            described[item.name] |= {"Units": item.unit} if item.unit else {}
        for column in columns:
            described.setdefault(column, {"Description": f"{column.replace('_', ' ')} of the form"})
        write_text(folder, f"{stem}.tsv", "\n".join([*lines, ""]))
        write_json(folder, f"{stem}.json", described)


# --- motion data ---


@dataclass(frozen=True)
class Channel:
    """Column of the table.

    Attributes
    ----------
    name : str
        Name of the channel.
    component : str
        ``x``, ``y`` or ``n/a``.
    kind : str
        BIDS channel type. Forces have the type ``MISC`` because BIDS does not define one for them.
    units : str
        SI units.
    column : str
        Column of the recording; empty for the latency.
    """

    name: str
    component: str
    kind: str
    units: str
    column: str = ""

    def values(self, rows: Rows) -> NDArray[Any]:
        """Return the values of the channel in a chunk of rows, shape (n,)."""
        if not self.column:
            # Actual start of the tick: nominal time plus start delay. Skipped ticks have no row.
            return np.asarray(rows["time"] + rows["period_error"])
        values = rows[self.column]
        return np.asarray(values if values.ndim == 1 else values[:, _AXES.index(self.component)])


def write_motion(folder: Path, stem: str, recording: Recording, task: str) -> None:
    """Write table, channels and sidecar of a recording to `folder` with file names that begin with `stem`.

    `task` is the label of the experiment.

    Raises
    ------
    RecordingError
        If the recording does not state its rate or its device.
    """
    rate, device = recording.metadata.get("rate_hz"), recording.metadata.get("device", {})
    if not isinstance(rate, int | float) or not 0.0 < rate < 1e6 or "causality" not in device:
        raise RecordingError(f"{recording.folder} does not state its rate or its device.")
    measured: set[str] = set()
    for rows in recording.chunks(_VECTORS):
        measured |= {name for name in _VECTORS if not np.isnan(rows[name]).all()}
    channels = tuple(_channels(measured, str(device["causality"])))
    count, times = len(recording), ("time", "period_error")
    duration = 0.0
    if count:
        begin, end = (channels[0].values(recording.read(k, k + 1, times))[0] for k in (0, count - 1))
        duration = float(end - begin)
    counts = {kind: sum(one.kind == kind for one in channels) for kind in ("LATENCY", "POS", "VEL", "MISC")}
    sidecar = {
        "TaskName": task,
        "SamplingFrequency": float(rate),
        "SamplingFrequencyEffective": (count - 1) / duration if duration > 0.0 else float(rate),
        "RecordingType": "continuous",
        "RecordingDuration": duration,
        "TrackingSystemName": "handle",
        "DeviceSerialNumber": str(device.get("identity", "n/a")),
        "ManufacturersModelName": str(device.get("name", "n/a")),
        "SoftwareVersions": str(recording.metadata.get("versions", {}).get("haptics", "n/a")),
        "MotionChannelCount": len(channels),
        "TrackedPointsCount": 1,
        "MissingValues": "n/a",
        **{f"{kind}ChannelCount": count for kind, count in counts.items()},
    }
    header = "name\tcomponent\ttype\ttracked_point\tunits"
    lines = [
        "\t".join([one.name, one.component, one.kind, "n/a" if one.kind == "LATENCY" else "handle", one.units])
        for one in channels
    ]
    write_text(folder, f"{stem}_channels.tsv", "\n".join([header, *lines, ""]))
    write_json(folder, f"{stem}_motion.json", sidecar)
    with open(folder / f"{stem}_motion.tsv", "x", encoding="utf-8", newline="") as file:
        for rows in recording.chunks(_COLUMNS, _ROWS_AT_ONCE):
            cells = [list(map(repr, one.values(rows).tolist())) for one in channels]
            text = "".join("\t".join(row) + "\n" for row in zip(*cells, strict=True))
            file.write(text.replace("-inf", "n/a").replace("inf", "n/a").replace("nan", "n/a"))


def _channels(measured: set[str], causality: str) -> Iterator[Channel]:
    """Yield the channels; vectors without any number are left out."""
    yield Channel("latency", "n/a", "LATENCY", "s")
    command = "N" if causality == Causality.IMPEDANCE else "m"
    units = {"position": "m", "velocity": "m/s", "command": command, "command_unlimited": command}
    kinds = {"position": "POS", "velocity": "VEL"}
    for name in _VECTORS:
        if name in measured:
            for axis in _AXES:
                yield Channel(f"{name}_{axis}", axis, kinds.get(name, "MISC"), units.get(name, "N"), name)
    for name in _NUMBERS:
        yield Channel(name, "n/a", "MISC", "n/a", name)
