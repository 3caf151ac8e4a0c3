"""Back-and-forth motion of an end effector with a superposed multisine, for servo identification.

The strokes have constant speed, and the sines at most half of it, so that the velocity never changes sign during the
measurement. Coulomb friction is then a constant force that does not affect the sines. An arm that stops and starts
again would follow small motions badly with any servo. The slowest sines have amplitudes of some millimetres, the
fastest of some micrometres: all have the same speed. Their phases follow Schroeder 1970, which avoids high peaks of the
sum.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import Source
from calibration.motions.excitation import go_to, hold_still
from calibration.motions.procedure import Measurement, Mover, Procedure, rows_of, source_of, usable_rows
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.rendering.programs import Motion, reference
from haptics.settings import bounded, check, documented

Array = NDArray[np.float64]

LINES = (1, 2, 3, 5, 7, 10, 14, 19, 25, 32)
"""Frequencies as multiples of the lowest one."""

AXES = ("x", "y")
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
    source : Source
        Recording.
    """

    fit: ServoFit
    age: float
    source: Source

    @property
    def delay(self) -> float:
        """Delay from a sample to the effect of the reference computed from it, as `DeviceSpec.delay` [s]."""
        return max(self.age + self.fit.lag, 0.0)


class ServoMeasurement(Measurement[MeasuredServo]):
    """Motion of an arm along both axes that identifies its servo.

    Parameters
    ----------
    settings : Excitation
        Settings of the motion.
    """

    table = "servo"

    def require(self, mover: Mover) -> None:
        """Raise `ConfigurationError` unless the device accepts position references."""
        if mover.spec.causality is not Causality.ADMITTANCE:
            raise ConfigurationError(
                f"{mover.spec.name} takes forces as commands: it has no position servo to identify."
            )

    def extent(self, mover: Mover) -> tuple[float, str]:
        """Return the duration [s] and the limits of the motion."""
        duration = 2.0 * len(path(self.settings, mover.spec, mover.period)) * mover.period
        return duration, f"by sums of sines up to {self.settings.frequencies[-1]:g} Hz"

    def motions(self, mover: Mover) -> Procedure:
        """Yield the motions: hold, and for each axis the motion to the start and the strokes."""
        spec, period = mover.spec, mover.period
        lower, upper = np.array(spec.workspace_min), np.array(spec.workspace_max)
        along = path(self.settings, spec, period)
        move = functools.partial(Motion, Causality.ADMITTANCE, bound=spec.max_speed, max_error=_ASTRAY, period=period)
        last = yield from hold_still(move, period)
        for number, axis in enumerate(AXES):
            places = 0.5 * (lower + upper) + np.outer(along, np.eye(2)[number])
            yield from go_to(move, last, places[0], period)
            last = (yield move(reference(places, period=period), label=f"{self.table} {axis}"))["proxy"][-1]

    def estimate(self, recording: Recording, mover: Mover) -> MeasuredServo:
        """Return the identified servo."""
        return servo_of(recording, self.settings, knows_velocity=mover.spec.servo_knows_velocity)


def path(excitation: Excitation, spec: DeviceSpec, period: float) -> Array:
    """Return the reference along an axis from the middle at each tick [m].

    The motion stays within the workspace and within the fraction of the arm's maximum speed and acceleration in
    `excitation`.
    """
    time: Array = period * np.arange(round((2.0 * _RAMP + _SETTLING + excitation.measured) / period), dtype=np.float64)
    # a fade-in and a fade-out with a continuous slope
    ramp = np.clip(np.minimum(time, period * len(time) - time) / _RAMP, 0.0, 1.0)
    shape = np.asarray(ramp**3 * (10.0 - 15.0 * ramp + 6.0 * ramp * ramp))
    travel = np.cumsum(shape) * period
    half = 0.5 * min(np.array(spec.workspace_max) - np.array(spec.workspace_min))
    speed = min(excitation.effort * spec.max_speed / (1.0 + _SHARE), 2.0 * _ROOM * float(half) / travel[-1])
    # sines of equal speeds
    frequencies = excitation.frequencies
    number = np.arange(len(frequencies))
    phases = -np.pi * number * (number + 1) / len(frequencies)
    angles = 2.0 * np.pi * np.outer(time, frequencies) + phases
    waves = shape * np.asarray(np.sin(angles) @ (1.0 / (2.0 * np.pi * frequencies)))
    left = excitation.effort * spec.max_acceleration - speed * _SMOOTH_PEAK / _RAMP
    if not left > 0.0:
        raise ConfigurationError(f"servo.effort = {excitation.effort:g}: the strokes take all of the acceleration.")
    rate = np.gradient(waves, period)
    scale = min(_SHARE * speed / float(np.abs(rate).max()), left / float(np.abs(np.gradient(rate, period)).max()))
    there = speed * (travel - 0.5 * travel[-1])
    strokes = [(1.0 if number % 2 == 0 else -1.0) * there + scale * waves for number in range(excitation.strokes)]
    return np.asarray(np.concatenate(strokes))


