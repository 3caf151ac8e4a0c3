"""Zero-phase velocities and accelerations from measured positions, and their noise.

A filter of gain 1/(1 + (f/fc)^4), equal to a second-order Butterworth filter run forwards and backwards, is applied in
the frequency domain together with the derivative. The phase is zero and the derivative exact, so that motion slower
than the cut-off frequency fc is hardly shifted or attenuated. The remaining white noise has a closed form: its power is
proportional to the mean of the squared gain over all frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

_ORDER = 4
_PADDING, _EDGE = 3.0, 0.7
"""Continuation beyond both ends, and length of the unreliable ends, in periods of the cut-off."""
_JITTER = 1e-3
"""Maximum jitter of evenly spaced times, in periods."""
_LONGEST_GAP = 4.0
"""Maximum time between samples that is interpolated, in periods; longer gaps are marked."""
_ABOVE, _HIGHEST = 4.0, 0.3
"""Lower bound of the noise band in cut-offs, and its maximum as a fraction of the sampling rate."""
_CANDIDATES = 40
_QUIET = 0.005
"""Maximum noise of an acceleration used as an instrument, as a fraction of the acceleration."""
_SLOWER = np.geomspace(1.0, 0.03, 30)
_DIFFERENCES = 4


@dataclass(frozen=True)
class Motion:
    """Motion estimated from positions.

    Attributes
    ----------
    time, position, velocity, acceleration : array, (n,)
        Smoothed signals at the times of the positions.
    cutoff : float
        Cut-off frequency of the filter [Hz].
    position_noise, velocity_noise, acceleration_noise : float
        Standard deviation of the noise on the measured positions, and of the noise remaining after the filter.
    edge : int
        Number of unreliable samples at both ends, where the filter has data on one side only.
    instrument : array, (n,)
        Acceleration with a lower cut-off and negligible noise. With a cut-off suited to positions, the noise on the
        second derivative makes least squares underestimate the inertia; this signal as an instrumental variable removes
        the bias.
    """

    time: Array
    position: Array
    velocity: Array
    acceleration: Array
    cutoff: float
    position_noise: float
    velocity_noise: float
    acceleration_noise: float
    edge: int
    instrument: Array


def smooth(time: Array, values: Array, cutoff: float, derivative: int = 0) -> Array:
    """Return a signal or one of its derivatives after a zero-phase low-pass filter.

    Parameters
    ----------
    time : array, (n,)
        Increasing times [s]. Unevenly sampled signals are interpolated linearly to even times and back.
    values : array, (n,) or (n, k)
        Signal.
    cutoff : float
        Frequency at which half of the amplitude remains [Hz].
    derivative : int
        0, 1 or 2.

    Raises
    ------
    ConfigurationError
        If times do not increase, a number is not finite, or the cut-off is not below half the sampling rate.
    """
    time, values = _checked(time, values)
    period = _period(time)
    if not 0.0 < cutoff <= 0.5 / period:
        raise ConfigurationError(f"cut-off {cutoff:g} Hz: must be above 0 and at most {0.5 / period:g} Hz")
    if values.ndim > 1:
        return np.column_stack([smooth(time, column, cutoff, derivative) for column in values.T])
    even = time[0] + period * np.arange(len(time))
    uneven = bool(np.abs(time - even).max() > _JITTER * period)
    if uneven:
        values = np.interp(even, time, values)
    # The signal is continued beyond its ends by point reflection.
    count = len(values)
    reach = min(count - 1, math.ceil(_PADDING / (cutoff * period)))
    before = 2.0 * values[0] - values[reach:0:-1]
    after = 2.0 * values[-1] - values[-2 : -reach - 2 : -1]
    whole = np.concatenate((before, values, after))
    trend = np.linspace(whole[0], whole[-1], len(whole))
    frequency = np.fft.rfftfreq(len(whole), period)
    spectrum = (
        np.fft.rfft(whole - trend) * (2j * np.pi * frequency) ** derivative / (1.0 + (frequency / cutoff) ** _ORDER)
    )
    result = np.fft.irfft(spectrum, len(whole))[reach : reach + count]
    if derivative == 0:
        result = result + trend[reach : reach + count]
    elif derivative == 1:
        result = result + (whole[-1] - whole[0]) / ((len(whole) - 1) * period)
    return np.interp(time, even, result) if uneven else np.asarray(result)


def evenly(time: Array, values: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Interpolate samples to even times by cubic polynomials.

    Samples of a device are uneven, and some are missing. Linear interpolation, as in `smooth`, attenuates the
    acceleration more.

    Parameters
    ----------
    time : (n,) float array
        Increasing times [s].
    values : (n, k) float array
        Samples.

    Returns
    -------
    time : (m,) float array
        Even times; the given ones if they are even.
    values : (k, m) float array
        Values at these times.
    gaps : (m,) bool array
        Times at which neighbouring samples are more than `_LONGEST_GAP` periods apart.
    """
    period = float(np.median(np.diff(time)))
    even = time[0] + period * np.arange(round(float(time[-1] - time[0]) / period) + 1)
    if len(even) == len(time) and float(np.abs(even - time).max()) <= _JITTER * period:
        return time, values.T, np.zeros(len(time), bool)
    even = even[even <= time[-1] + _JITTER * period]
    k = np.minimum(np.searchsorted(time, even, side="right") - 1, len(time) - 2)
    width = (time[k + 1] - time[k])[:, None]
    s = (even - time[k])[:, None] / width
    slopes = np.gradient(values, time, axis=0)
    found = (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * values[k]
        + s * (1.0 - s) ** 2 * width * slopes[k]
        + s**2 * (3.0 - 2.0 * s) * values[k + 1]
        - s**2 * (1.0 - s) * width * slopes[k + 1]
    )
    return even, found.T, width[:, 0] > _LONGEST_GAP * period


