"""Check of the triggers."""

from __future__ import annotations

from apps.doctor.machine import Severity
from apps.doctor.triggers import EVENTS, triggers
from tests.apps.doctor.machines import machine


def measured(p99=300.0, received=EVENTS):
    def answer(machine, kind, count):
        delay = {"p50": 200.0, "p99": p99, "max": 4000.0, "sd": 25.0}
        return {"events": count, "received": received, "in_order": received == count, "delay_us": delay}

    return answer


def test_finding_states_delay_and_jitter_of_both_loopbacks(tmp_path):
    finding = triggers(machine(tmp_path), measured())
    assert finding.severity is Severity.OK and set(finding.facts) == {"pty", "socket"}
    assert "socket: 500 of 500 codes in order, 200 us" in finding.found and "jitter 25 us" in finding.found
    assert triggers(machine(tmp_path), measured(p99=2001.0)).severity is Severity.NOTE
    lost = triggers(machine(tmp_path), measured(received=EVENTS - 1))
    assert lost.severity is Severity.PROBLEM and "499 of 500" in lost.found
