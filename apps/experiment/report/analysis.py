"""Analysis of participants and of the group: fits for each task, true parameters of simulated observers, results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from statistics import NormalDist
from typing import Any

from apps.experiment.journal.journal import Attempt, SessionState
from apps.experiment.journal.schema import BLOCK_REPEATED
from apps.experiment.journal.tables import Row
from apps.experiment.observers import make_observer
from apps.experiment.procedures.methods import make_procedure, person_seed, trial_seed
from apps.experiment.procedures.settings import StaircaseSettings, procedure_settings
from apps.experiment.report.data import Experiment, Person
from apps.experiment.schedule import carried_thresholds
from apps.experiment.settings import AnalysisSettings
from calibration.psychometric import (
    Detectability,
    DriftFit,
    Estimate,
    Group,
    Magnitude,
    OrderBias,
    PsychometricFit,
    detectability,
    fit_drift,
    fit_psychometric,
    group_estimate,
    magnitude_exponent,
    mean_and_spread,
    order_bias,
    proportion,
    spearman_karber,
)
from calibration.psychometric.posterior import Guess
from haptics.errors import ConfigurationError


@dataclass(frozen=True)
class Difference:
    """Just noticeable difference at a percentage of correct answers.

    Attributes
    ----------
    percent : float
        Percentage correct without lapses; 84.13 for the spread of adjustments.
    jnd : Estimate
        Difference in units of the axis.
    weber : Estimate or None
        Difference relative to the reference, if any.
    true_jnd, true_weber : float or None
        True values of a simulated observer.
    """

    percent: float
    jnd: Estimate
    weber: Estimate | None
    true_jnd: float | None = None
    true_weber: float | None = None

    @property
    def holds_truth(self) -> bool | None:
        """Whether the interval contains the true value of a simulated observer, None for a participant."""
        return None if self.true_jnd is None else self.jnd.low <= self.true_jnd <= self.jnd.high


@dataclass(frozen=True)
class ConditionResult:
    """Results of a condition.

    Attributes
    ----------
    name : str
        Name of the condition.
    reference : float
        Reference on the axis, 0 without one.
    rows : list of dict
        Trials that count.
    differences : tuple of Difference
        Differences by percentage.
    fit : PsychometricFit or None
        None if the task has no psychometric function or the data are insufficient.
    check : Estimate or None
        Spearman-Karber mean.
    order : OrderBias or None
        Interval bias in tasks with two intervals.
    detectability : dict
        d' and criterion by level, in yes/no and same/different tasks.
    settings : dict
        Mean and spread of adjustments.
    drift : DriftFit or None
        Fit with a changing threshold, with ``analysis.drift = "auto"``.
    procedures : list of dict
        Report of each track's procedure, with the name of the track.
    notes : tuple of str
        Notes on the result.
    """

    name: str
    reference: float
    rows: list[dict[str, Any]]
    differences: tuple[Difference, ...] = ()
    fit: PsychometricFit | None = None
    check: Estimate | None = None
    order: OrderBias | None = None
    detectability: Mapping[float, Detectability] = field(default_factory=dict)
    settings: Mapping[str, Estimate] = field(default_factory=dict)
    drift: DriftFit | None = None
    procedures: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CatchResult:
    """Results of the catch trials.

    Attributes
    ----------
    easy, easy_wrong : int
        Number of easy trials, and of wrong answers to them.
    null, null_second : int
        Number of trials without a difference, and of the answers ``2``, ``yes`` or ``different``.
    lapse, preference : Estimate or None
        Proportions, if there are such trials.
    """

    easy: int
    easy_wrong: int
    null: int
    null_second: int
    lapse: Estimate | None
    preference: Estimate | None


@dataclass(frozen=True)
class PersonResult:
    """Results of a participant.

    Attributes
    ----------
    code : str
        Code of the participant.
    conditions : tuple of ConditionResult
        Conditions in the order of their references.
    catches : CatchResult
        Results of the catch trials.
    magnitude : Magnitude or None
        Result of magnitude estimation.
    truth : dict
        True parameters of a simulated observer by condition, empty for a participant.
    excluded : tuple of str
        Reasons for an exclusion from the group.
    repeated : dict
        Number of attempts that do not count for each reason; an attempt may have several reasons.
    """

    code: str
    conditions: tuple[ConditionResult, ...]
    catches: CatchResult
    magnitude: Magnitude | None
    truth: Mapping[str, Mapping[str, Any]]
    excluded: tuple[str, ...]
    repeated: Mapping[str, int]


@dataclass(frozen=True)
class GroupCondition:
    """Results over participants in a condition, at one percentage.

    Attributes
    ----------
    name : str
        Name of the condition.
    reference, percent : float
        As in `ConditionResult` and `Difference`.
    jnd, weber : Group or None
        Estimates over included participants, None if there are only bounds.
    true_weber : float or None
        Geometric mean of the true values of simulated observers.
    held, simulated : int
        Number of simulated observers whose interval contains the true value, and of all simulated observers.
    """

    name: str
    reference: float
    percent: float
    jnd: Group | None
    weber: Group | None
    true_weber: float | None
    held: int
    simulated: int


@dataclass(frozen=True)
class GroupResult:
    """Results over participants.

    Attributes
    ----------
    counted : int
        Number of included participants.
    conditions : tuple of GroupCondition
        Results by condition and percentage.
    magnitude : Magnitude or None
        Result of magnitude estimation.
    """

    counted: int
    conditions: tuple[GroupCondition, ...]
    magnitude: Magnitude | None


_KEYS = {
    **{"name": "condition", "rows": "trials", "check": "spearman_karber", "order": "order_bias"},
    **{"settings": "adjustment", "weber": "weber_fraction", "true_weber": "true_weber_fraction"},
    **{"code": "participant", "catches": "catch_trials", "counted": "participants"},
    **{"held": "intervals_that_hold_the_truth", "simulated": "simulated_observers"},
}
"""JSON keys of the fields that have other names."""


def as_json(value: Any) -> Any:
    """Return a result of the analysis, or a part of it, for JSON."""
    match value:
        case Mapping():
            return {name: as_json(one) for name, one in value.items()}
        case list() | tuple():
            return [as_json(one) for one in value]
        case Estimate() | PsychometricFit():
            return value.as_dict()
        case DriftFit():
            return None  # part of the condition
        case OrderBias() | Detectability():
            names = ("level", "preference") if isinstance(value, OrderBias) else ("d_prime", "criterion")
            return {name: getattr(value, name).as_dict() for name in names}
        case Magnitude():
            return {
                "exponent": value.exponent.as_dict(),
                "factor": value.factor.as_dict(),
                "levels": value.levels.tolist(),
                "geometric_means": value.means.tolist(),
                "exponents": {str(who): one for who, one in value.exponents.items()},
            }
        case Group():
            cvs = {"cv": value.cv, "cv_between": value.cv_between}
            finite = {name: one if math.isfinite(one) else None for name, one in cvs.items()}
            return {"mean": value.mean.as_dict(), **finite, "participants": value.count, "bounds": value.bounds}
    if not is_dataclass(value):
        return value
    found = {_KEYS.get(one.name, one.name): as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Difference):
        found["interval_holds_truth"] = value.holds_truth
    elif isinstance(value, ConditionResult):
        levels = [{"level": level, **as_json(one)} for level, one in value.detectability.items()]
        found |= {"trials": len(value.rows), "detectability": levels}
        del found["drift"]
        if value.drift is not None:
            found["drift"] = _drift_as_json(value.drift, value.differences)
    return found


def _drift_as_json(drift: DriftFit, differences: Sequence[Difference]) -> dict[str, Any]:
    """Return the evidence for a change, its size, and the threshold over the trials."""
    courses = [
        {
            "percent": one.percent,
            "session": course.session,
            "trials": course.times.tolist(),
            **{name: getattr(course, name).tolist() for name in ("middle", "low", "high")},
        }
        for one in differences
        for course in drift.time_courses(one.percent / 100.0, one.jnd.probability)
    ]
    found = {"changes": drift.changes, "bayes_factor": drift.bayes_factor, "size": drift.size.as_dict()}
    constant = [
        {
            "percent": one.percent,
            "average_of_these_sessions": drift.constant.threshold(one.percent / 100.0, one.jnd.probability).as_dict(),
        }
        for one in differences
    ]
    return {**found, "constant": constant, "courses": courses}


# --- analysis ---------------------------------------------------------------------------------------------------------

SPREAD_PERCENT = 84.13
"""Percentage correct at one standard deviation of the adjustments."""

_USUAL_ERRORS = 0.2
"""Default fraction of easy catch trials that may be wrong."""

_FEWEST_FOR_ORDER = 12
"""Minimum number of trials for an estimate of the interval bias."""

_SIGNAL = {"detection": "yes", "same-different": "different"}
_Z75 = NormalDist().inv_cdf(0.75)

Truth = Mapping[str, Any]


def analyse(experiment: Experiment, person: Person, settings: AnalysisSettings) -> PersonResult:
    """Return the results of a participant."""
    tested, catches = person.trials(), catch_trials(person, settings.probability)
    every: dict[str, set[float]] = {}
    for row in tested:
        every.setdefault(str(row["condition"]), set()).add(float(row["reference"] or 0.0))
    references = {name: min(one) if len(one) == 1 else 0.0 for name, one in every.items()}
    conditions, truth = [], {}
    for name, reference in sorted(references.items(), key=lambda one: (one[1], one[0])):
        true = _truth(experiment, person, reference) if len(every[name]) == 1 else {}
        result = _condition(experiment, person, name, reference, settings, true)
        if len(every[name]) > 1:
            listed = ", ".join(f"{one:g}" for one in sorted(every[name]))
            note = f"The trials have several references ({listed}): there is no Weber fraction."
            result = replace(result, notes=(*result.notes, note))
        conditions.append(result)
        if true:
            truth[name] = true
    magnitude = _magnitude([person], settings) if experiment.task_name == "estimation" else None
    excluded = []
    most = float(experiment.table("catch").get("most_errors", _USUAL_ERRORS))
    if catches.easy and catches.easy_wrong / catches.easy > most:
        excluded.append(
            f"{catches.easy_wrong} of {catches.easy} easy catch trials were answered wrongly, more than {most:.0%}"
        )
    if not tested:
        excluded.append("no trial counts")
    repeated: Counter[str] = Counter()  # attempts that do not count, by reason
    for session in person.sessions:
        for attempt in session.state.attempts:
            if attempt.end is None or attempt.counts:
                continue
            if attempt.end["outcome"] == "ok":
                repeated[_withdrawal(session.state, attempt)] += 1
            else:
                repeated.update(attempt.end["reasons"] or [attempt.end["outcome"]])
    sorted_reasons = dict(sorted(repeated.items()))
    return PersonResult(person.code, tuple(conditions), catches, magnitude, truth, tuple(excluded), sorted_reasons)


def _withdrawal(state: SessionState, attempt: Attempt) -> str:
    """Return why an attempt that was answered does not count."""
    ended = 0 if attempt.end is None else attempt.end["number"]
    redone = (one for one in state.events if one["name"] == "redo" and one.get("trial") == attempt.trial)
    first = next((one for one in redone if one["number"] > ended), {})
    whole = first.get("why") == BLOCK_REPEATED
    return "block repeated after an interruption" if whole else "withdrawn by the participant or the experimenter"


def analyse_group(experiment: Experiment, people: Sequence[PersonResult], settings: AnalysisSettings) -> GroupResult:
    """Return the results over the participants that are not excluded."""
    counted = [one for one in people if not one.excluded]
    references = {condition.name: condition.reference for one in people for condition in one.conditions}
    found = []
    for name, reference in sorted(references.items(), key=lambda one: (one[1], one[0])):
        own = [one for person in counted for cond in person.conditions if cond.name == name for one in cond.differences]
        for percent in sorted({one.percent for one in own}):
            at = [one for one in own if one.percent == percent]
            jnd, weber = (
                None if all(one.bound for one in every) else group_estimate(every, settings.probability)
                for every in ([one.jnd for one in at], [one.weber for one in at if one.weber is not None])
            )
            true = [one.true_weber for one in at if one.true_weber]
            found.append(
                GroupCondition(
                    name,
                    reference,
                    percent,
                    jnd,
                    weber,
                    math.exp(sum(map(math.log, true)) / len(true)) if true else None,
                    sum(bool(one.holds_truth) for one in at),
                    sum(one.holds_truth is not None for one in at),
                )
            )
    magnitude = None
    if experiment.task_name == "estimation":
        codes = {one.code for one in counted}
        included = [person for person in experiment.people if person.code in codes]
        magnitude = _magnitude(included, settings, several=True)
    return GroupResult(len(counted), tuple(found), magnitude)


def _magnitude(people: Sequence[Person], settings: AnalysisSettings, *, several: bool = False) -> Magnitude | None:
    """Return the power law of magnitude estimates, or None if there are too few different stimuli."""
    given = [(person.code, *both) for person in people for both in zip(*estimates_of(person), strict=True)]
    who, stimuli, estimates = ([one[k] for one in given] for k in range(3))
    try:
        return magnitude_exponent(stimuli, estimates, who if several else None, settings.probability)
    except ConfigurationError:
        return None  # the trials are still reported


def estimates_of(person: Person) -> tuple[list[float], list[float]]:
    """Return the stimuli and the responses of magnitude estimation."""
    rows = [row for row in person.trials() if row["response"] is not None and row["asked_1"]]
    return [float(row["asked_1"]) for row in rows], [float(row["response"]) for row in rows]


def catch_trials(person: Person, probability: float) -> CatchResult:
    """Return the results of the catch trials."""
    easy = [row for row in person.trials("catch-easy") if row["correct"] is not None]
    null = [row for row in person.trials("catch-null") if row["response"] is not None]
    wrong = sum(not row["correct"] for row in easy)
    second = sum(str(row["response"]) in {"2", "yes", "different"} for row in null)
    return CatchResult(
        len(easy),
        wrong,
        len(null),
        second,
        proportion(wrong, len(easy), probability) if easy else None,
        proportion(second, len(null), probability) if null else None,
    )


def staircase_percent(experiment: Experiment) -> list[float]:
    """Return the target percentages of the staircases of an experiment [%].

    A staircase stays near its target, so that thresholds at other percentages are often outside its levels.
    """
    names = {str(row["condition"]) for session in experiment.sessions for row in session.rows}
    tables = [_procedure_table(experiment.design, name) for name in sorted(names)]
    settings = [procedure_settings(table) for table in tables if table.get("kind") == "staircase"]
    return sorted({round(100.0 * float(one.target), 2) for one in settings if isinstance(one, StaircaseSettings)})


def _truth(experiment: Experiment, person: Person, reference: float) -> Truth:
    """Return the true parameters of a simulated observer, empty for a participant.

    The observer is constructed from the settings in the journal and the seed, as in the session.
    """
    header = person.sessions[0].header
    if header["observer"] is None:
        return {}
    table = {key: value for key, value in header["observer"].items() if key != "name"}
    return make_observer(table, seed=person_seed(int(header["seed"]), person.code)).truth(experiment.axis, reference)


def _procedure_table(design: Mapping[str, Any], condition: str) -> dict[str, Any]:
    given, common = design.get("conditions"), design.get("procedure")
    named = given if isinstance(given, list) else []
    own = next((one.get("procedure") or {} for one in named if str(one.get("name")) == condition), {})
    return {**(common if isinstance(common, dict) else {}), **own}


def _procedures(experiment: Experiment, person: Person, condition: str) -> list[dict[str, Any]]:
    """Return the report of each track's procedure after replaying its answers."""
    found = []
    for session in person.sessions:
        table = _procedure_table(session.header["design"], condition)
        if table.get("kind") not in {"staircase", "quest+"}:
            continue
        carried = carried_thresholds(session.state)
        tested = [row for row in session.counted if row["kind"] == "test" and str(row["condition"]) == condition]
        rows, _ = _graded(tested)
        for track in sorted({str(row["track"]) for row in rows}):
            seed = trial_seed(0, 0, 0, 0, 0)  # these procedures draw nothing
            guess = experiment.task.guess or 0.0
            procedure = make_procedure(table, guess=guess, seed=seed, carried=carried.get(track))
            for row in rows:
                if str(row["track"]) == track:
                    procedure.add_outcome(float(row["level"]), bool(row["correct"]))
            found.append({"session": session.place.session, "track": track, **procedure.report()})
    return found


