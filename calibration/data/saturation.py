"""Limits of the range of a sensor, found in its measurements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHARE, _RUN = 0.005, 3
"""Share of the samples at a value, and length of runs, from which on the value may be a limit of the sensor."""
_REPEATED = 0.2
"""Share of other samples that repeat the value before them, relative to that at the limit, below which it is one."""
_NEAR = 0.8
"""Values from this share of the limit on are near it: a signal that is clipped also takes such values."""


@dataclass(frozen=True)
class Saturation:
    """Limits of a sensor that were reached.

    Attributes
    ----------
    low, high : float
        Limits [N m or N]; infinite where none was reached.
    share : float
        Share of the samples at a limit.
    """

    low: float
    high: float
    share: float

    @property
    def values(self) -> str:
        """The limits, as messages state them."""
        return " and ".join(f"{value:g}" for value in (self.low, self.high) if np.isfinite(value))


def find_saturation(effort: Array) -> Saturation | None:
    """Find limits of a sensor: extreme values that are repeated in runs, as no other value is.

    Parameters
    ----------
    effort : (n,) float array
        Measured torque or force, in the order of time [N m or N].

    Returns
    -------
    Saturation or None
        None where no limit was reached. Coarsely quantised signals, whose values all repeat, and signals that jump to
        an extreme value do not count.
    """
    low, high = (_limit(side * effort) for side in (-1.0, 1.0))
    if low is None and high is None:
        return None
    # A sensor has a limit on both sides. Once one is known, the other need not have been approached slowly.
    low = _limit(-effort, high) if low is None else low
    high = _limit(effort, low) if high is None else high
    bottom, top = -np.inf if low is None else -low, np.inf if high is None else high
    return Saturation(bottom, top, float(np.mean((effort <= bottom) | (effort >= top))))


def _limit(values: Array, other: float | None = None) -> float | None:
    """Return the greatest value if it is a limit; `other` is the limit on the other side, if it is known."""
    top = float(values.max())
    at_top = values == top
    if top <= 0.0 or float(at_top.mean()) < _SHARE or _longest_run(at_top) < _RUN:
        return None
    near = (values >= _NEAR * top) & ~at_top
    if float(near.mean()) < _SHARE and top != other:
        return None
    repeated = np.diff(values) == 0.0
    inside, outside = at_top[1:] & at_top[:-1], ~at_top[1:] & (values[1:] > values.min())
    among_limit = float(inside.sum()) / float(at_top.sum())
    return top if float(repeated[outside].mean()) < _REPEATED * among_limit else None


def _longest_run(mask: NDArray[np.bool_]) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(int)))
    return int((edges[1::2] - edges[::2]).max(initial=0))
