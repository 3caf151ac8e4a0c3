"""Export of a recording as BIDS motion data: a table without header, its channels, and a JSON sidecar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from apps.experiment.exports.folder import write_json, write_text
from haptics.device import Causality
from haptics.errors import RecordingError
from haptics.recording.recording import Recording
from haptics.records import Rows

_ROWS_AT_ONCE = 5000
_AXES = ("x", "y")
_VECTORS = ("position", "velocity", "force", "command", "command_unlimited", "friction_force", "hand_force")
_NUMBERS = ("tick", "marker", "gate", "status", "buttons")
_COLUMNS = ("time", "period_error", *_VECTORS, *_NUMBERS)


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


@dataclass(frozen=True)
class Motion:
    """Motion data of a recording, ready to be written.

    Attributes
    ----------
    recording : Recording
        The recording. Its ticks are read while the table is written.
    channels : tuple of Channel
        Columns of the table, in order.
    sidecar : dict
        Content of ``_motion.json``.
    """

    recording: Recording
    channels: tuple[Channel, ...]
    sidecar: dict[str, Any]

    @classmethod
    def of(cls, recording: Recording, task: str) -> Self:
        """Prepare the export of a recording; `task` is the label of the experiment.

        Raises
        ------
        RecordingError
            If the recording does not state its rate or its device.
        """
        rate, device = recording.metadata.get("rate_hz"), recording.metadata.get("device", {})
        if not isinstance(rate, int | float) or not 0.0 < rate < 1e6 or "causality" not in device:
            raise RecordingError(f"{recording.folder} does not say with what rate or on what device it was made.")
        measured: set[str] = set()
        for rows in recording.chunks(_VECTORS):
            measured |= {name for name in _VECTORS if not np.isnan(rows[name]).all()}
        channels = tuple(_channels(measured, str(device["causality"])))
        return cls(recording, channels, _sidecar(recording, channels, float(rate), task))


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


def _sidecar(recording: Recording, channels: tuple[Channel, ...], rate: float, task: str) -> dict[str, Any]:
    count, times = len(recording), ("time", "period_error")
    edges = [recording.read(0, 1, times), recording.read(count - 1, count, times)] if count else []
    duration = float(channels[0].values(edges[1])[0] - channels[0].values(edges[0])[0]) if count else 0.0
    device = recording.metadata["device"]
    counts = {kind: sum(one.kind == kind for one in channels) for kind in ("LATENCY", "POS", "VEL", "MISC")}
    return {
        "TaskName": task,
        "SamplingFrequency": rate,
        "SamplingFrequencyEffective": (count - 1) / duration if duration > 0.0 else rate,
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


def write_motion(folder: Path, stem: str, motion: Motion) -> None:
    """Write table, channels and sidecar to `folder` with file names that begin with `stem`."""
    header = "name\tcomponent\ttype\ttracked_point\tunits"
    lines = [
        "\t".join([one.name, one.component, one.kind, "n/a" if one.kind == "LATENCY" else "handle", one.units])
        for one in motion.channels
    ]
    write_text(folder, f"{stem}_channels.tsv", "\n".join([header, *lines, ""]))
    write_json(folder, f"{stem}_motion.json", motion.sidecar)
    with open(folder / f"{stem}_motion.tsv", "x", encoding="utf-8", newline="") as file:
        for rows in motion.recording.chunks(_COLUMNS, _ROWS_AT_ONCE):
            cells = [list(map(repr, one.values(rows).tolist())) for one in motion.channels]
            text = "".join("\t".join(row) + "\n" for row in zip(*cells, strict=True))
            file.write(text.replace("-inf", "n/a").replace("inf", "n/a").replace("nan", "n/a"))
