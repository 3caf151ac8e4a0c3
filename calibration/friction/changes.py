"""Checks for effects that a friction fit ignores: drift, and motion inside the dead band."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import covariance_of_sum, memory_of
from calibration.fitting.regression import times
from calibration.friction.diagnostics import Doubt
from calibration.friction.result import FrictionFit

Array = NDArray[np.float64]

_CLEARLY = 4.5
"""Number of standard errors of a significant effect."""
_DRIFTS, _HIDDEN = 0.01, 0.05
"""Relevant changes as fractions of the friction (rms): drift, and excess inside the dead band."""
_ENOUGH, _SURE = 30, 4.0
"""Minimum number of samples in the dead band, and minimum speed in standard deviations of the noise."""


def changes(fit: FrictionFit, jacobian: Array, weights: Array) -> list[Doubt]:
    """Return the doubts about drift and the dead band; `jacobian` belongs to the kept samples."""
    return [doubt for doubt in (_drift(fit, jacobian, weights), _hidden(fit)) if doubt is not None]


def _drift(fit: FrictionFit, jacobian: Array, weights: Array) -> Doubt | None:
    """Compare the parameters fitted to both halves, and a common factor, which is more sensitive.

    The Stribeck velocity is held constant: only linear parameters may drift.
    """
    columns = jacobian[:, : jacobian.shape[1] - len(fit.model.nonlinear_names)]
    whole = fit.evaluate(fit.samples.motion.part(fit.kept))[:, None]
    worst = max(_apart(fit, part, weights) for part in (columns, whole))
    if worst <= _DRIFTS:
        return None
    message = (
        f"The halves of the recording differ by {100.0 * worst:.0f} % of the friction: it drifts; warm up first, or "
        "record shorter."
    )
    return Doubt("drift", message, True)


def _apart(fit: FrictionFit, columns: Array, weights: Array) -> float:
    """Return the significant difference between both halves, relative to the friction; 0 if none."""
    size = math.sqrt(float(np.mean(fit.samples.friction[fit.kept] ** 2)))
    half, memory = len(fit.residual) // 2, memory_of(fit.residual)
    steps, errors = [], []
    for part in (slice(0, half), slice(half, None)):
        weighted = columns[part] * weights[part][:, None]
        inverse = np.linalg.pinv(np.einsum("ij,ik->jk", weighted, columns[part]), rcond=1e-10)
        influence = np.einsum("ij,jk->ik", weighted, inverse)
        step = times(influence.T, fit.residual[part])
        left = fit.residual[part] - times(columns[part], step)
        steps.append(step)
        errors.append(np.diag(covariance_of_sum(influence * left[:, None], memory)))
    apart = np.abs(steps[1] - steps[0])
    felt = apart * np.sqrt(np.mean(columns**2, axis=0)) / max(size, 1e-300)
    return float(np.max(felt, where=apart > _CLEARLY * np.sqrt(errors[0] + errors[1]), initial=0.0))


def _hidden(fit: FrictionFit) -> Doubt | None:
    """Compare the friction inside the dead band with the law."""
    samples = fit.samples
    speed = np.abs(samples.velocity)
    slow = samples.inner & (speed <= fit.dead_band) & (speed > max(_SURE * samples.noise, 0.02 * fit.dead_band))
    if int(slow.sum()) < _ENOUGH or fit.settings.dead_band is not None:
        return None
    more = (np.sign(samples.velocity) * fit.error(samples, fit.offset_deviations))[slow]
    mean = float(more.mean())
    error = math.sqrt(float(covariance_of_sum((more - mean)[:, None])[0, 0])) / len(more)
    size = math.sqrt(float(np.mean(samples.friction[fit.kept] ** 2)))
    if not (mean > _CLEARLY * error and mean > _HIDDEN * size):
        return None
    message = (
        f"{int(slow.sum())} samples move inside the dead band of {fit.dead_band:.3g}, where friction is {mean:.3g} "
        "more than the law says: it hides a Stribeck zone; give a smaller --dead-band."
    )
    return Doubt("dead-band-hides", message, True)
