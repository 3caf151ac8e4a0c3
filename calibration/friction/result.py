"""Settings and result of a friction fit: parameters, intervals, diagnostics, and reasons to doubt it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import cosines, covariance_of_sum, memory_of
from calibration.fitting.regression import spread, times
from calibration.friction.model import DISTANCE, INERTIA, SCALE, SIDES, FrictionModel, Motion, negative
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


# --- diagnostics ------------------------------------------------------------------------------------------------------


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
        return Diagnostics(rms, 0.0, slow_share, 0.0, float(len(residual)), 0.0, 0.0, 0.0)
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


_DOUBTS = {
    "not-converged": "The fit did not converge: use a simpler model.",
    "velocity-noise-unseen": "The velocity jumps from sample to sample: its noise cannot be estimated and was taken as "
    "0.",
    "velocity-noise": "Velocity noise of {noise:.3g}, Stribeck velocity of {falls:.3g} or more, dead band of "
    "{band:.3g}: {effect}.",
    "velocity-noise-unmodelled": "The residuals point to a velocity noise of up to {implied:.3g}, but {noise:.3g} was "
    "assumed: static levels may be too low; fit from positions, or state the noise.",
    "still-falling": "Friction still falls at the top speed, so that its level beyond is unknown: the Stribeck "
    "velocity was limited to {high:.3g}, {share:.3g} of the top speed.",
    "scale-at-limit": "The Stribeck velocity found, {value:.3g}, is at the edge of the range searched ({low:.3g} to "
    "{high:.3g}): use a simpler model.",
    "no-fall": "In neither direction is the static level clearly above Coulomb's, so the Stribeck velocity is "
    "arbitrary: use a simpler model, or record slower motion.",
    "few-slow-samples": "Only {percent:.1f} % of the samples are slower than the Stribeck velocity: record slower "
    "motion.",
    "presliding-unknown": "{reason}: use a model without presliding{remedy}.",
    "unphysical": "Negative {names}: not a friction law; check the sign of the torque, or use a simpler model.",
    "ill-conditioned": "The fit is ill-conditioned (condition {condition:.3g}): record more varied motion.",
    "misfit": "{percent:.0f} % of the residual depends on the velocity: the model does not describe that dependence "
    "completely.",
    "lasting-errors": "Residuals are correlated for longer than the intervals assume: the model misses something slow.",
    "outliers": '{percent:.1f} % of the samples are outliers: look at them, or use loss "huber" or "tukey".',
    "drift": "The halves of the recording differ by {percent:.0f} % of the friction: it drifts; warm up first, or "
    "record shorter.",
    "dead-band-hides": "{count} samples move inside the dead band of {band:.3g}, where friction is {more:.3g} more "
    "than the law says: it hides a Stribeck zone; give a smaller --dead-band.",
    "two-minima": "{words} of {found} fit the recording equally well, and the intervals cover them all: record more "
    "slow motion.",
}
"""Messages of the doubts by their codes."""
_HARMLESS = {"few-slow-samples", "unphysical", "outliers", "two-minima"}
"""Doubts after which the intervals still hold."""


def make_doubt(code: str, **facts: Any) -> Doubt:
    """Return a doubt by its code; `facts` are the numbers in its message."""
    return Doubt(code, _DOUBTS[code].format(**facts), code not in _HARMLESS)


def doubts_about(fit: FrictionFit, settled: bool, limits: Mapping[str, tuple[float, float]]) -> Iterator[Doubt]:
    """Yield the reasons to doubt a fit.

    Parameters
    ----------
    fit : FrictionFit
        Fit without doubts.
    settled : bool
        Whether fit and correction converged.
    limits : mapping
        Search ranges of the nonlinear parameters.
    """
    seen, samples = fit.diagnostics, len(fit.kept)
    if not settled:
        yield make_doubt("not-converged")
    yield from _noise_doubts(fit)
    if fit.model.scaled:
        scale, (low, high), share = fit.uncorrected[SCALE], limits[SCALE], fit.settings.slowest_fall
        if scale >= high / _AT_LIMIT and share < 1.0:
            yield make_doubt("still-falling", high=high, share=share)
        elif not low * _AT_LIMIT < scale < high / _AT_LIMIT or fit.intervals[SCALE][0] <= 0.0:
            yield make_doubt("scale-at-limit", value=fit.values[SCALE], low=low, high=high)
        elif not _falls(fit):
            yield make_doubt("no-fall")
        if seen.slow_share < _SLOW_SHARE:
            yield make_doubt("few-slow-samples", percent=100.0 * seen.slow_share)
    if fit.model.presliding:
        (low, high), distance = limits[DISTANCE], fit.uncorrected[DISTANCE]
        if fit.intervals["presliding"][0] <= 0.0:
            reason = "The part of the friction that builds up after reversals may be 0"
            yield make_doubt("presliding-unknown", reason=reason, remedy="")
        elif not low * _AT_LIMIT < distance < high / _AT_LIMIT:
            edge = f"is at the edge of the range searched ({low:.3g} to {high:.3g})"
            reason = f"The presliding distance found, {distance:.3g}, {edge}"
            yield make_doubt("presliding-unknown", reason=reason, remedy=", or record positions")
    wrong = [*negative(fit.values), *(name for name in (INERTIA,) if fit.values.get(name, 0.0) < 0.0)]
    lasting = seen.autocorrelation > 1.0 - 2.0 * np.pi * cosines(samples) / samples
    checks: tuple[tuple[str, bool, dict[str, Any]], ...] = (
        ("unphysical", bool(wrong), {"names": ", ".join(wrong)}),
        ("ill-conditioned", fit.condition > _CONDITION, {"condition": fit.condition}),
        ("misfit", seen.misfit > _MISFIT, {"percent": 100.0 * seen.misfit}),
        ("lasting-errors", lasting, {}),
        ("outliers", seen.outliers > _OUTLIERS, {"percent": 100.0 * seen.outliers}),
    )
    yield from (make_doubt(code, **facts) for code, applies, facts in checks if applies)


def _noise_doubts(fit: FrictionFit) -> Iterator[Doubt]:
    noise, implied, band = fit.velocity_noise, fit.diagnostics.implied_velocity_noise, fit.dead_band
    if fit.samples.erratic and noise == 0.0:
        yield make_doubt("velocity-noise-unseen")
    falls = float("inf")
    if fit.model.scaled:  # the lower end of the interval of the Stribeck velocity, at least 5 % of its value
        falls = max(fit.intervals[SCALE][0], 0.05 * fit.values[SCALE])
    if noise > _FELT * falls or noise * _LEAST_BAND > band:
        corrected = "static levels rest on a correction for it; smooth the velocity"
        effects = (
            (noise * _LEAST_BAND > band, "the sign of slow samples is uncertain; widen the dead band"),
            (noise > _OVERWHELMING * falls, "it hides the fall of the friction; smooth the velocity"),
            (not fit.settings.correct_bias, "it pulls the static levels down, which was not corrected"),
        )
        effect = next((text for applies, text in effects if applies), corrected)
        found = make_doubt("velocity-noise", noise=noise, falls=falls, band=band, effect=effect)
        yield replace(found, spoils_intervals=effect != corrected)
    if implied > _UNEXPLAINED * noise and implied > _FELT * falls:
        yield make_doubt("velocity-noise-unmodelled", implied=implied, noise=noise)


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
    whole = fit.evaluate(samples.motion[fit.kept])[:, None]
    worst = max(_difference_of_halves(fit, part, weights, size) for part in (columns, whole))
    if worst > _DRIFTS:
        yield make_doubt("drift", percent=100.0 * worst)
    speed = np.abs(samples.velocity)
    slow = samples.inner & (speed <= fit.dead_band) & (speed > max(_SURE * samples.noise, 0.02 * fit.dead_band))
    if int(slow.sum()) < _ENOUGH or fit.settings.dead_band is not None:
        return
    more = (np.sign(samples.velocity) * fit.error(samples, fit.offset_deviations))[slow]
    mean = float(more.mean())
    error = math.sqrt(float(covariance_of_sum((more - mean)[:, None])[0, 0])) / len(more)
    if mean > _CLEARLY * error and mean > _HIDDEN * size:
        yield make_doubt("dead-band-hides", count=int(slow.sum()), band=fit.dead_band, more=mean)


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
