"""Confidence intervals of estimates whose errors are autocorrelated.

Errors of a recording are seldom independent: a smoothed velocity has the same error for some time, and the ripple of a
gear recurs. The covariance of a least squares estimate then follows from the covariance of the sum of its scores
(column times residual), which is their spectral density at frequency zero. It is estimated from the projections of the
scores on the lowest-frequency cosines, and quantiles are taken from Student's t with as many degrees of freedom as
cosines (Lazarus, Lewis, Stock and Watson 2018).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import bounded

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
        """Minimise the squared distance less twice `step` times the function; return distance and function."""
        place = bounded(root, root @ (centre + step * direction), bounds)
        return float(np.sum((root @ (place - centre)) ** 2)), float(slope @ place)

    most, ends = reach**2, []
    for side in (-1.0, 1.0):
        near, far = 0.0, reach / float(np.sqrt(slope @ direction))
        (cost, end), last = farthest(side * far), 0.0
        while cost < most and cost - last > 1e-9 * reach**2:  # a bound may limit the function
            near, far, last = far, 2.0 * far, cost
            cost, end = farthest(side * far)
        while cost >= most and far - near > 1e-9 * far:
            step = 0.5 * (near + far)
            distance, value = farthest(side * step)
            if distance >= most:
                far, end = step, value
            else:
                near = step
        ends.append(fixed + end)
    return ends[0], ends[1]
