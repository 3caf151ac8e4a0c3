"""What a friction fit does not see: friction that drifts while it is recorded, and motion inside the dead band."""

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
"""Standard errors that are more than chance."""
_DRIFTS, _HIDDEN = 0.01, 0.05
"""Changes that matter, in parts of the friction (rms)."""
_ENOUGH, _SURE = 30, 4.0
"""Samples inside the dead band that tell something; how much faster than noise they are, in its standard deviations."""


def changes(fit: FrictionFit, jacobian: Array, weights: Array) -> list[Doubt]:
    """Return the doubts about the samples kept, with the derivatives of the fit, and about those in the dead band."""
    return [doubt for doubt in (_drift(fit, jacobian, weights), _hidden(fit)) if doubt is not None]


def _drift(fit: FrictionFit, jacobian: Array, weights: Array) -> Doubt | None:
    """Compare what both halves say of the parameters, and of all friction together, which shows less drift.

    The Stribeck velocity stays what it is: only what the fit is linear in may drift.
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
    """Fit columns to what is left in each half, and return the clear difference, relative to the friction; or 0."""
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
    """Compare the friction of motion inside the dead band with what the law says there."""
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