def servo_of(recording: Recording, excitation: Excitation, *, knows_velocity: bool) -> MeasuredServo:
    """Identify the servo of the arm from a recording of these motions.

    Raises
    ------
    ConfigurationError
        If it was interrupted before both axes were moved, or fewer than half of the samples are valid.
    """
    period = 1.0 / float(recording.metadata["rate_hz"])
    rows = {label.partition(" ")[2]: rows for label, rows in rows_of(recording) if label.startswith("servo")}
    if set(rows) != set(AXES):
        raise ConfigurationError(f"{recording.folder}: was interrupted before both axes had been moved.")
    whole = round((2.0 * _RAMP + _SETTLING + excitation.measured) / period)
    measured = round(excitation.measured / period)
    responses, ages = [], []
    for axis, name in enumerate(AXES):
        begun = rows[name]["tick"] - rows[name]["tick"][0]
        for stroke in range(excitation.strokes):
            # valid samples at constant speed
            first = stroke * whole + round((_RAMP + _SETTLING) / period)
            kept = usable_rows(rows[name][(begun >= first) & (begun < first + measured)])
            if len(kept) < measured // 2:
                raise ConfigurationError("the arm: too few samples were usable to identify its servo.")
            tick = kept["tick"] * period
            # the reference takes effect one period after the tick that computed it
            commanded = tick + period, np.array(kept["command"][:, axis])
            taken = tick + kept["period_error"] - kept["sample_age"]
            new = np.concatenate(([True], np.diff(taken) > 0.0))  # drop ticks that repeat a sample
            sampled = taken[new], np.array(kept["position"][new, axis])
            responses.append(Response.of(excitation.frequencies, commanded, sampled))
            ages.append(float(np.mean(kept["sample_age"])))
    fit = fit_servo(responses, knows_velocity=knows_velocity)
    return MeasuredServo(fit, float(np.mean(ages)), source_of(recording))


# --- frequency response -----------------------------------------------------------------------------------------------

Spectrum = NDArray[np.complex128]

_STARTS = [(frequency, ratio) for frequency in (3.0, 8.0, 20.0, 50.0) for ratio in (0.4, 1.0, 2.0)]
"""Start values: natural frequency [Hz] and damping ratio."""

_BOUNDS = [math.log(0.05), math.log(0.01), 0.0], [math.log(2000.0), math.log(100.0), 0.5]
"""Bounds of the search: logarithms of natural frequency [Hz] and damping ratio, and lag [s]."""

_MODEL_ERROR = 0.02
"""Initial model error relative to H; friction and gears deviate from such a servo."""

_ROUNDING = 1e-9
"""Minimum error of a response."""

_POOR = 0.15
"""Mean relative residual of H above which an arm is not such a servo."""


@dataclass(frozen=True, eq=False)
class Response:
    """Frequency response of one axis.

    Attributes
    ----------
    frequency : (n,) float array
        Frequencies of the sines [Hz].
    gain : (n,) complex array
        H: position over reference.
    error : (n,) float array
        Standard deviation of the noise on the real and the imaginary part.
    """

    frequency: Array
    gain: Spectrum
    error: Array

    @classmethod
    def of(cls, frequency: Array, commanded: tuple[Array, Array], sampled: tuple[Array, Array]) -> Response:
        """Estimate the response of an axis.

        Parameters
        ----------
        frequency : (n,) float array
            Frequencies of the sines in the reference [Hz].
        commanded, sampled : (array, array)
            Times [s], increasing, and reference or position [m] at these times.

        Raises
        ------
        ConfigurationError
            If the reference lacks one of the frequencies.
        """
        put, _ = _amplitudes(frequency, *commanded)
        got, noise = _amplitudes(frequency, *sampled)
        if not float(np.abs(put).min()) > 0.0:
            raise ConfigurationError("the reference does not move at every frequency: its response is not known.")
        return cls(frequency, got / put, noise / np.abs(put))


