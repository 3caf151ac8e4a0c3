"""Bit-exact replay: every tick of a recording computed once more from the recorded samples.

The same kernel that ran in the servo is run again over the recorded positions, velocities, forces and sample ages, with
the parameters that were in force at each tick. Whatever the element and the envelope decide must come out with the same
bits; if it does not, code, parameters or data are not those of the run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality, DeviceSpec
from haptics.elements import Element
from haptics.envelope import ENVELOPE_FLAGS, Limits
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording import Recording
from haptics.rendering import Rendering, parameters_of
from haptics.tables import make_element
from haptics.trace import Rows, Status

COMPUTED = (
    "command",
    "command_unlimited",
    "proxy",
    "displacement",
    "friction_force",
    "sliding_velocity",
    "sticking",
    "injected_energy",
)
"""The columns that are compared, besides the envelope's flags in ``status``."""

_AT_ONCE = 100_000
"""Rows that are computed at a time: an hour of them at once would need gigabytes."""


@dataclass(frozen=True)
class Verification:
    """Result of a replay.

    Attributes
    ----------
    ticks : int
        Ticks computed again.
    mismatches : int
        Ticks in which any bit of any compared column differs.
    first_mismatch : int or None
        Number of the first such tick.
    """

    ticks: int
    mismatches: int
    first_mismatch: int | None


def verify(recording: Recording) -> Verification:
    """Compute every tick of `recording` again and compare bit for bit.

    Raises
    ------
    RecordingError
        If the recording does not say everything that is needed, or has lost ticks (their effect on the element's
        state cannot be known).
    """
    rows = recording.rows
    unexplained = (np.diff(rows["tick"]) > 1) & ((rows["status"][1:] & int(Status.AFTER_SKIP)) == 0)
    if recording.metadata.get("certificate", {}).get("lost_ticks") or unexplained.any():
        raise RecordingError(f"{recording.folder} has lost ticks: the run cannot be computed again.")
    executed = recording.metadata.get("certificate", {}).get("ticks", len(rows))
    if len(rows) != executed:
        raise RecordingError(f"{recording.folder} holds {len(rows)} of the {executed} ticks of its run: cut short.")
    mismatches, first = 0, None
    for recorded, computed in _computed(recording, rows):
        where = np.flatnonzero(_differing(recorded, computed))
        mismatches += len(where)
        if first is None and len(where):
            first = int(recorded["tick"][where[0]])
    return Verification(len(rows), mismatches, first)


def again(recording: Recording, rows: Rows) -> Rows:
    """Return `rows` of `recording`, from the first one on, with the computed columns computed once more."""
    parts = [computed for _, computed in _computed(recording, rows)]
    return np.concatenate(parts) if parts else rows


def _computed(recording: Recording, rows: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Yield stretches of `rows`, short enough for the memory, as they were recorded and as they come out now."""
    if len(rows) == 0:
        return
    try:
        versions = {entry["version"]: _element(recording, entry) for entry in recording.settings}
        rendering = Rendering(versions[0], _spec(recording), Limits(**recording.metadata["limits"]))
        for start, stop in _stretches(np.array(rows["settings_version"])):
            version = int(rows["settings_version"][start])
            rendering.configure(parameters_of(versions[version]), version)
            for first in range(start, stop, _AT_ONCE):
                recorded = np.array(rows[first : min(first + _AT_ONCE, stop)])
                yield recorded, rendering.again(recorded)
    except (KeyError, TypeError, ConfigurationError) as error:
        raise RecordingError(f"{recording.folder} does not hold what a replay needs: {error}.") from error


def _element(recording: Recording, entry: dict[str, Any]) -> Element:
    causality = Causality(recording.metadata["device"]["causality"])
    return make_element(entry["model"], entry["law"], entry["element"], 1.0 / recording.metadata["rate_hz"], causality)


def _spec(recording: Recording) -> DeviceSpec:
    table = dict(recording.metadata["device"])
    table["causality"] = Causality(table["causality"])
    return DeviceSpec(**table)


def _stretches(versions: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return (start, stop) of each stretch of equal settings."""
    edges = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)]
    return [(a, b) for a, b in itertools.pairwise(edges) if b > a]


def _differing(rows: Rows, computed: Rows) -> NDArray[np.bool_]:
    """Return for each tick whether any compared bit differs; nan equals nan if its bits do."""
    different: NDArray[np.bool_] = ((rows["status"] ^ computed["status"]) & ENVELOPE_FLAGS) != 0
    for name in COMPUTED:
        ours = np.ascontiguousarray(computed[name]).reshape(len(rows), -1).view(np.uint8)
        theirs = np.ascontiguousarray(rows[name]).reshape(len(rows), -1).view(np.uint8)
        different |= (ours != theirs).any(axis=1)
    return different
