"""Report of the benchmark ``servo``, as a result and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from apps.bench.live.lateness import SETTLING, Figures, figures, medians, ratios
from apps.bench.live.parallel_view import ENOUGH
from apps.bench.live.servo_slices import DEVICE, MODEL, Condition, ServoSlice, Slice, Trial
from apps.bench.outcome import Outcome, table
from haptics.recording.certificate import quantiles

_COUNTS = ("ticks", "skipped", "lost_ticks", "overruns")

_HEADING = ("", "", "median us", "99 % us", "99.9 % us", "max us", "late of 1000", "frames/s", "stolen s")


def report(conditions: Mapping[str, Condition], trial: Trial, length: float, command: str, remark: str = "") -> Outcome:
    """Compute the result of slices of `length` [s].

    Parameters
    ----------
    conditions : mapping
        Name to slices. The figures of the first condition are also at the top level of the result.
    trial : Trial
        Warm-up session.
    length : float
        Length of a slice [s].
    command : str
        Command line of cyclictest.
    remark : str
        Additional remark for the text.
    """
    found = {name: measured(condition) for name, condition in conditions.items()}
    slices = [one for condition in conditions.values() for one in condition.servo]
    result = {
        "device": DEVICE,
        "model": MODEL,
        "rate_hz": slices[0].summary["rate_hz"],
        **next(iter(found.values())),
        "realtime": trial.real_time["scheduling"],
        **{name: value for name, value in trial.real_time.items() if name != "scheduling"},
        "cyclictest": command,
        "slice_s": length,
        "settling_s": SETTLING,
        "startup_s": round(float(np.median([one.startup for one in slices])), 3),
        "first_startup_s": round(trial.startup, 3),
        "conditions": found,
    }
    return Outcome(result, _text(result, remark), _doubts(found))


def measured(condition: Condition) -> dict[str, Any]:
    """Return the figures over all slices of a condition, the ratios, and the figures of every pair."""
    pairs = [_pair(own, reference) for own, reference in zip(condition.servo, condition.reference, strict=True)]
    own, reference = _together(condition.servo), _together(condition.reference)
    share = own.pop("late_share")
    return {
        **{name: sum(one.summary[name] for one in condition.servo) for name in _COUNTS},
        "period_error_us": own,
        "tick_us": quantiles(np.concatenate([one.tick_time for one in condition.servo]), scale=1e6, p999=True),
        "late_share": share,
        "stolen_s": _sum(one.stolen for one in condition.servo),
        "reference": {**reference, "stolen_s": _sum(one.stolen for one in condition.reference)},
        **medians(pairs),
        "view_frames_per_s": _slowest(chain(condition.servo, condition.reference)),
        "slices": pairs,
    }


def _pair(own: ServoSlice, reference: Slice) -> dict[str, Any]:
    ours, theirs = figures(own.lateness), figures(reference.lateness)
    count = min(len(own.lateness), len(reference.lateness))
    return {
        **ratios(ours, theirs, count),
        "servo": {
            **ours,
            **{name: own.summary[name] for name in _COUNTS},
            "tick_us": own.summary["tick_us"],
            "involuntary_switches": own.summary["involuntary_switches"],
            "stolen_s": own.stolen,
            "view_frames_per_s": own.frames,
            "startup_s": round(own.startup, 3),
        },
        "reference": {**theirs, "stolen_s": reference.stolen, "view_frames_per_s": reference.frames},
    }


def _together(slices: Sequence[Slice]) -> Figures:
    return figures(np.concatenate([one.lateness for one in slices]))


def _sum(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known), 3) if known else None


def _slowest(slices: Any) -> float | None:
    """Return the minimum frame rate of the view over the slices [1/s]."""
    return min((one.frames for one in slices if one.frames is not None), default=None)


def _doubts(found: Mapping[str, dict[str, Any]]) -> str:
    """Return the reasons why the figures are unreliable; empty if they are reliable."""
    doubts = []
    for name, one in found.items():
        if one["lost_ticks"]:
            doubts.append(f"{one['lost_ticks']} ticks {name.replace('_', ' ')} are missing in the recordings.")
        frames = one["view_frames_per_s"]
        if frames is not None and frames < ENOUGH:
            doubts.append(f"the live view was closed, or drew {frames:.1f} frames a second only.")
    return " ".join(doubts)


def _text(result: dict[str, Any], remark: str) -> str:
    conditions = result["conditions"]
    pairs = len(next(iter(conditions.values()))["slices"])
    under = result["realtime"] + (f", priority {result['priority']}" if result["priority"] else "")
    rows = [row for name, one in conditions.items() for row in _rows(name.replace("_", " "), one)]
    lines = [
        f"{result['device']}, model {result['model']}, {result['rate_hz']:g} Hz; scheduling {under}, processors "
        f"{result['processors']}; {result['machine']}, {result['processor']}",
        f"slices of {result['slice_s']:g} s, {pairs} for each row, the first {SETTLING:g} s of each left out; ratio: "
        "median over pairs of neighbours; late: by more than 1 ms",
        "",
        table([_HEADING, *rows]),
        "",
        *(_ticks(name.replace("_", " "), one) for name, one in conditions.items()),
        f"from start to first tick: {result['startup_s']:.1f} s, the first time {result['first_startup_s']:.1f} s",
    ]
    return "\n".join([*lines, remark] if remark else lines)


def _rows(name: str, one: dict[str, Any]) -> list[tuple[Any, ...]]:
    own, reference, frames = one["period_error_us"], one["reference"], one["view_frames_per_s"]
    keys = ("p50", "p99", "p999", "max")
    return [
        (name, "servo", *(own[key] for key in keys), 1e3 * one["late_share"], frames, one["stolen_s"]),
        (
            *("", "cyclictest"),
            *(reference[key] for key in keys),
            *(1e3 * reference["late_share"], frames, reference["stolen_s"]),
        ),
        ("", "ratio", *(one[f"ratio_{key}"] for key in keys[:3]), None, one["ratio_late_share"], None, None),
    ]


def _ticks(name: str, one: dict[str, Any]) -> str:
    tick = one["tick_us"]
    return (
        f"{name}: {one['ticks']} ticks, {one['skipped']} skipped, {one['lost_ticks']} lost; a tick took "
        f"{tick['p50']:.0f} us (median), {tick['p99']:.0f} us (99 %), {tick['max']:.0f} us (max)"
    )
