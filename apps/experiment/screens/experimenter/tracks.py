"""Tracks of a session: levels by trial, and reversals.

Needs no Qt.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.experiment.screens.messages import Outcome


@dataclass
class Track:
    """Run of a procedure: trials, their levels, and correctness of the answers."""

    trials: list[int] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    correct: list[bool] = field(default_factory=list)


def reversals(levels: list[float]) -> list[int]:
    """Return the indices at which a sequence of levels changes its direction.

    Equal levels are not reversals. The index refers to the last level before the change.
    """
    found, before = [], 0
    for index in range(len(levels) - 1):
        step = levels[index + 1] - levels[index]
        direction = (step > 0) - (step < 0)
        if direction and before and direction != before:
            found.append(index)
        before = direction or before
    return found


class Tracks:
    """All tracks by name.

    A repeated trial replaces the previous attempt.
    """

    def __init__(self) -> None:
        self.all: dict[str, Track] = {}

    def add_outcome(self, outcome: Outcome) -> bool:
        """Add the outcome of a trial.

        Return False if it belongs to no track.
        """
        if outcome.outcome != "ok" or outcome.kind != "test" or outcome.track is None or outcome.level is None:
            return False
        track = self.all.setdefault(outcome.track, Track())
        if track.trials and track.trials[-1] == outcome.trial:
            for row in (track.trials, track.levels, track.correct):
                del row[-1]
        track.trials.append(outcome.trial)
        track.levels.append(outcome.level)
        track.correct.append(bool(outcome.correct))
        return True
