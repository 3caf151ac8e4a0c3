"""Back-and-forth motion of an end effector with a superposed multisine, for servo identification.

The strokes have constant speed, and the sines at most half of it, so that the velocity never changes sign during the
measurement. Coulomb friction is then a constant force that does not affect the sines. An arm that stops and starts
again would follow small motions badly with any servo. The slowest sines have amplitudes of some millimetres, the
fastest of some micrometres: all have the same speed. Their phases follow Schroeder 1970, which avoids high peaks of the
sum.
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
from calibration.motions.excitation import go_to, hold_still
from calibration.motions.procedure_runner import usable_rows
from calibration.servo.response import Response, ServoFit, fit_servo
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.rendering.motion import Motion, reference
from haptics.settings import bounded, check, documented

Array = NDArray[np.float64]

LINES = (1, 2, 3, 5, 7, 10, 14, 19, 25, 32)
"""Frequencies as multiples of the lowest one."""

AXES = ("x", "y")
_LABEL = "servo"
_RAMP, _SETTLING = 0.15, 0.15
"""Durations of the fade-in and fade-out of stroke and sines, and of the decay of transients [s]."""
_SHARE = 0.5
"""Maximum speed of the sines relative to the stroke."""
_ASTRAY = 0.03
"""Maximum following error of the end effector [m]."""
_ROOM = 0.6
"""Fraction of the half workspace that is used."""
_SMOOTH_PEAK = 1.875
"""Maximum slope of a fifth-order ramp from 0 to 1 in unit time."""


@documented
@dataclass(frozen=True)
class Excitation:
    """Settings of the motion."""

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
        """Frequencies of the sines [Hz]."""
        return self.lowest * np.array(LINES, dtype=np.float64)

    @property
    def measured(self) -> float:
        """Measured duration of a stroke [s]."""
        return self.cycles / self.lowest


@dataclass(frozen=True)
class MeasuredServo:
    """Result of the measurement of an arm.

    Attributes
    ----------
    fit : ServoFit
        Identified servo.
    age : float
        Mean age of the samples at their ticks [s].
    delay : float
        Delay from a sample to the effect of the reference computed from it, as `haptics.device.DeviceSpec.delay` [s].
    source : Source
        Recording.
    """

    fit: ServoFit
    age: float
    source: Source

    @property
    def delay(self) -> float:
        """Delay from a sample to the effect of the reference computed from it [s]."""
        return max(self.age + self.fit.lag, 0.0)


def measure_servo(
    mover: Mover,
    excitation: Excitation,
    folder: Path,
    facts: dict[str, Any] | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> MeasuredServo:
    """Move an arm along both axes and identify its servo.

    Parameters
    ----------
    mover : Mover
        Arm, with no hand on its handle.
    excitation : Excitation
        Settings of the motion.
    folder : Path
        Folder of the recording; must not exist.
    facts : dict, optional
        Additional metadata of the recording.
    progress : callable
        Callback with the elapsed time [s].

    Raises
    ------
    ConfigurationError
        If the device is not an arm, or the recording was interrupted.
    HapticError
        As in `calibration.motions.drive`; also if it does not follow. The recording is kept.
    """
    require_reference(mover.spec)
    procedure = motions(excitation, mover.spec, mover.period)
    recording = drive(mover, procedure, folder, facts, progress, settings={_LABEL: excitation})
    return servo_of(recording, excitation, knows_velocity=mover.spec.servo_knows_velocity)


def require_reference(spec: DeviceSpec) -> None:
    """Raise `ConfigurationError` unless the device accepts position references."""
    if spec.causality is not Causality.ADMITTANCE:
        raise ConfigurationError(f"{spec.name} takes forces as commands: it has no position servo to identify.")


def motions(excitation: Excitation, spec: DeviceSpec, period: float) -> Procedure:
    """Yield the motions: hold, and for each axis the motion to the start and the strokes."""
    lower, upper = np.array(spec.workspace_min), np.array(spec.workspace_max)
    along = path(excitation, spec, period)
    move = functools.partial(Motion, Causality.ADMITTANCE, bound=spec.max_speed, max_error=_ASTRAY, period=period)
    last = yield from hold_still(move, period)
    for number, axis in enumerate(AXES):
        places = 0.5 * (lower + upper) + np.outer(along, np.eye(2)[number])
        yield from go_to(move, last, places[0], period)
        last = (yield move(reference(places, period=period), label=f"{_LABEL} {axis}"))["proxy"][-1]


def path(excitation: Excitation, spec: DeviceSpec, period: float) -> Array:
    """Return the reference along an axis from the middle at each tick [m].

    The motion stays within the workspace and within the fraction of the arm's maximum speed and acceleration in
    `excitation`.
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
    """Return the sum of sines with equal speeds."""
    frequencies = excitation.frequencies
    number = np.arange(len(frequencies))
    phases = -np.pi * number * (number + 1) / len(frequencies)
    angles = 2.0 * np.pi * np.outer(time, frequencies) + phases
    return np.asarray(np.sin(angles) @ (1.0 / (2.0 * np.pi * frequencies)))


def _smooth(part: Array) -> Array:
    """Return a ramp from 0 to 1 with a continuous slope."""
    inside = np.clip(part, 0.0, 1.0)
    return np.asarray(inside**3 * (10.0 - 15.0 * inside + 6.0 * inside * inside))


def _stroke_time(excitation: Excitation) -> float:
    """Return the duration of a stroke [s]."""
    return 2.0 * _RAMP + _SETTLING + excitation.measured


def servo_of(recording: Recording, excitation: Excitation, *, knows_velocity: bool) -> MeasuredServo:
    """Identify the servo of the arm from a recording of these motions.

    Raises
    ------
    ConfigurationError
        If it was interrupted before both axes were moved.
    """
    period = 1.0 / float(recording.metadata["rate_hz"])
    rows = {label.partition(" ")[2]: rows for label, rows in rows_of(recording) if label.startswith(_LABEL)}
    if set(rows) != set(AXES):
        raise ConfigurationError(f"{recording.folder}: was interrupted before both axes had been moved.")
    responses, ages = [], []
    for number, axis in enumerate(AXES):
        for kept in _strokes(rows[axis], excitation, period):
            tick = kept["tick"] * period
            # the reference takes effect one period after the tick that computed it
            commanded = tick + period, np.array(kept["command"][:, number])
            taken = tick + kept["period_error"] - kept["sample_age"]
            first = np.concatenate(([True], np.diff(taken) > 0.0))  # drop ticks that repeat a sample
            sampled = taken[first], np.array(kept["position"][first, number])
            responses.append(Response.of(excitation.frequencies, commanded, sampled))
            ages.append(float(np.mean(kept["sample_age"])))
    fit = fit_servo(responses, knows_velocity=knows_velocity)
    return MeasuredServo(fit, float(np.mean(ages)), source_of(recording))


def _strokes(rows: Rows, excitation: Excitation, period: float) -> Iterator[Rows]:
    """Yield for each stroke the rows at constant speed with valid samples.

    Raises
    ------
    ConfigurationError
        If fewer than half of the samples are valid.
    """
    begun = rows["tick"] - rows["tick"][0]
    whole, measured = round(_stroke_time(excitation) / period), round(excitation.measured / period)
    for number in range(excitation.strokes):
        first = number * whole + round((_RAMP + _SETTLING) / period)
        kept = usable_rows(rows[(begun >= first) & (begun < first + measured)])
        if len(kept) < measured // 2:
            raise ConfigurationError("the arm: too few samples were usable to identify its servo.")
        yield kept
