"""Detection of sensor saturation in measurements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHARE, _RUN = 0.005, 3
"""Minimum fraction of samples at a value, and minimum length of their runs, for a sensor limit."""
_REPEATED = 0.2
"""Maximum rate of repeated values among other samples, relative to the rate at the limit."""
_NEAR = 0.8
"""Fraction of the limit above which values are near it. A clipped signal also takes such values."""


@dataclass(frozen=True)
class Saturation:
    """Sensor limits that were reached.

    Attributes
    ----------
    low, high : float
        Limits [N m or N]; infinite if not reached.
    share : float
        Fraction of the samples at a limit.
    """

    low: float
    high: float
    share: float

    @property
    def values(self) -> str:
        """Limits as text for messages."""
        return " and ".join(f"{value:g}" for value in (self.low, self.high) if np.isfinite(value))


def find_saturation(effort: Array) -> Saturation | None:
    """Detect sensor limits: extreme values that repeat in runs, unlike all other values.

    Parameters
    ----------
    effort : (n,) float array
        Measured torque or force in the order of time [N m or N].

    Returns
    -------
    Saturation or None
        None if no limit was reached. Coarsely quantised signals, whose values all repeat, and signals that jump to an
        extreme value are not reported.
    """
    low, high = (_limit(side * effort) for side in (-1.0, 1.0))
    if low is None and high is None:
        return None
    # A sensor has limits on both sides. Once one is known, the other may also be reached by a jump.
    low = _limit(-effort, high) if low is None else low
    high = _limit(effort, low) if high is None else high
    bottom, top = -np.inf if low is None else -low, np.inf if high is None else high
    return Saturation(bottom, top, float(np.mean((effort <= bottom) | (effort >= top))))


def _limit(values: Array, other: float | None = None) -> float | None:
    """Return the maximum if it is a sensor limit; `other` is the limit on the other side, if known."""
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
