"""The timing certificate of a run in words. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.view.scale import grouped, microseconds

Line = tuple[str, str]
"""A name and a value, both for people."""


def certificate(summary: Mapping[str, Any]) -> list[Line]:
    """Return the lines of the certificate; what the summary does not hold is left out.

    The keys are those of the JSON object that the command prints.
    """
    lines: list[Line] = []
    _add_counts(lines, summary)
    _add_quantiles(lines, "ticks start late by", summary.get("period_error_us"))
    _add_quantiles(lines, "work per tick", summary.get("tick_us"))
    if "realtime" in summary:
        words = {"fifo": "real-time priority (FIFO)", "other": "ordinary priority"}
        lines.append(("scheduling", words.get(str(summary["realtime"]), str(summary["realtime"]))))
    force = summary.get("force_n")
    if isinstance(force, Mapping):
        lines.append(
            ("force", ", ".join(f"{key} {float(force[key]):.2f}\u00a0N" for key in ("mean", "max") if key in force))
        )
    if "stick_fraction" in summary:
        lines.append(("sticking", f"{100 * float(summary['stick_fraction']):.0f} % of the time"))
    return lines


def _add_counts(lines: list[Line], summary: Mapping[str, Any]) -> None:
    if "ticks" in summary:
        rate = f" at {float(summary['rate_hz']):g} Hz" if "rate_hz" in summary else ""
        lines.append(("ticks", grouped(int(summary["ticks"])) + rate))
    names = (("skipped", "skipped"), ("late", "overruns"), ("lost", "lost_ticks"))
    parts = [f"{grouped(int(summary[key]))} {name}" for name, key in names if key in summary]
    if parts:
        lines.append(("not in time", ", ".join(parts)))


def _add_quantiles(lines: list[Line], name: str, values: Any) -> None:
    if not isinstance(values, Mapping):
        return
    names = (("p50", "p50"), ("p99", "p99"), ("p99.9", "p999"), ("max", "max"))
    parts = [f"{word} {microseconds(float(values[key]))}" for word, key in names if key in values]
    lines.append((name, ", ".join(part.replace(" ", "\u00a0") for part in parts)))