def motion(time: Array, position: Array, cutoff: float | None = None) -> Motion:
    """Return velocity and acceleration of measured positions, with their noise.

    Parameters
    ----------
    time, position : array, (n,)
        Times [s] and positions [m or rad].
    cutoff : float, optional
        Cut-off frequency of the filter [Hz]; `best_cutoff` by default.
    """
    time, position = _checked(time, position)
    cutoff = best_cutoff(time, position) if cutoff is None else cutoff
    place, speed, rise = (smooth(time, position, cutoff, order) for order in range(3))
    edge = edge_of(time, cutoff)
    # white noise that explains the signal far above the cut-off
    period = _period(time)
    high = min(_ABOVE * cutoff, _HIGHEST / period)
    above = (position - smooth(time, position, high))[edge : len(time) - edge]
    noise = math.sqrt(float(np.mean(above**2)) / float(np.mean((1.0 - _gain(len(time), period, high, 0)) ** 2)))
    left = [noise * noise_left(time, cutoff, order) for order in (1, 2)]
    slower = quiet_cutoff(time, rise, cutoff, lambda slower: noise * noise_left(time, slower, 2))
    instrument = smooth(time, position, slower, 2)
    return Motion(time, place, speed, rise, cutoff, noise, left[0], left[1], edge, instrument)


def integral(time: Array, values: Array) -> Array:
    """Return the cumulative integral of (n,) or (n, k) values by the trapezoidal rule, 0 at the first time."""
    steps = np.diff(time).reshape(-1, *(1,) * (values.ndim - 1))
    return np.concatenate((np.zeros_like(values[:1]), np.cumsum(0.5 * (values[1:] + values[:-1]) * steps, axis=0)))


def quiet_cutoff(time: Array, rate: Array, cutoff: float, noise: Callable[[float], float]) -> float:
    """Return the highest cut-off [Hz], at most `cutoff`, at which a derivative has negligible noise.

    Parameters
    ----------
    time, rate : array, (n,)
        Times, and the derivative computed with `cutoff`.
    cutoff : float
        Cut-off frequency with which `rate` was computed [Hz].
    noise : callable
        Standard deviation of its noise as a function of the cut-off frequency.
    """
    lowest = min(4.0 / float(time[-1] - time[0]), cutoff)
    tried = np.maximum(cutoff * _SLOWER, lowest)
    return float(next((one for one in tried if noise(float(one)) <= _QUIET * float(rate.std())), tried[-1]))


def noise_left(time: Array, cutoff: float, derivative: int = 0) -> float:
    """Return the factor by which `smooth` multiplies the standard deviation of white noise."""
    return math.sqrt(float(np.mean(_gain(len(time), _period(time), cutoff, derivative) ** 2)))


def edge_of(time: Array, cutoff: float) -> int:
    """Return the number of unreliable samples at both ends of the output of `smooth`."""
    return min(math.ceil(_EDGE / (cutoff * _period(time))), len(time) // 4)


def best_cutoff(time: Array, values: Array) -> float:
    """Return the cut-off frequency [Hz] with the best compromise between signal and noise.

    It minimises the generalised cross-validation score of Craven and Wahba 1979, which assumes white noise.
    """
    time, values = _checked(time, values)
    period, count = _period(time), len(time)
    candidates = np.geomspace(4.0 / (count * period), 0.4 / period, _CANDIDATES)

    def score(cutoff: float) -> float:
        left = values - smooth(time, values, cutoff)
        kept = float(np.mean(_gain(count, period, cutoff, 0)))
        return float(np.mean(left * left)) / (1.0 - kept) ** 2

    return float(candidates[int(np.argmin([score(float(cutoff)) for cutoff in candidates]))])


def white_noise(values: Array) -> float:
    """Return the standard deviation of white noise on a smooth signal.

    Fourth differences nearly cancel a smooth signal and multiply white noise by a known factor. Their median is robust
    against a few jumps. Noise that was smoothed before is not detected.
    """
    left = np.diff(np.asarray(values, float), _DIFFERENCES)
    return float(1.4826 * np.median(np.abs(left)) / math.sqrt(math.comb(2 * _DIFFERENCES, _DIFFERENCES)))


def _checked(time: Array, values: Array) -> tuple[Array, Array]:
    time, values = np.asarray(time, float), np.asarray(values, float)
    if time.ndim != 1 or len(values) != len(time) or len(time) < 16:
        raise ConfigurationError(
            f"a signal of shape {values.shape} at {time.shape} times: at least 16 of the same number"
        )
    if not (np.isfinite(time).all() and np.isfinite(values).all()):
        raise ConfigurationError("the signal holds a number that is not finite")
    if not bool(np.all(np.diff(time) > 0.0)):
        raise ConfigurationError("the times of a signal must increase")
    return time, values


def _period(time: Array) -> float:
    return float(time[-1] - time[0]) / (len(time) - 1)


def _gain(count: int, period: float, cutoff: float, derivative: int) -> Array:
    """Return the gain of the filter at all frequencies up to half the sampling rate."""
    frequency = np.fft.rfftfreq(2 * count, period)
    return np.asarray((2.0 * np.pi * frequency) ** derivative / (1.0 + (frequency / cutoff) ** _ORDER))
