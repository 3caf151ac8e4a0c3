"""Moving the end effector of an arm by a sum of sines along each axis, to see how its position servo follows.

The slowest sines move it by some millimetres, the fastest by some micrometres: all have the same speed. Their phases
are those of Schroeder 1970, with which the sum is nowhere much greater than elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.files import Source
from calibration.motions import Mover, Procedure, drive, rows_of, source_of
from calibration.motions.excitation import approach
from calibration.servo.response import Response, ServoFit, fit_servo
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.rendering.envelope import UNUSABLE
from haptics.rendering.motion import Motion, holding, reference
from haptics.settings import bounded, check, documented

Array = NDArray[np.float64]

LINES = (1, 2, 3, 5, 7, 10, 14, 19, 26, 34, 44, 56, 70)
"""Frequencies, as multiples of the lowest one."""

AXES = ("x", "y")
_LABEL = "servo"
_HOLD, _FADE = 0.05, 1.0
"""The arm is held where it is for so long before it moves, and so long the sines take to come and to go [s]."""
_ASTRAY = 0.03
"""An end effector farther from where it should be does not follow [m]."""
_ROOM = 0.25
"""Part of the half of the workspace that is used."""


@documented
@dataclass(frozen=True)
class Excitation:
    """How the arm is moved."""

    lowest: float = bounded(
        0.5, minimum=0.1, maximum=5.0, unit="Hz", doc="lowest frequency; the highest is 70 times it"
    )
    cycles: int = bounded(4, minimum=2, maximum=100, doc="periods of the lowest frequency that are measured")
    effort: float = bounded(
        0.3, above=0.0, maximum=0.8, doc="part of the arm's largest speed and acceleration that is used"
    )

    def __post_init__(self) -> None:
        check(self, "servo")

    @property
    def frequencies(self) -> Array:
        """Of the sines [Hz]."""
        return self.lowest * np.array(LINES, dtype=np.float64)


@dataclass(frozen=True)
class MeasuredServo:
    """What was measured of an arm.

    Attributes
    ----------
    fit : ServoFit
        The servo.
    age : float
        How old samples were when the ticks took them, on average [s].
    delay : float
        From taking a sample to the reference computed from it, as `haptics.device.DeviceSpec.delay` [s].
    source : Source
        The recording.
    """

    fit: ServoFit
    age: float
    source: Source

    @property
    def delay(self) -> float:
        """From taking a sample to the reference computed from it [s]."""
        return max(self.age + self.fit.lag, 0.0)


def measure_servo(
    mover: Mover,
    excitation: Excitation,
    folder: Path,
    facts: dict[str, Any] | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> MeasuredServo:
    """Move an arm along both axes and return how its servo follows.

    Parameters
    ----------
    mover : Mover
        An arm, nobody's hand on it.
    excitation : Excitation
        How it is moved.
    folder : Path
        The recording, which does not exist yet.
    facts : dict, optional
        What the recording is to say besides.
    progress : callable
        Gets the time that has gone by [s].

    Raises
    ------
    ConfigurationError
        If the device is no arm, or the recording was interrupted.
    HapticError
        As of `calibration.motions.drive`; also if it does not follow. What was recorded stays.
    """
    require_reference(mover.spec)
    configuration = {"configuration": {_LABEL: asdict(excitation)}}
    procedure = motions(excitation, mover.spec, mover.period)
    recording = drive(mover, procedure, folder, {**(facts or {}), **configuration}, progress)
    return servo_of(recording, excitation, knows_velocity=mover.spec.servo_knows_velocity)


def require_reference(spec: DeviceSpec) -> None:
    """Raise `ConfigurationError` unless the device follows a position reference."""
    if spec.causality is not Causality.ADMITTANCE:
        raise ConfigurationError(f"{spec.name} is told forces: it has no position servo to identify.")


def motions(excitation: Excitation, spec: DeviceSpec, period: float) -> Procedure:
    """Give the motions: hold, go to the middle, and the sines along each axis."""
    along = path(excitation, spec, period)
    lower, upper = np.array(spec.workspace_min), np.array(spec.workspace_max)
    middle = 0.5 * (lower + upper)
    move = functools.partial(Motion, Causality.ADMITTANCE, bound=spec.max_speed, max_error=_ASTRAY, period=period)
    held = yield move(holding(_HOLD, period), relative=True, label="hold")
    way = approach(held["proxy"][-1], middle, period)
    if len(way[0]):
        yield move(reference(*way), label="approach")
    for number, axis in enumerate(AXES):
        places = middle + np.outer(along, np.eye(2)[number])
        yield move(reference(places, period=period), label=f"{_LABEL} {axis}")


def path(excitation: Excitation, spec: DeviceSpec, period: float) -> Array:
    """Return the displacement along an axis at each tick [m], within the limits of the device."""
    frequencies = excitation.frequencies
    duration = excitation.cycles / excitation.lowest + 2.0 * _FADE
    time = period * np.arange(round(duration / period))
    number = np.arange(len(frequencies))
    phases = -np.pi * number * (number + 1) / len(frequencies)
    angles = 2.0 * np.pi * np.outer(time, frequencies) + phases
    shape = np.sin(angles) @ (1.0 / (2.0 * np.pi * frequencies))
    rise = np.clip(np.minimum(time, time[-1] - time) / _FADE, 0.0, 1.0)
    shape = shape * rise**3 * (10.0 - 15.0 * rise + 6.0 * rise * rise)
    speed = np.gradient(shape, period)
    half = 0.5 * min(np.array(spec.workspace_max) - np.array(spec.workspace_min))
    scale = min(
        excitation.effort * spec.max_speed / float(np.abs(speed).max()),
        excitation.effort * spec.max_acceleration / float(np.abs(np.gradient(speed, period)).max()),
        _ROOM * float(half) / float(np.abs(shape).max()),
    )
    return np.asarray(scale * shape)


def servo_of(recording: Recording, excitation: Excitation, *, knows_velocity: bool) -> MeasuredServo:
    """Return how the servo of the arm in a recording of these motions follows.

    Raises
    ------
    ConfigurationError
        If it was interrupted before both axes had been moved.
    """
    period = 1.0 / float(recording.metadata["rate_hz"])
    rows = {label.partition(" ")[2]: rows for label, rows in rows_of(recording) if label.startswith(_LABEL)}
    if set(rows) != set(AXES):
        raise ConfigurationError(f"{recording.folder}: was interrupted before both axes had been moved.")
    responses, ages = [], []
    for number, axis in enumerate(AXES):
        kept = _steady(rows[axis], excitation, period)
        tick = kept["tick"] * period
        # the reference gets to a command one period after the tick that gave it
        commanded = tick + period, np.array(kept["command"][:, number])
        sampled = np.array(kept["time"]), np.array(kept["position"][:, number])
        responses.append(Response.of(excitation.frequencies, commanded, sampled))
        ages.append(float(np.mean(tick - kept["time"])))
    fit = fit_servo(responses, knows_velocity=knows_velocity)
    return MeasuredServo(fit, max(float(np.mean(ages)), 0.0), source_of(recording))


def _steady(rows: Rows, excitation: Excitation, period: float) -> Rows:
    """Return the rows between the fades whose samples can be used."""
    first = round(_FADE / period)
    last = first + round(excitation.cycles / excitation.lowest / period)
    begun = rows["tick"] - rows["tick"][0]
    kept: Rows = rows[(begun >= first) & (begun < last) & ((rows["status"] & UNUSABLE) == 0)]
    if len(kept) < (last - first) // 2:
        raise ConfigurationError("the arm: too few samples were usable to tell how its servo follows.")
    return kept
