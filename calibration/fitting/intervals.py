"""Confidence intervals of estimates whose errors are autocorrelated, and of prediction errors.

Errors of a recording are seldom independent: a smoothed velocity has the same error for some time, and the ripple of a
gear recurs. The covariance of a least squares estimate then follows from the covariance of the sum of its scores
(column times residual), which is their spectral density at frequency zero. It is estimated from the projections of the
scores on the lowest-frequency cosines, and quantiles are taken from Student's t with as many degrees of freedom as
cosines (Lazarus, Lewis, Stock and Watson 2018). The interval of a prediction error is found by a block bootstrap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.fitting.regression import blocks, bounded

Array = NDArray[np.float64]

_SHARE, _POWER = 0.4, 2.0 / 3.0
_FEWEST = 8
_LATER, _CHANCE = 10, 4.0


def cosines(samples: int, memory: float = 0.0) -> int:
    """Return the number of cosines for a sample size: 0.4 n^(2/3), the rule of Lazarus et al. 2018.

    Correlations that last longer than about n/(pi times this number) samples are underestimated. A long `memory` of the
    errors [samples] therefore reduces the number.
    """
    slow = samples / (2.0 * np.pi * memory) if memory > 0.0 else np.inf
    return min(max(_FEWEST, int(min(_SHARE * samples**_POWER, slow))), samples // 2)


def memory_of(errors: Array) -> float:
    """Return the correlation time of errors [samples], from the autocorrelation at a fixed lag."""
    if len(errors) < 4 * _LATER:
        return 0.0
    centred = errors - errors.mean()
    power = float(np.einsum("i,i->", centred, centred))
    alike = float(np.einsum("i,i->", centred[_LATER:], centred[:-_LATER])) / power if power > 0.0 else 0.0
    if alike <= _CHANCE / np.sqrt(len(errors)):
        return 0.0
    return float(-_LATER / np.log(min(alike, 0.9999)))


def covariance_of_sum(scores: Array, memory: float = 0.0) -> Array:
    """Return the covariance (p, p) of the sum of correlated rows.

    Parameters
    ----------
    scores : array, (n, p)
        Rows in the order of time, evenly spaced, with mean zero.
    memory : float
        Correlation time of the errors [samples] (`memory_of`).
    """
    degrees = cosines(len(scores), memory)
    projections = np.sqrt(2.0) * _cosine_sums(scores)[1 : degrees + 1]
    return np.asarray(projections.T @ projections / degrees)


def degrees_of_freedom(influence: Array, memory: float = 0.0) -> Array:
    """Return the degrees of freedom (p,) of the variances of several weighted sums of errors.

    If only a few short parts of a recording determine a parameter, the variance from `covariance_of_sum` is less
    certain than the number of cosines suggests. Satterthwaite's formula for independent errors is used: (tr A)^2/tr(A
    A), with A the matrix of the products of two cosines summed with the squared weights.

    Parameters
    ----------
    influence : array, (n, p)
        Weights of the errors, in the order of time.
    memory : float
        As in `covariance_of_sum`.
    """
    number = cosines(len(influence), memory)
    order = np.arange(1, number + 1)
    apart, together = np.abs(order[:, None] - order), order[:, None] + order
    shares = _cosine_sums(influence**2).T
    matrices = [share[apart] + share[together] for share in shares]
    return np.array([max(1.0, np.trace(shared) ** 2 / max(float(np.sum(shared**2)), 1e-300)) for shared in matrices])


def folded(rows: Array, rounds: tuple[int, ...]) -> Array:
    """Return the sum over rounds of rows (n, p), with as many rows (m, p) as the longest round.

    Without rounds, the rows are returned. Quantization errors of an encoder repeat in each round of the same motion.
    Such errors accumulate, which only the sum over the rounds reveals.
    """
    if not rounds:
        return rows
    total = np.zeros((max(rounds), rows.shape[1]))
    for part in np.split(rows, np.cumsum(rounds)[:-1]):
        total[: len(part)] += part
    return total


def _cosine_sums(rows: Array) -> Array:
    """Return sum_i rows_i cos(pi j (i + 1/2)/n) for j = 0 ... n, by one FFT of twice the length."""
    count = len(rows)
    turn = np.exp(-0.5j * np.pi * np.arange(count + 1) / count)
    return np.asarray((np.fft.rfft(rows.T, 2 * count) * turn).real.T)


def quantile(confidence: float, degrees: Array) -> Array:
    """Return the two-sided quantile of Student's t, the half width of an interval in standard errors."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees, 0.5 + 0.5 * confidence))


