"""Analysis of each task: two-interval choices, yes/no and same/different answers, adjustments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

from apps.experiment.journal.tables import Row
from apps.experiment.report.results import ConditionResult, Difference
from apps.experiment.report.settings import AnalysisSettings
from calibration.psychometric import (
    Detectability,
    OrderBias,
    PsychometricFit,
    detectability,
    fit_psychometric,
    mean_and_spread,
    order_bias,
    spearman_karber,
)
from haptics.errors import ConfigurationError

Truth = Mapping[str, Any]

_Z75 = NormalDist().inv_cdf(0.75)

_FEWEST_FOR_ORDER = 12
"""Minimum number of trials for an estimate of the interval bias."""

_SIGNAL = {"detection": "yes", "same-different": "different"}

SPREAD_PERCENT = 84.13
"""Percentage correct at one standard deviation of the adjustments."""


def levels_of(rows: Sequence[Row], stimulus: str) -> list[float]:
    """Return the specified, delivered or felt levels of trials.

    Raises
    ------
    ConfigurationError
        If the level of a trial is unknown.
    """
    if stimulus == "asked":
        return [float(row["level"]) for row in rows]
    return [_measured(row, stimulus) for row in rows]


def _measured(row: Row, stimulus: str) -> float:
    """Return the delivered or felt difference between comparison and reference, at least 0."""
    number = int(row["comparison_interval"] or 1)
    with_level, without = row[f"{stimulus}_{number}"], row[f"{stimulus}_{3 - number}"]
    if with_level is None:
        raise ConfigurationError(
            f"analysis.stimulus = {stimulus!r}: trial {row['trial']} has none "
            f"({row['stimulus_missing'] or 'not measured'}); fit what was asked."
        )
    return max(float(with_level) - float(row["reference"] or 0.0 if without is None else without), 0.0)


def true_increment(truth: Truth, proportion_correct: float) -> float | None:
    """Return the true increment of a simulated observer at a proportion correct, None for participants.

    J_p = J_75 z(p)/z(0.75) in two intervals, where z is the quantile function of the normal distribution.
    """
    if "increment_75" not in truth:
        return None
    return float(truth["increment_75"]) * NormalDist().inv_cdf(proportion_correct) / _Z75


def differences_of(
    fit: PsychometricFit, reference: float, settings: AnalysisSettings, truth: Truth
) -> tuple[Difference, ...]:
    """Return the differences of a fit at each percentage in the settings."""
    found = []
    for percent in settings.percent:
        jnd = fit.threshold(percent / 100.0, settings.probability)
        true = true_increment(truth, percent / 100.0)
        weber = jnd.scaled(1.0 / reference) if reference > 0.0 else None
        true_weber = true / reference if true is not None and reference > 0.0 else None
        found.append(Difference(percent, jnd, weber, true, true_weber))
    return tuple(found)


def chosen(
    name: str,
    reference: float,
    rows: list[Row],
    guess: float,
    settings: AnalysisSettings,
    procedures: tuple[dict[str, Any], ...],
    truth: Truth,
) -> ConditionResult:
    """Analyse two-interval trials: differences at the percentages in the settings, and interval bias."""
    right = [int(bool(row["correct"])) for row in rows]
    levels, ones = levels_of(rows, settings.stimulus), [1] * len(rows)
    fit = fit_psychometric(levels, right, ones, guess=guess, shape=settings.shape, scale="log")
    check = None
    if len(set(levels)) > 1:
        check = spearman_karber(levels, right, ones, guess=guess, scale="log", probability=settings.probability)
    return ConditionResult(
        name,
        reference,
        rows,
        fit,
        differences_of(fit, reference, settings, truth),
        check,
        _order(rows, settings.probability),
        procedures=procedures,
        notes=fit.notes,
    )


def _order(rows: list[Row], probability: float) -> OrderBias | None:
    used = [row for row in rows if row["comparison_interval"] in {1, 2}]
    intervals = [int(row["comparison_interval"]) for row in used]
    if len(used) < _FEWEST_FOR_ORDER or len(set(intervals)) < 2:
        return None
    correct = [bool(row["correct"]) for row in used]
    return order_bias([float(row["level"]) for row in used], intervals, correct, probability=probability)


def answered_words(
    name: str,
    reference: float,
    rows: list[Row],
    null: list[Row],
    task: str,
    settings: AnalysisSettings,
    procedures: tuple[dict[str, Any], ...],
) -> ConditionResult:
    """Analyse yes/no or same/different trials: thresholds without guessing, d' and criterion by level."""
    every = [*null, *rows]
    said = [int(row["response"] == _SIGNAL[task]) for row in every]
    levels = [0.0] * len(null) + levels_of(rows, settings.stimulus)
    fit = fit_psychometric(levels, said, [1] * len(every), guess="free", shape=settings.shape, scale="log")
    found = []
    for percent in settings.percent:
        jnd = fit.threshold(percent / 100.0, settings.probability)
        found.append(Difference(percent, jnd, jnd.scaled(1.0 / reference) if reference > 0.0 else None))
    notes = fit.notes
    if not null:
        notes += ("There were no trials without a stimulus: guesses and d' are not known.",)
    levels_told = _detectability(rows, null, task, settings.probability)
    return ConditionResult(
        name, reference, rows, fit, tuple(found), detectability=levels_told, procedures=procedures, notes=notes
    )


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


def adjusted(name: str, reference: float, rows: list[Row], settings: AnalysisSettings, truth: Truth) -> ConditionResult:
    """Analyse adjustments: point of subjective equality and spread."""
    values = [float(row["response"]) for row in rows if row["response"] is not None]
    if len(values) < 2:
        return ConditionResult(name, reference, rows, notes=("Fewer than two adjustments: nothing can be said.",))
    point, spread = mean_and_spread(values, settings.probability)
    true = truth.get("adjustment_sd")
    found = Difference(
        SPREAD_PERCENT,
        spread,
        spread.scaled(1.0 / reference) if reference > 0.0 else None,
        true,
        true / reference if true is not None and reference > 0.0 else None,
    )
    return ConditionResult(name, reference, rows, differences=(found,), settings={"point": point, "spread": spread})
