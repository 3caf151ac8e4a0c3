"""Priors of a psychometric function, and its posterior on a grid.

A coarse grid locates the relevant region, and a fine grid in that region gives the posterior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.estimate import Estimate, Kind, Responses, interval_of, weighted_quantiles
from calibration.psychometric.shapes import Shape, add_log_likelihood, predicted
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]
Guess = float | Literal["lapse", "free"]

_DENSER = 1.7
"""Power that makes the cells of a usually small rate narrower near 0."""

_TAIL, _BINS = 1e-5, 2000
"""Negligible mass at each end of a marginal distribution, and number of bins of a predicted probability."""

_OVERDISPERSION = (1.0, 10.0)
"""Beta prior of the overdispersion, as in psignifit (Schuett et al. 2016)."""


@dataclass(frozen=True)
class RatePrior:
    """Beta(a, b) prior of a small rate, truncated at a limit: of lapses, or of free guesses.

    Attributes
    ----------
    a, b : float
        Parameters of the beta distribution.
    limit : float
        Largest value considered.
    """

    a: float
    b: float
    limit: float = 1.0

    def __post_init__(self) -> None:
        if not (self.a > 0.0 and self.b > 0.0 and 0.0 < self.limit <= 1.0):
            raise ConfigurationError(
                f"Prior Beta({self.a}, {self.b}) up to {self.limit}: a and b must be greater than 0, the limit too and "
                "at most 1."
            )

    def edges(self, count: int) -> Array:
        """Return the ends of `count` cells up to the limit (count + 1,)."""
        return np.asarray(self.limit * np.linspace(0.0, 1.0, count + 1) ** _DENSER)

    def cells(self, edges: Array) -> tuple[Array, Array]:
        """Return the means of the cells between `edges` and their masses, with sum 1."""
        from scipy.special import betainc

        below, first = betainc(self.a, self.b, edges), betainc(self.a + 1.0, self.b, edges)
        mass = np.maximum(np.diff(below), 1e-300)
        means = self.a / (self.a + self.b) * np.diff(first) / mass
        return np.clip(means, edges[:-1], edges[1:]), mass / mass.sum()


@dataclass(frozen=True)
class WidthPrior:
    """Log-normal prior of the width.

    Attributes
    ----------
    median : float
        Median in units of u: the level, or its logarithm.
    spread : float
        Standard deviation of the logarithm of the width.
    """

    median: float
    spread: float

    def __post_init__(self) -> None:
        if not (self.median > 0.0 and self.spread > 0.0):
            raise ConfigurationError("A prior of the width needs a median and a spread greater than 0.")


LAPSES = RatePrior(1.0, 25.0, 0.3)
"""Default prior of the lapse rate: mean 4 %, with the largest density at 0."""

GUESSES = RatePrior(1.0, 4.0, 0.6)
"""Prior of the rate of "yes" without a stimulus, for free guesses."""

_LOG_WIDTH = WidthPrior(2.95, 0.6)
"""Default prior on a logarithmic scale.

Exponents of ``dprime`` are about 1.15, and 0.4 to 3.2 within 1.7 spreads. With a median exponent of 1.3, intervals from
short staircases of an observer with constant noise (exponent 1) have a coverage of only 93 %; with 1, thresholds are 4
% too low.
"""

_LINEAR_WIDTH = WidthPrior(1.0, 0.9)
"""Default prior on a linear scale, in ranges of the levels."""

_REACH = 2.6
"""Half range of the grid of log widths, in spreads."""

_FLAT, _WHOLE = 0.5, 1.0
"""Distances beyond the levels at which the prior of the threshold begins to fall and reaches 0.

