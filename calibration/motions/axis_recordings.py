"""From the recording of an excitation to what was measured of each axis.

A force acts later than it is commanded, and holds for a period. How much later is found from the recording itself: it
is the delay at which mass and friction explain the forces best.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.files import Source
from calibration.data.joint_recording import JointRecording
from calibration.data.signals import Motion, best_cutoff, motion, smooth
from calibration.motions import rows_of, source_of
from calibration.motions.handle_motion import AXES
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.rendering.envelope import UNUSABLE

Array = NDArray[np.float64]

PARTS = "excited_ticks"
"""Key of ``recording.json`` with which older versions told the rounds."""

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


def recorded_axes(folder: Path) -> dict[str, list[JointRecording]]:
    """Return what was measured of x and of y, round by round: motions without delay, and the forces at that time.

    Parameters
    ----------
    folder : Path
        A recording of `calibration.motions.handle_motion.excite`; of one that was interrupted, the rounds that are
        whole.

    Raises
    ------
    RecordingError, ConfigurationError
        If it is none.
    """
    recording = Recording(folder)
    if not is_excitation(recording):
        raise ConfigurationError(f"{folder}: is no recording of an excitation.")
    source, whole = source_of(recording), _whole_rounds(recording)
    if not (whole and all(whole)):
        raise ConfigurationError(f"{folder}: was interrupted before both axes had been moved.")
    return {axis: [_round(rows, k, source) for rows in whole[k]] for k, axis in enumerate(AXES)}


def is_excitation(recording: Recording) -> bool:
    """Tell whether it is the recording of a device that was moved to be measured, and not of a session."""
    return PARTS in recording.metadata or any(label.startswith(AXES) for label, _ in rows_of(recording))


def _whole_rounds(recording: Recording) -> list[list[Rows]]:
    """Return the rows of every round that came to its end, of x and of y."""
    parts = recording.metadata.get(PARTS)
    if parts is not None:
        return _rounds_by_tick(recording, parts)
    whole: list[list[Rows]] = [[] for _ in AXES]
    for label, rows in rows_of(recording):
        axis = label.partition(" ")[0]
        if axis in AXES and len(rows) and rows["sticking"][-1]:
            whole[AXES.index(axis)].append(rows)
    return whole


def _rounds_by_tick(recording: Recording, parts: Any) -> list[list[Rows]]:
    """Return the rounds of a recording that has their first ticks and those after them, as older versions wrote it."""
    rows = recording.read()
    ticks = rows["tick"]
    try:
        pairs = [[(int(begin), int(end)) for begin, end in rounds] for rounds in parts]
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{recording.folder}: {PARTS} must be pairs of ticks ({error}).") from error
    last = int(ticks[-1]) if len(rows) else -1
    return [[rows[(ticks >= a) & (ticks < b)] for a, b in rounds if b <= last + 1] for rounds in pairs[: len(AXES)]]


def _round(rows: Rows, axis: int, source: Source) -> JointRecording:
    sampled = rows["time"] + rows["period_error"] - rows["sample_age"]
    good = (rows["status"] & UNUSABLE) == 0
    new = good & (np.diff(np.maximum.accumulate(np.where(good, sampled, -np.inf)), prepend=-np.inf) > _SAME)
    time, position = sampled[new], np.array(rows["position"][new, axis])
    reference = np.array(rows["proxy"][new, axis])
    moved = motion(time, position, min(_LOOK, best_cutoff(time, position)))
    given = rows["time"] + rows["period_error"]
    command = np.array(rows["command"][:, axis])
    delay = _delay(given, command, moved, reference)
    return JointRecording(
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
    # the jerk, made orthogonal to the columns
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
