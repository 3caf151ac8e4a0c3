"""Friction model selection by cross-validation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import covariance_of_sum
from calibration.fitting.regression import blocks
from calibration.friction.fit import fit_friction, fit_law
from calibration.friction.model import MODELS, SCALE, STATIC_MODELS, named_model, negative
from calibration.friction.result import FitSettings, FrictionFit
from calibration.friction.samples import Samples, joined
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

_APART, _SLOW = 0.5, 0.01
"""Separation of training and test samples of one recording [s], and minimum speed of test samples.

The speed is relative to the top speed.
"""
_FOLDS = 5
"""Number of blocks of a single recording."""
_FEWEST, _ERRORS = 2, 2.0
"""Minimum number of parts for a comparison, and number of standard errors attributed to chance."""
_COMPARED = 30_000
"""Maximum number of samples for the comparison of models; the chosen model is fitted to all."""
_EXACT = 1e-9
"""Share of the friction below which errors, and differences of errors, are rounding and do not distinguish models."""
_NEAR = 1.05
"""Factor on the lowest error up to which a simpler model is preferred."""
_MOST = 0.5
"""A model is rejected if another one leaves less than this fraction of its mean squared error."""
_TURN = np.pi / 2.0
"""Smallest range of the angle in which two harmonics and an offset are distinguishable [rad]."""
_LEVEL, _LIMIT, _WORSE = 0.25, 0.125, 1.4
"""Criteria for a Coulomb level that is an extrapolation.

