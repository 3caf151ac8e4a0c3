"""From the recording of an excitation to what was measured of each axis.

A force acts later than it is commanded, and holds for a period. How much later is found from the recording itself: it
is the delay at which mass and friction explain the forces best.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.excited import PARTS
from calibration.measured_files import Source
from calibration.measurements import Measurement
from calibration.signals import Motion, motion, smooth
from haptics.errors import ConfigurationError
from haptics.recording import Recording
from haptics.tick_file import digest_of
from haptics.trace import Rows

Array = NDArray[np.float64]

AXES = ("x", "y")

_USED = ("time", "period_error", "sample_age", "position", "command")

_LATEST = 0.02
"""Longest delay that is looked for [s]."""

_STEP = 0.25e-3
"""Delays are tried in such steps [s]."""

_SAME = 1e-4
"""Samples that were taken so shortly after each other are the same [s]."""

_MOVING = 0.1
"""Motion slower than this part of the top speed tells little of delays: there friction depends on more than speed."""

_LOOK = 60.0
"""Forces and motions are compared without what is faster than this [Hz]: the noise of the position is in both."""


def measurements_of(folder: Path) -> dict[str, list[Measurement]]:
    """Return what was measured of x and of y, round by round: motions without delay, and the forces at that time.

    Parameters
    ----------
    folder : Path
        A recording of `calibration.excited.excite`; of one that was interrupted, the rounds that are whole.

    Raises
    ------
    RecordingError, ConfigurationError
        If it is none.
    """
    recording = Recording(folder)
    parts = recording.metadata.get(PARTS)
    if parts is None or not _are_parts(parts):
        raise ConfigurationError(f"{folder}: is no recording of an excitation.")
    device = recording.metadata.get("device", {})
    name = f"{device.get('name', '')} {device.get('identity', '')}".strip()
    source = Source(str(folder), digest_of(recording.ticks), name)
    rows = recording.rows
    if not all(np.isfinite(rows[column]).all() for column in _USED):
        raise ConfigurationError(f"{folder}: has values that are not finite numbers.")
    last = int(rows["tick"][-1]) if len(rows) else -1
    whole = [[part for part in rounds if part[1] <= last + 1] for rounds in parts]
    if not all(whole):
        raise ConfigurationError(f"{folder}: was interrupted before both axes had been moved.")
    return {
        axis: [_round(rows[(rows["tick"] >= begin) & (rows["tick"] < end)], k, source) for begin, end in whole[k]]
        for k, axis in enumerate(AXES)
    }


def _are_parts(parts: Any) -> bool:
    """Tell whether these are, for each axis, the first ticks of its rounds and those after them."""
    try:
        return len(parts) == len(AXES) and all(
            type(begin) is type(end) is int and 0 <= begin < end for rounds in parts for begin, end in rounds
        )
    except (TypeError, ValueError):
        return False


def _round(rows: Rows, axis: int, source: Source) -> Measurement:
    sampled = rows["time"] + rows["period_error"] - rows["sample_age"]
    new = np.diff(np.maximum.accumulate(sampled), prepend=-np.inf) > _SAME
    time, position = sampled[new], np.array(rows["position"][new, axis])
    moved, slow = motion(time, position), motion(time, position, _LOOK)
    given = rows["time"] + rows["period_error"]
    command = np.array(rows["command"][:, axis])
    force = _at_its_time(given, command, time, _delay(given, command, slow))
    return Measurement(
        joint=AXES[axis],
        rotary=False,
        time=time - time[0],
        velocity=moved.velocity,
        effort=-smooth(time, force, moved.cutoff),  # as smooth as the acceleration
        source=source,
        acceleration=moved.acceleration,
        instrument=moved.instrument,
        position=position,
    )


def _at_its_time(given: Array, command: Array, time: Array, delay: float) -> Array:
    """Return the force at each time [N], if commands act so much later than they were given."""
    return np.interp(time, given + delay, command)


def _delay(given: Array, command: Array, slow: Motion) -> float:
    """Return the delay [s] at which a mass, Coulomb's and viscous friction and a constant explain the forces best."""
    time, velocity = slow.time, slow.velocity
    moving = np.abs(velocity) > _MOVING * np.abs(velocity).max()
    columns = np.column_stack((slow.acceleration, velocity, velocity > 0.0, velocity < 0.0))[moving]
    basis, _ = np.linalg.qr(columns)
    delays = np.arange(0.0, _LATEST, _STEP)

    def left(delay: float) -> float:
        force = smooth(time, _at_its_time(given, command, time, delay), slow.cutoff)[moving]
        return float(np.sum((force - basis @ (basis.T @ force)) ** 2))

    costs = [left(float(delay)) for delay in delays]
    k = min(max(int(np.argmin(costs)), 1), len(delays) - 2)
    before, here, after = costs[k - 1 : k + 2]
    bend = before - 2.0 * here + after  # the cost is a parabola about its minimum
    between = 0.5 * (before - after) / bend if bend > 0.0 else 0.0
    return float(delays[k] + _STEP * min(max(between, -1.0), 1.0))
