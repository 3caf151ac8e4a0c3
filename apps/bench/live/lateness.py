"""Latency and jitter of wake-ups: from the rows of the servo, in figures, and as ratios to those of a reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.recording.certificate import quantiles
from haptics.records import Rows

LATE = 1e-3
"""A tick that starts later than this counts in ``late_share`` [s]."""

SETTLING = 0.2
"""The first stretch of a slice that does not count [s]: the process around the loop has only just started."""

QUANTILES = ("p50", "p99", "p999")

_RESOLUTION = 1e-3
"""What a figure of 0 counts as where it is a reference [us]: the step in which the figures are given."""

Figures = dict[str, float]


def whole_lateness(rows: Rows, period: float) -> NDArray[np.float64]:
    """Return how long after its deadline every tick of a run started, (n,) [s], the settling time left out.

    The row of a tick that comes after skipped deadlines says how late it is after its own. What was waited for is the
    first deadline that nothing has served yet, so that a stall counts in full, as it does in cyclictest.

    Parameters
    ----------
    rows : structured array
        All ticks of a run.
    period : float
        Time between two deadlines [s].
    """
    ticks = rows["tick"]
    due = np.concatenate(([0], ticks[:-1] + 1))
    lateness = (ticks - due) * period + rows["period_error"]
    return np.asarray(lateness[due * period >= SETTLING])


def figures(lateness: NDArray[np.float64]) -> Figures:
    """Return ``p50``, ``p99``, ``p999`` and ``max`` [us] and the ``late_share`` of wake-ups, (n,) [s]."""
    share = float(np.mean(lateness > LATE)) if len(lateness) else 0.0
    return {**quantiles(lateness, scale=1e6, p999=True), "late_share": share}


def ratios(own: Figures, reference: Figures, count: int) -> Figures:
    """Return ``ratio_p50``, ``ratio_p99``, ``ratio_p999`` and ``ratio_late_share`` of two slices.

    Two zeros are equal. A reference of zero beside something else counts as the least that could have been seen:
    one late wake-up in its `count`, or a nanosecond.
    """
    found = {f"ratio_{name}": _ratio(own[name], reference[name], _RESOLUTION) for name in QUANTILES}
    return {**found, "ratio_late_share": _ratio(own["late_share"], reference["late_share"], 1.0 / count)}


def _ratio(own: float, reference: float, least: float) -> float:
    return 1.0 if own == reference else round(own / max(reference, least), 6)


def medians(slices: list[dict[str, Any]]) -> Figures:
    """Return the median of each ratio over slices."""
    names = (*(f"ratio_{name}" for name in QUANTILES), "ratio_late_share")
    return {name: float(np.median([one[name] for one in slices])) for name in names}
