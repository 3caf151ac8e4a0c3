"""Settings of the procedures: a class for each kind of the table ``procedure`` of an experiment file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check, choice, documented, flag, unknown_name, unrestricted

_NUMBERS = "a list of numbers greater than 0"
_SHARES = "a list of numbers from 0 to less than 0.5"

BALANCED = {1: 0.2845, 2: 0.5488, 3: 0.7393, 4: 0.8415}
"""Ratio of the step down to the step up, by the number of correct answers before a step down.

With these ratios the percentage correct at which a staircase converges does not depend on the step size (Garcia-Perez
1998, PMID 9797963).
"""

SCALES = ("linear", "log", "dB")


def _tuple(settings: Any, name: str, least: int = 1, *, shares: bool = False) -> None:
    """Validate a list of numbers in a frozen dataclass and convert it to a tuple of floats.

    Raises
    ------
    ConfigurationError
        If the value is not a list, has fewer than `least` numbers, or a number is out of bounds.
    """
    given = getattr(settings, name)
    numbers = given if isinstance(given, (list, tuple)) else ()
    good = all(
        isinstance(each, int | float)
        and not isinstance(each, bool)
        and math.isfinite(each)
        and (0.0 <= each < 0.5 if shares else each > 0.0)
        for each in numbers
    )
    if not isinstance(given, (list, tuple)) or not good or len(numbers) < least:
        count = f", at least {least} of them" if least > 1 else ""
        raise ConfigurationError(f"procedure.{name} = {given!r}: must be {_SHARES if shares else _NUMBERS}{count}.")
    object.__setattr__(settings, name, tuple(float(each) for each in numbers))  # frozen dataclass, lists from files


@documented
@dataclass(frozen=True)
class StaircaseSettings:
    """Up/down staircase: steps down after `down` correct answers in a row, and up after wrong answers."""

    start: float = bounded(above=0.0, doc="level of the first trial, in the unit of the axis")
    minimum: float = bounded(above=0.0, doc="lowest level, in the unit of the axis")
    maximum: float = bounded(above=0.0, doc="highest level, in the unit of the axis")
    down: int = bounded(3, minimum=1, maximum=4, doc="correct answers in a row before a step down")
    scale: str = choice("dB", SCALES, doc="unit of steps: units of the axis, decades, or dB (20 per decade)")
    steps: tuple[float, ...] = unrestricted(
        (4.0, 4.0, 2.0), _NUMBERS, doc="steps up; the next in the list after each reversal"
    )
    ratio: float = bounded(
        0.0,
        minimum=0.0,
        maximum=4.0,
        doc="step down divided by step up; 0: the ratio for `down` by Garcia-Perez (0.2845, 0.5488, 0.7393, 0.8415)",
    )
    initial_rule: bool = flag(True, doc="one correct answer is enough for a step down until the first reversal")
    reversals: int = bounded(12, minimum=2, maximum=200, doc="number of reversals that ends the track, ...")
    trials: int = bounded(0, minimum=0, maximum=2000, doc="... after at least this number of trials")
    most_trials: int = bounded(150, minimum=1, maximum=2000, doc="largest number of trials")
    dropped: int = bounded(4, minimum=0, maximum=199, doc="number of first reversals that the estimate omits")

    def __post_init__(self) -> None:
        check(self, "procedure")
        _tuple(self, "steps")
        if not self.minimum <= self.start <= self.maximum:
            raise ConfigurationError(
                f"procedure.start = {self.start:g}: must be from procedure.minimum = {self.minimum:g} to "
                f"procedure.maximum = {self.maximum:g}."
            )
        if self.dropped >= self.reversals:
            raise ConfigurationError(
                f"procedure.dropped = {self.dropped}: must be less than procedure.reversals = {self.reversals}."
            )
        if self.most_trials < self.trials:
            raise ConfigurationError(
                f"procedure.most_trials = {self.most_trials}: must be at least procedure.trials = {self.trials}."
            )

    @property
    def step_ratio(self) -> float:
        """Step down divided by step up."""
        return self.ratio or BALANCED[self.down]

    @property
    def target(self) -> float:
        """Proportion correct at which steps up and down balance (Kaernbach 1991; Garcia-Perez 1998)."""
        return float((1.0 / (1.0 + self.step_ratio)) ** (1.0 / self.down))


@documented
@dataclass(frozen=True)
class QuestSettings:
    """QUEST+ (Watson 2017): levels with the most information about threshold, slope and lapses.

    All grids of levels are logarithmic. The psychometric function is guess + (1 - guess - lapse) F, where F = 1/2 at
    the threshold: in two intervals that is 75 % correct without lapses.
    """

    minimum: float = bounded(above=0.0, doc="lowest level, in the unit of the axis")
    maximum: float = bounded(above=0.0, doc="highest level, in the unit of the axis")
    count: int = bounded(40, minimum=2, maximum=500, doc="number of levels, evenly spaced in their logarithm")
    thresholds: int = bounded(40, minimum=2, maximum=500, doc="number of thresholds on the grid, over the same range")
    shape: str = choice("weibull", ("weibull", "phi", "logistic", "dprime"), doc="the sigmoid F")
    slopes: tuple[float, ...] = unrestricted(
        (0.8, 1.1, 1.5, 2.0, 2.8, 4.0),
        _NUMBERS,
        doc="slopes on the grid: b of weibull and dprime, 1/sigma of phi, k of logistic, over ln(level)",
    )
    lapses: tuple[float, ...] = unrestricted((0.0, 0.02, 0.05), _SHARES, doc="lapse rates on the grid")
    guesses: tuple[float, ...] = unrestricted(
        (), _SHARES, doc="false-alarm rates on the grid; none: the value of the task"
    )
    trials: int = bounded(60, minimum=1, maximum=2000, doc="number of trials")
    least_trials: int = bounded(20, minimum=1, maximum=2000, doc="smallest number of trials")
    posterior_sd: float = bounded(
        0.0, minimum=0.0, maximum=2.0, doc="standard deviation of ln(threshold) at which it ends; 0: never"
    )
    max_repeats: int = bounded(3, minimum=1, maximum=100, doc="largest number of successive trials with the same level")

    def __post_init__(self) -> None:
        check(self, "procedure")
        _tuple(self, "slopes")
        _tuple(self, "lapses", shares=True)
        _tuple(self, "guesses", least=0, shares=True)
        if not self.minimum < self.maximum:
            raise ConfigurationError(
                f"procedure.maximum = {self.maximum:g}: must be greater than procedure.minimum = {self.minimum:g}."
            )
        if self.least_trials > self.trials:
            object.__setattr__(self, "least_trials", self.trials)  # the minimum does not apply to shorter runs
        cells = self.count * self.thresholds * len(self.slopes) * len(self.lapses) * max(len(self.guesses), 1)
        if cells > MOST_CELLS:
            raise ConfigurationError(
                f"procedure: count x thresholds x slopes x lapses x guesses = {cells}: must be at most {MOST_CELLS}, "
                "so that a trial takes about a millisecond; make one of the grids coarser."
            )


MOST_CELLS = 2_000_000
"""Maximum number of cells of the QUEST+ tables. There are two tables with 8 bytes for each cell."""


@documented
@dataclass(frozen=True)
class ConstantSettings:
    """Constant stimuli: each level equally often, in permuted blocks."""

    levels: tuple[float, ...] = unrestricted((), _NUMBERS, doc="the levels")
    repeats: int = bounded(10, minimum=1, maximum=1000, doc="number of presentations of each level")
    longest_run: int = bounded(2, minimum=1, maximum=100, doc="largest number of successive trials with the same level")

    def __post_init__(self) -> None:
        check(self, "procedure")
        _tuple(self, "levels", least=2)


@documented
@dataclass(frozen=True)
class AdjustmentSettings:
    """Adjustment: the participant adjusts a value, with initial values in permuted blocks."""

    starts: tuple[float, ...] = unrestricted((), _NUMBERS, doc="values at which an adjustment starts")
    repeats: int = bounded(5, minimum=1, maximum=1000, doc="number of adjustments from each start")
    longest_run: int = bounded(
        2, minimum=1, maximum=100, doc="largest number of successive adjustments from the same start"
    )

    def __post_init__(self) -> None:
        check(self, "procedure")
        _tuple(self, "starts", least=2)


@documented
@dataclass(frozen=True)
class EstimationSettings:
    """Magnitude estimation: each value equally often, in permuted blocks without repetition."""

    levels: tuple[float, ...] = unrestricted((), _NUMBERS, doc="the values")
    repeats: int = bounded(4, minimum=1, maximum=1000, doc="number of presentations of each level")

    def __post_init__(self) -> None:
        check(self, "procedure")
        _tuple(self, "levels", least=2)


@documented
@dataclass(frozen=True)
class SeriesSettings:
    """Series of trials at one level, for the proportion correct or d' at that level."""

    level: float = bounded(above=0.0, doc="the level, in the unit of the axis")
    trials: int = bounded(40, minimum=1, maximum=2000, doc="number of trials")

    def __post_init__(self) -> None:
        check(self, "procedure")


