"""Check of the triggers of experiments over loopbacks, without hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.doctor.child import call_in_child
from apps.doctor.machine import Finding, Machine, Severity, program
from apps.shared.terminal import bar

EVENTS = 500
"""Number of codes for each loopback."""

_GOOD = 2000.0
"""99 % of the delay below which triggers are good [us]."""

_EXPECTED = 2.5
"""Usual time of a measurement [s], for the progress bar."""


def _measure(machine: Machine, kind: str, count: int) -> dict[str, Any]:
    words = f"triggers: {count} codes to a {kind}"
    answer: dict[str, Any] = call_in_child(
        "apps.experiment.triggers.loopback:measure",
        kind,
        count,
        timeout=120.0,
        waiting=lambda passed: machine.show(f"{bar(min(passed / _EXPECTED, 1.0))} {words}"),
    )
    return answer


def triggers(machine: Machine, measure: Callable[[Machine, str, int], dict[str, Any]] = _measure) -> Finding:
    """Measure the time from the start of a tick to the receipt of its code by another process."""
    found, severity = [], Severity.OK
    facts: dict[str, Any] = {}
    for kind in ("pty", "socket"):
        one = facts[kind] = measure(machine, kind, EVENTS)
        if not one["in_order"]:
            return Finding(
                Severity.PROBLEM,
                f"{kind}: {one['received']} of {one['events']} codes were received, or not in order",
                f"# report it with what this prints:\n{program()} doctor triggers --json",
                facts,
            )
        delay = one["delay_us"]
        if delay["p99"] > _GOOD:
            severity = Severity.NOTE
        found.append(
            f"{kind}: {one['received']} of {one['events']} codes in order, {delay['p50']:.0f} us after the start of "
            f"their tick (median; 99 % {delay['p99']:.0f}, max {delay['max']:.0f} us; jitter {delay['sd']:.0f} us, a "
            "standard deviation)"
        )
    fix = "" if severity is Severity.OK else f"# close other programs, and see\n{program()} doctor timer scheduling"
    return Finding(severity, "; ".join(found), fix, facts)
