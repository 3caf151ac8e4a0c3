"""Estimates with credible intervals, and validated responses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError

Array = NDArray[np.float64]
Bound = Literal["", "above", "below"]
Kind = Literal["median", "mean", "map"]

USUAL_PROBABILITY = 0.95
"""Default probability of intervals."""


@dataclass(frozen=True)
class Estimate:
    """Estimate with its interval; ``low <= value <= high`` always holds.

    Attributes
    ----------
    value : float
        Estimate; the bound itself if `bound` is not empty.
    low, high : float
        Ends of the interval; infinite if the data do not limit it on that side.
    probability : float
        Probability of the interval.
    bound : str
        ``above`` or ``below`` if the data only show that the quantity is above or below `value`; otherwise empty.
    """

    value: float
    low: float
    high: float
    probability: float = USUAL_PROBABILITY
    bound: Bound = ""

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate multiplied by `factor`, which must be greater than 0."""
        return self.transformed(lambda value: value * factor)

    def transformed(self, function: Any) -> Estimate:
        """Return an increasing function of the estimate, such as ``math.exp``."""
        return replace(self, value=function(self.value), low=function(self.low), high=function(self.high))

    def over(self, divisor: Estimate) -> Estimate:
        """Return the ratio to an independent positive estimate, with both intervals propagated.

        The distances of the ends on a logarithmic scale are added in quadrature (first-order propagation of errors).
        """
        value = self.value / divisor.value
        up = math.hypot(_log_ratio(self.high, self.value), _log_ratio(divisor.value, divisor.low))
        down = math.hypot(_log_ratio(self.value, self.low), _log_ratio(divisor.high, divisor.value))
        high = math.inf if math.isinf(up) else value * math.exp(up)
        return replace(self, value=value, low=value * math.exp(-down), high=high)

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate for JSON; infinite ends become None."""
        numbers = {name: getattr(self, name) for name in ("value", "low", "high")}
        finite = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
        return {**finite, "probability": self.probability, "bound": self.bound}

    def text(self, form: str = ".3g", scale: float = 1.0) -> str:
        """Format the estimate as ``0.12 (0.09 to 0.16)``; a bound as ``more than 0.4 (0.3 to inf)``."""
        value, low, high = (format(number * scale, form) for number in (self.value, self.low, self.high))
        prefix = {"": "", "above": "more than ", "below": "less than "}[self.bound]
        return f"{prefix}{value} ({low} to {high})"


def _log_ratio(larger: float, smaller: float) -> float:
    return math.inf if smaller <= 0.0 or math.isinf(larger) else math.log(larger / smaller)


def checked_probability(value: float, name: str = "probability") -> float:
    """Validate a probability strictly between 0 and 1 and return it.

    Raises
    ------
    ConfigurationError
        If it is out of range.
    """
    if not 0.0 < value < 1.0:
        raise ConfigurationError(f"{name} = {value!r}: must be greater than 0 and less than 1, such as 0.75.")
    return float(value)


def weighted_quantiles(values: Array, mass: Array, probabilities: Iterable[float]) -> Array:
    """Return interpolated quantiles of weighted values; equal values are merged.

    The mass of each value is spread evenly about it, so that half of it is below the value.
    """
    distinct, place = np.unique(values.ravel(), return_inverse=True)
    masses = np.bincount(place.ravel(), mass.ravel())
    below = (np.cumsum(masses) - 0.5 * masses) / masses.sum()
    return np.asarray(np.interp(list(probabilities), below, distinct))


def interval_of(values: Array, mass: Array, probability: float, kind: Kind = "median") -> Estimate:
    """Return the estimate of a weighted quantity with an equal-tailed interval that includes it.

    Parameters
    ----------
    values, mass : arrays
        Quantity in each cell of a posterior, and mass of the cell.
    probability : float
        Probability of the interval.
    kind : str
        ``median``, ``mean``, or ``map``: the value in the cell of largest mass.
    """
    tail = 0.5 * (1.0 - checked_probability(probability))
    low, middle, high = map(float, weighted_quantiles(values, mass, (tail, 0.5, 1.0 - tail)))
    value = {
        "median": lambda: middle,
        "mean": lambda: float(np.sum(values * mass) / np.sum(mass)),
        "map": lambda: float(values.ravel()[int(np.argmax(mass))]),
    }[kind]()
    return Estimate(value, min(low, value), max(high, value), probability)


def proportion(count: int, total: int, probability: float = USUAL_PROBABILITY) -> Estimate:
    """Return a proportion with the interval of Jeffreys' prior, Beta(1/2, 1/2).

    Brown, Cai and DasGupta 2001. As recommended there, the interval includes 0 for a count of 0, and 1 for a count of
    `total`.
    """
    from scipy.special import betaincinv

    if total <= 0 or not 0 <= count <= total:
        raise ConfigurationError(f"{count} of {total}: a proportion needs a count from 0 to a total of at least 1.")
    tail = 0.5 * (1.0 - checked_probability(probability))
    a, b = count + 0.5, total - count + 0.5
    low = 0.0 if count == 0 else float(betaincinv(a, b, tail))
    high = 1.0 if count == total else float(betaincinv(a, b, 1.0 - tail))
    return Estimate(count / total, low, high, probability)


# --- responses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Responses:
    """Correct and total responses by level, in increasing order of level.

    Attributes
    ----------
    levels, correct, total : (n,) float arrays
        Level, number of correct responses, number of responses (integers, at least 1).
    """

    levels: Array
    correct: Array
    total: Array

    @property
    def wrong(self) -> Array:
        """Number of wrong responses (n,)."""
        return self.total - self.correct

    @property
    def trials(self) -> int:
        """Total number of trials."""
        return int(self.total.sum())

    def gathered(self) -> Responses:
        """Merge rows with the same level."""
        levels, place = np.unique(self.levels, return_inverse=True)
        correct, total = (np.bincount(place, one).astype(float) for one in (self.correct, self.total))
        return Responses(levels, correct, total)


def make_answers(levels: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Responses:
    """Validate responses and sort them by level; rows without trials are dropped.

    Raises
    ------
    ConfigurationError
        If there are no trials, or a row is invalid.
    """
    level, right, count = (
        _column(name, values) for name, values in (("levels", levels), ("correct", correct), ("total", total))
    )
    if not len(level) == len(right) == len(count):
        counts = f"{len(level)}, {len(right)}, {len(count)}"
        raise ConfigurationError(f"levels, correct and total have {counts} rows; give each a value for every level.")
    for name, values, most, rule in (
        ("total", count, np.inf, "must be whole and at least 0"),
        ("correct", right, count, "must be whole, from 0 to the total"),
    ):
        bad = (values < 0) | (values > most) | (values != np.floor(values))
        if bad.any():
            row = int(np.argmax(bad))
            raise ConfigurationError(f"{name} = {values[row]:g} in row {row + 1} (of {count[row]:g}): {rule}.")
    kept = count > 0
    if not kept.any():
        raise ConfigurationError("There are no trials to fit; give at least one level with a total of at least 1.")
    order = np.argsort(level[kept], kind="stable")
    return Responses(level[kept][order], right[kept][order], count[kept][order])


def _column(name: str, values: ArrayLike) -> Array:
    try:
        column = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name}: holds something that is no number ({error}).") from error
    if column.ndim != 1:
        raise ConfigurationError(f"{name}: must be a list of numbers, and has {column.ndim} dimensions.")
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise ConfigurationError(
            f"{name} = {column[row]} in row {row + 1}: must be a finite number; leave the row out."
        )
    return column


def positive(name: str, values: Sequence[float] | Array) -> Array:
    """Return numbers after validating that each is greater than 0.

    Raises
    ------
    ConfigurationError
        If a number is not greater than 0.
    """
    column = _column(name, values)
    if (column <= 0.0).any():
        row = int(np.argmax(column <= 0.0))
        raise ConfigurationError(
            f"{name} = {column[row]:g} in row {row + 1}: must be greater than 0 to have a logarithm."
        )
    return column
