"""Intervals of rows in which a condition holds, such as sticking, and means over them. No window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""A float64 array of shape (n,)."""
Indices = NDArray[np.intp]
"""An array of indices of shape (n,)."""


class Runs(NamedTuple):
    """Intervals of rows: the index of the first row of each, and the index after its last row."""

    start: Indices
    stop: Indices


def runs(flags: Floats) -> Runs:
    """Return the intervals in which `flags` is not zero."""
    edges = np.diff(np.concatenate(([0], (flags != 0).astype(np.int8), [0])))
    return Runs(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1))


def means(values: Floats, stretches: Runs) -> Floats:
    """Return the mean of `values` over each interval."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    result: Floats = (sums[stretches.stop] - sums[stretches.start]) / np.maximum(stretches.stop - stretches.start, 1)
    return result
