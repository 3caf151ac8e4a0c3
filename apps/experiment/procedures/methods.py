"""Procedures other than QUEST+: staircases, fixed levels, and interleaved tracks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.random import SeedSequence

from apps.experiment.procedures.order import child, permuted_blocks
from apps.experiment.procedures.settings import (
    AdjustmentSettings,
    ConstantSettings,
    EstimationSettings,
    QuestSettings,
    StaircaseSettings,
    procedure_settings,
)

if TYPE_CHECKING:
    from apps.experiment.procedures.quest import QuestPlus

    Procedure: TypeAlias = "Staircase | FixedLevels | QuestPlus"
    """Procedure, which selects the levels of a track from the answers alone."""

_PER_E_FOLD = {"log": 1.0 / math.log(10.0), "dB": 20.0 / math.log(10.0)}
"""Units of a logarithmic scale for a factor of e."""

_ROUNDING = 1e-9
"""Tolerance at the limits, relative to a step.

A step down and up again may exceed a limit by a rounding error.
"""


def make_procedure(table: Mapping[str, Any], *, guess: float, seed: SeedSequence) -> Procedure:
    """Return a new procedure.

    Parameters
    ----------
    table : mapping
        ``kind`` and its settings, as in an experiment file.
    guess : float
        Probability of a correct answer without a stimulus: 1/m in a task with m alternatives, the false alarm rate (0
        if unknown) in a yes/no task.
    seed : SeedSequence
        Seed of the track, which deterministic procedures ignore.

    Raises
    ------
    ConfigurationError
        If the table is invalid.
    """
    settings, kind = procedure_settings(table), table["kind"]
    match settings:
        case StaircaseSettings():
            return Staircase(settings)
        case QuestSettings():
            from apps.experiment.procedures.quest import QuestPlus

            return QuestPlus(settings, guess)
        case ConstantSettings():
            values, longest_run = settings.levels, settings.longest_run
        case AdjustmentSettings():
            values, longest_run = settings.starts, settings.longest_run
        case EstimationSettings():
            values, longest_run = settings.levels, 1
        case _:
            return FixedLevels(kind, (settings.level,) * settings.trials)
    order = permuted_blocks(len(values), settings.repeats, seed, longest_run=longest_run)
    return FixedLevels(kind, tuple(values[number] for number in order))


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


class FixedLevels:
    """Levels in a predetermined order: constant stimuli, adjustment, magnitude estimation, or a single level.

    In an adjustment, a level is the initial value, and the recorded value is the one that was set.

    Parameters
    ----------
    kind : str
        ``constant``, ``adjustment``, ``estimation`` or ``series``.
    levels : tuple of float
        Level of each trial.
    """

    def __init__(self, kind: str, levels: tuple[float, ...]) -> None:
        self._kind, self._levels = kind, levels
        self._done: list[tuple[float, bool]] = []

    @property
    def finished(self) -> bool:
        """Whether all levels were presented."""
        return len(self._done) >= len(self._levels)

    def level(self) -> float:
        """Return the level of the next trial, or the last level after the end."""
        return self._levels[min(len(self._done), len(self._levels) - 1)]

    def add_outcome(self, level: float, correct: bool) -> None:
        """Add the level that was presented or set, and whether the answer was correct."""
        self._done.append((level, correct))

    def report(self) -> dict[str, Any]:
        """Return the results.

        For constant stimuli and series, these are the numbers of right answers and of all answers by level, in
        increasing order. Estimates of magnitudes are in the journal. The estimate of an adjustment is the mean of the
        values, which is the point of subjective equality. If the errors are normal, a value one standard deviation
        (``sd``) from the mean is discriminated in 84 % of trials.
        """
        levels = [level for level, _ in self._done]
        found: dict[str, Any] = {"kind": self._kind, "estimate": None, "target_percent": None}
        found |= {"trials": len(levels), "finished": self.finished}
        if self._kind == "estimation":
            return found | {"levels": levels}
        if self._kind == "adjustment":
            mean = math.fsum(levels) / len(levels) if levels else None
            sd = None
            if mean is not None and len(levels) > 1:
                sd = math.sqrt(math.fsum((value - mean) ** 2 for value in levels) / (len(levels) - 1))
            return found | {"estimate": mean, "sd": sd, "sd_percent": 84.13, "settings": levels}
        answers = {at: [correct for level, correct in self._done if level == at] for at in sorted(set(levels))}
        found["counts"] = [{"level": at, "correct": sum(each), "total": len(each)} for at, each in answers.items()]
        if self._kind == "series":
            correct = sum(right for _, right in self._done)
            found |= {"correct": correct, "percent_correct": 100.0 * correct / len(levels) if levels else None}
        return found


class Tracks:
    """Interleaved tracks: in every round, each unfinished track has one trial, in random order.

    The tracks therefore proceed together, and only the last trial of a round is predictable. The order of a round
    depends on its number only, not on answers.

    Parameters
    ----------
    procedures : sequence of Procedure
        The tracks, at least one.
    seed : SeedSequence
        Parent seed. Round k is drawn with its k-th child.
    """

    def __init__(self, procedures: Sequence[Procedure], seed: SeedSequence) -> None:
        self.procedures = tuple(procedures)
        self._seed = seed
        self._round = 0
        self._left = self._drawn()

    @property
    def finished(self) -> bool:
        """Whether all tracks are finished."""
        return all(procedure.finished for procedure in self.procedures)

    def next(self) -> tuple[int, float]:
        """Return the track of the next trial, from 0, and its level, unchanged until `add_outcome`.

        Invalid once finished.
        """
        track = self._left[0]
        return track, self.procedures[track].level()

    def add_outcome(self, track: int, level: float, correct: bool) -> None:
        """Add the outcome of a trial of `track`; see `Procedure.add_outcome`."""
        self.procedures[track].add_outcome(level, correct)
        self._left.remove(track)
        if not self._left and not self.finished:
            self._round += 1
            self._left = self._drawn()

    def _drawn(self) -> list[int]:
        """Return the order of the current round, without finished tracks."""
        order = child(self._seed, self._round).permutation(len(self.procedures))
        return [int(number) for number in order if not self.procedures[number].finished]