Relative half width of its interval from which on the level is unknown; upper limit of the Stribeck velocity in that
case, as a fraction of the top speed, so that the fall is complete to 2 % at half the top speed; factor by which the
cross-validated error may grow.
"""
_DEFAULTS = FitSettings()


@dataclass(frozen=True)
class Candidate:
    """Compared model.

    Attributes
    ----------
    name : str
        Name in `MODELS`.
    parameters : int
        Number of free parameters; without the offsets of several recordings and the inertia.
    score : float
        Root mean square test error relative to the rms friction; all candidates have the same test samples. nan if no
        part can be fitted without another.
    reason : str
        Reason why it was chosen or not.
    """

    name: str
    parameters: int
    score: float
    reason: str


@dataclass(frozen=True)
class Choice:
    """Chosen model.

    Attributes
    ----------
    name : str
        Name in `MODELS`.
    fit : FrictionFit
        Fit to all recordings.
    candidates : tuple of Candidate
        All compared models, in the order of comparison.
    score : float
        Cross-validated error of the fit.
    """

    name: str
    fit: FrictionFit
    candidates: tuple[Candidate, ...]
    score: float

    @property
    def scores(self) -> dict[str, float]:
        """Cross-validated errors by the names of the models."""
        return {one.name: one.score for one in self.candidates}


def choose_model(
    recordings: Sequence[Samples],
    models: Sequence[str] | None = None,
    settings: FitSettings = _DEFAULTS,
) -> Choice:
    """Choose the simplest model whose cross-validated error is about as low as the lowest.

    "About as low" means that the mean squared error exceeds the least one by at most two standard errors of the
    difference (Diebold and Mariano 1995, with the standard error of `calibration.fitting.intervals`), and that its
    errors, cross-validated and of the fit, are within 5 % of the lowest among these models. If the Coulomb level is an
    extrapolation because friction still falls at the top speed, the Stribeck velocity is limited so that the level is
    within the measured range.

    Parameters
    ----------
    recordings : sequence of Samples
        Recordings of the same joint. Each is predicted from the others; a single one is divided into five blocks.
    models : sequence of str, optional
        Names of `MODELS`. Of two models with the same number of parameters the earlier one counts as simpler. By
        default `STATIC_MODELS`, and extensions of the best of them by presliding and harmonics if the recordings permit
        them. Unbounded fits are not extended, and models with negative levels or viscosities are skipped.
    settings : FitSettings

    Raises
    ------
    ConfigurationError
        If no fit is possible, or too few parts show motion in both directions to compare several models.
    """
    if not recordings or (models is not None and not models):
        raise ConfigurationError("a choice needs at least one recording and one model")
    comparison = _Comparison(recordings, settings)
    names = list(STATIC_MODELS) if models is None else list(models)
    if len(names) > 1 and len(comparison.parts) < _FEWEST:
        raise ConfigurationError("too little motion in both directions to choose a model by cross-validation: name one")
    if not comparison.parts:
        only = Candidate(names[0], named_model(names[0]).freedom, math.nan, "chosen: the model asked for")
        return Choice(names[0], comparison.fit(names[0]), (only,), math.nan)
    for name in names:
        comparison.evaluate(name)
    if models is None and not settings.unbounded:
        return _automatic(comparison)
    name = comparison.best(names)
    return Choice(name, comparison.fit(name), comparison.candidates(name), comparison.score(name))


def _automatic(comparison: _Comparison) -> Choice:
    """Choose among the static models, which have been compared, and extensions of the best of them."""
    whole, settings, score_of = comparison.whole, comparison.settings, comparison.score
    if whole.travel is not None and whole.commanded is None and not settings.fit_inertia:
        # If presliding is large, the ranking of the static models says little about asymmetry and offset.
        static = min(map(score_of, comparison.squares))
        for name in comparison.best_extended("presliding", "scaled"):
            comparison.evaluate(name)
            base = name.removesuffix("-presliding").removesuffix("-asymmetric").removesuffix("-offset")
            for simpler in (f"{base}-presliding", f"{base}-offset-presliding"):
                free = MODELS[simpler].freedom if simpler in MODELS else math.inf
                if free < MODELS[name].freedom and score_of(name) < static:
                    comparison.evaluate(simpler)
    if whole.angle is not None and float(np.ptp(whole.angle)) >= _TURN:
        for name in comparison.best_extended("harmonics", "presliding"):
            comparison.evaluate(name)
    for name in comparison.good(comparison.squares):
        if "presliding-unknown" in {doubt.code for doubt in comparison.fit(name).doubts}:
            comparison.undetermined.add(name)
    # An extension must not fit worse than the model that would be chosen without extensions.
    static_name = comparison.good(STATIC_MODELS)[0]
    most = comparison.fit(static_name).diagnostics.rms
    candidates = [comparison.best(comparison.squares), *comparison.good(comparison.squares)]
    name = next((each for each in candidates if comparison.fit(each).diagnostics.rms <= most), static_name)
    fit, score, note = comparison.fit(name), score_of(name), ""
    if _extrapolates(fit):
        limited = replace(settings, slowest_fall=_LIMIT)
        measured, measured_score = fit_friction(whole, name, limited), score_of(name, limited)
        if measured_score <= _WORSE * score and (static_name == name or measured.diagnostics.rms <= most):
            fit, score = measured, measured_score
            note = f"; {100.0 * score:.3g} % with a limited Stribeck velocity"
    return Choice(name, fit, comparison.candidates(name, note), score)


def _extrapolates(fit: FrictionFit) -> bool:
    """Return whether the Coulomb level is unknown because friction still falls at the top speed."""
    if not fit.model.scaled:
        return False
    top = float(np.abs(fit.samples.velocity[fit.kept]).max())
    if fit.values[SCALE] <= _LIMIT * top:
        return False
    if not np.isfinite(fit.intervals[SCALE][1]):
        return True
    levels = [fit.model.sided("coulomb", side) for side in ("forward", "backward")]
    return any(
        fit.intervals[name][1] - fit.intervals[name][0] > 2.0 * _LEVEL * fit.values[name] for name in set(levels)
    )


class _Comparison:
    """Squared test errors of models in cross-validation.

    Each of the `parts` consists of the training samples, a test recording, and the indices of its test samples.
    """

    def __init__(self, recordings: Sequence[Samples], settings: FitSettings) -> None:
        self.whole, self.settings = joined(recordings), settings
        self.own_offsets = len(recordings) > 1 and not settings.common_offset
        every = -(-sum(len(one.time) for one in recordings) // _COMPARED)
        if every > 1:
            recordings = [one.part(np.arange(0, len(one.time), every)) for one in recordings]
        self.parts: list[tuple[Samples, Samples, NDArray[np.intp]]] = []
        for number, one in enumerate(recordings):
            moving = np.flatnonzero(one.faster_than(_SLOW * float(np.abs(one.velocity).max())))
            if len(recordings) > 1:
                pairs = [(joined([*recordings[:number], *recordings[number + 1 :]]), moving)]
            else:
                gap = round(_APART * (len(one.time) - 1) / float(one.time[-1] - one.time[0]))
                folds = blocks(len(one.time), _FOLDS, gap)
                pairs = [(one.part(fitted), np.intersect1d(judged, moving)) for fitted, judged in folds]
            self.parts += [(fitted, one, judged) for fitted, judged in pairs if len(judged) and fitted.shows_law]
        sizes = [judged.friction[part] ** 2 for _, judged, part in self.parts]
        self.size = float(np.mean(np.concatenate(sizes))) if sizes else math.nan
        self.squares: dict[str, Array] = {}
        self.undetermined: set[str] = set()
        self._fits: dict[str, FrictionFit] = {}

    def evaluate(self, name: str) -> None:
        """Fit and test a model."""
        self.squares[name] = self._errors(name, self.settings)

    def best_extended(self, extension: str, kind: str) -> list[str]:
        """Return the extensions of the best models without and with an attribute."""
        best: dict[bool, str] = {}
        for name in sorted(self.squares, key=self.score):
            if f"{name}-{extension}" in MODELS:
                best.setdefault(getattr(MODELS[name], kind), f"{name}-{extension}")
        return [best[key] for key in sorted(best)]

    def score(self, name: str, settings: FitSettings | None = None) -> float:
        """Return the cross-validated error of a model relative to the friction, with other settings if given."""
        squares = self.squares[name] if settings is None else self._errors(name, settings)
        return math.sqrt(float(squares.mean()) / self.size)

    def _errors(self, name: str, settings: FitSettings) -> Array:
        errors = []
        for fitted, judged, part in self.parts:
            law = fit_law(fitted, name, settings)
            # noise of the acceleration would favour fits that underestimate the inertia
            quiet = judged if judged.instrument is None else replace(judged, acceleration=judged.instrument)
            error = law.error(quiet)[part]
            if self.own_offsets and (law.model.offset or law.model.asymmetric_coulomb):
                error = error - error.mean()
            errors.append(error**2)
        return np.concatenate(errors)

    def excess(self, name: str, best: str) -> float:
        """Return the excess of a model's mean squared error over the lowest one, in standard errors."""
        excess = self.squares[name] - self.squares[best]
        error = math.sqrt(float(covariance_of_sum(excess[:, None])[0, 0])) / len(excess)
        return float(excess.mean()) / error if error > 0.0 else 0.0

    def _mean(self, name: str) -> float:
        return float(self.squares[name].mean())

    def good(self, names: Iterable[str]) -> list[str]:
        """Return the models that are about as good as the best of them, the simplest first."""
        known = [name for name in names if name not in self.undetermined]
        best = min(known, key=self._mean)
        good = [
            name
            for name in known
            # A model whose parameters are at their bounds equals a simpler one up to rounding.
            if self.score(name) <= self.score(best) + _EXACT
            or (
                self.excess(name, best) <= _ERRORS
                and (self.settings.unbounded or not self._mean(best) < _MOST * self._mean(name))
            )
        ]
        return sorted(good, key=lambda name: named_model(name).freedom)

    def best(self, names: Iterable[str]) -> str:
        """Return the simplest of the good models whose test and fit errors are near the lowest.

        In a short recording, chance may hide a relevant difference.
        """
        good = self.good(names)
        if self.settings.unbounded:  # skip fits that are not physical friction laws
            others = sorted((name for name in names if name not in good), key=self.score)
            return next((name for name in (*good, *others) if not negative(self.fit(name).values)), good[0])
        least = min(self.score(name) for name in good)
        exact = {name for name in good if self._mean(name) <= _EXACT**2 * self.size}
        near = [name for name in good if name in exact or self.score(name) <= _NEAR * least]
        residuals = {name: self.fit(name).diagnostics.rms for name in near}
        return next(name for name in near if name in exact or residuals[name] <= _NEAR * min(residuals.values()))

    def fit(self, name: str) -> FrictionFit:
        """Return the fit of a model to all recordings."""
        if name not in self._fits:
            self._fits[name] = fit_friction(self.whole, name, self.settings)
        return self._fits[name]

    def candidates(self, chosen: str, note: str = "") -> tuple[Candidate, ...]:
        """Return all models with the reason of their rank, and a note on the chosen one."""
        good = self.good(self.squares)
        best = min((name for name in self.squares if name not in self.undetermined), key=self._mean)

        def reason(name: str) -> str:
            if name == chosen:
                simplest = ": the simplest model about as good as the best" if len(self.squares) > 1 else ""
                return f"chosen{simplest}{note}"
            if name in self.undetermined:
                return "its presliding distance cannot be determined"
            if name in good and named_model(name).freedom >= named_model(chosen).freedom:
                return "about as good, but not simpler"
            if name in good:
                return "simpler, but with a larger error that chance could explain"
            if self._mean(best) < _MOST * self._mean(name):
                return "the best model explains most of its residual"
            return f"worse by {self.excess(name, best):.1f} standard errors"

        names = self.squares
        return tuple(Candidate(name, named_model(name).freedom, self.score(name), reason(name)) for name in names)
