"""Joint recordings of each axis from the recording of an excitation.

A force acts later than it is commanded, and is held for a period. The delay is estimated from the recording: it is the
delay for which mass and friction explain the forces best.
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
"""Key of ``recording.json`` in which older versions stored the rounds."""

_LATEST = 0.02
"""Maximum delay of the search [s]."""

_STEP = 0.25e-3
"""Step of the delay in the search [s]."""

_SAME = 1e-4
"""Samples closer together in time than this are the same sample [s]."""

_MOVING = 0.1
"""Minimum speed of samples used for the delay, as a fraction of the top speed.

At lower speeds friction depends on more than speed.
"""

_LOOK = 60.0
"""Cut-off for the comparison of forces and motions [Hz]; above it, both contain position noise."""

_STEPS = 3
"""Number of secant steps that remove the bias of the delay due to that noise."""


def recorded_axes(folder: Path) -> dict[str, list[JointRecording]]:
    """Return the rounds of x and of y: motions without delay, with the forces at the same time.

    Parameters
    ----------
    folder : Path
        Recording of `calibration.motions.handle_motion.excite`; of an interrupted one, the complete rounds are used.

    Raises
    ------
    RecordingError, ConfigurationError
        If it is not such a recording.
    """
    recording = Recording(folder)
    if not is_excitation(recording):
        raise ConfigurationError(f"{folder}: is no recording of an excitation.")
    source, whole = source_of(recording), _whole_rounds(recording)
    if not (whole and all(whole)):
        raise ConfigurationError(f"{folder}: was interrupted before both axes had been moved.")
    return {axis: [_round(rows, k, source) for rows in whole[k]] for k, axis in enumerate(AXES)}


def is_excitation(recording: Recording) -> bool:
    """Return True if the recording contains an excitation and not a session."""
    return PARTS in recording.metadata or any(label.startswith(AXES) for label, _ in rows_of(recording))


def _whole_rounds(recording: Recording) -> list[list[Rows]]:
    """Return the rows of every complete round, of x and of y."""
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
    """Return the rounds of a recording with tick ranges, as written by older versions."""
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
    """Return the force filtered like the motion [N].

    A force is held for a period. Linear interpolation between the commands is its mean over a period, which attenuates
    fast changes slightly. The attenuation is corrected to second order.
    """
    force = _at_its_time(given, command, moved.time, delay)
    period = float(np.median(np.diff(given)))
    missing = smooth(moved.time, force, moved.cutoff, 2) * period**2 / 24.0
    return smooth(moved.time, force, moved.cutoff) - missing


def _at_its_time(given: Array, command: Array, time: Array, delay: float) -> Array:
    """Return the force at each time [N] for a given delay of the commands."""
    return np.interp(time, given + delay, command)


def _delay(given: Array, command: Array, slow: Motion, reference: Array) -> float:
    """Return the delay [s] at which mass, Coulomb and viscous friction and a constant explain the forces.

    The controller converts the noise of the position into forces, which biases least squares. Its result is the start
    of the search for the delay at which the residual forces are uncorrelated with the commanded motion and its jerk
    (instrumental variables).
    """
    time, cutoff = slow.time, slow.cutoff
    moving = np.abs(slow.velocity) > _MOVING * np.abs(slow.velocity).max()
    sides = slow.velocity > 0.0, slow.velocity < 0.0
    columns = np.column_stack((slow.acceleration, slow.velocity, *sides))[moving]
    speed, rise = (smooth(time, reference, cutoff, order) for order in (1, 2))
    instruments = np.column_stack((rise, speed, *sides))[moving]
    jerk = smooth(time, rise, cutoff, 1)[moving]
    # make the jerk orthogonal to the columns
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
    """Return the delay [s] that minimises the residual of the forces."""
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
    bend = before - 2.0 * here + after  # parabolic interpolation of the minimum
    between = 0.5 * (before - after) / bend if bend > 0.0 else 0.0
    return float(delays[k] + _STEP * min(max(between, -1.0), 1.0))
