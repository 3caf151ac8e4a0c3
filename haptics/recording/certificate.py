"""The timing certificate of a run, its forces and its share of sticking, all from its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.records import Rows, Status
from haptics.rendering.envelope import UNUSABLE

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)

LATE_TICKS_KEPT = 1000
"""Numbers of late ticks that a certificate holds at most; the rows have them all."""

BIN_EDGES_US: NDArray[np.float64] = np.concatenate(([0.0], np.logspace(-1.0, 5.0, 61)))
"""Edges of the bins of a certificate's histograms [us]: ten per decade from 0.1 us to 100 ms, and one below them."""

_DURATIONS = {
    "period_error": "period_error_us",
    "tick_time": "tick_us",
    "sample_age": "sample_age_us",
    "write_time": "write_us",
}
"""Column to its name in a certificate."""

NOT_PRINTED = ("late_ticks", "histograms")
"""Parts of a certificate that are for the recording only."""


def quantiles(values: NDArray[np.float64], *, scale: float, p999: bool = False) -> dict[str, float]:
    """Return ``p50``, ``p99``, (``p999``,) and ``max`` of the finite `values`, times `scale`; empty without any."""
    values = values[np.isfinite(values)]
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
        them; ``sample_age_us`` and ``write_us``, how old samples were and how long after the start of its tick a
        command had been handed to the device; ``longest_gap_us``: the longest time between two ticks, whose lateness
        alone says nothing of the deadlines skipped before it; ``unusable_ticks``, with the safe output because no
        sample could be trusted; ``late_ticks``, the numbers of the first late ones; and ``histograms`` of all
        durations, ticks per bin of ``edges_us``, what lies beyond in the last bin.
    """
    status = np.array(rows["status"])  # in one piece: rows are long, and each look at a column reads through all
    late = rows["tick"][(status & _LATE) != 0]
    durations = {column: _sorted(rows[column]) for column in _DURATIONS}
    if planned is None:
        planned = int(rows["tick"][-1]) + 1 if len(rows) else 0
    return {
        "ticks": executed,
        "skipped": max(planned - executed, 0),
        "lost_ticks": executed - len(rows),
        "overruns": len(late),
        **{
            name: quantiles(durations[column], scale=1e6, p999=column == "period_error")
            for column, name in _DURATIONS.items()
        },
        "longest_gap_us": _longest_gap(rows, period),
        "unusable_ticks": int(np.count_nonzero(status & UNUSABLE)),
        "late_ticks": [int(tick) for tick in late[:LATE_TICKS_KEPT]],
        "histograms": {
            "edges_us": [round(float(edge), 4) for edge in BIN_EDGES_US],
            **{name: _histogram(durations[column]) for column, name in _DURATIONS.items()},
        },
    }


def real_time_factor(simulated: float, used: dict[str, Any]) -> float | None:
    """Return how many times faster than a clock a run was that did not follow one.

    Parameters
    ----------
    simulated : float
        Time in the run [s].
    used : dict
        What it used of the machine (`haptics.servo.realtime.Usage`), the time in which it ran among it.
    """
    taken = used.get("elapsed_s")
    return round(simulated / taken, 1) if taken else None


def _sorted(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the finite numbers of a column, the smallest first."""
    values = np.array(column)
    return np.sort(values[np.isfinite(values)])


def _histogram(durations: NDArray[np.float64]) -> list[int]:
    """Return how many of `durations` [s], the smallest first, lie in each bin."""
    found = np.clip(durations * 1e6, 0.0, BIN_EDGES_US[-1])
    places = [*np.searchsorted(found, BIN_EDGES_US[:-1]), len(found)]
    return [int(count) for count in np.diff(places)]


def _longest_gap(rows: Rows, period: float) -> float | None:
    starts = rows["tick"] * period + rows["period_error"]
    return round(float(np.diff(starts).max()) * 1e6, 3) if len(rows) > 1 else None


def felt(rows: Rows, causality: Causality) -> dict[str, Any]:
    """Return what the hand felt: ``force_n`` and ``stick_fraction``.

    The force is the command of an impedance device and the measured force of an admittance device [N].
    """
    vectors = np.array(rows["command"] if causality is Causality.IMPEDANCE else rows["force"])
    norms = np.hypot(vectors[:, 0], vectors[:, 1])
    norms = norms[np.isfinite(norms)]
    force = {"mean": round(float(norms.mean()), 6), "max": round(float(norms.max()), 6)} if len(norms) else {}
    return {"force_n": force, "stick_fraction": round(float(np.mean(rows["sticking"] != 0)), 6) if len(rows) else None}


def flags_seen(rows: Rows) -> dict[str, int]:
    """Return how many ticks carried each status flag, for those that occurred."""
    status = np.array(rows["status"])
    counts = {str(flag.name): int(np.count_nonzero(status & int(flag))) for flag in Status}
    return {name: count for name, count in counts.items() if count}
