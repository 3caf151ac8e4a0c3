"""Moving the end effector of an arm to and fro along each axis, with a sum of sines on top, to see how it follows.

The strokes have a constant speed, and the sines half of it at most: the arm never turns back while it is measured.
Coulomb friction is then a constant force, which no sine sees; an arm that stops and starts again follows small motions
badly, whatever its servo is like. The slowest sines move it by some millimetres, the fastest by some micrometres: all
have the same speed. Their phases are those of Schroeder 1970, with which the sum has no high peaks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.files import Source
from calibration.motions import Mover, Procedure, drive, rows_of, source_of
from calibration.motions.course import usable_rows
from calibration.motions.excitation import go_to, hold_still
from calibration.servo.response import Response, ServoFit, fit_servo
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.rendering.motion import Motion, reference
from haptics.settings import bounded, check, documented

Array = NDArray[np.float64]

LINES = (1, 2, 3, 5, 7, 10, 14, 19, 25, 32)
"""Frequencies, as multiples of the lowest one."""

AXES = ("x", "y")
_LABEL = "servo"
_RAMP, _SETTLING = 0.15, 0.15
"""Stroke and sines take so long to come and to go, and the arm so long to forget how they came [s]."""
_SHARE = 0.5
"""Largest speed of the sines, as a part of that of the stroke."""
_ASTRAY = 0.03
"""An end effector farther from where it should be does not follow [m]."""
_ROOM = 0.6
"""Part of the half of the workspace that is used."""
_SMOOTH_PEAK = 1.875
"""Largest slope of a ramp of fifth order from 0 to 1 in unit time."""


@documented
@dataclass(frozen=True)
class Excitation:
    """How the arm is moved."""

    lowest: float = bounded(
        2.0, minimum=0.5, maximum=10.0, unit="Hz", doc="lowest frequency of the sines; the highest is 32 times it"
    )
    cycles: int = bounded(3, minimum=1, maximum=20, doc="periods of the lowest frequency that a stroke measures")
    strokes: int = bounded(4, minimum=2, maximum=100, doc="strokes along each axis, to and fro")
    effort: float = bounded(
        0.3, above=0.0, maximum=0.8, doc="part of the arm's largest speed and acceleration that is used"
    )

    def __post_init__(self) -> None:
        check(self, "servo")

    @property
    def frequencies(self) -> Array:
        """Of the sines [Hz]."""
        return self.lowest * np.array(LINES, dtype=np.float64)

    @property
    def measured(self) -> float:
        """How long a stroke is measured [s]."""
        return self.cycles / self.lowest


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
    procedure = motions(excitation, mover.spec, mover.period)
    recording = drive(mover, procedure, folder, facts, progress, settings={_LABEL: excitation})
    return servo_of(recording, excitation, knows_velocity=mover.spec.servo_knows_velocity)


def require_reference(spec: DeviceSpec) -> None:
    """Raise `ConfigurationError` unless the device follows a position reference."""
    if spec.causality is not Causality.ADMITTANCE:
        raise ConfigurationError(f"{spec.name} is told forces: it has no position servo to identify.")


def motions(excitation: Excitation, spec: DeviceSpec, period: float) -> Procedure:
    """Give the motions: hold, and along each axis go to the start and make the strokes."""
    lower, upper = np.array(spec.workspace_min), np.array(spec.workspace_max)
    along = path(excitation, spec, period)
    move = functools.partial(Motion, Causality.ADMITTANCE, bound=spec.max_speed, max_error=_ASTRAY, period=period)
    last = yield from hold_still(move, period)
    for number, axis in enumerate(AXES):
        places = 0.5 * (lower + upper) + np.outer(along, np.eye(2)[number])
        yield from go_to(move, last, places[0], period)
        last = (yield move(reference(places, period=period), label=f"{_LABEL} {axis}"))["proxy"][-1]


def path(excitation: Excitation, spec: DeviceSpec, period: float) -> Array:
    """Return where along an axis the end effector is to be, from the middle, at each tick [m].

    The arm stays within the part of its largest speed and acceleration that `excitation` says, and in its workspace.
    """
    time: Array = period * np.arange(round(_stroke_time(excitation) / period), dtype=np.float64)
    duration = period * len(time)
    shape = _smooth(np.minimum(time, duration - time) / _RAMP)
    travel = np.cumsum(shape) * period
    half = 0.5 * min(np.array(spec.workspace_max) - np.array(spec.workspace_min))
    speed = min(excitation.effort * spec.max_speed / (1.0 + _SHARE), 2.0 * _ROOM * float(half) / travel[-1])
    waves = shape * _sines(excitation, time)
    left = excitation.effort * spec.max_acceleration - speed * _SMOOTH_PEAK / _RAMP
    if not left > 0.0:
        raise ConfigurationError(f"servo.effort = {excitation.effort:g}: the strokes take all of the acceleration.")
    rate = np.gradient(waves, period)
    scale = min(_SHARE * speed / float(np.abs(rate).max()), left / float(np.abs(np.gradient(rate, period)).max()))
    there = speed * (travel - 0.5 * travel[-1])
    strokes = [(1.0 if number % 2 == 0 else -1.0) * there + scale * waves for number in range(excitation.strokes)]
    return np.asarray(np.concatenate(strokes))


def _sines(excitation: Excitation, time: Array) -> Array:
    """Return the sum of sines of equal speeds."""
    frequencies = excitation.frequencies
    number = np.arange(len(frequencies))
    phases = -np.pi * number * (number + 1) / len(frequencies)
    angles = 2.0 * np.pi * np.outer(time, frequencies) + phases
    return np.asarray(np.sin(angles) @ (1.0 / (2.0 * np.pi * frequencies)))


def _smooth(part: Array) -> Array:
    """Return a ramp from 0 to 1 without a corner in its slope."""
    inside = np.clip(part, 0.0, 1.0)
    return np.asarray(inside**3 * (10.0 - 15.0 * inside + 6.0 * inside * inside))


def _stroke_time(excitation: Excitation) -> float:
    """Return how long a stroke takes [s]."""
    return 2.0 * _RAMP + _SETTLING + excitation.measured


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
        for kept in _strokes(rows[axis], excitation, period):
            tick = kept["tick"] * period
            # the reference gets to a command one period after the tick that gave it
            commanded = tick + period, np.array(kept["command"][:, number])
            taken = tick + kept["period_error"] - kept["sample_age"]
            first = np.concatenate(([True], np.diff(taken) > 0.0))  # of ticks with the same sample
            sampled = taken[first], np.array(kept["position"][first, number])
            responses.append(Response.of(excitation.frequencies, commanded, sampled))
            ages.append(float(np.mean(kept["sample_age"])))
    fit = fit_servo(responses, knows_velocity=knows_velocity)
    return MeasuredServo(fit, float(np.mean(ages)), source_of(recording))


def _strokes(rows: Rows, excitation: Excitation, period: float) -> Iterator[Rows]:
    """Give for each stroke the rows at constant speed whose samples can be used.

    Raises
    ------
    ConfigurationError
        If they are fewer than half.
    """
    begun = rows["tick"] - rows["tick"][0]
    whole, measured = round(_stroke_time(excitation) / period), round(excitation.measured / period)
    for number in range(excitation.strokes):
        first = number * whole + round((_RAMP + _SETTLING) / period)
        kept = usable_rows(rows[(begun >= first) & (begun < first + measured)])
        if len(kept) < measured // 2:
            raise ConfigurationError("the arm: too few samples were usable to tell how its servo follows.")
        yield kept