The unit is the range of the levels. The prior assumes that levels are not all chosen far off the threshold (as in
psignifit).
"""

_LEAST_RANGE = math.log(2.0)
"""Minimum range of the levels on a logarithmic scale."""


@dataclass(frozen=True)
class Prior:
    """Priors of all parameters.

    Attributes
    ----------
    guess : float, ``lapse`` or ``free``
        Proportion correct without a stimulus (1/2 in two intervals); ``lapse``: equal to the lapse rate (both ends of a
        function of signed levels); ``free``: estimated (yes or no).
    lapse : RatePrior or float
        Prior of the lapse rate, or its fixed value.
    width : WidthPrior or None
        None: derived from the scale and the range of the levels.
    overdispersed : bool
        Whether proportions may vary between rows more than binomial ones.
    """

    guess: Guess
    lapse: RatePrior | float = LAPSES
    width: WidthPrior | None = None
    overdispersed: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.guess, str):
            if self.guess not in {"lapse", "free"}:
                raise ConfigurationError(f'guess = {self.guess!r}: must be a number, "lapse" or "free".')
        elif not 0.0 <= self.guess < 1.0:
            raise ConfigurationError(f"guess = {self.guess!r}: must be at least 0 and less than 1 (2 intervals: 0.5).")
        if not isinstance(self.lapse, RatePrior) and not 0.0 <= self.lapse < 0.5:
            raise ConfigurationError(f"lapse_prior = {self.lapse!r}: a fixed lapse rate must be from 0 to below 0.5.")

    @property
    def floor(self) -> float:
        """Known guess rate, which is subtracted from a given proportion; 0 if not known in advance."""
        return 0.0 if isinstance(self.guess, str) else float(self.guess)

    def nuisances(self, count: int, lapses_within: tuple[float, float] | None = None) -> tuple[Array, Array]:
        """Return combinations of lapse, guess and overdispersion (k, 3), and their log masses (k,).

        Each rate has `count` cells; the cells of the lapse rate can be limited to an interval.
        """

        def cells(rate: RatePrior | float, within: tuple[float, float] | None = None) -> tuple[Array, Array]:
            if not isinstance(rate, RatePrior):
                return np.array([float(rate)]), np.ones(1)
            return rate.cells(rate.edges(count) if within is None else np.linspace(*within, count + 1))

        lapses, lapse_mass = cells(self.lapse, lapses_within)
        guesses, guess_mass = cells(GUESSES if self.guess == "free" else self.floor)
        spreads, spread_mass = cells(RatePrior(*_OVERDISPERSION, 0.8) if self.overdispersed else 0.0)
        grid = np.stack(np.meshgrid(lapses, guesses, spreads, indexing="ij"), axis=-1).reshape(-1, 3)
        if self.guess == "lapse":
            grid[:, 1] = grid[:, 0]
        mass = lapse_mass[:, None, None] * guess_mass[:, None] * spread_mass
        return grid, np.log(mass.ravel())


@dataclass(frozen=True)
class Box:
    """Region of thresholds and widths that the prior permits.

    Attributes
    ----------
    lowest, highest : float
        Range of the tested levels in units of u, without levels of 0 on a logarithmic scale.
    extent : float
        Length of the range, or a substitute if it is too small.
    width : WidthPrior
        Prior of the width in units of u.
    """

    lowest: float
    highest: float
    extent: float
    width: WidthPrior

    @property
    def thresholds(self) -> tuple[float, float]:
        """Ends of the grid of thresholds, in units of u."""
        return self.lowest - _WHOLE * self.extent, self.highest + _WHOLE * self.extent

    @property
    def flat(self) -> tuple[float, float]:
        """Range of u in which the prior of the threshold is flat; beyond it the prior limits the threshold."""
        return self.lowest - _FLAT * self.extent, self.highest + _FLAT * self.extent

    @property
    def log_widths(self) -> tuple[float, float]:
        """Ends of the grid of log widths."""
        centre, reach = math.log(self.width.median), _REACH * self.width.spread
        return centre - reach, centre + reach

    def log_prior(self, thresholds: Array, widths: Array) -> Array:
        """Return the log prior density (thresholds, widths) of threshold and log width."""
        outside = np.maximum(self.lowest - thresholds, thresholds - self.highest) / self.extent
        fall = np.clip((outside - _FLAT) / (_WHOLE - _FLAT), 0.0, 1.0)
        soft = np.log(np.maximum(0.5 + 0.5 * np.cos(np.pi * fall), 1e-6))
        steps = (np.log(widths) - math.log(self.width.median)) / self.width.spread
        return np.asarray(soft[:, None] - 0.5 * steps**2)


def make_box(shape: Shape, positions: Array, width: WidthPrior | None) -> Box:
    """Return the region for levels at `positions` (u)."""
    tested = positions[np.isfinite(positions)]
    if len(tested) == 0:
        raise ConfigurationError("All levels are 0; a fit needs at least one greater than 0.")
    lowest, highest = float(tested.min()), float(tested.max())
    extent = highest - lowest
    if shape.scale == "log":
        extent = max(extent, _LEAST_RANGE)
        return Box(lowest, highest, extent, width or _LOG_WIDTH)
    if extent == 0.0:
        extent = abs(lowest) or 1.0
    return Box(lowest, highest, extent, width or WidthPrior(_LINEAR_WIDTH.median * extent, _LINEAR_WIDTH.spread))


def span_of(values: Array, mass: Array) -> tuple[float, float]:
    """Return the range of a marginal distribution without the fraction `_TAIL` at each end, plus two steps."""
    step = 2.0 * float(values[1] - values[0])
    low, high = weighted_quantiles(values, mass, (_TAIL, 1.0 - _TAIL))
    return max(float(values[0]), float(low) - step), min(float(values[-1]), float(high) + step)


# --- posterior --------------------------------------------------------------------------------------------------------

COARSE = (41, 21, 8)
"""Numbers of thresholds, widths and rates of the coarse grid, which only locates the region."""

FINE = (61, 31, 9)
"""Numbers of grid points of the reported posterior.

