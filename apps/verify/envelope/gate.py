"""Check of the column ``gate``, the fade of the output on external request within 50 ms."""

from __future__ import annotations

import math

import numpy as np

from apps.verify.facts import GATE_TIME
from apps.verify.findings import Findings
from apps.verify.recorded import Window

_NEAR = 1e-12


class Gate:
    """Tracks the gate over consecutive windows."""

    def __init__(self) -> None:
        self._opening = 1.0

    def check(self, run: Window, findings: Findings) -> None:
        """Check that the gate moves by one step per tick, or stays at an end."""
        gate = run.column("gate")
        outside = ~((gate >= 0.0) & (gate <= 1.0))
        findings.where("gate", run.tick, outside, "the gate is outside 0 to 1")
        jumps = np.zeros(run.count, bool)
        step = run.period / GATE_TIME
        moves = np.flatnonzero((gate != 1.0) | np.concatenate(([False], gate[:-1] != 1.0)))
        for k in moves[moves >= run.skip].tolist():
            choices = (max(self._opening - step, 0.0), min(self._opening + step, 1.0))
            off = [abs(gate[k] - _let_through(choice)) for choice in choices]
            if min(off) <= _NEAR:
                self._opening = choices[0] if off[0] <= off[1] else choices[1]
                continue
            jumps[k] = True
            whole = min(max(1.0 - 2.0 * float(gate[k]), -1.0), 1.0)
            self._opening = math.acos(whole) / math.pi if not outside[k] else 1.0
        words = "the gate jumps to {:.6g}: it takes 50 ms to move"
        findings.where("gate", run.tick, jumps, lambda k: words.format(gate[k]))


def _let_through(opening: float) -> float:
    """Return the transmitted share of the output for an opening; both 0 to 1."""
    return 0.5 - 0.5 * math.cos(math.pi * opening)