# --- conditions of each task ---


def _condition(
    experiment: Experiment, person: Person, name: str, reference: float, settings: AnalysisSettings, truth: Truth
) -> ConditionResult:
    rows = [row for row in person.trials() if str(row["condition"]) == name]
    if experiment.task_name == "estimation":
        return ConditionResult(name, reference, rows)
    if experiment.task_name == "adjustment":
        return _adjusted(name, reference, rows, settings, truth)
    rows, missing = _graded(rows)
    if not rows:
        return ConditionResult(name, reference, rows, notes=missing)
    null = [row for row in person.trials("catch-null") if str(row["condition"]) == name and row["response"] is not None]
    procedures = tuple(_procedures(experiment, person, name))
    levels = levels_of(rows, settings.stimulus)
    guess, task, probability = experiment.task.guess, experiment.task_name, settings.probability
    if guess is not None:  # a choice between two intervals
        fitted, right = rows, [int(bool(row["correct"])) for row in rows]
        check = None
        if len(set(levels)) > 1:
            check = spearman_karber(levels, right, [1] * len(rows), guess=guess, scale="log", probability=probability)
        order, d_primes = _order(rows, probability), {}
    else:  # the thresholds of reports exclude guesses
        fitted = [*null, *rows]
        right = [int(row["response"] == _SIGNAL[task]) for row in fitted]
        levels = [0.0] * len(null) + levels
        check, order, d_primes = None, None, _detectability(rows, null, task, probability)
    rule: Guess = "free" if guess is None else guess
    drift = None
    if settings.drift == "auto":
        order_of = sorted(range(len(fitted)), key=lambda k: (int(fitted[k]["session"]), int(fitted[k]["trial"])))
        drift = fit_drift(
            [levels[k] for k in order_of],
            [right[k] for k in order_of],
            guess=rule,
            shape=settings.shape,
            sessions=[int(fitted[k]["session"]) for k in order_of],
            times=[int(fitted[k]["trial"]) for k in order_of],
        )
        fit = drift.averaged
    else:
        fit = fit_psychometric(levels, right, [1] * len(levels), guess=rule, shape=settings.shape, scale="log")
    notes = missing + fit.notes
    if guess is None and not null:
        notes += ("There were no trials without a stimulus: guesses and d' are not known.",)
    if drift is not None and drift.changes:
        notes += (
            f"The threshold changed within the session (Bayes factor {drift.bayes_factor:.2g}, standard deviation of "
            f"its logarithm {drift.size.text('.2g')}): the difference is the usual one, about which it changed.",
        )
    differences = []
    for percent in settings.percent:
        jnd = fit.threshold(percent / 100.0, probability)
        true = None
        if guess is not None and "increment_75" in truth:
            # J_p = J_75 z(p)/z(0.75) in two intervals, where z is the quantile function of the normal distribution
            true = float(truth["increment_75"]) * NormalDist().inv_cdf(percent / 100.0) / _Z75
        differences.append(_difference(percent, jnd, reference, true))
    return ConditionResult(
        name,
        reference,
        rows,
        tuple(differences),
        fit,
        check,
        order,
        d_primes,
        drift=drift,
        procedures=procedures,
        notes=notes,
    )


