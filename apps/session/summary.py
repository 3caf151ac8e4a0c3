"""What can be said about a run from its rows: the timing certificate, the forces, how long it stuck."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.trace import Rows, Status

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)


def quantiles(values: NDArray[np.float64], *, scale: float, p999: bool = False) -> dict[str, float]:
    """Return ``p50``, ``p99``, (``p999``,) and ``max`` of `values`, multiplied by `scale`; empty without values."""
    if not len(values):
        return {}
    wanted = {"p50": 50.0, "p99": 99.0} | ({"p999": 99.9} if p999 else {}) | {"max": 100.0}
    found = np.percentile(values, list(wanted.values())) * scale
    return {name: round(float(value), 3) for name, value in zip(wanted, found, strict=True)}


def certificate(rows: Rows, executed: int, planned: int | None, period: float) -> dict[str, Any]:
    """Return the timing certificate of a run.

    Parameters
    ----------
    rows : structured array
        Every recorded tick.
    executed : int
        Ticks that were executed, recorded or not.
    planned : int or None
        Deadlines of a run that reached its planned end; None if it was ended before.
    period : float
        Nominal period [s].

    Returns
    -------
    dict
        ``ticks``, ``skipped``, ``lost_ticks``, ``overruns``, ``period_error_us`` and ``tick_us`` as the command prints
        them; ``longest_gap_us``: the longest time between two ticks, whose lateness alone says nothing of the deadlines
        skipped before it; and ``late_ticks``: the numbers of the first 100 late ones.
    """
    late = rows["tick"][(rows["status"] & _LATE) != 0]
    if planned is None:
        planned = int(rows["tick"][-1]) + 1 if len(rows) else 0
    return {
        "ticks": executed,
        "skipped": max(planned - executed, 0),
        "lost_ticks": executed - len(rows),
        "overruns": len(late),
        "period_error_us": quantiles(rows["period_error"], scale=1e6, p999=True),
        "tick_us": quantiles(rows["tick_time"], scale=1e6),
        "longest_gap_us": _longest_gap(rows, period),
        "late_ticks": [int(tick) for tick in late[:100]],
    }


def _longest_gap(rows: Rows, period: float) -> float | None:
    starts = rows["tick"] * period + rows["period_error"]
    return round(float(np.diff(starts).max()) * 1e6, 3) if len(rows) > 1 else None


def felt(rows: Rows, causality: Causality) -> dict[str, Any]:
    """Return what the hand felt: ``force_n`` and ``stick_fraction``.

    The force is the command of an impedance device and the measured force of an admittance device [N].
    """
    vectors = rows["command"] if causality is Causality.IMPEDANCE else rows["force"]
    norms = np.hypot(vectors[:, 0], vectors[:, 1])
    norms = norms[np.isfinite(norms)]
    force = {"mean": round(float(norms.mean()), 6), "max": round(float(norms.max()), 6)} if len(norms) else {}
    return {"force_n": force, "stick_fraction": round(float(np.mean(rows["sticking"] != 0)), 6) if len(rows) else None}


def flags_seen(rows: Rows) -> dict[str, int]:
    """Return how many ticks carried each status flag, for those that occurred."""
    counts = {str(flag.name): int(np.count_nonzero(rows["status"] & int(flag))) for flag in Status}
    return {name: count for name, count in counts.items() if count}