def interval_with_bounds(
    estimate: Array, covariance: Array, lower: Array, gradient: Array, reach: float
) -> tuple[float, float]:
    """Return the interval of a linear function of parameters that have lower bounds.

    It contains the values of the function for all parameters x within their bounds for which
    ``(x - estimate)' inv(covariance) (x - estimate)`` is at most ``reach**2``. A parameter that is estimated at its
    bound gets a one-sided interval, whose width also enters the intervals of the other parameters.

    Parameters
    ----------
    estimate : (p,) float array
        Estimate within the bounds.
    covariance : (p, p) float array
        Covariance of the estimate. Parameters with zero variance are fixed.
    lower : (p,) float array
        Lower bounds; minus infinity for a free parameter.
    gradient : (p,) float array
        The function is ``gradient @ x``.
    reach : float
        Half width of the interval without bounds, in standard errors.
    """
    from scipy.optimize import brentq

    size = np.sqrt(np.diag(covariance))
    varied = size > 0.0
    fixed = float(gradient[~varied] @ estimate[~varied])
    if not gradient[varied].any():
        return fixed, fixed
    size, slope = size[varied], (gradient * size)[varied]
    correlation = covariance[np.ix_(varied, varied)] / np.outer(size, size)
    values, vectors = np.linalg.eigh(correlation)
    root = (vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))).T
    centre, bounds = estimate[varied] / size, lower[varied] / size
    direction = correlation @ slope

    def farthest(step: float) -> tuple[float, float]:
        """Minimise the squared distance less twice `step` times the function.

        Return the distance less `reach`, and the function.
        """
        place = bounded(root, root @ (centre + step * direction), bounds)
        return float(np.linalg.norm(root @ (place - centre))) - reach, float(slope @ place)

    ends, exact = [], 1e-9 * reach
    for side in (-1.0, 1.0):
        near, far = 0.0, reach / float(np.sqrt(slope @ direction))  # exact if no bound is reached
        (excess, end), last = farthest(side * far), -reach
        while excess < -exact and excess - last > exact:  # a bound may limit the function
            near, far, last = far, 2.0 * far, excess
            excess, end = farthest(side * far)
        if excess > exact:
            if farthest(side * near)[0] < 0.0:
                far = brentq(lambda step, side=side: farthest(side * step)[0], near, far, xtol=1e-9 * far)
            else:  # the errors of a fit to exact data are smaller than rounding
                far = near
            end = farthest(side * far)[1]
        ends.append(fixed + end)
    return ends[0], ends[1]


# --- prediction errors ------------------------------------------------------------------------------------------------

BLOCKS, CONFIDENCE = 20, 0.95
PARTS = 5
"""Number of long parts of a recording, whose scatter estimates the scatter between recordings.

Shorter blocks are correlated with their neighbours.
"""
_RESAMPLED, _SEED = 2000, 20181


@dataclass(frozen=True)
class ErrorEstimate:
    """Prediction error of a torque.

    Attributes
    ----------
    value, low, high : float
        Rms error relative to the rms of the measured torque, and its bootstrap interval.
    rms : float
        Rms error [N m or N].
    """

    value: float
    low: float
    high: float
    rms: float


def relative_error(recording: JointRecording, predicted: Array) -> ErrorEstimate:
    """Return the rms error of predicted friction relative to the rms of the measured torque.

    The interval is found by a bootstrap over contiguous blocks, between which errors are hardly correlated.

    Parameters
    ----------
    recording : JointRecording
        Recording whose `friction` is compared and whose `effort` is the reference of the error.
    predicted : array, (n,)
        Predicted friction [N m or N].

    Raises
    ------
    ConfigurationError
        If the measured torque is 0 throughout.
    """
    recording.require_terms()
    squares = block_means((recording.friction - predicted) ** 2, BLOCKS)
    return estimate(squares, block_means(recording.effort**2, BLOCKS))


def block_means(values: Array, number: int) -> Array:
    """Return the means (number,) over contiguous blocks."""
    return np.array([values[test].mean() for _, test in blocks(len(values), number)])


def estimate(errors: Array, torques: Array) -> ErrorEstimate:
    """Return the ratio of two rms values from their mean squares over blocks, with a bootstrap interval."""
    _, low, high = paired(errors, torques)
    rms = float(np.sqrt(errors.mean()))
    return ErrorEstimate(rms / float(np.sqrt(torques.mean())), low, high, rms)


def elsewhere(rms: float, torque: float, errors: Array, torques: Array, recordings: int) -> ErrorEstimate:
    """Return a cross-validated error with a prediction interval for another recording of the same length.

    The interval includes the variation of the other recording's error. Because there are few parts, quantiles of
    Student's t are used. The result holds for recordings of similar motion only.

    Parameters
    ----------
    rms, torque : float
        Cross-validated rms error and rms torque [N m or N].
    errors, torques : array, (parts,)
        Mean squared error and torque of each long part, with the model fitted without it.
    recordings : int
        Number of recordings, each with the same number of parts.
    """
    count, ratio = len(errors), errors.mean() / torques.mean()
    if rms == 0.0 or not errors.any():
        return ErrorEstimate(0.0, 0.0, 0.0, 0.0)
    scatter = (errors - ratio * torques) / errors.mean()
    deviation = 0.5 * np.sqrt(np.sum(scatter**2) / (count - 1) / count * (1 + recordings))
    factor = float(np.exp(quantile(CONFIDENCE, np.array(count - 1.0)) * deviation))
    return ErrorEstimate(rms / torque, rms / torque / factor, rms / torque * factor, rms)


def paired(errors: Array, others: Array) -> tuple[float, float, float]:
    """Return the ratio of two rms errors on the same blocks, with a bootstrap interval over these blocks."""
    drawn = np.random.default_rng(_SEED).integers(len(errors), size=(_RESAMPLED, len(errors)))
    ratios = np.sqrt(errors[drawn].mean(axis=1) / others[drawn].mean(axis=1))
    low, high = np.quantile(ratios, [0.5 - 0.5 * CONFIDENCE, 0.5 + 0.5 * CONFIDENCE])
    return float(np.sqrt(errors.mean() / others.mean())), float(low), float(high)
