"""What an experiment tells the experimenter's window in the middle of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.experiment.screens.messages import Certificate, Figure, Notice, Outcome, Progress, SessionOutline
from apps.front_ends.messages import SessionStarted
from haptics.trace import Trace

_LEVELS = (1.0, 0.8, 0.64, 0.51, 0.51, 0.64, 0.51, 0.41, 0.33, 0.41, 0.41, 0.33, 0.41, 0.51, 0.41)
_WRONG = (4, 8, 11, 12)
"""Trials of a staircase that were answered wrongly."""


def fill(notify: Callable[[Any], None], block: SessionStarted, trace: Trace) -> None:
    """Tell a window all that a session has said up to its sixteenth trial."""
    from dataclasses import replace

    notify(SessionOutline("weber-friction", "P07", 1, 4, 80, "law.force", "N"))
    notify(replace(block, trace=str(trace.path)))
    for track, shift in (("reference 2 N/1", 1.0), ("reference 2 N/2", 1.15)):
        for number, level in enumerate(_LEVELS):
            right = number not in _WRONG
            trial = 2 * number + (2 if shift > 1 else 1)
            answer = ("1", "2")[(trial + right) % 2]
            time = 0.45 + 0.03 * (trial % 7)
            kind, condition = "test", "reference 2 N"
            notify(Outcome(trial, "ok", (), kind, condition, track, shift * level, answer, right, time))
    notify(Outcome(31, "repeat", ("speed outside 25-160 mm/s",), "test", "reference 2 N", "reference 2 N/1", 0.41, "2"))
    notify(Progress("interval 1 of 2", 31, 80, 2, "test", "reference 2 N", "reference 2 N/1", 0.41, 2, 540.0))
    notify(
        Certificate(
            (
                Figure("intervals", "62"),
                Figure("repeated", "1.6 %", "good"),
                Figure("late ticks in intervals", "0.004 %", "good"),
                Figure("longest gap", "1.3 ms", "good"),
            )
        )
    )
    notify(Notice("Trial 31 is repeated: the speed was outside 25-160 mm/s."))
