"""The column ``gate``: from outside the output is let down and up in 50 ms, along half a cosine."""

from __future__ import annotations

import math

import numpy as np

from apps.verify.facts import GATE_TIME
from apps.verify.findings import Findings
from apps.verify.recorded import Recorded

_NEAR = 1e-12


def check_gate(run: Recorded, findings: Findings) -> None:
    """Check that the gate moved by one step in every tick, or rested at an end."""
    gate = run.column("gate")
    outside = ~((gate >= 0.0) & (gate <= 1.0))
    findings.where("gate", run.tick, outside, "the gate is outside 0 to 1")
    jumps = np.zeros(run.count, bool)
    step, opening = run.period / GATE_TIME, 1.0
    moves = np.flatnonzero((gate != 1.0) | np.concatenate(([False], gate[:-1] != 1.0)))
    for k in moves.tolist():
        choices = (max(opening - step, 0.0), min(opening + step, 1.0))
        off = [abs(gate[k] - _let_through(choice)) for choice in choices]
        if min(off) <= _NEAR:
            opening = choices[0] if off[0] <= off[1] else choices[1]
            continue
        jumps[k] = True
        opening = math.acos(min(max(1.0 - 2.0 * float(gate[k]), -1.0), 1.0)) / math.pi if not outside[k] else 1.0
    findings.where("gate", run.tick, jumps, lambda k: f"the gate jumps to {gate[k]:.6g}: it takes 50 ms to move")


def _let_through(opening: float) -> float:
    """Return what a gate lets through that is open so far; both 0 to 1."""
    return 0.5 - 0.5 * math.cos(math.pi * opening)
