"""Warnings about a friction fit: reasons to doubt the result."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibration.fitting.intervals import cosines
from calibration.friction.diagnostics import Diagnostics, Doubt
from calibration.friction.model import DISTANCE, INERTIA, SCALE, SIDES, negative
from calibration.friction.result import FrictionFit

_LEAST_BAND = 3.0
"""Minimum dead band in standard deviations of the noise, to keep the sign of the samples."""
_FELT, _OVERWHELMING = 0.1, 0.5
"""Noise that is reported, and noise that no correction removes, as fractions of the Stribeck velocity."""
_UNEXPLAINED = 1.5
_SLOW_SHARE, _CONDITION, _OUTLIERS, _MISFIT = 0.02, 300.0, 0.002, 0.1
_AT_LIMIT = 1.001
_CLEARLY = 3.0
"""Standard errors of a significant fall; more than two, because its position is also fitted."""


def doubts_about(fit: FrictionFit, settled: bool, limits: Mapping[str, tuple[float, float]]) -> tuple[Doubt, ...]:
    """Return the reasons to doubt a fit.

    Parameters
    ----------
    fit : FrictionFit
        Fit without doubts.
    settled : bool
        Whether fit and correction converged.
    limits : mapping
        Search ranges of the nonlinear parameters.
    """
    found = [] if settled else [Doubt("not-converged", "The fit did not converge: use a simpler model.", True)]
    if fit.samples.erratic and fit.velocity_noise == 0.0:
        message = "The velocity jumps from sample to sample: its noise cannot be estimated and was taken as 0."
        found.append(Doubt("velocity-noise-unseen", message, True))
    found += _noise(fit)
    if fit.model.scaled:
        found += _scale(fit, limits[SCALE])
    if fit.model.presliding:
        found += _presliding(fit, limits[DISTANCE])
    return tuple(found + _parameters(fit) + _residuals(fit.diagnostics, len(fit.kept)))


def _noise(fit: FrictionFit) -> list[Doubt]:
    noise, implied = fit.velocity_noise, fit.diagnostics.implied_velocity_noise
    falls = _least_scale(fit) if fit.model.scaled else float("inf")
    found = []
    if noise > _FELT * falls or noise * _LEAST_BAND > fit.dead_band:
        found.append(_stated_noise(fit, falls))
    if implied > _UNEXPLAINED * noise and implied > _FELT * falls:
        message = (
            f"The residuals point to a velocity noise of up to {implied:.3g}, but {noise:.3g} was assumed: static "
            "levels may be too low; fit from positions, or state the noise."
        )
        found.append(Doubt("velocity-noise-unmodelled", message, True))
    return found


def _least_scale(fit: FrictionFit) -> float:
    """Return the lower end of the interval of the Stribeck velocity, at least 5 % of its value."""
    return max(fit.intervals[SCALE][0], 0.05 * fit.values[SCALE])


def _stated_noise(fit: FrictionFit, falls: float) -> Doubt:
    noise, band = fit.velocity_noise, fit.dead_band
    sums = f"Velocity noise of {noise:.3g}, Stribeck velocity of {falls:.3g} or more, dead band of {band:.3g}: "
    if noise * _LEAST_BAND > band:
        return Doubt("velocity-noise", sums + "the sign of slow samples is uncertain; widen the dead band.", True)
    if noise > _OVERWHELMING * falls:
        return Doubt("velocity-noise", sums + "it hides the fall of the friction; smooth the velocity.", True)
    if not fit.settings.correct_bias:
        return Doubt("velocity-noise", sums + "it pulls the static levels down, which was not corrected.", True)
    return Doubt("velocity-noise", sums + "static levels rest on a correction for it; smooth the velocity.", False)


def _scale(fit: FrictionFit, scales: tuple[float, float]) -> list[Doubt]:
    found, scale = [], fit.values[SCALE]
    low, high = scales
    if fit.uncorrected[SCALE] >= high / _AT_LIMIT and fit.settings.slowest_fall < 1.0:
        message = (
            "Friction still falls at the top speed, so that its level beyond is unknown: the Stribeck velocity "
            f"was limited to {high:.3g}, {fit.settings.slowest_fall:.3g} of the top speed."
        )
        found.append(Doubt("still-falling", message, True))
    elif not low * _AT_LIMIT < fit.uncorrected[SCALE] < high / _AT_LIMIT or fit.intervals[SCALE][0] <= 0.0:
        message = (
            f"The Stribeck velocity found, {scale:.3g}, is at the edge of the range searched ({low:.3g} to "
            f"{high:.3g}): use a simpler model."
        )
        found.append(Doubt("scale-at-limit", message, True))
    elif not _falls(fit):
        message = (
            "In neither direction is the static level clearly above Coulomb's, so the Stribeck velocity is arbitrary: "
            "use a simpler model, or record slower motion."
        )
        found.append(Doubt("no-fall", message, True))
    if fit.diagnostics.slow_share < _SLOW_SHARE:
        message = (
            f"Only {100.0 * fit.diagnostics.slow_share:.1f} % of the samples are slower than the Stribeck velocity: "
            "record slower motion."
        )
        found.append(Doubt("few-slow-samples", message))
    return found


def _presliding(fit: FrictionFit, limits: tuple[float, float]) -> list[Doubt]:
    """Return the doubts about the presliding distance."""
    low, high = limits
    distance = fit.uncorrected[DISTANCE]
    if fit.intervals["presliding"][0] <= 0.0:
        message = "The part of the friction that builds up after reversals may be 0: use a model without presliding."
    elif not low * _AT_LIMIT < distance < high / _AT_LIMIT:
        message = (
            f"The presliding distance found, {distance:.3g}, is at the edge of the range searched ({low:.3g} to "
            f"{high:.3g}): use a model without presliding, or record positions."
        )
    else:
        return []
    return [Doubt("presliding-unknown", message, True)]


def _falls(fit: FrictionFit) -> bool:
    """Return True if a static level significantly exceeds the Coulomb level in at least one direction."""
    for side in SIDES:
        static = f"static_{side}"
        coulomb = "coulomb" if "coulomb" in fit.values else f"coulomb_{side}"
        contrast = np.array([(name == static) - float(name == coulomb) for name in fit.names])
        error = float(np.sqrt(max(contrast @ fit.covariance @ contrast, 0.0)))
        if fit.values[static] - fit.values[coulomb] > _CLEARLY * error:
            return True
    return False


def _parameters(fit: FrictionFit) -> list[Doubt]:
    found = []
    wrong = [*negative(fit.values), *(name for name in (INERTIA,) if fit.values.get(name, 0.0) < 0.0)]
    if wrong:
        message = (
            f"Negative {', '.join(wrong)}: not a friction law; check the sign of the torque, or use a simpler model."
        )
        found.append(Doubt("unphysical", message))
    if fit.condition > _CONDITION:
        message = f"The fit is ill-conditioned (condition {fit.condition:.3g}): record more varied motion."
        found.append(Doubt("ill-conditioned", message, True))
    return found


def _residuals(seen: Diagnostics, samples: int) -> list[Doubt]:
    found = []
    if seen.misfit > _MISFIT:
        message = (
            f"{100.0 * seen.misfit:.0f} % of the residual depends on the velocity: the model does not describe that "
            "dependence completely."
        )
        found.append(Doubt("misfit", message, True))
    if seen.autocorrelation > 1.0 - 2.0 * np.pi * cosines(samples) / samples:
        message = "Residuals are correlated for longer than the intervals assume: the model misses something slow."
        found.append(Doubt("lasting-errors", message, True))
    if seen.outliers > _OUTLIERS:
        message = (
            f'{100.0 * seen.outliers:.1f} % of the samples are outliers: look at them, or use loss "huber" or "tukey".'
        )
        found.append(Doubt("outliers", message))
    return found
