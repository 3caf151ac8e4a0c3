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
from calibration.signals import Motion, best_cutoff, motion, smooth
from haptics.errors import ConfigurationError
from haptics.recording import Recording
from haptics.tick_file import digest_of
from haptics.trace import Rows

Array = NDArray[np.float64]

AXES = ("x", "y")

_USED = ("time", "period_error", "sample_age", "position", "command", "proxy")

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

_STEPS = 3
"""Steps by which the delay is made free of that noise."""


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
    reference = np.array(rows["proxy"][new, axis])
    moved = motion(time, position, min(_LOOK, best_cutoff(time, position)))
    given = rows["time"] + rows["period_error"]
    command = np.array(rows["command"][:, axis])
    delay = _delay(given, command, moved, reference)
    return Measurement(
        joint=AXES[axis],
        rotary=False,
        time=time - time[0],
        velocity=moved.velocity,
        effort=-_smooth_force(given, command, delay, moved),
        source=source,
        acceleration=moved.acceleration,
        instrument=moved.instrument,
        position=position,
        reference=reference,
        cutoff=moved.cutoff,
    )


def _smooth_force(given: Array, command: Array, delay: float, moved: Motion) -> Array:
    """Return the force, as smooth as the motion [N].

    A force holds for a period. Straight lines between the commands are its mean over a period, of which fast changes
    have a little less than the force has: what is missing is put back, to second order.
    """
    force = _at_its_time(given, command, moved.time, delay)
    period = float(np.median(np.diff(given)))
    missing = smooth(moved.time, force, moved.cutoff, 2) * period**2 / 24.0
    return smooth(moved.time, force, moved.cutoff) - missing


def _at_its_time(given: Array, command: Array, time: Array, delay: float) -> Array:
    """Return the force at each time [N], if commands act so much later than they were given."""
    return np.interp(time, given + delay, command)


def _delay(given: Array, command: Array, slow: Motion, reference: Array) -> float:
    """Return the delay [s] at which a mass, Coulomb's and viscous friction and a constant explain the forces.

    The controller makes forces out of the noise of the position, so least squares finds in part that noise's own delay.
    Its answer is where the search begins for the delay at which what is left of the forces has nothing to do with the
    motion that was commanded, nor with its jerk (instrumental variables).
    """
    time, cutoff = slow.time, slow.cutoff
    moving = np.abs(slow.velocity) > _MOVING * np.abs(slow.velocity).max()
    sides = slow.velocity > 0.0, slow.velocity < 0.0
    columns = np.column_stack((slow.acceleration, slow.velocity, *sides))[moving]
    speed, rise = (smooth(time, reference, cutoff, order) for order in (1, 2))
    instruments = np.column_stack((rise, speed, *sides))[moving]
    jerk = smooth(time, rise, cutoff, 1)[moving]
    # of the jerk only what the columns have no part in
    jerk = jerk - instruments @ np.linalg.lstsq(columns.T @ instruments, columns.T @ jerk, rcond=None)[0]

    def left(delay: float) -> float:
        return float(jerk @ smooth(time, _at_its_time(given, command, time, delay), cutoff)[moving])

    first = delay = _least_squares_delay(given, command, slow)
    for _ in range(_STEPS):
        here, later = left(delay), left(delay + _STEP)
        if here == later:
            return first
        delay -= _STEP * here / (later - here)
        if not 0.0 <= delay <= _LATEST:
            return first
    return delay


def _least_squares_delay(given: Array, command: Array, slow: Motion) -> float:
    """Return the delay [s] at which the least of the forces is left unexplained."""
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
