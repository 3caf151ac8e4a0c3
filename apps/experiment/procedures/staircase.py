"""Staircases: n correct answers down, one wrong answer up, with equal or weighted steps."""

from __future__ import annotations

import math
from typing import Any

from apps.experiment.procedures.settings import StaircaseSettings

_PER_E_FOLD = {"log": 1.0 / math.log(10.0), "dB": 20.0 / math.log(10.0)}
"""Units of a logarithmic scale in a factor e."""

_ROUNDING = 1e-9
"""Share of a step beyond an end that is no more than an error of rounding: a step down and up again ends there."""


class Staircase:
    """An up/down staircase (Levitt 1971) whose steps down and up may differ (Kaernbach 1991; Garcia-Perez 1998).

    A reversal belongs to the trial whose answer turned the track round, at the level that this trial had. The size of a
    step depends on the number of reversals before it. At the lowest or highest level the track stays where it is, which
    is counted and reported; the answer turns it round all the same.

    Parameters
    ----------
    settings : StaircaseSettings
        Start, bounds, rule, steps and end.
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
        """Whether there were enough reversals and trials, or too many trials."""
        enough = len(self.reversals) >= self.settings.reversals and self.trials >= self.settings.trials
        return enough or self.trials >= self.settings.most_trials

    def level(self) -> float:
        """Return the level of the next trial."""
        settings = self.settings
        if settings.scale == "linear":
            return self._position
        # The ends are exact: a level a rounding error beyond a limit would be refused.
        level = math.exp(self._position / _PER_E_FOLD[settings.scale])
        return min(max(level, settings.minimum), settings.maximum)

    def take(self, level: float, correct: bool) -> None:
        """Take an answer at `level`, which is what the report says of a reversal; steps count from what was asked."""
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
        """Go a step down (-1) or up (1), no farther than the end of the scale."""
        up = self.settings.steps[min(len(self.reversals), len(self.settings.steps) - 1)]
        wanted = self._position + (up if direction > 0 else -up * self.settings.step_ratio)
        self._position = min(max(wanted, self._ends[0]), self._ends[1])
        if abs(self._position - wanted) > _ROUNDING * up:
            self.clamped.append(self.trials)

    def _to_scale(self, level: float) -> float:
        scale = self.settings.scale
        return level if scale == "linear" else math.log(level) * _PER_E_FOLD[scale]

    def report(self) -> dict[str, Any]:
        """Return reversals, estimate and target; `estimate` is null where no reversal is left for it.

        The estimate is the geometric mean of the levels of the reversals after the first `dropped`. ``clamped`` has the
        trials after which a step would have led beyond an end of the scale.
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
