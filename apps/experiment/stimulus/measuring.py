"""Measurement of a trial in a recording: delivered and felt stimulus of each interval, and timing.

All intervals of a recording are measured at once. The results are cached in the folder of the recording, in
``stimulus.json``, with the hash of its ticks.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from apps.experiment.stimulus.delivered import delivered
from apps.experiment.stimulus.felt import Unknown, felt_stimulus
from apps.experiment.stimulus.ground import Ground
from apps.experiment.stimulus.own import Residual, residual_of
from haptics.device import Causality
from haptics.elements.tables import make_element, make_law
from haptics.errors import HapticError
from haptics.files import write_atomically
from haptics.recording.recording import Recording, stated_hash
from haptics.recording.replay import spec_of
from haptics.records import Rows, Status
from haptics.scenes import fitted, scene_from_table

CACHE = "stimulus.json"

FORMAT = 3
"""Format of the cache. Caches of other formats are recomputed."""

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)
_STEP = 1e-3
"""Relative step of the axis for the derivative of the work."""

_OF_AN_ELEMENT = {
    "stiffness": "a spring gives back at the next turn what it has taken: the work of the hand does not tell it",
    "damping": "the damper before a contact acts for less than a millimetre: the work of a stroke does not tell it",
    "mass": "a mass gives back when it is slowed down what it has taken: the work of the hand does not tell it",
}
"""Reasons why the felt value of an element's parameter is unknown."""

_OTHER = "{} of the element does not show in the work of the hand"

_NAMES = ("delivered", "delivered_flagged", "felt", "felt_low", "felt_high", "ticks", "speed")


def measure(recording: Path, trial: dict[str, Any]) -> dict[str, Any]:
    """Return the stimulus measurements of a trial.

    Parameters
    ----------
    recording : Path
        Folder of the block's recording.
    trial : dict
        Record ``trial_start`` of the journal.

    Returns
    -------
    dict
        Columns of `apps.experiment.journal.columns.STIMULUS_COLUMNS`, as far as known.

    Raises
    ------
    RecordingError
        If the folder contains no recording.
    """
    intervals = _intervals(recording, str(trial["axis"]))
    found: dict[str, Any] = {}
    parts = []
    for number, (marker, asked) in enumerate(zip(trial["markers"], trial["values"], strict=True), 1):
        part = intervals.get(str(marker))
        if part is None:
            found["stimulus_missing"] = "the recording has no such interval"
            continue
        parts.append(part)
        found |= {f"{name}_{number}": part[name] for name in _NAMES}
        part["exact"] = part["exact"] and part["set"] == asked
        if part["missing"]:
            found["stimulus_missing"] = part["missing"]
    if parts:
        found["delivered_exact"] = all(part["exact"] for part in parts)
        found["felt_source"] = parts[0]["source"]
        found["late_share"] = sum(part["late"] for part in parts) / max(sum(part["ticks"] for part in parts), 1)
        found["longest_gap_s"] = max(part["gap"] for part in parts)
    return found


def _intervals(folder: Path, axis: str) -> dict[str, dict[str, Any]]:
    """Return the measurements of every interval of a recording by marker, from the cache if valid."""
    cache = folder / CACHE
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        kept = json.loads(cache.read_text(encoding="utf-8"))
        if kept["format"] == FORMAT and kept["axis"] == axis and kept["ticks_sha256"] == _sealed(folder):
            return dict(kept["intervals"])
    found = _measured(folder, axis)
    digest = _sealed(folder)
    if digest:  # an unclosed recording may still receive rows
        kept = {"format": FORMAT, "axis": axis, "ticks_sha256": digest, "intervals": found}
        with contextlib.suppress(OSError):
            write_atomically(cache, json.dumps(kept, allow_nan=False) + "\n")
    return found


def _sealed(folder: Path) -> str:
    """Return the hash of the ticks of a closed recording, empty for others."""
    return stated_hash(json.loads((folder / "recording.json").read_text(encoding="utf-8")))


def _measured(folder: Path, axis: str) -> dict[str, dict[str, Any]]:
    """Measure every interval of a recording."""
    recording = Recording(folder)
    own = residual_of(folder, recording.metadata)
    markers = recording.read(columns=("marker",))["marker"]
    edges = [0, *(np.flatnonzero(np.diff(markers)) + 1).tolist(), len(markers)]
    found = {}
    for begin, end in itertools.pairwise(edges):
        if end > begin and markers[begin] % 10:
            found[str(int(markers[begin]))] = _interval(recording, recording.read(begin, end), axis, own)
    return found


def _interval(recording: Recording, rows: Rows, axis: str, own: Residual | None) -> dict[str, Any]:
    spec = spec_of(recording.metadata)
    entry = next(one for one in recording.settings if one["version"] == int(rows["settings_version"][-1]))
    table, _, name = axis.partition(".")
    value = _value(entry, table, name)
    given = delivered(rows, spec.causality)
    starts = rows["time"] + rows["period_error"]
    told: dict[str, Any] = {
        "set": value,
        "delivered": None if given.share is None else value * given.share,
        "delivered_flagged": given.flagged,
        "exact": given.exact and len(np.unique(rows["settings_version"])) == 1,
        "ticks": len(rows),
        "late": int(np.count_nonzero(rows["status"] & _LATE)),
        "gap": float(np.diff(starts).max()) if len(rows) > 1 else 0.0,
        "missing": "",
        **dict.fromkeys(("felt", "felt_low", "felt_high", "speed", "source")),
    }
    try:
        if table != "law" and axis != "wall.friction":
            raise Unknown(_OF_AN_ELEMENT[name] if name in _OF_AN_ELEMENT else _OTHER.format(name))
        step = _STEP * (value or 1.0)
        ground, other = (_ground(recording, entry, table, name, one) for one in (value, value + step))
        got = felt_stimulus(rows, ground, other, step, value, spec, own)
    except (Unknown, HapticError) as error:
        return {**told, "missing": str(error)}
    bounds = {"felt": got.value, "felt_low": got.low, "felt_high": got.high}
    return {**told, **bounds, "speed": got.speed, "source": got.source}


def _value(entry: dict[str, Any], table: str, name: str) -> float:
    """Return the value of an axis in a settings entry.

    All walls have the same value.
    """
    if table != "wall":
        return float(entry[table][name])
    return float(getattr(scene_from_table(entry["scene"]).walls[0], name))


def _ground(recording: Recording, entry: dict[str, Any], table: str, name: str, value: float) -> Ground:
    """Return the ground of a settings entry, with the given value of the axis."""
    numbers = {**entry["law"], name: value} if table == "law" else entry["law"]
    if "scene" not in entry:
        return Ground(make_law(numbers))
    scene = replace(scene_from_table(entry["scene"]), law=make_law(numbers))
    if table == "wall":
        scene = scene.with_walls(**{name: value})
    metadata = recording.metadata
    period, causality = 1.0 / float(metadata["rate_hz"]), Causality(metadata["device"]["causality"])
    element = make_element(entry["model"], numbers, entry["element"], period, causality)
    return Ground(element.law, fitted(scene, element))