ProcedureSettings = (
    StaircaseSettings | QuestSettings | ConstantSettings | AdjustmentSettings | EstimationSettings | SeriesSettings
)


class Carried(NamedTuple):
    """Threshold of an earlier session, with which a staircase or QUEST+ begins.

    Attributes
    ----------
    level : float
        Estimate of the earlier session, in the unit of the axis.
    spread : float
        Standard deviation of ln(threshold) that QUEST+ expects.
    """

    level: float
    spread: float


KINDS: dict[str, type[ProcedureSettings]] = {
    "staircase": StaircaseSettings,
    "quest+": QuestSettings,
    "constant": ConstantSettings,
    "adjustment": AdjustmentSettings,
    "estimation": EstimationSettings,
    "series": SeriesSettings,
}
"""Settings class of each ``kind`` of procedure."""


def procedure_settings(table: Mapping[str, Any], where: str = "procedure") -> ProcedureSettings:
    """Return the procedure settings in a table with ``kind`` and the settings of that kind.

    Raises
    ------
    ConfigurationError
        If the kind or a setting is unknown, or a value is out of bounds.
    """
    if "kind" not in table:
        raise ConfigurationError(f"{where}.kind is missing: must be one of {', '.join(KINDS)}.")
    kind = table["kind"]
    if kind not in KINDS:
        raise unknown_name("kind of procedure", str(kind), KINDS)
    return build(KINDS[kind], {name: value for name, value in table.items() if name != "kind"}, where)


