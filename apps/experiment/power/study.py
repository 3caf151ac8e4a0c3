"""Power of an experiment: simulated study, number of participants, and duration of the sessions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.design import Design
from apps.experiment.observers import ObserverSettings
from apps.experiment.power.simulation import SIGNAL, Arm, Array, Study
from apps.experiment.procedures import child, trial_seed
from apps.experiment.settings import ConditionSettings, PowerSettings
from apps.shared.terminal import wrapped
from haptics.errors import ConfigurationError
from haptics.settings import build, unknown_name

STATEMENT = (
    "Simulated observers answered, not people. The plan holds as far as people's acuity, its spread, their lapses and "
    "the effect are as assumed; it is no evidence about people."
)

LEAST_KNOWN = 0.5
"""Minimum fraction of observers with a threshold for a valid power analysis."""

_MANY = 0.05
"""Fraction of observers without a threshold above which a warning is given."""

_PROCEDURES = ("staircase", "quest+", "constant")
_FITTING = {"adjustment": ("adjustment",), "estimation": ("estimation",)}
"""Permitted procedures by task. All other tasks permit `_PROCEDURES`, which measure thresholds."""

_STUDIES = 4000
"""Number of simulated studies for each number of participants."""

_POOLS, _STUDIES_OF_A_POOL = 300, 300
"""Numbers of resampled pools, and of studies in each pool, for the interval of the power."""

_CONFIDENCE = 0.95

_SETTINGS = "question ratio ratio_spread precision proportion shape alpha wanted people seed".split()
"""Settings that the result of a power analysis repeats."""


def make_study(design: Design, settings: PowerSettings, observer: Mapping[str, Any]) -> Study:
    """Return the simulated study of an experiment.

    Raises
    ------
    ConfigurationError
        If the experiment does not measure a suitable quantity, or a condition does not exist.
    """
    if design.experiment.task == "estimation" and settings.question != "precision":
        raise ConfigurationError(
            "power.question = 'difference': the exponent of magnitude estimates is one of all conditions; ask for "
            "'precision'."
        )
    table = {**observer, "level": 1}
    typical = build(ObserverSettings, table, "observer")
    arms = [_arm(design, condition) for condition in _conditions(design, settings)]
    if settings.question == "difference":
        first, second = (typical.acuity(arm.axis).increment(arm.reference) / (arm.reference or 1.0) for arm in arms)
        spread = math.sqrt(math.log1p(settings.ratio_spread**2))
        arms[1] = replace(arms[1], factor=settings.ratio * first / second, spread=spread)
    return Study(tuple(arms), table, settings.shape, settings.proportion, settings.seed)


def _conditions(design: Design, settings: PowerSettings) -> list[ConditionSettings]:
    """Return the one or two conditions of the question."""
    conditions = {one.name: one for one in design.conditions}
    names = list(conditions)
    chosen = [settings.first or names[0]]
    if settings.question != "precision":
        others = [name for name in names if name != chosen[0]]
        if not settings.second and not others:
            raise ConfigurationError(
                "power.question = 'difference': needs two conditions, and the file has one; ask for 'precision'."
            )
        chosen.append(settings.second or others[0])
    for name in chosen:
        if name not in names:
            raise unknown_name("condition", name, names)
    if len(set(chosen)) < len(chosen):
        raise ConfigurationError(f"power.second = {chosen[1]!r}: must be another condition than power.first.")
    return [conditions[name] for name in chosen]


def _arm(design: Design, condition: ConditionSettings) -> Arm:
    table = design.procedure_of(condition)
    task, axis = design.experiment.task, design.axis
    allowed = _FITTING.get(task, _PROCEDURES)
    if table["kind"] not in allowed:
        raise ConfigurationError(
            f"procedure.kind = {table['kind']!r}: does not measure the quantity of the task {task!r}; choose one of "
            f"{', '.join(allowed)}."
        )
    if task in SIGNAL and not design.catch.null:
        raise ConfigurationError(
            f"catch.null = 0: in a task of {task} guesses are known from trials without a stimulus only; give a share."
        )
    null = design.catch.null if task in SIGNAL else 0.0
    reference = 0.0 if task == "estimation" else condition.reference  # exponents have no reference
    return Arm(condition.name, task, axis, reference, condition.tracks, table, null=null)


def minutes(design: Design, trials: Mapping[str, float], reaction_time: float) -> float:
    """Return the maximum duration of a participant's session [min]; strokes may end intervals earlier.

    Parameters
    ----------
    design : Design
        Design with its times, breaks, catch trials and practice.
    trials : mapping
        Number of trials of each simulated condition. Other conditions are assumed to have their average.
    reaction_time : float
        Median time to an answer [s].
    """
    average = sum(trials.values()) / len(trials)
    tests = sum(trials.get(one.name, average * one.tracks) for one in design.conditions)
    null = 0.0 if design.experiment.task in SIGNAL else design.catch.null  # counted with the others in these tasks
    catches = null + design.catch.easy if design.task.responses else 0.0
    count = tests / (1.0 - catches) + design.practice.window
    times, intervals = design.trials, design.task.intervals
    trial = intervals * (times.interval + design.exploration.rest) + (intervals - 1) * times.gap + reaction_time
    breaks = max(math.ceil(count / times.block) - 1, 0)
    return (count * trial + breaks * times.rest) / 60.0


def outcome(
    design: Design, study: Study, settings: PowerSettings, results: Array, reaction_time: float
) -> dict[str, Any]:
    """Return the result of the power analysis for JSON.

    Parameters
    ----------
    design, study, settings
        Experiment, simulated study, and question.
    results : (people, arms, 3) float array
        Results of `apps.experiment.power.simulation.simulate_people`.
    reaction_time : float
        Median time to an answer [s].

    Raises
    ------
    ConfigurationError
        If most observers have no threshold.
    """
    # log Weber fraction of each observer, found and true, or the log ratio of two conditions
    fractions = results[:, :, :2] - np.log([arm.reference or 1.0 for arm in study.arms])[:, None]
    effects = fractions[:, 1] - fractions[:, 0] if len(study.arms) > 1 else fractions[:, 0]
    found, truth = effects[:, 0], effects[:, 1]
    known = ~np.isnan(found)
    if known.mean() < LEAST_KNOWN:
        raise ConfigurationError(
            f"{np.sum(~known)} of {len(known)} simulated people have no threshold within the levels of the procedure; "
            "give it other levels or more trials."
        )
    rows = plan(found[known], settings)
    trials = {arm.name: float(count) for arm, count in zip(study.arms, results[:, :, 2].mean(axis=0), strict=True)}
    return {
        "experiment": design.experiment.name,
        **{name: getattr(settings, name) for name in _SETTINGS},
        "found": math.exp(float(found[known].mean())),
        "truth": math.exp(float(truth[known].mean())),
        "left_out": int(np.sum(~known)),
        "trials": trials,
        "minutes": minutes(design, trials, reaction_time),
        "power": [vars(row) for row in rows],
        "enough": enough(rows, settings.wanted),
    }


# --- number of participants ---


@dataclass(frozen=True)
class Row:
    """Expected result of a study with a given number of participants.

    Attributes
    ----------
    participants : int
        Number of participants.
    power, low, high : float
        Fraction of studies that find the effect or reach the precision, with its 95 % interval.
    half_width : float
        Expected relative half-width of the 95 % interval of the result: 0.1 is plus or minus 10 %.
    """

    participants: int
    power: float
    low: float
    high: float
    half_width: float


def plan(results: Array, settings: PowerSettings) -> list[Row]:
    """Return the power for each number of participants.

    Studies are drawn with replacement from the simulated observers. A study finds a difference if Student's t test of
    the logarithms of the within-participant ratios is significant. It reaches a precision if the 95 % interval of the
    geometric mean is narrow enough. The interval of the power is found from bootstrapped pools of observers, so that it
    includes the sampling error of the pool.

    Parameters
    ----------
    results : (people,) float array
        Logarithm of the ratio, or of the Weber fraction, of each observer.
    settings : PowerSettings
        Question and numbers of participants.
    """
    seed, rows = trial_seed(settings.seed, 0, 0, 0, 0), []
    for count in settings.participants:
        found, half = _studies(results, count, _STUDIES, settings, child(seed, 0, count))
        powers = []
        for number in range(_POOLS):  # the same pools for all numbers of participants give comparable intervals
            pool = results[child(seed, 1, number).integers(len(results), size=len(results))]
            drawn, _ = _studies(pool, count, _STUDIES_OF_A_POOL, settings, child(seed, 2, number))
            powers.append(float(drawn.mean()))
        power = float(found.mean())
        low, high = np.quantile(powers, (0.025, 0.975))
        half_width = float(np.expm1(np.mean(half)))
        rows.append(Row(count, power, min(float(low), power), max(float(high), power), half_width))
    return rows


def _studies(
    results: Array, count: int, studies: int, settings: PowerSettings, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], Array]:
    """Draw studies.

    Return which of them succeed, and the half-widths of their 95 % intervals.
    """
    sample = results[rng.integers(len(results), size=(studies, count))]
    error = sample.std(axis=1, ddof=1) / np.sqrt(count)
    half = error * reach(_CONFIDENCE, count)
    if settings.question == "precision":
        return half <= np.log1p(settings.precision), half
    return np.abs(sample.mean(axis=1)) > error * reach(1.0 - settings.alpha, count), half


def reach(confidence: float, count: int) -> float:
    """Return the half-width of the interval of a mean of `count` values, in standard errors (Student's t)."""
    from calibration.fitting.intervals import quantile

    return float(quantile(confidence, np.array([count - 1.0]))[0])


def enough(rows: list[Row], wanted: float) -> int | None:
    """Return the lowest number of participants from which the power is at least `wanted`, or None."""
    for place, row in enumerate(rows):
        if all(each.power >= wanted for each in rows[place:]):
            return row.participants
    return None


# --- text ---


def describe(result: dict[str, Any]) -> str:
    """Return the result of the power analysis as text."""
    names = " and ".join(repr(name) for name in result["trials"])
    question = {
        "difference": f"how often {names} differ significantly, their Weber fractions having the ratio "
        f"{result['ratio']:g}",
        "precision": f"how often {names} is known within {result['precision']:.0%}",
    }[result["question"]]
    trials = " + ".join(f"{count:.0f}" for count in result["trials"].values())
    head = [
        f"{result['experiment']}: {question}",
        f"{result['people']} simulated people with {trials} trials each, {result['seconds']:.1f} s; recovered "
        f"{result['found']:.3g}, in truth {result['truth']:.3g}; {result['left_out']} without a threshold",
        f"a participant takes {result['minutes']:.0f} min at most",
        "",
        "participants  power  95 % interval  result known within",
    ]
    rows = [
        f"{row['participants']:>12}  {row['power']:>5.2f}  {row['low']:.2f} to {row['high']:.2f}   "
        f"{row['half_width']:>7.0%}"
        for row in result["power"]
    ]
    return "\n".join([*map(wrapped, head), *rows, "", *map(wrapped, (*_advice(result), STATEMENT))])


def _advice(result: dict[str, Any]) -> Iterator[str]:
    """Yield the conclusions from the power analysis."""
    if result["enough"] is None:
        yield f"None of these numbers has a power of {result['wanted']:g}: take more participants or trials."
    else:
        yield f"{result['enough']} participants are enough for a power of {result['wanted']:g}."
    if result["left_out"] > _MANY * result["people"]:
        yield (
            f"Of {result['left_out'] / result['people']:.0%} of the people only a bound is known at a proportion of "
            f"{result['proportion']:g}. They are left out, which makes the plan doubtful: read thresholds off where "
            "the procedure presents its trials (power.proportion), or give it more trials or other levels."
        )
