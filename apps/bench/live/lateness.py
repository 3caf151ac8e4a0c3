"""Wake-up latency of the servo: figures computed from its rows, and their ratios to a reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.recording.certificate import quantiles
from haptics.records import Rows

LATE = 1e-3
"""Latency above which a tick counts in ``late_share`` [s]."""

SETTLING = 0.2
"""Initial part of a slice that is ignored [s], while the process around the loop settles."""

QUANTILES = ("p50", "p99", "p999")

_RESOLUTION = 1e-3
"""Lower bound of a reference in ratios [us]: the resolution of the figures."""

Figures = dict[str, float]


def whole_lateness(rows: Rows, period: float) -> NDArray[np.float64]:
    """Return the latency of every tick after its deadline, (n,) [s], without the settling time.

    The row of a tick after skipped deadlines contains the latency after its own deadline. Here the latency is counted
    from the first unserved deadline, so that a stall counts in full, as in cyclictest.

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
    """Return ``p50``, ``p99``, ``p999``, ``max`` [us] and ``late_share`` of the latencies, (n,) [s]."""
    share = float(np.mean(lateness > LATE)) if len(lateness) else 0.0
    return {**quantiles(lateness, scale=1e6, p999=True), "late_share": share}


def ratios(own: Figures, reference: Figures, count: int) -> Figures:
    """Return ``ratio_p50``, ``ratio_p99``, ``ratio_p999`` and ``ratio_late_share`` of two slices.

    The ratio of two zeros is 1. Otherwise, a reference of zero is replaced by the smallest observable value: one late
    wake-up in `count`, or a nanosecond.
    """
    found = {f"ratio_{name}": _ratio(own[name], reference[name], _RESOLUTION) for name in QUANTILES}
    return {**found, "ratio_late_share": _ratio(own["late_share"], reference["late_share"], 1.0 / count)}


def _ratio(own: float, reference: float, least: float) -> float:
    return 1.0 if own == reference else round(own / max(reference, least), 6)


def medians(slices: list[dict[str, Any]]) -> Figures:
    """Return the median of each ratio over the slices."""
    names = (*(f"ratio_{name}" for name in QUANTILES), "ratio_late_share")
    return {name: float(np.median([one[name] for one in slices])) for name in names}
