"""Priors of a psychometric function, and the resulting grid of parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.estimate import weighted_quantiles
from calibration.psychometric.shapes import Shape
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]
Guess = float | Literal["lapse", "free"]

_DENSER = 1.7
"""Power that makes the cells of a usually small rate narrower near 0."""

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
        if not isinstance(self.lapse, RatePrior):
            lapses, lapse_mass = _fixed(self.lapse)
        else:
            edges = self.lapse.edges(count) if lapses_within is None else np.linspace(*lapses_within, count + 1)
            lapses, lapse_mass = self.lapse.cells(edges)
        guesses, guess_mass = GUESSES.cells(GUESSES.edges(count)) if self.guess == "free" else _fixed(self.floor)
        spreads, spread_mass = _fixed(0.0)
        if self.overdispersed:
            spread_prior = RatePrior(*_OVERDISPERSION, 0.8)
            spreads, spread_mass = spread_prior.cells(spread_prior.edges(count))
        grid = np.stack(np.meshgrid(lapses, guesses, spreads, indexing="ij"), axis=-1).reshape(-1, 3)
        if self.guess == "lapse":
            grid[:, 1] = grid[:, 0]
        mass = lapse_mass[:, None, None] * guess_mass[:, None] * spread_mass
        return grid, np.log(mass.ravel())


def _fixed(value: float) -> tuple[Array, Array]:
    return np.array([float(value)]), np.ones(1)


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


def span_of(values: Array, mass: Array, kept: float = 1e-5) -> tuple[float, float]:
    """Return the range of a marginal distribution without a fraction `kept` at each end, plus two steps."""
    step = 2.0 * float(values[1] - values[0])
    low, high = weighted_quantiles(values, mass, (kept, 1.0 - kept))
    return max(float(values[0]), float(low) - step), min(float(values[-1]), float(high) + step)
