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
"""Between residuals compared, in samples; standard errors that are taken for more than chance."""


@dataclass(frozen=True)
class Doubt:
    """A reason not to trust a result.

    Attributes
    ----------
    code : str
        Short name.
    message : str
        One sentence: what was seen, and what to do about it.
    spoils_intervals : bool
        Whether the intervals may not hold the truth as often as they claim.
    """

    code: str
    message: str
    spoils_intervals: bool = False


@dataclass(frozen=True)
class Diagnostics:
    """What is left over after a fit.

    Attributes
    ----------
    rms, relative_rms : float
        Root mean square of the residuals [N m or N], and by that of the friction.
    slow_share : float
        Share of the samples slower than the Stribeck velocity, which alone tell the static levels; nan without one.
    autocorrelation : float
        Of neighbouring residuals.
    effective_samples : float
        How many independent samples would tell the mean as well.
    kurtosis : float
        Excess over that of normal errors, 0.
    outliers : float
        Share of the samples beyond four robust standard deviations (of normal errors: 0.00006).
    misfit : float
        Share of the residuals' power that a better law of the velocity would explain.
    implied_velocity_noise : float
        What noise on the velocity the residuals betray by their growth with the slope of the law, at most
        [rad/s or m/s].
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
    """Return the diagnostics of residuals (n,), in the order of time, with the slope of the law at each sample.

    Where the noise of the velocity is `stated`, residuals that resemble their neighbours at all speeds alike are errors
    of the torque, and do not count as noise of the velocity.
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
    """Return what the means of samples of about the same velocity explain, less what they explain by chance."""
    groups = np.array_split(residual[np.argsort(velocity)], _GROUPS)
    within = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups) / (len(residual) - _GROUPS)
    return max(0.0, 1.0 - within / float(np.mean(residual**2)))


def _implied_noise(residual: Array, slope: Array, stated: bool) -> float:
    """Return what noise on the velocity the residuals betray; 0 where that may be chance.

    An error n of the velocity leaves a residual of slope times n. Independent errors make the squared residuals grow
    with the squared slope, beside the errors of the torque; errors that resemble their neighbours show in the products
    of neighbouring residuals, where independent errors of the torque do not.
    """
    steep = slope * slope
    varied = float(steep.std()) > 1e-6 * float(steep.mean())
    alone = _growth(residual**2, steep - steep.mean()) if varied else 0.0
    shift = slice(_LAG, None), slice(None, -_LAG)
    steep = slope[shift[0]] * slope[shift[1]]
    together = _growth(residual[shift[0]] * residual[shift[1]], steep - steep.mean() if stated and varied else steep)
    return math.sqrt(max(alone, together))


def _growth(products: Array, slopes: Array) -> float:
    """Return the factor between products of residuals and of slopes, 0 where it is not clearly positive."""
    sharpness = float(slopes @ slopes)
    if sharpness == 0.0:
        return 0.0
    growth = float(slopes @ products) / sharpness
    scores = slopes * (products - products.mean() - growth * (slopes - slopes.mean()))
    error = math.sqrt(float(covariance_of_sum(scores[:, None])[0, 0])) / sharpness
    return growth if growth > _CLEARLY * error else 0.0
