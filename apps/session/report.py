"""The end of a run in words: where everything is, and how punctual it was."""

from __future__ import annotations

from typing import Any


def describe(summary: dict[str, Any]) -> str:
    """Return the text that ends a run for a person; `summary` has the keys of the JSON output."""
    period, tick, force = summary["period_error_us"], summary["tick_us"], summary["force_n"]
    lines = [
        f"{summary['device']}, model {summary['model']}, {summary['rate_hz']:g} Hz: {summary['reason']}",
        f"  recording     {summary['recording']}",
        f"  picture       {summary['picture'] or 'none'}",
        f"  ticks         {summary['ticks']} executed, {summary['skipped']} skipped, {summary['lost_ticks']} lost, "
        f"{summary['overruns']} late",
    ]
    if period and tick:
        lines += [
            f"  period error  median {period['p50']:.0f}, 99 % {period['p99']:.0f}, 99.9 % {period['p999']:.0f}, "
            f"max {period['max']:.0f} us (scheduling: {summary['realtime']})",
            f"  tick          median {tick['p50']:.0f}, 99 % {tick['p99']:.0f}, max {tick['max']:.0f} us",
        ]
    if force:
        lines.append(
            f"  force         mean {force['mean']:.2f}, max {force['max']:.2f} N; "
            f"sticking {100 * summary['stick_fraction']:.0f} % of the time"
        )
    return "\n".join(lines)
