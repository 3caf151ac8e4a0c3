"""Staircases: n-down/1-up rules with equal or weighted steps."""

from __future__ import annotations

import math
from typing import Any

from apps.experiment.procedures.settings import StaircaseSettings

_PER_E_FOLD = {"log": 1.0 / math.log(10.0), "dB": 20.0 / math.log(10.0)}
"""Units of a logarithmic scale for a factor of e."""

_ROUNDING = 1e-9
"""Tolerance at the limits, relative to a step.

A step down and up again may exceed a limit by a rounding error.
"""


class Staircase:
    """Up/down staircase (Levitt 1971) with weighted steps (Kaernbach 1991; Garcia-Perez 1998).

    A reversal is assigned to the trial whose answer reversed the direction, at the level of this trial. The size of a
    step depends on the number of previous reversals. At the lowest or highest level the track does not move, which is
    counted and reported. The answer may still cause a reversal.

    Parameters
    ----------
    settings : StaircaseSettings
        Initial level, bounds, rule, steps and termination.
    """

    def __init__(self, settings: StaircaseSettings) -> None:
        self.settings = settings
        self.trials = 0
        self.reversals: list[dict[str, Any]] = []
        self.clamped: list[int] = []
        self._position = self._to_scale(settings.start)
        self._ends = self._to_scale(settings.minimum), self._to_scale(settings.maximum)
        self._in_a_row = 0
        self._direction = 0

    @property
    def finished(self) -> bool:
        """Whether there were enough reversals and trials, or the maximum number of trials."""
        enough = len(self.reversals) >= self.settings.reversals and self.trials >= self.settings.trials
        return enough or self.trials >= self.settings.most_trials

    def level(self) -> float:
        """Return the level of the next trial."""
        settings = self.settings
        if settings.scale == "linear":
            return self._position
        # The limits are exact, because a level beyond a limit by a rounding error would be rejected.
        level = math.exp(self._position / _PER_E_FOLD[settings.scale])
        return min(max(level, settings.minimum), settings.maximum)

    def add_outcome(self, level: float, correct: bool) -> None:
        """Add an answer at `level`, which is reported for reversals.

        Steps are relative to the requested level.
        """
        self.trials += 1
        self._in_a_row = self._in_a_row + 1 if correct else 0
        needed = 1 if self.settings.initial_rule and not self.reversals else self.settings.down
        if correct and self._in_a_row < needed:
            return
        self._in_a_row = 0
        direction = -1 if correct else 1
        if self._direction == -direction:
            self.reversals.append({"trial": self.trials, "level": level, "direction": "down" if correct else "up"})
        self._direction = direction
        self._step(direction)

    def _step(self, direction: int) -> None:
        """Move a step down (-1) or up (1), limited to the range of levels."""
        up = self.settings.steps[min(len(self.reversals), len(self.settings.steps) - 1)]
        wanted = self._position + (up if direction > 0 else -up * self.settings.step_ratio)
        self._position = min(max(wanted, self._ends[0]), self._ends[1])
        if abs(self._position - wanted) > _ROUNDING * up:
            self.clamped.append(self.trials)

    def _to_scale(self, level: float) -> float:
        scale = self.settings.scale
        return level if scale == "linear" else math.log(level) * _PER_E_FOLD[scale]

    def report(self) -> dict[str, Any]:
        """Return reversals, estimate and target.

        `estimate` is null if too few reversals remain. The estimate is the geometric mean of the levels of the
        reversals after the first `dropped`. ``clamped`` lists the trials after which a step was limited.
        """
        used = [reversal["level"] for reversal in self.reversals[self.settings.dropped :] if reversal["level"] > 0.0]
        logs = [math.log(level) for level in used]
        mean = math.fsum(logs) / len(logs) if logs else math.nan
        spread = math.fsum((each - mean) ** 2 for each in logs)
        return {
            "kind": "staircase",
            "estimate": math.exp(mean) if logs else None,
            "log_sd": math.sqrt(spread / (len(logs) - 1)) if len(logs) > 1 else None,
            "target_percent": 100.0 * self.settings.target,
            "rule": f"{self.settings.down}-down/1-up",
            "step_ratio": self.settings.step_ratio,
            "reversals": list(self.reversals),
            "dropped": min(self.settings.dropped, len(self.reversals)),
            "clamped": list(self.clamped),
            "trials": self.trials,
            "finished": self.finished,
        }
