"""Validated responses by level, optionally merged by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError

Array = NDArray[np.float64]


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
    columns = [_column(name, values) for name, values in (("levels", levels), ("correct", correct), ("total", total))]
    if len({len(column) for column in columns}) != 1:
        counts = ", ".join(str(len(column)) for column in columns)
        raise ConfigurationError(f"levels, correct and total have {counts} rows; give each a value for every level.")
    level, right, count = columns
    for name, bad, what in (
        ("total", (count < 0) | (count != np.floor(count)), "must be whole and at least 0"),
        ("correct", (right < 0) | (right > count) | (right != np.floor(right)), "must be whole, from 0 to the total"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            value = {"total": count, "correct": right}[name][row]
            raise ConfigurationError(f"{name} = {value:g} in row {row + 1} (of {count[row]:g}): {what}.")
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