def _amplitudes(frequency: Array, time: Array, values: Array) -> tuple[Spectrum, float]:
    """Return the complex amplitudes of sines in a drifting signal, and their standard error."""
    phase = 2.0 * np.pi * np.outer(time, frequency)
    table = np.column_stack((np.ones_like(time), time - time.mean(), np.cos(phase), np.sin(phase)))
    found, *_ = np.linalg.lstsq(table, values, rcond=None)
    left = values - table @ found
    count = len(frequency)
    noise = float(np.sqrt(left @ left / max(len(values) - table.shape[1], 1)))
    return found[2 : 2 + count] - 1j * found[2 + count :], noise * math.sqrt(2.0 / len(values))


def servo_response(frequency: Array, natural: float, ratio: float, delay: float, *, knows_velocity: bool) -> Spectrum:
    """Return H of a servo at frequencies [Hz]; `natural` frequency [Hz], damping `ratio`, `delay` [s]."""
    s, w = 2j * np.pi * frequency, 2.0 * np.pi * natural
    above = 2.0 * ratio * w * s + w * w if knows_velocity else w * w
    return np.asarray(above / (s * s + 2.0 * ratio * w * s + w * w) * np.exp(-s * delay))


@dataclass(frozen=True)
class ServoFit:
    """Servo fitted to responses.

    Attributes
    ----------
    frequency, frequency_error : float
        Natural frequency and its standard error [Hz].
    damping_ratio, damping_ratio_error : float
        Damping relative to critical, and its standard error.
    lag, lag_error : float
        Delay in addition to the second-order response, and its standard error [s].
    residual : float
        Rms residual relative to H.
    """

    frequency: float
    frequency_error: float
    damping_ratio: float
    damping_ratio_error: float
    lag: float
    lag_error: float
    residual: float

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the result."""
        if self.residual <= _POOR:
            return ()
        return (
            f"The arm is no servo of second order: {self.residual:.0%} of its response is left. Friction or a limit of "
            "the drive may hold it back; move it faster, or believe the bounds on mass and stiffness less.",
        )


def fit_servo(responses: Sequence[Response], *, knows_velocity: bool) -> ServoFit:
    """Fit a servo to the responses of all axes.

    Parameters
    ----------
    responses : sequence of Response
        One response per axis.
    knows_velocity : bool
        Whether the servo receives the velocity of its reference.
    """
    from scipy.optimize import least_squares

    frequency = np.concatenate([one.frequency for one in responses])
    gain = np.concatenate([one.gain for one in responses])
    noise = np.concatenate([one.error for one in responses])

    def model(parameters: Array) -> Spectrum:
        natural, ratio = math.exp(parameters[0]), math.exp(parameters[1])
        return servo_response(frequency, natural, ratio, float(parameters[2]), knows_velocity=knows_velocity)

    misfit = _MODEL_ERROR
    for _ in range(2):  # the second pass uses the model error estimated by the first
        spread = np.hypot(noise, max(misfit, _ROUNDING))

        def weighted(parameters: Array, spread: Array = spread) -> Array:
            error = (model(parameters) - gain) / spread
            return np.concatenate((error.real, error.imag))

        fits: list[Any] = [
            least_squares(weighted, (math.log(start), math.log(damping), lag), bounds=_BOUNDS, x_scale=(1.0, 1.0, 1e-3))
            for start, damping in _STARTS
            for lag in (1e-3, 5e-3)
        ]
        best = min(fits, key=lambda fit: float(fit.cost))
        left = np.abs(model(best.x) - gain) ** 2
        misfit = math.sqrt(max(float(np.mean(0.5 * left - noise**2)), 0.0))
    natural, ratio, lag = math.exp(best.x[0]), math.exp(best.x[1]), float(best.x[2])
    doubt = max(1.0, float(np.sum(left / spread**2)) / max(2 * len(gain) - 3, 1))
    errors = np.sqrt(np.diag(np.linalg.pinv(best.jac.T @ best.jac)) * doubt)
    residual = math.sqrt(float(np.mean(left)) / float(np.mean(np.abs(gain) ** 2)))
    deviations = natural * float(errors[0]), ratio * float(errors[1]), float(errors[2])
    return ServoFit(natural, deviations[0], ratio, deviations[1], lag, deviations[2], residual)