def _graded(rows: list[Row]) -> tuple[list[Row], tuple[str, ...]]:
    """Return the trials with a level and an answer that is right or wrong, and a note if a program left one out."""
    graded = [row for row in rows if all(row[name] is not None for name in ("level", "response", "correct"))]
    if len(graded) == len(rows):
        return rows, ()
    count = f"{len(rows) - len(graded)} of {len(rows)} trials"
    return graded, (f"{count} have no level, or no answer that is right or wrong: they are left out.",)


def _difference(percent: float, jnd: Estimate, reference: float, true: float | None) -> Difference:
    if not reference > 0.0:
        return Difference(percent, jnd, None, true)
    return Difference(percent, jnd, jnd.scaled(1.0 / reference), true, None if true is None else true / reference)


def levels_of(rows: Sequence[Row], stimulus: str) -> list[float]:
    """Return the specified levels of trials, or the delivered or felt differences from the reference, at least 0.

    Where nothing is presented besides the level, as in a detection, the reference is 0.

    Raises
    ------
    ConfigurationError
        If the level of a trial is unknown.
    """
    if stimulus == "asked":
        return [float(row["level"]) for row in rows]
    levels = []
    for row in rows:
        number = int(row["comparison_interval"] or 1)
        with_level, without = row[f"{stimulus}_{number}"], row[f"{stimulus}_{3 - number}"]
        known = without is not None or row["asked_2"] is None or not row["reference"]
        if with_level is None or not known:  # the specified reference is no substitute for a stimulus that was rendered
            raise ConfigurationError(
                f"analysis.stimulus = {stimulus!r}: trial {row['trial']} has none "
                f"({row['stimulus_missing'] or 'not measured'}); use analysis.stimulus = 'asked'."
            )
        levels.append(max(float(with_level) - float(row["reference"] or 0.0 if without is None else without), 0.0))
    return levels


