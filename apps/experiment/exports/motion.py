"""A recording as BIDS has motion: a table without header, its channels, and what is to be known of it."""

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
from haptics.recording.columns import column
from haptics.recording.recording import Recording

_AT_ONCE = 5000

_AXES = ("x", "y")


@dataclass(frozen=True)
class Channel:
    """A column of the table.

    Attributes
    ----------
    name : str
        Name.
    component : str
        ``x``, ``y`` or ``n/a``.
    kind : str
        Type of BIDS; there is none for forces, which are ``MISC``.
    units : str
        SI units.
    values : (n,) array
        A number a tick.
    """

    name: str
    component: str
    kind: str
    units: str
    values: NDArray[Any]


@dataclass(frozen=True)
class Motion:
    """What is written of a recording.

    Attributes
    ----------
    channels : tuple of Channel
        The columns, in order.
    sidecar : dict
        What ``_motion.json`` says.
    """

    channels: tuple[Channel, ...]
    sidecar: dict[str, Any]

    @classmethod
    def of(cls, recording: Recording, task: str) -> Self:
        """Return what is written of a recording; `task` is the label of the experiment.

        Raises
        ------
        RecordingError
            If it does not say with what rate it was made, or on what device.
        """
        rate, device = recording.metadata.get("rate_hz"), recording.metadata.get("device", {})
        if not isinstance(rate, int | float) or not 0.0 < rate < 1e6 or "causality" not in device:
            raise RecordingError(f"{recording.folder} does not say with what rate or on what device it was made.")
        channels = tuple(_channels(recording, str(device["causality"])))
        return cls(channels, _sidecar(recording, channels, float(rate), task))


def _channels(recording: Recording, causality: str) -> Iterator[Channel]:
    rows = recording.rows
    # When a tick really began: nominal time, and how late it was. Skipped ticks have no row.
    yield Channel("latency", "n/a", "LATENCY", "s", column(rows, "time") + column(rows, "period_error"))
    command = "N" if causality == Causality.IMPEDANCE else "m"
    vectors = (
        ("position", "POS", "m"),
        ("velocity", "VEL", "m/s"),
        ("force", "MISC", "N"),
        ("command", "MISC", command),
        ("command_unlimited", "MISC", command),
        ("friction_force", "MISC", "N"),
        ("hand_force", "MISC", "N"),
    )
    for name, kind, units in vectors:
        values = column(rows, name)
        if not np.isnan(values).all():
            for number, axis in enumerate(_AXES):
                yield Channel(f"{name}_{axis}", axis, kind, units, values[:, number])
    for name in ("tick", "marker", "gate", "status", "buttons"):
        yield Channel(name, "n/a", "MISC", "n/a", column(rows, name))


def _sidecar(recording: Recording, channels: tuple[Channel, ...], rate: float, task: str) -> dict[str, Any]:
    times = channels[0].values
    duration = float(times[-1] - times[0]) if len(times) else 0.0
    device = recording.metadata["device"]
    counts = {kind: sum(one.kind == kind for one in channels) for kind in ("LATENCY", "POS", "VEL", "MISC")}
    return {
        "TaskName": task,
        "SamplingFrequency": rate,
        "SamplingFrequencyEffective": (len(times) - 1) / duration if duration > 0.0 else rate,
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
    """Write table, channels and sidecar below `folder`; `stem` is what their names begin with."""
    header = "name\tcomponent\ttype\ttracked_point\tunits"
    told = [
        "\t".join([one.name, one.component, one.kind, "n/a" if one.kind == "LATENCY" else "handle", one.units])
        for one in motion.channels
    ]
    write_text(folder, f"{stem}_channels.tsv", "\n".join([header, *told, ""]))
    write_json(folder, f"{stem}_motion.json", motion.sidecar)
    with open(folder / f"{stem}_motion.tsv", "x", encoding="utf-8", newline="") as file:
        for text in _lines(motion.channels):
            file.write(text)


def _lines(channels: tuple[Channel, ...]) -> Iterator[str]:
    """Yield the table in pieces: every number with all its digits, ``n/a`` for what is none."""
    for start in range(0, len(channels[0].values), _AT_ONCE):
        cells = [list(map(repr, one.values[start : start + _AT_ONCE].tolist())) for one in channels]
        yield (
            "".join("\t".join(row) + "\n" for row in zip(*cells, strict=True))
            .replace("-inf", "n/a")
            .replace("inf", "n/a")
            .replace("nan", "n/a")
        )
