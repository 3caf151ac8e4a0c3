"""Certificate of a run as text, for the window and for the report in a terminal. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from apps.shared.scale import grouped, microseconds

Line = tuple[str, str]
"""A name and a value, both formatted for display."""

_SCHEDULING = {"fifo": "real-time (FIFO)", "other": "not real-time"}


class Verdict(NamedTuple):
    """Fitness of a run by the limits it was started with, and the reasons if it is unfit."""

    fit: bool
    reasons: tuple[str, ...]

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return "fit" if self.fit else "UNFIT"


def verdict(summary: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict in `summary`; None if it has none, as for a run that was not closed."""
    if "fit" not in summary:
        return None
    return Verdict(bool(summary["fit"]), tuple(str(reason) for reason in summary.get("unfit_because", ())))


def certificate(summary: Mapping[str, Any]) -> list[Line]:
    """Return the lines of the certificate. Missing and uninformative entries are omitted.

    Parameters
    ----------
    summary : mapping
        The JSON object that the command prints, or the certificate in a ``recording.json``.
    """
    lines = _counts(summary) + _scheduling(summary) + _disturbances(summary)
    force = summary.get("force_n")
    if isinstance(force, Mapping) and force:
        parts = (f"{key} {float(force[key]):.2f}\u00a0N" for key in ("mean", "max") if key in force)
        lines.append(("force", ", ".join(parts)))
    if summary.get("stick_fraction") is not None:
        lines.append(("sticking", f"{100 * float(summary['stick_fraction']):.0f} % of the time"))
    return lines


QUANTILES = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}
"""Quantiles of a certificate and their display names."""

START_DELAY, COMPUTATION = "start delay", "computation time"

_DURATIONS = {
    "period_error_us": START_DELAY,
    "tick_us": COMPUTATION,
    "write_us": "time to command",
    "sample_age_us": "sample age",
}


def durations(summary: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the quantiles [us] of every duration in the certificate, by display name.

    Durations that are always zero are omitted, such as the sample age of a device whose samples are always new.
    """
    found = {name: summary.get(key) for key, name in _DURATIONS.items()}
    return {
        name: {word: float(values[key]) for key, word in QUANTILES.items() if key in values}
        for name, values in found.items()
        if isinstance(values, Mapping) and any(values.values())
    }


def _counts(summary: Mapping[str, Any]) -> list[Line]:
    lines: list[Line] = []
    if "ticks" in summary:
        rate = f" at {float(summary['rate_hz']):g} Hz" if "rate_hz" in summary else ""
        lines.append(("ticks", grouped(int(summary["ticks"])) + rate))
    names = (("skipped", "skipped"), ("late", "overruns"), ("lost", "lost_ticks"))
    parts = [f"{grouped(int(summary[key]))} {name}" for name, key in names if key in summary]
    if summary.get("unusable_ticks"):
        parts.append(f"{grouped(int(summary['unusable_ticks']))} unusable samples")
    if parts:
        lines.append(("deadlines", ", ".join(parts)))
    if summary.get("longest_gap_us"):
        lines.append(("longest gap", f"{microseconds(float(summary['longest_gap_us']))} between two ticks"))
    return lines


def _scheduling(summary: Mapping[str, Any]) -> list[Line]:
    if summary.get("real_time_factor"):
        return [("clock", f"off: {grouped(round(float(summary['real_time_factor'])))} times real time")]
    granted = summary.get("realtime", summary.get("scheduling"))
    if granted is None:
        return []
    words = _SCHEDULING.get(str(granted), str(granted))
    processors = str(summary.get("processors", "unknown"))
    if processors != "unknown":
        words += f", CPUs {processors}" if "," in processors else f", pinned to CPU {processors}"
    return [("scheduling", words)]


def _disturbances(summary: Mapping[str, Any]) -> list[Line]:
    """Return the causes that may explain poor timing, if any were recorded."""
    parts = []
    if summary.get("stolen_s"):
        parts.append(f"CPU steal {float(summary['stolen_s']):.3g}\u00a0s")
    counted = (("involuntary_switches", "preemption"), ("major_faults", "major page fault"))
    parts += [_counted(int(summary[key]), name) for key, name in counted if summary.get(key)]
    return [("disturbed by", ", ".join(parts))] if parts else []


def _counted(number: int, name: str) -> str:
    return f"{grouped(number)} {name}{'s' if number != 1 else ''}"