Steps are a tenth of the interval, with interpolation between them.
"""

_PRESSING = 0.05
"""Relative marginal density at the end of a grid above which the grid limits the posterior.

The density of the slope alone, whose prior is normal, is below this value.
"""

_NEGLIGIBLE = 1e-5
_SMALL = 0.4
"""The grid is recomputed in a smaller region if the posterior fills less than this fraction of it."""


@dataclass(frozen=True)
class Posterior:
    """Posterior masses on a grid of parameters.

    Attributes
    ----------
    shape, prior, box
        Function, prior, and region of the parameters.
    thresholds, widths : (m,) and (w,) float arrays
        Grid in units of u: levels or logarithms of levels.
    nuisances : (k, 3) float array
        Lapse rate, guess rate and overdispersion.
    mass : (m, w, k) float array
        Masses with sum 1.
    """

    shape: Shape
    prior: Prior
    box: Box
    thresholds: Array
    widths: Array
    nuisances: Array
    mass: Array

    @cached_property
    def plane(self) -> Array:
        """Marginal masses of thresholds and widths (m, w)."""
        return np.asarray(self.mass.sum(axis=2))

    @cached_property
    def best(self) -> tuple[float, float, Array]:
        """Threshold, width and nuisances (3,) of the cell with the largest mass."""
        i, j, k = np.unravel_index(int(np.argmax(self.mass)), self.mass.shape)
        return float(self.thresholds[i]), float(self.widths[j]), self.nuisances[k]

    def of_plane(self, values: Array, probability: float, kind: Kind) -> Estimate:
        """Return the estimate of a quantity (m, w) that depends on threshold and width."""
        found = interval_of(values, self.plane, probability, "median" if kind == "map" else kind)
        if kind != "map":
            return found
        value = float(values.ravel()[int(np.argmax(self.mass.max(axis=2)))])
        return Estimate(value, min(found.low, value), max(found.high, value), probability)

    def of_rate(self, column: int, probability: float, kind: Kind) -> Estimate:
        """Return the estimate of the lapse rate (0), guess rate (1) or overdispersion (2)."""
        return interval_of(self.nuisances[:, column], self.mass.sum(axis=(0, 1)), probability, kind)

    def positions_at(self, share: float) -> Array:
        """Return u at which F equals `share`, for each threshold and width (m, w)."""
        return np.asarray(self.thresholds[:, None] + self.shape.reach(share) * self.widths)

    def predictions(self, positions: Array) -> tuple[Array, Array]:
        """Return the cumulative posterior distribution of P at the positions (n, `_BINS`) and its mean (n,)."""
        histogram, mean = np.zeros((len(positions), _BINS)), np.zeros(len(positions))
        keep = self.mass.sum(axis=2) > 1e-7  # negligible cells do not affect the plotted lines
        rows, columns = np.flatnonzero(keep.any(axis=1)), np.flatnonzero(keep.any(axis=0))
        mass = self.mass[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        predicted(
            histogram,
            mean,
            self.shape.code,
            positions,
            self.thresholds[rows[0] : rows[-1] + 1],
            self.widths[columns[0] : columns[-1] + 1],
            self.nuisances,
            mass / mass.sum(),
        )
        return np.cumsum(histogram, axis=1), mean


def find_posterior(shape: Shape, answers: Responses, prior: Prior) -> tuple[Posterior, list[str]]:
    """Return the posterior, and warnings about parameters at the end of their ranges."""
    positions = shape.position(answers.levels)
    box = make_box(shape, positions, prior.width)
    lapses_within: tuple[float, float] | None = None  # the whole range at first

    def on_grid(region: tuple[float, float, float, float], counts: tuple[int, int, int]) -> Posterior:
        thresholds = np.linspace(region[0], region[1], counts[0])
        widths = np.exp(np.linspace(region[2], region[3], counts[1]))
        nuisances, log_mass = prior.nuisances(counts[2], lapses_within)
        total = np.ascontiguousarray(box.log_prior(thresholds, widths)[:, :, None] + log_mass)
        add_log_likelihood(total, shape.code, positions, answers.correct, answers.wrong, thresholds, widths, nuisances)
        mass = np.exp(total - total.max())
        return Posterior(shape, prior, box, thresholds, widths, nuisances, mass / mass.sum())

    coarse = on_grid((*box.thresholds, *box.log_widths), COARSE)
    if isinstance(prior.lapse, RatePrior):  # the range of lapse rates with nearly all of a posterior
        edges = prior.lapse.edges(COARSE[2])
        cells = coarse.mass.sum(axis=(0, 1)).reshape(COARSE[2], -1).sum(axis=1)
        kept = np.flatnonzero(cells > _NEGLIGIBLE)
        lapses_within = float(edges[max(kept[0] - 1, 0)]), float(edges[min(kept[-1] + 2, COARSE[2])])
    fine = on_grid(_region(coarse), FINE)
    region = _region(fine)
    grids = fine.thresholds, np.log(fine.widths)
    if any(region[2 * k + 1] - region[2 * k] < _SMALL * np.ptp(grid) for k, grid in enumerate(grids)):
        fine = on_grid(region, FINE)
    return fine, _pressing(coarse)


def _region(found: Posterior) -> tuple[float, float, float, float]:
    """Return the ranges of threshold and log width that contain nearly all of a posterior."""
    by_width = span_of(np.log(found.widths), found.plane.sum(axis=0))
    return (*span_of(found.thresholds, found.plane.sum(axis=1)), *by_width)


def _pressing(coarse: Posterior) -> list[str]:
    notes, (lowest, highest) = [], coarse.box.flat
    marginal = coarse.plane.sum(axis=1) / coarse.plane.sum(axis=1).max()
    for word, beyond in (("below", coarse.thresholds < lowest), ("above", coarse.thresholds > highest)):
        if marginal[beyond].max() > _PRESSING:
            notes.append(f"The threshold may lie far {word} the tested levels: the data do not limit it there.")
    slopes = coarse.plane.sum(axis=0) / coarse.plane.sum(axis=0).max()
    ends = [word for word, share in (("steeper", slopes[0]), ("flatter", slopes[-1])) if share > _PRESSING]
    if ends:
        which = " and ".join(ends)
        notes.append(f"The function may be {which} than considered: its prior limits the slope, not the data.")
    rates = coarse.mass.sum(axis=(0, 1))
    if len(coarse.nuisances) > 1 and coarse.nuisances[int(np.argmax(rates)), 0] == coarse.nuisances[:, 0].max():
        notes.append("The lapses may be more frequent than considered: look at the catch trials.")
    return notes