def _order(rows: list[Row], probability: float) -> OrderBias | None:
    used = [row for row in rows if row["comparison_interval"] in {1, 2}]
    intervals = [int(row["comparison_interval"]) for row in used]
    if len(used) < _FEWEST_FOR_ORDER or len(set(intervals)) < 2:
        return None
    correct = [bool(row["correct"]) for row in used]
    return order_bias([float(row["level"]) for row in used], intervals, correct, probability=probability)


def _detectability(rows: list[Row], null: list[Row], task: str, probability: float) -> dict[float, Detectability]:
    if not null:
        return {}
    rule = "yes-no" if task == "detection" else "same-different"
    alarms = sum(row["response"] == _SIGNAL[task] for row in null)
    found = {}
    for level in sorted({float(row["level"]) for row in rows}):
        at = [row for row in rows if float(row["level"]) == level]
        hits = sum(row["response"] == _SIGNAL[task] for row in at)
        counts = hits, len(at) - hits, alarms, len(null) - alarms
        found[level] = detectability(*counts, task=rule, probability=probability)  # type: ignore[arg-type]
    return found


def _adjusted(
    name: str, reference: float, rows: list[Row], settings: AnalysisSettings, truth: Truth
) -> ConditionResult:
    """Analyse adjustments: point of subjective equality and spread."""
    values = [float(row["response"]) for row in rows if row["response"] is not None]
    if len(values) < 2:
        return ConditionResult(name, reference, rows, notes=("Fewer than two adjustments: nothing can be said.",))
    point, spread = mean_and_spread(values, settings.probability)
    found = _difference(SPREAD_PERCENT, spread, reference, truth.get("adjustment_sd"))
    return ConditionResult(name, reference, rows, differences=(found,), settings={"point": point, "spread": spread})
