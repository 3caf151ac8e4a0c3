"""Fit of psychometric functions: thresholds, slope, lapses, goodness of fit, curve.

The number of responses per level is too small for the chi-squared distribution. The p value is therefore based on a
simulation in which every simulated data set is fitted again (Wichmann and Hill 2001, Percept. Psychophys. 63,
1293-1313).

Tables of log probabilities (`Tables`) are for many fast fits at the same levels.

One fit of 10 000 cells to seven levels takes about 0.2 ms. The grid spans the whole prior region; single sessions are
better fitted with `fit_psychometric`, whose grid adapts to the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.psychometric.estimate import (
    USUAL_PROBABILITY,
    Estimate,
    Kind,
    Responses,
    checked_probability,
    interval_of,
    make_answers,
)
from calibration.psychometric.posterior import (
    LAPSES,
    Guess,
    Posterior,
    Prior,
    RatePrior,
    WidthPrior,
    find_posterior,
    make_box,
)
from calibration.psychometric.shapes import (
    Shape,
    add_from_tables,
    best_log_likelihoods,
    fill_tables,
    make_shape,
    sigmoid,
)
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

        Raises
        ------
        ConfigurationError
            If the proportion is not greater than the guess rate.
        """
        posterior, box, floor = self.posterior, self.posterior.box, self.posterior.prior.floor
        if not floor < proportion < 1.0:
            raise ConfigurationError(
                f"proportion = {proportion!r}: must be greater than what is guessed ({floor:g}) and less than 1."
            )
        positions = posterior.positions_at((proportion - floor) / (1.0 - floor))
        found = posterior.of_plane(positions, probability, kind)
        # outside the tested levels, a bound or an open interval
        low = -math.inf if found.low <= box.flat[0] else found.low
        high = math.inf if found.high >= box.flat[1] else found.high
        found = replace(found, low=low, high=high)
        if found.value > box.highest:
            found = Estimate(box.highest, min(low, box.highest), math.inf, probability, "above")
        elif found.value < box.lowest:
            found = Estimate(box.lowest, -math.inf, max(high, box.lowest), probability, "below")
        return found.transformed(posterior.shape.level)

    def _of_widths(self, values: Array) -> Estimate:
        """Return the estimate of a quantity (w,) that depends on the width."""
        plane = np.broadcast_to(values, self.posterior.plane.shape)
        return self.posterior.of_plane(plane, USUAL_PROBABILITY, "median")

    @cached_property
    def width(self) -> Estimate:
        """Width from F = 5 % to 95 %, in units of the level or of its natural logarithm."""
        return self._of_widths(self.posterior.widths)

    @cached_property
    def slope(self) -> Estimate:
        """Slope dF/du at F = 1/2, per unit of the level or of its natural logarithm."""
        return self._of_widths(self.posterior.shape.steepness / self.posterior.widths)

    @cached_property
    def exponent(self) -> Estimate | None:
        """Exponent b of ``weibull`` and ``dprime``; None for other shapes."""
        shape = self.posterior.shape
        known = shape.name in {"weibull", "dprime"}
        return self._of_widths(shape.exponent_span / self.posterior.widths) if known else None

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
        gathered = self.answers.gathered()
        return float(_deviances(self.posterior, gathered, gathered.correct[None])[0])

    @cached_property
    def deviance_p(self) -> float:
        """Return the p value of the deviance, from 1000 data sets simulated with the fitted function.

        It is (1 + number of larger deviances)/(1 + number of simulations).
        """
        posterior, gathered = self.posterior, self.answers.gathered()
        threshold, width, (lapse, guess, _) = posterior.best
        positions = posterior.shape.position(gathered.levels)
        core = np.array([sigmoid(posterior.shape.code, (u - threshold) / width) for u in positions])
        p = guess + (1.0 - guess - lapse) * core
        drawn = np.random.default_rng(SEED).binomial(gathered.total.astype(int), p, (SIMULATED, len(p)))
        others = _deviances(posterior, gathered, drawn.astype(float))
        return float((1 + np.count_nonzero(others >= self.deviance - 1e-9)) / (1 + SIMULATED))

    def curve(self, levels: ArrayLike | None = None, probability: float = USUAL_PROBABILITY) -> Curve:
        """Return the function with its band, by default over a range slightly wider than the tested levels."""
        if levels is None:
            box = self.posterior.box
            ends = box.lowest - 0.15 * box.extent, box.highest + 0.15 * box.extent
            levels = np.array([self.posterior.shape.level(u) for u in np.linspace(*ends, CURVE_LEVELS)])
        shown = np.atleast_1d(np.asarray(levels, dtype=float))
        below, mean = self.posterior.predictions(self.posterior.shape.position(shown))
        tail, centres = 0.5 * (1.0 - checked_probability(probability)), np.arange(below.shape[1]) + 0.5
        limits = np.array([np.interp((tail, 1.0 - tail), row, centres) for row in below]).T / below.shape[1]
        return Curve(shown, mean, np.minimum(limits[0], mean), np.maximum(limits[1], mean))

    def as_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        shape, names = self.posterior.shape, ("width", "slope", "exponent", "lapse", "guess")
        estimates = {name: getattr(self, name) for name in names}
        return {
            "shape": shape.name,
            "scale": shape.scale,
            "guess_rule": self.posterior.prior.guess,
            "trials": self.answers.trials,
            **{name: one.as_dict() for name, one in estimates.items() if one is not None},
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


# --- repeated fits at the same levels ---------------------------------------------------------------------------------

USUAL_GRID = (81, 31, 4)
"""Numbers of thresholds, widths and lapse rates: 10 044 cells."""


@dataclass(frozen=True)
class Tables:
    """Log probabilities of right and wrong responses at fixed levels for each cell of a grid.

    Attributes
    ----------
    shape, prior
        Function and prior of the parameters.
    levels : (n,) float array
        Levels, in the order of the responses.
    thresholds, widths : float arrays
        Grid in units of u.
    log_prior : (cells,) float array
    log_right, log_wrong : (n, cells) float arrays
    """

    shape: Shape
    prior: Prior
    levels: Array
    thresholds: Array
    widths: Array
    log_prior: Array
    log_right: Array
    log_wrong: Array
    _reached: dict[float, Array] = field(default_factory=dict, init=False, repr=False)
    """Cache of u at which a proportion is reached, for each threshold and width."""

    def mass(self, correct: ArrayLike, total: ArrayLike) -> Array:
        """Return the posterior masses of the cells (thresholds, widths, nuisances).

        Parameters
        ----------
        correct, total : (n,) array-likes
            Number of right responses and of responses at each level; levels with a total of 0 are skipped.
        """
        right = np.asarray(correct, dtype=float)
        wrong = np.asarray(total, dtype=float) - right
        if right.shape != self.levels.shape or wrong.shape != right.shape or (wrong < 0).any() or (right < 0).any():
            raise ConfigurationError(
                f"correct and total: must be {len(self.levels)} numbers each, one a level, correct at most total."
            )
        log_mass = self.log_prior.copy()
        add_from_tables(log_mass, self.log_right, self.log_wrong, right, wrong)
        log_mass -= log_mass.max()
        mass = np.exp(log_mass)
        return np.asarray((mass / mass.sum()).reshape(len(self.thresholds), len(self.widths), -1))

    def threshold(
        self,
        correct: ArrayLike,
        total: ArrayLike,
        proportion: float,
        probability: float = USUAL_PROBABILITY,
        kind: Kind = "median",
    ) -> Estimate:
        """Return the level at which a proportion is reached, as `PsychometricFit.threshold`; never a bound."""
        if proportion not in self._reached:
            share = (proportion - self.prior.floor) / (1.0 - self.prior.floor)
            self._reached[proportion] = self.thresholds[:, None] + self.shape.reach(share) * self.widths
        plane = self.mass(correct, total).sum(axis=2)
        return interval_of(self._reached[proportion], plane, probability, kind).transformed(self.shape.level)


def _log_tables(shape: Shape, levels: Array, thresholds: Array, widths: Array, nuisances: Array) -> tuple[Array, Array]:
    """Return the log probabilities of right and wrong responses at the levels for each cell of a grid."""
    cells = len(thresholds) * len(widths) * len(nuisances)
    right, wrong = np.empty((len(levels), cells)), np.empty((len(levels), cells))
    fill_tables(right, wrong, shape.code, shape.position(levels), thresholds, widths, nuisances)
    return right, wrong


def psychometric_tables(
    levels: ArrayLike,
    *,
    guess: Guess,
    shape: str = "phi",
    scale: str = "linear",
) -> Tables:
    """Return tables for many fits at these levels; parameters and priors as by default in `fit_psychometric`."""
    sigmoid, column = make_shape(shape, scale), np.atleast_1d(np.asarray(levels, dtype=float))
    if not np.isfinite(column).all() or (sigmoid.scale == "log" and (column < 0.0).any()):
        raise ConfigurationError("levels: must be finite numbers, and not negative on a logarithmic scale.")
    box = make_box(sigmoid, sigmoid.position(column), None)
    thresholds = np.linspace(*box.thresholds, USUAL_GRID[0])
    widths = np.exp(np.linspace(*box.log_widths, USUAL_GRID[1]))
    prior = Prior(guess, LAPSES, None)
    nuisances, log_mass = prior.nuisances(USUAL_GRID[2])
    log_prior = (box.log_prior(thresholds, widths)[:, :, None] + log_mass).ravel()
    tables = _log_tables(sigmoid, column, thresholds, widths, nuisances)
    return Tables(sigmoid, prior, column, thresholds, widths, log_prior, *tables)


# --- goodness of fit --------------------------------------------------------------------------------------------------

SIMULATED = 1000
SEED = 20061
"""Number of simulated data sets, and seed of the simulation, which makes p values reproducible."""

_RATES = 6
"""Number of lapse rates in the grid."""

_LEAST = 1e-6
"""Relative density below which thresholds and widths are not tried.

Fits of simulated data are close to the original one.
"""


def _deviances(posterior: Posterior, answers: Responses, correct: Array) -> Array:
    """Return the deviances of several sets of correct responses (sets, levels) at the same levels."""
    nuisances, _ = posterior.prior.nuisances(_RATES)
    tables = _log_tables(posterior.shape, answers.levels, posterior.thresholds, posterior.widths, nuisances)
    likely = posterior.plane > _LEAST * posterior.plane.max()
    cells, wrong = np.repeat(likely.ravel(), len(nuisances)), answers.total - correct
    right_table, wrong_table = (np.ascontiguousarray(one[:, cells]) for one in tables)
    fitted = best_log_likelihoods(right_table, wrong_table, correct, wrong)
    with np.errstate(divide="ignore", invalid="ignore"):
        saturated = np.where(correct > 0, correct * np.log(correct / answers.total), 0.0)
        saturated += np.where(wrong > 0, wrong * np.log(wrong / answers.total), 0.0)
    return np.asarray(np.maximum(2.0 * (saturated.sum(axis=1) - fitted), 0.0))


# --- Spearman-Karber mean ---------------------------------------------------------------------------------------------

_DRAWN, _SEED = 1000, 1931


def spearman_karber(
    levels: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    guess: float = 0.0,
    scale: str = "linear",
    probability: float = USUAL_PROBABILITY,
) -> Estimate:
    """Return the mean of the distribution that the proportions define.

    For a symmetric function, F = 1/2 there. Proportions are corrected for guessing, made monotonic (pooling adjacent
    violators) and, if they do not span 0 to 1, completed by one more level at either end (Miller and Ulrich 2001,
    Percept. Psychophys. 63, 1399-1420). The interval is based on 1000 data sets simulated from the monotonic
    proportions with a fixed seed. Lapses bias the mean upwards.

    Parameters
    ----------
    levels, correct, total
        As in `fit_psychometric`; at least two levels.
    guess : float
        Proportion without a stimulus.
    scale : str
        ``log``: the geometric mean.
    probability : float
        Probability of the interval.

    Raises
    ------
    ConfigurationError
        If the responses are invalid, or at fewer than two levels.
    """
    answers = make_answers(levels, correct, total).gathered()
    if scale == "log":
        answers = Responses(*(one[answers.levels > 0.0] for one in vars(answers).values()))
    if len(answers.levels) < 2:
        raise ConfigurationError(
            "A Spearman-Karber mean needs answers at two levels at least (above 0 on a log scale)."
        )
    at = np.log(answers.levels) if scale == "log" else answers.levels
    rising = _rising(answers.correct / answers.total, answers.total)
    drawn = np.random.default_rng(_SEED).binomial(answers.total.astype(int), rising, (_DRAWN, len(at)))
    means = [_mean(at, _rising(one / answers.total, answers.total), guess) for one in drawn]
    value, tail = _mean(at, rising, guess), 0.5 * (1.0 - checked_probability(probability))
    low, high = np.quantile(means, [tail, 1.0 - tail])
    found = Estimate(value, min(float(low), value), max(float(high), value), probability)
    return found.transformed(math.exp) if scale == "log" else found


def _mean(at: Array, rising: Array, guess: float) -> float:
    shares = np.concatenate(([0.0], np.clip((rising - guess) / (1.0 - guess), 0.0, 1.0), [1.0]))
    at = np.concatenate(([2.0 * at[0] - at[1]], at, [2.0 * at[-1] - at[-2]]))
    return float(np.sum(np.diff(shares) * 0.5 * (at[1:] + at[:-1])))


def _rising(proportions: Array, weights: Array) -> Array:
    """Return the nearest non-decreasing proportions (pool adjacent violators)."""
    pools: list[tuple[float, float, int]] = []
    for share, weight in zip(proportions, weights, strict=True):
        mean, total, count = float(share), float(weight), 1
        while pools and pools[-1][0] > mean:
            before, more, rows = pools.pop()
            mean = (before * more + mean * total) / (more + total)
            total, count = total + more, count + rows
        pools.append((mean, total, count))
    return np.repeat([mean for mean, _, _ in pools], [count for _, _, count in pools])
