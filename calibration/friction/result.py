"""Result of a friction fit: parameters, intervals and doubts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.friction.diagnostics import Diagnostics, Doubt
from calibration.friction.model import INERTIA, FrictionModel
from calibration.friction.motion import Motion
from calibration.friction.samples import Samples
from calibration.friction.settings import FitSettings
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]


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
