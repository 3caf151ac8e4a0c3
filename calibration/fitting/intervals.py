"""Confidence intervals of estimates whose errors are autocorrelated.

Errors of a recording are seldom independent: a smoothed velocity errs for a while in one direction, a gear's ripple
comes and goes. The covariance of a least squares estimate is then that of the sum of its scores (column times
residual), and that is their spectral density at frequency zero. It is estimated from the scores' projections on the
slowest cosines, and quantiles are those of Student's t with as many degrees of freedom as there are cosines
(Lazarus, Lewis, Stock and Watson 2018).
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
    """Return how many cosines to use for so many samples: the rule of Lazarus et al. 2018, 0.4 n^(2/3).

    Errors have to be forgotten within about n/(pi times as many) samples: what lasts longer is underestimated. So there
    are fewer where the `memory` of the errors [samples] asks for it.
    """
    slow = samples / (2.0 * np.pi * memory) if memory > 0.0 else np.inf
    return min(max(_FEWEST, int(min(_SHARE * samples**_POWER, slow))), samples // 2)


def memory_of(errors: Array) -> float:
    """Return for how many samples errors resemble each other, by the autocorrelation some samples later."""
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
        In the order of time, evenly spaced, of mean zero.
    memory : float
        For how many samples errors resemble each other (`memory_of`).
    """
    degrees = cosines(len(scores), memory)
    projections = np.sqrt(2.0) * _cosine_sums(scores)[1 : degrees + 1]
    return np.asarray(projections.T @ projections / degrees)


def degrees_of_freedom(influence: Array, memory: float = 0.0) -> Array:
    """Return how many degrees of freedom the variance of each of several weighted sums of errors has (p,).

    Where only a few short stretches of a recording tell a parameter, `covariance_of_sum` knows its variance less well
    than the number of cosines says. Satterthwaite's formula for independent errors: with A the matrix of what two
    cosines share of the squared weights, (tr A)^2/tr(A A).

    Parameters
    ----------
    influence : array, (n, p)
        Weights of the errors, in the order of time.
    memory : float
        As of `covariance_of_sum`.
    """
    number = cosines(len(influence), memory)
    order = np.arange(1, number + 1)
    apart, together = np.abs(order[:, None] - order), order[:, None] + order
    shares = _cosine_sums(influence**2).T
    matrices = [share[apart] + share[together] for share in shares]
    return np.array([max(1.0, np.trace(shared) ** 2 / max(float(np.sum(shared**2)), 1e-300)) for shared in matrices])


def folded(rows: Array, rounds: tuple[int, ...]) -> Array:
    """Return the sum (m, p) of the rounds of rows (n, p), of which the longest has m; without rounds, the rows.

    The steps of an encoder err alike each time the same motion is done: such errors add up, and only the sum of the
    rounds shows that.
    """
    if not rounds:
        return rows
    total = np.zeros((max(rounds), rows.shape[1]))
    for part in np.split(rows, np.cumsum(rounds)[:-1]):
        total[: len(part)] += part
    return total


def _cosine_sums(rows: Array) -> Array:
    """Return sum_i rows_i cos(pi j (i + 1/2)/n) for j = 0 ... n, by one Fourier transform of twice the length."""
    count = len(rows)
    turn = np.exp(-0.5j * np.pi * np.arange(count + 1) / count)
    return np.asarray((np.fft.rfft(rows.T, 2 * count) * turn).real.T)


def quantile(confidence: float, degrees: Array) -> Array:
    """Return how many standard errors an interval reaches to either side (Student's t)."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees, 0.5 + 0.5 * confidence))


def interval_with_bounds(
    estimate: Array, covariance: Array, lower: Array, gradient: Array, reach: float
) -> tuple[float, float]:
    """Return the interval of a linear function of parameters that have lower bounds.

    It consists of the values that the function takes where the parameters keep their bounds and
    ``(x - estimate)' inv(covariance) (x - estimate)`` is at most ``reach**2``. A parameter that is estimated at its
    bound gets a one-sided interval. The other parameters get the uncertainty that it could move away from the bound.

    Parameters
    ----------
    estimate : (p,) float array
        Estimate within the bounds.
    covariance : (p, p) float array
        Its covariance. Parameters of no variance do not change.
    lower : (p,) float array
        Lower bounds; minus infinity for a free parameter.
    gradient : (p,) float array
        The function is ``gradient @ x``.
    reach : float
        Standard errors to either side without bounds.
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
        """Minimise the squared distance less twice `step` times the function; return the distance and the function."""
        place = bounded(root, root @ (centre + step * direction), bounds)
        return float(np.sum((root @ (place - centre)) ** 2)), float(slope @ place)

    most, ends = reach**2, []
    for side in (-1.0, 1.0):
        near, far = 0.0, reach / float(np.sqrt(slope @ direction))
        (cost, end), last = farthest(side * far), 0.0
        while cost < most and cost - last > 1e-9 * reach**2:  # a bound may stop the function for good
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
