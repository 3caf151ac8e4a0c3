"""Settings and result of a friction fit: parameters, intervals, diagnostics and doubts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.friction.model import INERTIA, FrictionModel, Motion
from calibration.friction.samples import Samples
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, flag, unrestricted


@documented
@dataclass(frozen=True)
class FitSettings:
    """Settings of a friction fit."""

    dead_band: float | None = unrestricted(
        None,
        "a number of at least 0",
        doc="samples not faster than this are left out: near rest friction is no function of the velocity, and "
        "noise makes its sign uncertain; if not given 1 % of the top speed, but at least four standard "
        "deviations of the noise",
    )
    loss: str = choice(
        "square", ("square", "huber", "tukey"), doc="loss function; huber or tukey where some samples are wrong"
    )
    unbounded: bool = flag(
        False,
        doc="whether levels and viscosities may be negative, and static levels less than the Coulomb levels",
    )
    common_offset: bool = flag(
        False, doc="whether all recordings have the same offset; otherwise each has an offset of its own"
    )
    slowest_fall: float = bounded(
        1.0,
        above=0.0,
        maximum=1.0,
        doc="largest Stribeck velocity that is searched, as a share of the top speed",
    )
    fit_inertia: bool = flag(False, doc="whether the inertia is to be found too; needs accelerations")
    confidence: float = bounded(0.95, above=0.0, maximum=0.9999, doc="confidence level of the intervals")
    correct_bias: bool = flag(True, doc="whether the effect of noise in the velocity on the parameters is undone")

    def __post_init__(self) -> None:
        check(self)
        if self.dead_band is not None and not 0.0 <= self.dead_band < np.inf:
            raise ConfigurationError(f"dead_band {self.dead_band}: must be a finite number of at least 0")


Array = NDArray[np.float64]


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


@dataclass(frozen=True)
class FrictionLaw:
    """Friction model with parameter values.

    Attributes
    ----------
    model : FrictionModel
    values : dict
        Parameters by name.
    """

    model: FrictionModel
    values: dict[str, float]

    def evaluate(self, motion: Motion | Array) -> Array:
        """Return the friction of a motion or of velocities; at rest, only the offset and harmonics."""
        return self.model.evaluate(self.values, motion)

    def error(self, samples: Samples, deviations: Sequence[float] = ()) -> Array:
        """Return the measured friction (n,) minus the prediction.

        Parameters
        ----------
        samples : Samples
        deviations : sequence of float, optional
            Deviation of the offset of each recording from their mean.
        """
        predicted = self.evaluate(samples.motion)
        if INERTIA in self.values and samples.acceleration is not None:
            predicted = predicted + self.values[INERTIA] * samples.acceleration
        if len(deviations) > 1 and samples.recording is not None:
            predicted = predicted + np.asarray(deviations)[samples.recording]
        return np.asarray(samples.friction - predicted)


@dataclass(frozen=True)
class FrictionFit(FrictionLaw):
    """Friction law fitted to measured data.

    Attributes
    ----------
    model : FrictionModel
    samples : Samples
    settings : FitSettings
    names : tuple of str
        Names of the parameters, in the order of `covariance`.
    values : dict
        Parameters, corrected for the bias of velocity noise unless that was disabled.
    uncorrected : dict
        Parameters before the correction.
    standard_errors, intervals : dict
        Standard errors, and intervals ``(low, high)`` at the requested confidence level.
    offset_deviations : tuple of float
        Deviation of the offset of each recording from their mean, which is the value of ``offset``.
    covariance : array, (p, p)
        Covariance of the parameters.
    condition : float
        Condition number of the scaled Jacobian; above some 1000 the parameters are hardly identifiable.
    dead_band, velocity_noise : float
        Values used: speed up to which samples were excluded, standard deviation of the velocity error.
    kept : array of bool, (n,)
        Mask of the fitted samples.
    excluded : dict
        Number of excluded samples by reason.
    residual : array
        Residuals of the kept samples.
    diagnostics : Diagnostics
    doubts : tuple of Doubt
        Reasons to doubt the result.
    """

    samples: Samples
    settings: FitSettings
    names: tuple[str, ...]
    uncorrected: dict[str, float]
    standard_errors: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    offset_deviations: tuple[float, ...]
    covariance: Array
    condition: float
    dead_band: float
    velocity_noise: float
    kept: NDArray[np.bool_]
    excluded: dict[str, int]
    residual: Array
    diagnostics: Diagnostics
    doubts: tuple[Doubt, ...]

    def relative_error(self, samples: Samples) -> float:
        """Return the rms error on a recording relative to its rms friction, without samples near rest."""
        moving = samples.faster_than(self.dead_band)
        if not bool(moving.any()):
            raise ConfigurationError(f"no sample of the recording is faster than the dead band of {self.dead_band:g}")
        return float(np.linalg.norm(self.error(samples)[moving]) / np.linalg.norm(samples.friction[moving]))
