"""Procedures with predetermined levels: constant stimuli, adjustment, estimation, single level."""

from __future__ import annotations

import math
from typing import Any

from numpy.random import SeedSequence

from apps.experiment.procedures.order import permuted_blocks
from apps.experiment.procedures.settings import AdjustmentSettings, ConstantSettings, EstimationSettings, SeriesSettings


class _Sequence:
    """Levels in a fixed order, with the presented levels and answers."""

    def __init__(self, levels: tuple[float, ...]) -> None:
        self._levels = levels
        self._taken: list[tuple[float, bool]] = []

    @property
    def finished(self) -> bool:
        """Whether all levels were presented."""
        return len(self._taken) >= len(self._levels)

    def level(self) -> float:
        """Return the level of the next trial, or the last level after the end."""
        return self._levels[min(len(self._taken), len(self._levels) - 1)]

    def add_outcome(self, level: float, correct: bool) -> None:
        """Add the level that was presented or set, and whether the answer was correct."""
        self._taken.append((level, correct))

    def _counts(self) -> list[dict[str, Any]]:
        """Return the numbers of answers at each level, in increasing order."""
        levels = sorted({level for level, _ in self._taken})
        answers = {level: [correct for at, correct in self._taken if at == level] for level in levels}
        return [{"level": level, "correct": sum(given), "total": len(given)} for level, given in answers.items()]

    def _head(self, kind: str) -> dict[str, Any]:
        """Return the common entries of a report, without an estimate."""
        head: dict[str, Any] = {"kind": kind, "estimate": None, "target_percent": None}
        return head | {"trials": len(self._taken), "finished": self.finished}


def _shuffled(levels: tuple[float, ...], repeats: int, seed: SeedSequence, longest_run: int) -> tuple[float, ...]:
    order = permuted_blocks(len(levels), repeats, seed, longest_run=longest_run)
    return tuple(levels[number] for number in order)


class ConstantStimuli(_Sequence):
    """Method of constant stimuli: all levels in permuted blocks.

    A fit of the counts gives the estimate.
    """

    def __init__(self, settings: ConstantSettings, seed: SeedSequence) -> None:
        super().__init__(_shuffled(settings.levels, settings.repeats, seed, settings.longest_run))

    def report(self) -> dict[str, Any]:
        """Return the numbers of right answers and of all answers by level."""
        return self._head("constant") | {"counts": self._counts()}


class Adjustment(_Sequence):
    """Method of adjustment: a level is the initial value, and the recorded value is the one that was set."""

    def __init__(self, settings: AdjustmentSettings, seed: SeedSequence) -> None:
        super().__init__(_shuffled(settings.starts, settings.repeats, seed, settings.longest_run))

    def report(self) -> dict[str, Any]:
        """Return the mean of the adjusted values, which is the point of subjective equality, and their spread.

        If the errors are normal, a value one standard deviation (``sd``) from the mean is discriminated in 84 % of
        trials.
        """
        values = [value for value, _ in self._taken]
        mean = math.fsum(values) / len(values) if values else None
        sd = None
        if mean is not None and len(values) > 1:
            sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
        return self._head("adjustment") | {"estimate": mean, "sd": sd, "sd_percent": 84.13, "settings": values}


class Estimation(_Sequence):
    """Magnitude estimation: all values in permuted blocks without repetition.

    The estimates are in the journal.
    """

    def __init__(self, settings: EstimationSettings, seed: SeedSequence) -> None:
        super().__init__(_shuffled(settings.levels, settings.repeats, seed, 1))

    def report(self) -> dict[str, Any]:
        """Return the presented values in order."""
        return self._head("estimation") | {"levels": [level for level, _ in self._taken]}


class Series(_Sequence):
    """Trials at one level."""

    def __init__(self, settings: SeriesSettings) -> None:
        super().__init__((settings.level,) * settings.trials)

    def report(self) -> dict[str, Any]:
        """Return the numbers of right answers and of all answers, and the percentage correct."""
        correct = sum(right for _, right in self._taken)
        percent = 100.0 * correct / len(self._taken) if self._taken else None
        return self._head("series") | {"counts": self._counts(), "correct": correct, "percent_correct": percent}
