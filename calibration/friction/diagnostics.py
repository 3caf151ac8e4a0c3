"""Residual diagnostics of a friction fit, and the reasons to doubt it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import covariance_of_sum
from calibration.fitting.regression import spread

Array = NDArray[np.float64]

_GROUPS = 24
_LAG, _CLEARLY = 2, 2.5
"""Lag of the compared residuals [samples]; number of standard errors of a significant effect."""


@dataclass(frozen=True)
class Doubt:
    """Reason to doubt a result.

    Attributes
    ----------
    code : str
        Short name.
    message : str
        Observation and remedy in one sentence.
    spoils_intervals : bool
        Whether the coverage of the intervals may be too low.
    """

    code: str
    message: str
    spoils_intervals: bool = False


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of the residuals of a fit.

    Attributes
    ----------
    rms, relative_rms : float
        Root mean square of the residuals [N m or N], and its ratio to the rms friction.
    slow_share : float
        Fraction of samples below the Stribeck velocity, which alone determine the static levels; nan without one.
    autocorrelation : float
        Autocorrelation of adjacent residuals.
    effective_samples : float
        Number of independent samples with the same variance of the mean.
    kurtosis : float
        Excess kurtosis; 0 for normal errors.
    outliers : float
        Fraction of the samples beyond four robust standard deviations (normal errors: 0.00006).
    misfit : float
        Fraction of the residuals' power that a better law of the velocity would explain.
    implied_velocity_noise : float
        Upper estimate of the velocity noise, from the growth of the residuals with the slope of the law [rad/s or m/s].
    """

    rms: float
    relative_rms: float
    slow_share: float
    autocorrelation: float
    effective_samples: float
    kurtosis: float
    outliers: float
    misfit: float
    implied_velocity_noise: float


def diagnose(
    residual: Array, velocity: Array, friction: Array, slope: Array, slow_share: float, stated: bool = False
) -> Diagnostics:
    """Return the diagnostics of residuals (n,) in the order of time.

    `slope` is the slope of the law at each sample. If the noise of the velocity is `stated`, correlated residuals at
    all speeds alike are attributed to errors of the torque and not to noise of the velocity.
    """
    rms = math.sqrt(float(np.mean(residual**2)))
    size = math.sqrt(float(np.mean(friction**2)))
    if rms <= 1e-12 * size:
        return Diagnostics(rms, 0.0, slow_share, 0.0, float(len(residual)), 0.0, 0.0, 0.0, 0.0)
    centred = residual - residual.mean()
    variance = float(np.mean(centred**2))
    of_sum = float(covariance_of_sum(centred[:, None])[0, 0])
    return Diagnostics(
        rms=rms,
        relative_rms=rms / size,
        slow_share=slow_share,
        autocorrelation=float(np.mean(centred[1:] * centred[:-1])) / variance,
        effective_samples=len(residual) * min(1.0, len(residual) * variance / of_sum),
        kurtosis=float(np.mean(centred**4)) / variance**2 - 3.0,
        outliers=float(np.mean(np.abs(centred) > 4.0 * spread(residual))),
        misfit=_misfit(residual, velocity),
        implied_velocity_noise=_implied_noise(residual, slope, stated),
    )


def _misfit(residual: Array, velocity: Array) -> float:
    """Return the variance explained by group means over velocity, less the part expected by chance."""
    groups = np.array_split(residual[np.argsort(velocity)], _GROUPS)
    within = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups) / (len(residual) - _GROUPS)
    return max(0.0, 1.0 - within / float(np.mean(residual**2)))


def _implied_noise(residual: Array, slope: Array, stated: bool) -> float:
    """Return the velocity noise implied by the residuals; 0 if it is not significant.

    An error n of the velocity causes a residual of slope times n. Independent errors make the squared residuals grow
    with the squared slope, in addition to the errors of the torque. Correlated errors appear in the products of
    neighbouring residuals, to which independent errors of the torque do not contribute.
    """
    steep = slope * slope
    varied = float(steep.std()) > 1e-6 * float(steep.mean())
    alone = _growth(residual**2, steep - steep.mean()) if varied else 0.0
    shift = slice(_LAG, None), slice(None, -_LAG)
    steep = slope[shift[0]] * slope[shift[1]]
    together = _growth(residual[shift[0]] * residual[shift[1]], steep - steep.mean() if stated and varied else steep)
    return math.sqrt(max(alone, together))


def _growth(products: Array, slopes: Array) -> float:
    """Return the regression coefficient of products on slopes, 0 if not significantly positive."""
    sharpness = float(slopes @ slopes)
    if sharpness == 0.0:
        return 0.0
    growth = float(slopes @ products) / sharpness
    scores = slopes * (products - products.mean() - growth * (slopes - slopes.mean()))
    error = math.sqrt(float(covariance_of_sum(scores[:, None])[0, 0])) / sharpness
    return growth if growth > _CLEARLY * error else 0.0
