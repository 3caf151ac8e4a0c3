"""Residual diagnostics of a friction fit, and the reasons to doubt it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import cosines, covariance_of_sum, memory_of
from calibration.fitting.regression import spread, times
from calibration.friction.model import DISTANCE, INERTIA, SCALE, SIDES, negative
from calibration.friction.result import Diagnostics, Doubt, FrictionFit

Array = NDArray[np.float64]

_GROUPS = 24
_LAG, _GROWN = 2, 2.5
"""Lag of the compared residuals [samples]; number of standard errors of a significant effect."""
_LEAST_BAND = 3.0
"""Minimum dead band in standard deviations of the noise, to keep the sign of the samples."""
_FELT, _OVERWHELMING = 0.1, 0.5
"""Noise that is reported, and noise that no correction removes, as fractions of the Stribeck velocity."""
_UNEXPLAINED = 1.5
_SLOW_SHARE, _CONDITION, _OUTLIERS, _MISFIT = 0.02, 300.0, 0.002, 0.1
_AT_LIMIT = 1.001
_FALLEN = 3.0
"""Standard errors of a significant fall; more than two, because its position is also fitted."""
_CLEARLY = 4.5
"""Number of standard errors of a significant change."""
_DRIFTS, _HIDDEN = 0.01, 0.05
"""Relevant changes as fractions of the friction (rms): drift, and excess inside the dead band."""
_ENOUGH, _SURE = 30, 4.0
"""Minimum number of samples in the dead band, and minimum speed in standard deviations of the noise."""


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
    # The misfit is the variance explained by group means over velocity, less the part expected by chance.
    groups = np.array_split(residual[np.argsort(velocity)], _GROUPS)
    within = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups) / (len(residual) - _GROUPS)
    return Diagnostics(
        rms=rms,
        relative_rms=rms / size,
        slow_share=slow_share,
        autocorrelation=float(np.mean(centred[1:] * centred[:-1])) / variance,
        effective_samples=len(residual) * min(1.0, len(residual) * variance / of_sum),
        kurtosis=float(np.mean(centred**4)) / variance**2 - 3.0,
        outliers=float(np.mean(np.abs(centred) > 4.0 * spread(residual))),
        misfit=max(0.0, 1.0 - within / float(np.mean(residual**2))),
        implied_velocity_noise=_implied_noise(residual, slope, stated),
    )


def _implied_noise(residual: Array, slope: Array, stated: bool) -> float:
    """Return the velocity noise implied by the residuals; 0 if it is not significant.

    An error n of the velocity causes a residual of slope times n. Independent errors make the squared residuals grow
    with the squared slope, in addition to the errors of the torque. Correlated errors appear in the products of
    neighbouring residuals, to which independent errors of the torque do not contribute.
    """

    def growth(products: Array, slopes: Array) -> float:
        """Return the regression coefficient of products on slopes, 0 if not significantly positive."""
        sharpness = float(slopes @ slopes)
        if sharpness == 0.0:
            return 0.0
        growth = float(slopes @ products) / sharpness
        scores = slopes * (products - products.mean() - growth * (slopes - slopes.mean()))
        error = math.sqrt(float(covariance_of_sum(scores[:, None])[0, 0])) / sharpness
        return growth if growth > _GROWN * error else 0.0

    steep = slope * slope
    varied = float(steep.std()) > 1e-6 * float(steep.mean())
    alone = growth(residual**2, steep - steep.mean()) if varied else 0.0
    shift = slice(_LAG, None), slice(None, -_LAG)
    steep = slope[shift[0]] * slope[shift[1]]
    together = growth(residual[shift[0]] * residual[shift[1]], steep - steep.mean() if stated and varied else steep)
    return math.sqrt(max(alone, together))


# --- doubts -----------------------------------------------------------------------------------------------------------


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
    found += _noise_doubts(fit)
    if fit.model.scaled:
        found += _scale_doubts(fit, *limits[SCALE])
    if fit.model.presliding:
        low, high = limits[DISTANCE]
        distance, message = fit.uncorrected[DISTANCE], ""
        if fit.intervals["presliding"][0] <= 0.0:
            message = (
                "The part of the friction that builds up after reversals may be 0: use a model without presliding."
            )
        elif not low * _AT_LIMIT < distance < high / _AT_LIMIT:
            message = (
                f"The presliding distance found, {distance:.3g}, is at the edge of the range searched ({low:.3g} to "
                f"{high:.3g}): use a model without presliding, or record positions."
            )
        if message:
            found.append(Doubt("presliding-unknown", message, True))
    wrong = [*negative(fit.values), *(name for name in (INERTIA,) if fit.values.get(name, 0.0) < 0.0)]
    seen, samples = fit.diagnostics, len(fit.kept)
    checks = (
        (
            bool(wrong),
            "unphysical",
            f"Negative {', '.join(wrong)}: not a friction law; check the sign of the torque, or use a simpler model.",
            False,
        ),
        (
            fit.condition > _CONDITION,
            "ill-conditioned",
            f"The fit is ill-conditioned (condition {fit.condition:.3g}): record more varied motion.",
            True,
        ),
        (
            seen.misfit > _MISFIT,
            "misfit",
            f"{100.0 * seen.misfit:.0f} % of the residual depends on the velocity: the model does not describe that "
            "dependence completely.",
            True,
        ),
        (
            seen.autocorrelation > 1.0 - 2.0 * np.pi * cosines(samples) / samples,
            "lasting-errors",
            "Residuals are correlated for longer than the intervals assume: the model misses something slow.",
            True,
        ),
        (
            seen.outliers > _OUTLIERS,
            "outliers",
            f'{100.0 * seen.outliers:.1f} % of the samples are outliers: look at them, or use loss "huber" or "tukey".',
            False,
        ),
    )
    found += [Doubt(code, message, spoils) for applies, code, message, spoils in checks if applies]
    return tuple(found)


def _noise_doubts(fit: FrictionFit) -> Iterator[Doubt]:
    noise, implied, band = fit.velocity_noise, fit.diagnostics.implied_velocity_noise, fit.dead_band
    if fit.samples.erratic and noise == 0.0:
        message = "The velocity jumps from sample to sample: its noise cannot be estimated and was taken as 0."
        yield Doubt("velocity-noise-unseen", message, True)
    falls = float("inf")
    if fit.model.scaled:  # the lower end of the interval of the Stribeck velocity, at least 5 % of its value
        falls = max(fit.intervals[SCALE][0], 0.05 * fit.values[SCALE])
    if noise > _FELT * falls or noise * _LEAST_BAND > band:
        sums = f"Velocity noise of {noise:.3g}, Stribeck velocity of {falls:.3g} or more, dead band of {band:.3g}: "
        if noise * _LEAST_BAND > band:
            end, spoils = "the sign of slow samples is uncertain; widen the dead band.", True
        elif noise > _OVERWHELMING * falls:
            end, spoils = "it hides the fall of the friction; smooth the velocity.", True
        elif not fit.settings.correct_bias:
            end, spoils = "it pulls the static levels down, which was not corrected.", True
        else:
            end, spoils = "static levels rest on a correction for it; smooth the velocity.", False
        yield Doubt("velocity-noise", sums + end, spoils)
    if implied > _UNEXPLAINED * noise and implied > _FELT * falls:
        message = (
            f"The residuals point to a velocity noise of up to {implied:.3g}, but {noise:.3g} was assumed: static "
            "levels may be too low; fit from positions, or state the noise."
        )
        yield Doubt("velocity-noise-unmodelled", message, True)


def _scale_doubts(fit: FrictionFit, low: float, high: float) -> Iterator[Doubt]:
    """Yield the doubts about the Stribeck velocity, which was searched from `low` to `high`."""
    scale = fit.uncorrected[SCALE]
    if scale >= high / _AT_LIMIT and fit.settings.slowest_fall < 1.0:
        message = (
            "Friction still falls at the top speed, so that its level beyond is unknown: the Stribeck velocity "
            f"was limited to {high:.3g}, {fit.settings.slowest_fall:.3g} of the top speed."
        )
        yield Doubt("still-falling", message, True)
    elif not low * _AT_LIMIT < scale < high / _AT_LIMIT or fit.intervals[SCALE][0] <= 0.0:
        message = (
            f"The Stribeck velocity found, {fit.values[SCALE]:.3g}, is at the edge of the range searched ({low:.3g} to "
            f"{high:.3g}): use a simpler model."
        )
        yield Doubt("scale-at-limit", message, True)
    elif not _falls(fit):
        message = (
            "In neither direction is the static level clearly above Coulomb's, so the Stribeck velocity is arbitrary: "
            "use a simpler model, or record slower motion."
        )
        yield Doubt("no-fall", message, True)
    if fit.diagnostics.slow_share < _SLOW_SHARE:
        message = (
            f"Only {100.0 * fit.diagnostics.slow_share:.1f} % of the samples are slower than the Stribeck velocity: "
            "record slower motion."
        )
        yield Doubt("few-slow-samples", message)


def _falls(fit: FrictionFit) -> bool:
    """Return True if a static level significantly exceeds the Coulomb level in at least one direction."""
    for side in SIDES:
        static = f"static_{side}"
        coulomb = "coulomb" if "coulomb" in fit.values else f"coulomb_{side}"
        contrast = np.array([(name == static) - float(name == coulomb) for name in fit.names])
        error = float(np.sqrt(max(contrast @ fit.covariance @ contrast, 0.0)))
        if fit.values[static] - fit.values[coulomb] > _FALLEN * error:
            return True
    return False


def changes(fit: FrictionFit, jacobian: Array, weights: Array) -> Iterator[Doubt]:
    """Yield the doubts about effects that the fit ignores: drift, and friction inside the dead band.

    `jacobian` and `weights` belong to the kept samples. The parameters fitted to both halves are compared, and a common
    factor, which is more sensitive. The Stribeck velocity is held constant: only linear parameters may drift.
    """
    samples = fit.samples
    size = math.sqrt(float(np.mean(samples.friction[fit.kept] ** 2)))
    columns = jacobian[:, : jacobian.shape[1] - len(fit.model.nonlinear_names)]
    whole = fit.evaluate(samples.motion.part(fit.kept))[:, None]
    worst = max(_difference_of_halves(fit, part, weights, size) for part in (columns, whole))
    if worst > _DRIFTS:
        message = (
            f"The halves of the recording differ by {100.0 * worst:.0f} % of the friction: it drifts; warm up first, "
            "or record shorter."
        )
        yield Doubt("drift", message, True)
    speed = np.abs(samples.velocity)
    slow = samples.inner & (speed <= fit.dead_band) & (speed > max(_SURE * samples.noise, 0.02 * fit.dead_band))
    if int(slow.sum()) < _ENOUGH or fit.settings.dead_band is not None:
        return
    more = (np.sign(samples.velocity) * fit.error(samples, fit.offset_deviations))[slow]
    mean = float(more.mean())
    error = math.sqrt(float(covariance_of_sum((more - mean)[:, None])[0, 0])) / len(more)
    if mean > _CLEARLY * error and mean > _HIDDEN * size:
        message = (
            f"{int(slow.sum())} samples move inside the dead band of {fit.dead_band:.3g}, where friction is {mean:.3g} "
            "more than the law says: it hides a Stribeck zone; give a smaller --dead-band."
        )
        yield Doubt("dead-band-hides", message, True)


def _difference_of_halves(fit: FrictionFit, columns: Array, weights: Array, size: float) -> float:
    """Return the significant difference between both halves, relative to the friction; 0 if none."""
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