def possible_levels(settings: ProcedureSettings) -> tuple[float, ...]:
    """Return the fixed set of levels of a procedure in increasing order, empty if it has none."""
    match settings:
        case QuestSettings():
            return tuple(map(float, np.geomspace(settings.minimum, settings.maximum, settings.count)))
        case ConstantSettings() | EstimationSettings():
            return tuple(sorted(set(settings.levels)))
        case SeriesSettings():
            return (settings.level,)
    return ()


def trial_counts(settings: ProcedureSettings) -> tuple[int, int]:
    """Return the minimum and maximum number of trials of a track."""
    match settings:
        case StaircaseSettings():
            # Reversals alternate: upwards after one wrong answer, downwards after `down` correct ones. The first step
            # down needs one correct answer under the initial rule, and may come before or after the first step up.
            count, down = settings.reversals, settings.down
            first = 1 if settings.initial_rule else down
            begun_up = 1 + first + count // 2 + (count - 1) // 2 * down
            begun_down = first + (count + 1) // 2 + count // 2 * down
            least = max(settings.trials, min(begun_up, begun_down))
            return min(least, settings.most_trials), settings.most_trials
        case QuestSettings():
            return (settings.least_trials if settings.posterior_sd else settings.trials), settings.trials
        case SeriesSettings():
            return settings.trials, settings.trials
    values = settings.starts if isinstance(settings, AdjustmentSettings) else settings.levels
    return len(values) * settings.repeats, len(values) * settings.repeats
