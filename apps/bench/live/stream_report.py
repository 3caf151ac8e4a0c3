"""Report of the benchmark ``stream``, as a result and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.bench.live.lateness import SETTLING, figures, medians, ratios
from apps.bench.live.servo_slices import DEVICE, MODEL, ServoSlice, Trial
from apps.bench.outcome import Outcome, table
from apps.stream import WEBSOCKET
from haptics.recording.certificate import quantiles

_COUNTS = ("ticks", "skipped", "lost_ticks")

_QUANTILES = ("p50", "p99", "p999")

_HEADING = ("", "median us", "99 % us", "99.9 % us", "late of 1000", "tick us", "ticks", "missing", "gaps")


@dataclass(frozen=True)
class Streamed:
    """Slice of the servo and the ticks received by its client.

    Without a stream there is no client.

    Attributes
    ----------
    own : ServoSlice
        Measurement of the servo.
    received, missing, gaps : int or None
        Number of received ticks, of missing ticks, and of the gaps that they form.
    """

    own: ServoSlice
    received: int | None = None
    missing: int | None = None
    gaps: int | None = None


def report(slices: Mapping[str, Sequence[Streamed]], trial: Trial, length: float) -> Outcome:
    """Compute the result.

    Parameters
    ----------
    slices : mapping
        Kind of stream to its slices, round by round. The first, without a stream, is the reference.
    trial : Trial
        Warm-up session.
    length : float
        Length of a slice [s].
    """
    (off, reference), *streams = slices.items()
    found = [_measured(kind, own, reference) for kind, own in streams]
    result = {
        "device": DEVICE,
        "model": MODEL,
        "rate_hz": reference[0].own.summary["rate_hz"],
        "realtime": trial.real_time["scheduling"],
        **{name: value for name, value in trial.real_time.items() if name != "scheduling"},
        "slice_s": length,
        "rounds": len(reference),
        "settling_s": SETTLING,
        "without": _together(reference),
        "streams": found,
    }
    return Outcome(result, _text(result, off), _doubts(result))


def _measured(kind: str, own: Sequence[Streamed], reference: Sequence[Streamed]) -> dict[str, Any]:
    """Return the figures of a kind of stream, and the median over rounds of its ratios to the reference."""
    rounds = [_ratios(one.own, other.own) for one, other in zip(own, reference, strict=True)]
    return {
        "stream": kind,
        **medians(rounds),
        "ratio_tick": round(float(np.median([one["ratio_tick"] for one in rounds])), 6),
        **_together(own),
        "received": sum(one.received or 0 for one in own),
        "missing": sum(one.missing or 0 for one in own),
        "gaps": sum(one.gaps or 0 for one in own),
        "slices": [{**each, "missing": one.missing, "gaps": one.gaps} for each, one in zip(rounds, own, strict=True)],
    }


def _ratios(own: ServoSlice, reference: ServoSlice) -> dict[str, float]:
    count = min(len(own.lateness), len(reference.lateness))
    tick = float(np.median(own.tick_time)) / max(float(np.median(reference.tick_time)), 1e-9)
    return {**ratios(figures(own.lateness), figures(reference.lateness), count), "ratio_tick": round(tick, 6)}


def _together(slices: Sequence[Streamed]) -> dict[str, Any]:
    """Return the figures over all slices of one kind."""
    lateness = figures(np.concatenate([one.own.lateness for one in slices]))
    share = lateness.pop("late_share")
    stolen = [one.own.stolen for one in slices if one.own.stolen is not None]
    return {
        **{name: sum(one.own.summary[name] for one in slices) for name in _COUNTS},
        "period_error_us": lateness,
        "late_share": share,
        "tick_us": quantiles(np.concatenate([one.own.tick_time for one in slices]), scale=1e6, p999=True),
        "stolen_s": round(sum(stolen), 3) if stolen else None,
    }


def _doubts(result: dict[str, Any]) -> str:
    """Return a message for each violated requirement; empty if there is no violation.

    Missing datagrams are permitted, because UDP may lose them if the client reads too slowly.
    """
    doubts = []
    for name, one in (("without a stream", result["without"]), *((one["stream"], one) for one in result["streams"])):
        if one["lost_ticks"]:
            doubts.append(f"{one['lost_ticks']} ticks ({name}) are missing in the recordings.")
    for one in result["streams"]:
        if not one["received"] or (one["stream"] == WEBSOCKET and one["missing"]):
            doubts.append(f"the client of {one['stream']} missed {one['missing']} ticks in {one['gaps']} gaps.")
    return " ".join(doubts)


def _text(result: dict[str, Any], off: str) -> str:
    under = result["realtime"] + (f", priority {result['priority']}" if result["priority"] else "")
    rows = [_row(off, result["without"])]
    for one in result["streams"]:
        rows += [_row(one["stream"], one), _row_of_ratios(one)]
    return "\n".join(
        [
            f"{result['device']}, model {result['model']}, {result['rate_hz']:g} Hz; scheduling {under}, processors "
            f"{result['processors']}; {result['machine']}, {result['processor']}",
            f"slices of {result['slice_s']:g} s, {result['rounds']} of each kind, the first {SETTLING:g} s of each "
            "left out; ratio: median over rounds; late: by more than 1 ms; missing: executed, but not received",
            "",
            table([_HEADING, *rows]),
        ]
    )


def _row(name: str, one: dict[str, Any]) -> tuple[Any, ...]:
    late = (one["period_error_us"][key] for key in _QUANTILES)
    return (
        name,
        *late,
        1e3 * one["late_share"],
        one["tick_us"]["p50"],
        one["ticks"],
        one.get("missing"),
        one.get("gaps"),
    )


def _row_of_ratios(one: dict[str, Any]) -> tuple[Any, ...]:
    late = (one[f"ratio_{key}"] for key in _QUANTILES)
    return ("ratio", *late, one["ratio_late_share"], one["ratio_tick"], None, None, None)
