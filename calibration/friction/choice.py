"""Model selection by cross-validation: which friction model a joint needs, judged on what it was not fitted to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import covariance_of_sum
from calibration.fitting.regression import blocks
from calibration.friction.fit import fit_friction, fit_law
from calibration.friction.model import MODELS, FrictionModel, named_model, negative
from calibration.friction.result import FrictionFit
from calibration.friction.samples import Samples, joined
from calibration.friction.settings import FitSettings
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

_APART, _SLOW = 0.5, 0.01
"""Between what is fitted and what is judged, within one recording [s]; speed up to which samples are not
judged, in parts of the top speed."""
_FEWEST, _ERRORS = 2, 2.0
"""Parts that a comparison needs, and standard errors that are taken for chance."""
_EXACT = 1e-9
"""Errors below this part of the friction are those of rounding, which say nothing of a model."""
_DEFAULTS = FitSettings()


@dataclass(frozen=True)
class Choice:
    """The model chosen.

    Attributes
    ----------
    name : str
        Its name in `MODELS`.
    fit : FrictionFit
        To all recordings.
    scores : dict
        By name: root mean square error on what was not fitted, relative to that of the friction; nan where no part
        can be fitted without another.
    """

    name: str
    fit: FrictionFit
    scores: dict[str, float]

    @property
    def model(self) -> FrictionModel:
        """The model."""
        return self.fit.model


def choose_model(
    recordings: Sequence[Samples],
    models: Sequence[str] = tuple(MODELS),
    settings: FitSettings = _DEFAULTS,
    folds: int = 5,
) -> Choice:
    """Return the simplest model that predicts what it was not fitted to about as well as the best.

    Models that come out with a negative level or viscosity are passed over where there are others.

    About as well: its mean squared error exceeds the best one's by no more than two standard errors of that difference
    (Diebold and Mariano 1995, with the standard error of `calibration.fitting.intervals`).

    Parameters
    ----------
    recordings : sequence of Samples
        Of the same joint. Each is predicted from the others; one alone is cut into blocks.
    models : sequence of str
        Names of `MODELS`. Of two with as many parameters the earlier counts as simpler.
    settings : FitSettings
    folds : int
        Blocks of a single recording.

    Raises
    ------
    ConfigurationError
        Where no fit is possible, or too few parts show motion in both directions to compare several models.
    """
    if not recordings or not models:
        raise ConfigurationError("a choice needs at least one recording and one model")
    whole = joined(recordings)
    errors: dict[str, list[Array]] = {name: [] for name in models}
    sizes = []
    for fitted, judged, part in _parts(recordings, folds):
        if not (len(part) and fitted.shows_law):
            continue
        sizes.append(judged.friction[part] ** 2)
        # noise on accelerations would favour fits whose inertia it has made too small
        quiet = judged if judged.instrument is None else replace(judged, acceleration=judged.instrument)
        for name in models:
            errors[name].append(fit_law(fitted, name, settings).error(quiet)[part] ** 2)
    if len(models) > 1 and len(sizes) < _FEWEST:
        raise ConfigurationError("too little motion in both directions to choose a model by cross-validation: name one")
    if not sizes:
        return Choice(models[0], fit_friction(whole, models[0], settings), {models[0]: math.nan})
    squares = {name: np.concatenate(parts) for name, parts in errors.items()}
    size = float(np.mean(np.concatenate(sizes)))
    scores = {name: math.sqrt(float(square.mean()) / size) for name, square in squares.items()}
    good = _good(squares, _EXACT**2 * size)
    others = sorted((name for name in models if name not in good), key=scores.__getitem__)
    fits = ((name, fit_friction(whole, name, settings)) for name in (*good, *others))
    first = name, fit = next(fits)
    if negative(fit.values):  # that is no friction law: the next that is one
        name, fit = next((one for one in fits if not negative(one[1].values)), first)
    return Choice(name, fit, scores)


def _good(squares: dict[str, Array], rounding: float) -> list[str]:
    """Return the models whose squared errors exceed those of the best by what may be chance, the simplest first."""
    best = squares[min(squares, key=lambda name: float(squares[name].mean()))]

    def by_chance(square: Array) -> bool:
        excess = square - best
        error = math.sqrt(float(covariance_of_sum(excess[:, None])[0, 0])) / len(excess)
        return float(excess.mean()) <= _ERRORS * error

    good = [name for name, square in squares.items() if by_chance(square) or float(square.mean()) <= rounding]
    return sorted(good, key=lambda name: named_model(name).freedom)


def _parts(recordings: Sequence[Samples], folds: int) -> Iterator[tuple[Samples, Samples, NDArray[np.intp]]]:
    """Yield what to fit to, a recording to judge on, and which samples of it."""
    if len(recordings) == 1:
        (only,) = recordings
        moving = _moving(only)
        gap = round(_APART * (len(only.time) - 1) / float(only.time[-1] - only.time[0]))
        for fitted, judged in blocks(len(only.time), folds, gap):
            yield only.part(fitted), only, np.intersect1d(judged, moving)
        return
    for left_out, one in enumerate(recordings):
        others = [other for number, other in enumerate(recordings) if number != left_out]
        yield joined(others), one, _moving(one)


def _moving(recording: Samples) -> NDArray[np.intp]:
    return np.flatnonzero(recording.faster_than(_SLOW * float(np.abs(recording.velocity).max())))
