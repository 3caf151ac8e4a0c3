r"""Frequency response of an arm to its reference, and fit of a second-order servo with a delay.

The servo model is `haptics.design.loops.PositionServo`,

.. math::
    H(s) = \frac{2 z w s\,\sigma + w^2}{s^2 + 2 z w s + w^2}\,e^{-s\tau},

in which :math:`\sigma` is 1 if the servo receives the velocity of its reference, and 0 otherwise. Position and
reference are each fitted with sines of the commanded frequencies by least squares, at the instants at which they were
sampled; the samples need not be evenly spaced. The ratio of their amplitudes is H.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError

Array = NDArray[np.float64]
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
    frequency = np.concatenate([one.frequency for one in responses])
    gain = np.concatenate([one.gain for one in responses])
    noise = np.concatenate([one.error for one in responses])
    misfit = _MODEL_ERROR
    for _ in range(2):  # the second pass uses the model error estimated by the first
        spread = np.hypot(noise, max(misfit, _ROUNDING))
        parameters, jacobian = _search(frequency, gain, spread, knows_velocity)
        left = np.abs(_model(frequency, parameters, knows_velocity) - gain) ** 2
        misfit = math.sqrt(max(float(np.mean(0.5 * left - noise**2)), 0.0))
    natural, ratio, lag = math.exp(parameters[0]), math.exp(parameters[1]), float(parameters[2])
    doubt = max(1.0, float(np.sum(left / spread**2)) / max(2 * len(gain) - 3, 1))
    errors = np.sqrt(np.diag(np.linalg.pinv(jacobian.T @ jacobian)) * doubt)
    residual = math.sqrt(float(np.mean(left)) / float(np.mean(np.abs(gain) ** 2)))
    deviations = natural * float(errors[0]), ratio * float(errors[1]), float(errors[2])
    return ServoFit(natural, deviations[0], ratio, deviations[1], lag, deviations[2], residual)


def _model(frequency: Array, parameters: Array, knows_velocity: bool) -> Spectrum:
    natural, ratio = math.exp(parameters[0]), math.exp(parameters[1])
    return servo_response(frequency, natural, ratio, float(parameters[2]), knows_velocity=knows_velocity)


def _search(frequency: Array, gain: Spectrum, spread: Array, knows_velocity: bool) -> tuple[Array, Array]:
    """Fit log natural frequency, log damping ratio and lag to a response.

    Also returns the Jacobian of the errors, in units of their `spread`.
    """
    from scipy.optimize import least_squares

    def left(parameters: Array) -> Array:
        error = (_model(frequency, parameters, knows_velocity) - gain) / spread
        return np.concatenate((error.real, error.imag))

    fits: list[Any] = [
        least_squares(left, (math.log(natural), math.log(ratio), lag), bounds=_BOUNDS, x_scale=(1.0, 1.0, 1e-3))
        for natural, ratio in _STARTS
        for lag in (1e-3, 5e-3)
    ]
    best = min(fits, key=lambda fit: float(fit.cost))
    return np.asarray(best.x), np.asarray(best.jac)
