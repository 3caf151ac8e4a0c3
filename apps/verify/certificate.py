"""The timing certificate, the forces and the counts of flags of a recording, made once more from its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.facts import ENDED_LATE, FLAGS, STARTED_LATE, UNUSABLE
from apps.verify.findings import Findings
from apps.verify.recorded import Recorded

_DURATIONS = {
    "period_error_us": "period_error",
    "tick_us": "tick_time",
    "sample_age_us": "sample_age",
    "write_us": "write_time",
}
MOST_LATE_TICKS = 1000
_EDGES = np.array([0.0, *(10.0 ** (k / 10.0 - 1.0) for k in range(61))])
"""Edges of the histograms [us]: ten per decade from 0.1 us to 100 ms, and one below."""

_LIMITS = {
    "late_share": 0.05,
    "skipped_share": 0.01,
    "unusable_share": 0.01,
    "longest_gap": 0.1,
    "lost_ticks": 0.0,
}
"""Limits of a fit run that are not stated in its configuration."""


def check_certificate(run: Recorded, findings: Findings) -> None:
    """Compare what the recording says of its rows with what they say."""
    told = run.metadata.get("certificate")
    if not isinstance(told, dict):
        findings.lack("certificate", "the recording has no certificate: the application ended before it was made.")
        return
    rows = run.source.rows
    if run.gap < len(rows) or len(rows) != told.get("ticks"):
        findings.lack("certificate", "the certificate cannot be made again: rows are missing.")
        return
    beside = {name: run.metadata.get(name) for name in ("flags", "force_n", "stick_fraction")}
    differing, absent = [], []
    for name, value in _made(run, told).items():
        stated = beside.get(name, told.get(name))
        if stated is None and value is not None:
            absent.append(name)
        elif not _alike(stated, value, 2e-3 if name.endswith("_us") else 2e-6):
            differing.append(name)
    if differing:
        findings.violate("certificate", f"the rows give another certificate: {', '.join(differing)}")
    if absent and run.metadata.keys() & {"rows_sha256", "ticks_sha256"}:
        findings.lack("certificate", f"the certificate lacks {', '.join(absent)}.")


def _made(run: Recorded, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the description should say of the rows."""
    status, tick = run.status, run.tick
    late = tick[(status & (STARTED_LATE | ENDED_LATE)) != 0]
    made: dict[str, Any] = {
        "skipped": max(_deadlines(run) - run.count, 0),
        "lost_ticks": 0,
        "overruns": len(late),
        "longest_gap_us": _longest_gap(run),
        "unusable_ticks": int(np.count_nonzero(status & UNUSABLE)),
        "late_ticks": late[:MOST_LATE_TICKS].tolist(),
        "flags": {name: n for name, flag in FLAGS.items() if (n := int(np.count_nonzero(status & flag)))},
        "stick_fraction": float(np.mean(run.column("sticking") != 0)) if run.count else None,
        "force_n": _force(run),
    }
    for name, column in _DURATIONS.items():
        made[name] = _quantiles(run.column(column) * 1e6, column == "period_error")
    made["histograms"] = _histograms(run)
    made |= {name: value for name, value in run.metadata.get("real_time", {}).items() if name in told}
    if run.metadata.keys() & {"rows_sha256", "ticks_sha256"}:
        made["fit"] = _is_fit(run, {"ticks": run.count, **made})
    return made


def _deadlines(run: Recorded) -> int:
    """Return how many deadlines there were until the end."""
    session = run.metadata.get("configuration", {}).get("session", {})
    duration = session.get("duration") if isinstance(session, dict) else None
    if run.metadata.get("reason") == "completed" and isinstance(duration, int | float):
        return round(duration * float(run.metadata["rate_hz"]))
    return int(run.tick[-1]) + 1 if run.count else 0


def _longest_gap(run: Recorded) -> float | None:
    starts = run.tick * run.period + run.column("period_error")
    return float(np.max(np.diff(starts))) * 1e6 if run.count > 1 else None


def _force(run: Recorded) -> dict[str, float]:
    """Return mean and largest force that the hand felt [N]."""
    vectors = run.column("command" if run.impedance else "force")
    norms = np.sqrt(vectors[:, 0] ** 2 + vectors[:, 1] ** 2)
    norms = norms[np.isfinite(norms)]
    return {"mean": float(norms.sum() / len(norms)), "max": float(norms.max())} if len(norms) else {}


def _quantiles(values: NDArray[np.float64], more: bool) -> dict[str, float]:
    """Return quantiles of finite values, between the two nearest in proportion."""
    ordered = np.sort(values[np.isfinite(values)])
    if not len(ordered):
        return {}
    wanted = {"p50": 0.5, "p99": 0.99, **({"p999": 0.999} if more else {}), "max": 1.0}
    found = {}
    for name, share in wanted.items():
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        found[name] = float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))
    return found


def _histograms(run: Recorded) -> dict[str, Any]:
    """Return ticks per bin; what lies beyond is in the last, which has both its edges."""
    made: dict[str, Any] = {"edges_us": [round(float(edge), 4) for edge in _EDGES]}
    for name, column in _DURATIONS.items():
        values = run.column(column) * 1e6
        values = np.clip(values[np.isfinite(values)], 0.0, _EDGES[-1])
        places = np.minimum(np.searchsorted(_EDGES, values, side="right"), len(_EDGES) - 1)
        made[name] = np.bincount(places, minlength=len(_EDGES))[1:].tolist()
    return made


def _is_fit(run: Recorded, timing: Mapping[str, Any]) -> bool:
    """Judge a certificate by the limits that the run was started with."""
    configured = run.metadata.get("configuration", {}).get("fitness", {})
    limits = {**_LIMITS, **(configured if isinstance(configured, dict) else {})}
    executed, deadlines = max(timing["ticks"], 1), max(timing["ticks"] + timing["skipped"], 1)
    gap = timing["longest_gap_us"]
    return not (
        timing["overruns"] / executed > limits["late_share"]
        or timing["skipped"] / deadlines > limits["skipped_share"]
        or timing["unusable_ticks"] / executed > limits["unusable_share"]
        or (gap is not None and round(gap, 3) * 1e-6 > limits["longest_gap"])
        or timing["lost_ticks"] > limits["lost_ticks"]
        or run.metadata.get("error")
    )


def _alike(told: Any, value: Any, tolerance: float) -> bool:
    """Tell whether two plain values are the same but for the last digit that was kept."""
    match told, value:
        case dict(), dict():
            return told.keys() == value.keys() and all(_alike(told[key], one, tolerance) for key, one in value.items())
        case list(), list():
            return len(told) == len(value) and all(map(lambda one, other: _alike(one, other, tolerance), told, value))
        case bool(), bool():
            return told == value
        case bool(), _:
            return False
        case int() | float(), float():
            return math.isclose(told, value, rel_tol=1e-9, abs_tol=tolerance)
    return type(told) is type(value) and bool(told == value)
