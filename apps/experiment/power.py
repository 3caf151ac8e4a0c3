"""Power analysis: required number of participants, estimated with simulated observers that need no device."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.design import Design
from apps.experiment.observers import (
    ROOT_2,
    Z75,
    ObserverSettings,
    SimulatedObserver,
    different,
    make_observer,
    yes_criterion,
)
from apps.experiment.procedures.methods import child, make_procedure, person_seed, threshold_of, trial_seed
from apps.experiment.procedures.settings import Carried, possible_levels, procedure_settings
from apps.experiment.settings import AnalysisSettings, ConditionSettings, PowerSettings
from apps.experiment.trial import TASKS, TrialView
from apps.shared.terminal import wrapped
from haptics.errors import ConfigurationError
from haptics.settings import build, unknown_name

if TYPE_CHECKING:
    from apps.experiment.procedures.methods import Procedure
    from calibration.psychometric import Tables
    from calibration.psychometric.posterior import Guess

Array = NDArray[np.float64]

SIGNAL = {"detection": "yes", "same-different": "different"}
"""Response that reports a stimulus or difference, by task."""

_NUMBERS = ("adjustment", "estimation")
"""Tasks whose answers are numbers."""

_NORMAL = NormalDist()

_PORTION = 20
"""Observers in a job, which takes some tenths of a second."""


@dataclass(frozen=True)
class Arm:
    """Simulated condition.

    Attributes
    ----------
    name, task, axis : str
        Name of the condition, task and axis of the experiment.
    reference : float
        Value of the reference.
    tracks : int
        Runs of the procedure, whose answers are fitted together.
    procedure : mapping
        Table of the procedure.
    factor : float
        Effect: factor on the discrimination thresholds of the typical observer.
    spread : float
        Standard deviation of the logarithm of this factor between observers.
    null : float
        Fraction of trials without a stimulus, which measure the false alarms in detection and same-different tasks.
    stride : int
        Trials of a session from one trial of a track to the next, which determine the course of a drift.
    sessions : int
        Sessions of a participant. The answers of all that are analysed are fitted together.
    training : tuple of int
        Numbers of the sessions that are not analysed.
    carried : float
        Standard deviation of the change of ln(threshold) between sessions, if staircases and QUEST+ begin with the
        threshold of the previous session. 0 if they do not.
    """

    name: str
    task: str
    axis: str
    reference: float
    tracks: int
    procedure: Mapping[str, Any]
    factor: float = 1.0
    spread: float = 0.0
    null: float = 0.0
    stride: int = 1
    sessions: int = 1
    training: tuple[int, ...] = ()
    carried: float = 0.0


@dataclass(frozen=True)
class Study:
    """Simulated study.

    Attributes
    ----------
    arms : tuple of Arm
        Conditions of the study.
    observer : mapping
        Table of the observer.
    shape : str
        Psychometric function, fitted to the logarithm of the level.
    proportion : float
        Proportion at the threshold.
    seed : int
        Seed of the study. The random numbers of an observer depend only on it and on the observer's number.
    shares : tuple of int
        Relative sizes of the two groups that have one arm each. Empty if every participant has all arms.
    drift : bool
        Whether thresholds are fitted with the average of a constant and a drifting threshold (``analysis.drift``).
    """

    arms: tuple[Arm, ...]
    observer: Mapping[str, Any]
    shape: str
    proportion: float
    seed: int
    shares: tuple[int, ...] = ()
    drift: bool = False


def simulate_people(study: Study, first: int, count: int) -> Array:
    """Return the results of `count` observers with numbers from `first`, shape (count, arms, 3).

    The columns are, for each condition, the logarithm of the fitted threshold, the logarithm of the true threshold at
    the same proportion without lapses, and the number of trials. A threshold that is only a bound is nan.
    """
    found = np.empty((count, len(study.arms), 3))
    for row, number in enumerate(range(first, first + count)):
        person = make_observer(study.observer, seed=person_seed(study.seed, number))
        for place, arm in enumerate(study.arms):
            found[row, place] = _simulate_arm(study, arm, trial_seed(study.seed, number, 1, place + 1, 0), person)
    return found


def simulate_pool(
    study: Study,
    people: int,
    *,
    executor: Executor | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Array:
    """Return the results of `people` simulated observers, like `simulate_people`.

    The results do not depend on the number of workers.

    Parameters
    ----------
    study : Study
        The study.
    people : int
        Number of observers. An observer does not depend on the total number.
    executor : Executor, optional
        Executor of the jobs. Without it they run sequentially.
    progress : callable
        Function that takes the completed fraction.
    """
    jobs = [(first, min(_PORTION, people - first)) for first in range(0, people, _PORTION)]
    found = np.empty((people, len(study.arms), 3))
    if executor is None:
        for first, count in jobs:
            found[first : first + count] = simulate_people(study, first, count)
            progress((first + count) / people)
        return found
    waiting = {executor.submit(simulate_people, study, first, count): (first, count) for first, count in jobs}
    try:
        for done, future in enumerate(as_completed(waiting), 1):
            first, count = waiting[future]
            found[first : first + count] = future.result()
            progress(done / len(jobs))
    except BaseException:  # also on Ctrl-C: cancel the jobs that have not started
        for future in waiting:
            future.cancel()
        raise
    return found


def _simulate_arm(
    study: Study, arm: Arm, seed: np.random.SeedSequence, typical: SimulatedObserver
) -> tuple[float, float, float]:
    """Simulate an observer in a condition: log of the fitted and of the true threshold, and number of trials."""
    rng = child(seed, 0)
    person = copy.copy(typical)
    person.acuity_factor *= arm.factor * math.exp(arm.spread * float(rng.standard_normal()))
    guess = TASKS[arm.task].guess or 0.0
    levels, answers, trials = list[float](), list[Any](), list[tuple[int, int]]()
    carried: list[Carried | None] = [None] * arm.tracks
    for session in range(arm.sessions):
        procedures = []
        for track in range(arm.tracks):
            number = session * arm.tracks + track
            own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1, number))
            procedures.append(make_procedure(arm.procedure, guess=guess, seed=own, carried=carried[track]))
        presented, given, numbers = _run(procedures, arm, person, rng)
        if session + 1 not in arm.training:
            levels, answers = levels + presented, answers + given
            trials += [(session, number) for number in numbers]
        if arm.carried:
            thresholds = map(threshold_of, procedures)
            carried = [one and Carried(one[0], math.hypot(one[1] or 0.0, arm.carried)) for one in thresholds]
    truth = person.truth(arm.axis, arm.reference)
    if arm.task == "adjustment":
        # With n degrees of freedom, the log of the sample variance is biased by psi(n/2) - ln(n/2), about -1/n.
        spread, freedom = (stdev(answers), len(answers) - 1) if len(answers) > 1 else (0.0, 1)
        found = math.log(spread) + 0.5 / freedom if spread > 0.0 else math.nan
        return found, math.log(truth["adjustment_sd"]), len(answers)
    if arm.task == "estimation":
        slope = float(np.polyfit(np.log(levels), np.log(answers), 1)[0]) * math.copysign(1.0, truth["exponent"])
        return (math.log(slope) if slope > 0.0 else math.nan), math.log(abs(truth["exponent"])), len(answers)
    if arm.task in SIGNAL:
        count = round(arm.null * len(levels) / (1.0 - arm.null))
        null = [_reports_signal(arm, person, 0.0, rng, 1 + round(k / arm.null)) for k in range(count)]
        among = [trials[k * len(trials) // count] for k in range(count)]  # evenly among the trials with a stimulus
        levels, answers, trials = [0.0] * len(null) + levels, null + answers, among + trials
        relative = noticed_at(arm.task, study.proportion, person.settings.false_alarms)
    else:
        relative = _NORMAL.inv_cdf(study.proportion) / _NORMAL.inv_cdf(0.75)  # two intervals, relative to 75 %
    found = _fitted(study, arm, levels, answers, trials)
    return found, math.log(truth["increment_75"] * relative), len(levels)


def _run(
    procedures: Sequence[Procedure], arm: Arm, person: SimulatedObserver, rng: np.random.Generator
) -> tuple[list[float], list[Any], list[int]]:
    """Run tracks to completion.

    Return the levels; the answers: numbers, or whether a stimulus was reported or the answer was correct; and the
    numbers of the trials in the session.
    """
    levels, answers, numbers = [], [], []
    for track, procedure in enumerate(procedures):
        number = track + 1
        while not procedure.finished:
            level = procedure.level()
            if arm.task in SIGNAL:
                answer: Any = _reports_signal(arm, person, level, rng, number)
            elif arm.task in _NUMBERS:
                trial = TrialView(arm.task, arm.axis, arm.reference, level, (level,), number=number)
                answer = float(person.answer(trial, rng).response)
            else:
                order = 1 + int(rng.random() < 0.5)
                values = (arm.reference, arm.reference + level)
                values = values if order == 2 else values[::-1]
                trial = TrialView(arm.task, arm.axis, arm.reference, level, values, order, number=number)
                answer = bool(person.answer(trial, rng).correct(trial))
            adjusted = arm.task == "adjustment"
            procedure.add_outcome(answer if adjusted else level, arm.task in _NUMBERS or answer)
            levels.append(level)
            answers.append(answer)
            numbers.append(number)
            number += arm.stride
    return levels, answers, numbers


def _reports_signal(arm: Arm, person: SimulatedObserver, level: float, rng: np.random.Generator, number: int) -> bool:
    """Return whether a stimulus or difference is reported in trial `number` of a detection or same-different task."""
    reference = arm.reference
    values = (reference + level,) if arm.task == "detection" else (reference, reference + level)
    trial = TrialView(arm.task, arm.axis, reference, level, values, 2 if len(values) == 2 else None, number=number)
    return person.answer(trial, rng).response == SIGNAL[arm.task]


def noticed_at(task: str, proportion: float, false_alarms: float) -> float:
    """Return the increment detected with a given proportion, relative to the increment with 75 % correct.

    The proportion excludes guesses: the probability of the response is P = F + (1 - F) proportion, where F is the false
    alarm rate. The 75 % refer to two intervals.
    """
    wanted = false_alarms + (1.0 - false_alarms) * proportion
    if task == "detection":
        return (_NORMAL.inv_cdf(wanted) + yes_criterion(false_alarms)) / (ROOT_2 * Z75)
    low, high = 0.0, 20.0
    for _ in range(80):  # bisection
        middle = 0.5 * (low + high)
        low, high = (middle, high) if different(middle, false_alarms) - wanted < 0.0 else (low, middle)
    return 0.5 * (low + high) / Z75


def _fitted(
    study: Study, arm: Arm, levels: list[float], correct: list[bool], trials: Sequence[tuple[int, int]]
) -> float:
    """Return the logarithm of the threshold fitted to the answers, nan for a bound.

    `trials` are the session of each answer, and the number of the trial in it.
    """
    from calibration.psychometric import fit_drift, fit_psychometric

    grid = possible_levels(procedure_settings(arm.procedure))
    chance = TASKS[arm.task].guess or 0.0
    if study.drift:
        order = sorted(range(len(trials)), key=trials.__getitem__)
        drift = fit_drift(
            [levels[k] for k in order],
            [correct[k] for k in order],
            guess="free" if arm.task in SIGNAL else chance,
            shape=study.shape,
            sessions=[trials[k][0] for k in order],
            times=[trials[k][1] for k in order],
        )
        estimate = drift.averaged.threshold(study.proportion)
        return math.nan if estimate.bound else math.log(estimate.value)
    distinct, place = np.unique(levels, return_inverse=True)
    right, total = np.bincount(place, correct), np.bincount(place)
    if not grid or arm.task in SIGNAL:
        guess: Guess = "free" if arm.task in SIGNAL else chance
        fit = fit_psychometric(distinct, right, total, guess=guess, shape=study.shape, scale="log")
        estimate = fit.threshold(study.proportion)
        return math.nan if estimate.bound else math.log(estimate.value)
    all_right, all_total = np.zeros((2, len(grid)))
    rows = np.searchsorted(grid, distinct)
    all_right[rows], all_total[rows] = right, total
    return math.log(_tables(grid, chance, study.shape).threshold(all_right, all_total, study.proportion).value)


@lru_cache(maxsize=16)
def _tables(levels: tuple[float, ...], guess: float, shape: str) -> Tables:
    from calibration.psychometric import psychometric_tables

    return psychometric_tables(levels, guess=guess, shape=shape, scale="log")


# --- study of an experiment file, and number of participants ----------------------------------------------------------

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
    task, axis, null = design.experiment.task, design.axis, design.catch.null
    if task == "estimation" and settings.question != "precision":
        raise ConfigurationError(
            "power.question = 'difference': the exponent of magnitude estimates is one of all conditions; ask for "
            "'precision'."
        )
    table = {**observer, "level": 1}
    typical = build(ObserverSettings, table, "observer")
    arms, schedule = [], design.schedule
    carried = schedule.spread if schedule.carry_over else 0.0
    chosen = _conditions(design, settings)
    for condition in chosen:
        procedure, allowed = design.procedure_of(condition), _FITTING.get(task, _PROCEDURES)
        if procedure["kind"] not in allowed:
            raise ConfigurationError(
                f"procedure.kind = {procedure['kind']!r}: does not measure the quantity of the task {task!r}; choose "
                f"one of {', '.join(allowed)}."
            )
        if task in SIGNAL and not null:
            raise ConfigurationError(
                f"catch.null = 0: in a task of {task} guesses are known from trials without a stimulus only; give a "
                "share."
            )
        reference = 0.0 if task == "estimation" else condition.reference  # exponents have no reference
        share = null if task in SIGNAL else 0.0
        interleaved = design.conditions if design.trials.interleave else (condition,)
        stride = sum(one.tracks for one in interleaved)
        arm = Arm(condition.name, task, axis, reference, condition.tracks, procedure, null=share, stride=stride)
        arms.append(replace(arm, sessions=max(schedule.sessions, 1), training=schedule.training, carried=carried))
    if settings.question != "precision":
        first, second = (typical.acuity(arm.axis).increment(arm.reference) / (arm.reference or 1.0) for arm in arms)
        spread = math.sqrt(math.log1p(settings.ratio_spread**2))
        arms[1] = replace(arms[1], factor=settings.ratio * first / second, spread=spread)
    shares = ()
    if settings.question == "groups":
        shares = design.groups.shares[:2]
        arms = [
            replace(arm, name=f"{group}: {arm.name}") for arm, group in zip(arms, design.groups.names[:2], strict=True)
        ]
    drift = task not in _NUMBERS and AnalysisSettings.of(design.tables.get("analysis", {})).drift == "auto"
    return Study(tuple(arms), table, settings.shape, settings.proportion, settings.seed, shares, drift)


def _conditions(design: Design, settings: PowerSettings) -> list[ConditionSettings]:
    """Return the one or two conditions of the question."""
    conditions = {one.name: one for one in design.conditions}
    names = list(conditions)
    if settings.question == "groups":
        return _conditions_of_groups(design, settings)
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


def _conditions_of_groups(design: Design, settings: PowerSettings) -> list[ConditionSettings]:
    """Return the condition of each of the first two groups: by default the first one that both have, or their first."""
    groups = design.groups.names[:2]
    if not groups:
        raise ConfigurationError("power.question = 'groups': needs the table [groups]; ask for 'difference'.")
    own = [{one.name: one for one in design.for_group(group).conditions} for group in groups]
    common = next((name for name in own[0] if name in own[1]), None)
    first = settings.first or common or next(iter(own[0]))
    second = settings.second or (first if first in own[1] else next(iter(own[1])))
    for setting, name, group, allowed in zip(("first", "second"), (first, second), groups, own, strict=True):
        if name not in allowed:
            raise ConfigurationError(
                f"power.{setting} = {name!r}: must be a condition of the group {group!r}: {', '.join(allowed)}."
            )
    return [own[0][first], own[1][second]]


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
        Results of `apps.experiment.power.simulate_people`.
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
    values = fractions[:, :, 0] if study.shares else found  # groups are different people
    analysed = max(design.schedule.sessions - len(design.schedule.training), 1)
    rows = plan(values[known], settings, study.shares)
    trials = {arm.name: float(count) for arm, count in zip(study.arms, results[:, :, 2].mean(axis=0), strict=True)}
    return {
        "experiment": design.experiment.name,
        **{name: getattr(settings, name) for name in _SETTINGS},
        **({"drift": "auto"} if study.drift else {}),
        "found": math.exp(float(found[known].mean())),
        "truth": math.exp(float(truth[known].mean())),
        "left_out": int(np.sum(~known)),
        "trials": trials,
        "minutes": minutes(design, {name: n / analysed for name, n in trials.items()}, reaction_time),
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


def plan(results: Array, settings: PowerSettings, shares: tuple[int, ...] = ()) -> list[Row]:
    """Return the power for each number of participants.

    Studies are drawn with replacement from the simulated observers. A study finds a difference if Student's t test of
    the logarithms of the within-participant ratios is significant. It reaches a precision if the 95 % interval of the
    geometric mean is narrow enough. Two groups are drawn independently and compared by Welch's t test. The interval of
    the power is found from bootstrapped pools of observers, so that it includes the sampling error of the pool.

    Parameters
    ----------
    results : (people,) or (people, 2) float array
        Logarithm of the ratio, or of the Weber fraction, of each observer; for two groups, of the Weber fraction that
        the observer has in each of them.
    settings : PowerSettings
        Question and numbers of participants.
    shares : tuple of int
        Relative sizes of the two groups.
    """
    seed, rows = trial_seed(settings.seed, 0, 0, 0, 0), []
    for count in settings.participants:
        found, half = _studies(results, count, _STUDIES, settings, child(seed, 0, count), shares)
        powers = []
        for number in range(_POOLS):  # the same pools for all numbers of participants give comparable intervals
            pool = results[child(seed, 1, number).integers(len(results), size=len(results))]
            drawn, _ = _studies(pool, count, _STUDIES_OF_A_POOL, settings, child(seed, 2, number), shares)
            powers.append(float(drawn.mean()))
        power = float(found.mean())
        low, high = np.quantile(powers, (0.025, 0.975))
        half_width = float(np.expm1(np.mean(half)))
        rows.append(Row(count, power, min(float(low), power), max(float(high), power), half_width))
    return rows


def _studies(
    results: Array,
    count: int,
    studies: int,
    settings: PowerSettings,
    rng: np.random.Generator,
    shares: tuple[int, ...] = (),
) -> tuple[NDArray[np.bool_], Array]:
    """Draw studies.

    Return which of them succeed, and the half-widths of their 95 % intervals.
    """
    if shares:
        return _studies_of_groups(results, count, shares, studies, settings, rng)
    sample = results[rng.integers(len(results), size=(studies, count))]
    error = sample.std(axis=1, ddof=1) / np.sqrt(count)
    half = error * reach(_CONFIDENCE, count)
    if settings.question == "precision":
        return half <= np.log1p(settings.precision), half
    return np.abs(sample.mean(axis=1)) > error * reach(1.0 - settings.alpha, count), half


def _studies_of_groups(
    results: Array,
    count: int,
    shares: tuple[int, ...],
    studies: int,
    settings: PowerSettings,
    rng: np.random.Generator,
) -> tuple[NDArray[np.bool_], Array]:
    """Draw studies of two groups, with `count` participants in all, like `_studies`."""
    from calibration.fitting.intervals import quantile

    second = min(max(round(count * shares[1] / sum(shares)), 2), count - 2)
    sizes = count - second, second
    samples = [results[rng.integers(len(results), size=(studies, size)), group] for group, size in enumerate(sizes)]
    errors = np.array([sample.var(axis=1, ddof=1) / sample.shape[1] for sample in samples])
    degrees = errors.sum(axis=0) ** 2 / sum(one**2 / (size - 1) for one, size in zip(errors, sizes, strict=True))
    error, difference = np.sqrt(errors.sum(axis=0)), np.abs(samples[1].mean(axis=1) - samples[0].mean(axis=1))
    return difference > error * quantile(1.0 - settings.alpha, degrees), error * quantile(_CONFIDENCE, degrees)


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
        "groups": f"how often the groups {names} differ significantly, their Weber fractions having the ratio "
        f"{result['ratio']:g}",
        "precision": f"how often {names} is known within {result['precision']:.0%}",
    }[result["question"]]
    trials = " + ".join(f"{count:.0f}" for count in result["trials"].values())
    head = [
        f"{result['experiment']}: {question}",
        f"{result['people']} simulated people with {trials} trials each, {result['seconds']:.1f} s; recovered "
        f"{result['found']:.3g}, in truth {result['truth']:.3g}; {result['left_out']} without a threshold",
        *(["fitted with a threshold that may change within a session (analysis.drift)"] if "drift" in result else []),
        f"a participant takes {result['minutes']:.0f} min at most",
        "",
        "participants  power  95 % interval  result known within",
    ]
    rows = [
        f"{row['participants']:>12}  {row['power']:>5.2f}  {row['low']:.2f} to {row['high']:.2f}   "
        f"{row['half_width']:>7.0%}"
        for row in result["power"]
    ]
    advice = [f"None of these numbers has a power of {result['wanted']:g}: take more participants or trials."]
    if result["enough"] is not None:
        advice = [f"{result['enough']} participants are enough for a power of {result['wanted']:g}."]
    if result["left_out"] > _MANY * result["people"]:
        advice.append(
            f"Of {result['left_out'] / result['people']:.0%} of the people only a bound is known at a proportion of "
            f"{result['proportion']:g}. They are left out, which makes the plan doubtful: read thresholds off where "
            "the procedure presents its trials (power.proportion), or give it more trials or other levels."
        )
    return "\n".join([*map(wrapped, head), *rows, "", *map(wrapped, (*advice, STATEMENT))])
