"""Fit of psychometric functions: thresholds, slope, lapses, goodness of fit, curve."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.psychometric.data import Responses, make_answers
from calibration.psychometric.deviance import deviance_of, deviance_p_of
from calibration.psychometric.estimate import USUAL_PROBABILITY, Estimate, Kind, checked_probability
from calibration.psychometric.posterior import Posterior, find_posterior
from calibration.psychometric.priors import LAPSES, Guess, Prior, RatePrior, WidthPrior
from calibration.psychometric.shapes import make_shape
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

CURVE_LEVELS = 121


@dataclass(frozen=True)
class Curve:
    """Fitted function with its credible band.

    Attributes
    ----------
    levels, middle, low, high : (n,) float arrays
        Level, posterior mean of the proportion, and ends of its equal-tailed interval.
    """

    levels: Array
    middle: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class PsychometricFit:
    """Fitted psychometric function.

    Estimates are posterior medians unless another kind is requested: ``mean``, or ``map``, the largest joint density.
    On a logarithmic scale the mean is the mean of the logarithm.

    Attributes
    ----------
    answers : Responses
        Fitted responses.
    posterior : Posterior
        Posterior on its grid.
    notes : tuple of str
        Warnings about parameters that the data do not limit, in sentences.
    """

    answers: Responses
    posterior: Posterior
    notes: tuple[str, ...]

    def threshold(self, proportion: float, probability: float = USUAL_PROBABILITY, kind: Kind = "median") -> Estimate:
        """Return the level at which an observer without lapses reaches a given proportion.

        It is the level where guess + (1 - guess) F equals `proportion`, or where F does if the guess rate is not known
        in advance (``lapse``, ``free``). Outside the tested levels the result is a bound.

        Parameters
        ----------
        proportion : float
            Proportion such as 0.75, greater than the guess rate.
        probability : float
            Probability of the interval.
        kind : str
            ``median``, ``mean`` or ``map``.
        """
        positions = self.posterior.positions_at(self.share(proportion))
        found = self.posterior.of_plane(positions, probability, kind)
        return self._bounded(found).transformed(self.posterior.shape.level)

    def share(self, proportion: float) -> float:
        """Return F at a given proportion.

        Raises
        ------
        ConfigurationError
            If the proportion is not greater than the guess rate.
        """
        floor = self.posterior.prior.floor
        if not floor < proportion < 1.0:
            raise ConfigurationError(
                f"proportion = {proportion!r}: must be greater than what is guessed ({floor:g}) and less than 1."
            )
        return (proportion - floor) / (1.0 - floor)

    def _bounded(self, found: Estimate) -> Estimate:
        """Return an estimate of u, converted to a bound or an open interval outside the tested levels."""
        box = self.posterior.box
        low = -math.inf if found.low <= box.flat[0] else found.low
        high = math.inf if found.high >= box.flat[1] else found.high
        if found.value > box.highest:
            return replace(found, value=box.highest, low=min(low, box.highest), high=math.inf, bound="above")
        if found.value < box.lowest:
            return replace(found, value=box.lowest, low=-math.inf, high=max(high, box.lowest), bound="below")
        return replace(found, low=low, high=high)

    @cached_property
    def width(self) -> Estimate:
        """Width from F = 5 % to 95 %, in units of the level or of its natural logarithm."""
        values = np.broadcast_to(self.posterior.widths, self.posterior.plane.shape)
        return self.posterior.of_plane(values, USUAL_PROBABILITY, "median")

    @cached_property
    def slope(self) -> Estimate:
        """Slope dF/du at F = 1/2, per unit of the level or of its natural logarithm."""
        steep = self.posterior.shape.steepness
        values = np.broadcast_to(steep / self.posterior.widths, self.posterior.plane.shape)
        return self.posterior.of_plane(values, USUAL_PROBABILITY, "median")

    @cached_property
    def exponent(self) -> Estimate | None:
        """Exponent b of ``weibull`` and ``dprime``; None for other shapes."""
        shape = self.posterior.shape
        if shape.name not in {"weibull", "dprime"}:
            return None
        values = np.broadcast_to(shape.exponent_span / self.posterior.widths, self.posterior.plane.shape)
        return self.posterior.of_plane(values, USUAL_PROBABILITY, "median")

    @cached_property
    def lapse(self) -> Estimate:
        """Lapse rate, the proportion of responses independent of the stimulus: 1 minus the upper asymptote."""
        return self.posterior.of_rate(0, USUAL_PROBABILITY, "mean")

    @cached_property
    def guess(self) -> Estimate:
        """Guess rate, the proportion without a stimulus: the lower asymptote."""
        return self.posterior.of_rate(1, USUAL_PROBABILITY, "mean")

    @cached_property
    def overdispersion(self) -> Estimate:
        """Overdispersion eta: 0 for binomial responses, towards 1 if proportions vary freely between rows."""
        return self.posterior.of_rate(2, USUAL_PROBABILITY, "mean")

    @cached_property
    def deviance(self) -> float:
        """Twice the log likelihood ratio of the saturated model to the best function."""
        return deviance_of(self.posterior, self.answers)

    @cached_property
    def deviance_p(self) -> float:
        """Return the p value of the deviance, from 1000 data sets simulated with the fitted function."""
        return deviance_p_of(self.posterior, self.answers)

    def curve(self, levels: ArrayLike | None = None, probability: float = USUAL_PROBABILITY) -> Curve:
        """Return the function with its band, by default over a range slightly wider than the tested levels."""
        shown = self._usual_levels() if levels is None else np.atleast_1d(np.asarray(levels, dtype=float))
        below, mean = self.posterior.predictions(self.posterior.shape.position(shown))
        tail, centres = 0.5 * (1.0 - checked_probability(probability)), np.arange(below.shape[1]) + 0.5
        ends = [
            np.array([np.interp(share, row, centres) for row in below]) / below.shape[1] for share in (tail, 1.0 - tail)
        ]
        return Curve(shown, mean, np.minimum(ends[0], mean), np.maximum(ends[1], mean))

    def _usual_levels(self) -> Array:
        box = self.posterior.box
        ends = box.lowest - 0.15 * box.extent, box.highest + 0.15 * box.extent
        return np.array([self.posterior.shape.level(u) for u in np.linspace(*ends, CURVE_LEVELS)])

    def as_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        shape, prior = self.posterior.shape, self.posterior.prior
        exponent = {} if self.exponent is None else {"exponent": self.exponent.as_dict()}
        return {
            "shape": shape.name,
            "scale": shape.scale,
            "guess_rule": prior.guess,
            "trials": self.answers.trials,
            "width": self.width.as_dict(),
            "slope": self.slope.as_dict(),
            **exponent,
            "lapse": self.lapse.as_dict(),
            "guess": self.guess.as_dict(),
            "deviance": self.deviance,
            "deviance_p": self.deviance_p,
            "notes": list(self.notes),
        }


def fit_psychometric(
    levels: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    guess: Guess,
    shape: str = "phi",
    scale: str = "linear",
    lapse_prior: RatePrior | float = LAPSES,
    width_prior: WidthPrior | None = None,
    overdispersion: bool = False,
) -> PsychometricFit:
    """Fit a psychometric function to numbers of correct responses by its posterior on a grid.

    Parameters
    ----------
    levels, correct, total : (n,) array-likes
        Level, number of correct responses (or "yes", or "the comparison is more"), number of responses. A level may
        occur in several rows; with `overdispersion` each row is a block. On a logarithmic scale levels must not be
        negative; 0 means no stimulus.
    guess : float, ``lapse`` or ``free``
        Proportion without a stimulus: 1/2 in two intervals. ``lapse``: the lower asymptote equals the lapse rate
        (signed levels). ``free``: it is estimated (yes or no).
    shape : str
        ``phi``, ``logistic``, ``weibull`` or ``dprime`` (`calibration.psychometric.shapes`).
    scale : str
        ``linear`` or ``log``; ``weibull`` and ``dprime`` are always sigmoids of the logarithm.
    lapse_prior : RatePrior or float
        Prior of the lapse rate, or its fixed value.
    width_prior : WidthPrior, optional
        Prior of the width; by default derived from the scale and the range of the levels.
    overdispersion : bool
        Whether proportions may vary between rows (beta-binomial).

    Raises
    ------
    ConfigurationError
        If the responses are invalid, or an option is unknown.
    """
    sigmoid = make_shape(shape, scale)
    answers = make_answers(levels, correct, total)
    if sigmoid.scale == "log" and answers.levels[0] < 0.0:
        raise ConfigurationError(
            f'levels = {answers.levels[0]:g}: has no logarithm; use shape "phi" or "logistic" with scale "linear".'
        )
    if not overdispersion:
        answers = answers.gathered()
    posterior, notes = find_posterior(sigmoid, answers, Prior(guess, lapse_prior, width_prior, overdispersion))
    return PsychometricFit(answers, posterior, tuple(notes))
