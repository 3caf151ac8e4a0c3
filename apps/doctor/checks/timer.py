"""Measurement of wake-up latency with the servo's clock.

This is the only check that takes time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.doctor.child import call_in_child
from apps.doctor.finding import Finding, Severity
from apps.doctor.machine import Machine, program
from apps.shared.terminal import bar
from haptics.recording.certificate import Fitness

DURATION, RATE = 2.0, 1000.0
"""Duration [s] and rate [Hz] of the measurement."""

_GOOD = 0.001
"""Share of deadlines late by half a period or more below which the timing is good."""

Measure = Callable[[Machine], dict[str, Any]]


def measure(machine: Machine) -> dict[str, Any]:
    """Measure in a new process and show the progress."""

    def waiting(passed: float) -> None:
        machine.show(f"{bar(min(passed / DURATION, 1.0))} timer: waiting for {DURATION * RATE:.0f} deadlines")

    answer: dict[str, Any] = call_in_child("apps.doctor.timing:measure", DURATION, RATE, waiting=waiting)
    return answer


def timer(machine: Machine, measure: Measure = measure) -> Finding:
    """Measure the latency and judge it."""
    facts = measure(machine)
    severity = severity_of(facts)
    found = (
        f"deadlines of {RATE:g} Hz met with a delay of median {facts['p50_us']:.0f}, 99 % {facts['p99_us']:.0f}, "
        f"99.9 % {facts['p999_us']:.0f}, max {facts['max_us']:.0f} us; "
        f"{100 * facts['missed_share']:.2g} % came more than 1 ms late{_stolen(facts)}"
    )
    return Finding(severity, found, "\n".join(_fix(facts)) if severity != Severity.OK else "", facts)


def severity_of(facts: dict[str, Any]) -> Severity:
    """Return the severity, using the fitness limits that a run has by default."""
    if facts["late_share"] <= _GOOD:
        return Severity.OK
    limits = Fitness()
    fit = (
        facts["late_share"] <= limits.late_share
        and facts["missed_share"] <= limits.skipped_share
        and facts["max_us"] <= 1e6 * limits.longest_gap
    )
    return Severity.NOTE if fit else Severity.PROBLEM


def _stolen(facts: dict[str, Any]) -> str:
    stolen = facts["usage"]["stolen_s"]
    return f"; the host took {1e3 * stolen:.0f} ms meanwhile" if stolen else ""


def _fix(facts: dict[str, Any]) -> list[str]:
    checks = ["timer"]
    if not facts["low_latency"]:
        checks.insert(0, "cpu-dma-latency")
    if facts["realtime"] != "fifo":
        checks.insert(0, "scheduling")
    if len(checks) > 1:
        lines = ["# mend first what these find, then measure once more:"]
    elif facts["usage"]["stolen_s"]:
        lines = ["# the host gave the processor to others; measure again when it is less busy:"]
    else:
        lines = ["# all rights were granted: see what else is running (top), then measure once more:"]
    return [*lines, f"{program()} doctor {' '.join(checks)}"]
