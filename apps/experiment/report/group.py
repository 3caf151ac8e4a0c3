"""Analysis of the group: means over included participants, and coverage of the true parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from apps.experiment.report.analysis import estimates_of
from apps.experiment.report.results import Difference, GroupCondition, GroupResult, PersonResult
from apps.experiment.report.sessions import Experiment
from apps.experiment.report.settings import AnalysisSettings
from calibration.psychometric import Estimate, Group, Magnitude, group_estimate, magnitude_exponent
from haptics.errors import ConfigurationError


def analyse_group(experiment: Experiment, people: Sequence[PersonResult], settings: AnalysisSettings) -> GroupResult:
    """Return the results over the participants that are not excluded."""
    counted = [one for one in people if not one.excluded]
    references = {condition.name: condition.reference for one in people for condition in one.conditions}
    found = []
    for name, reference in sorted(references.items(), key=lambda one: (one[1], one[0])):
        for percent in _percents(counted, name):
            own = [difference for one in counted for difference in _at(one, name, percent)]
            found.append(_condition(name, reference, percent, own, settings.probability))
    return GroupResult(tuple(found), _magnitude(experiment, counted, settings), len(counted))


def _percents(people: Sequence[PersonResult], name: str) -> list[float]:
    return sorted(
        {
            one.percent
            for person in people
            for cond in person.conditions
            if cond.name == name
            for one in cond.differences
        }
    )


def _at(person: PersonResult, name: str, percent: float) -> list[Difference]:
    return [
        one for cond in person.conditions if cond.name == name for one in cond.differences if one.percent == percent
    ]


def _condition(
    name: str, reference: float, percent: float, own: list[Difference], probability: float
) -> GroupCondition:
    true = [one.true_weber for one in own if one.true_weber]
    return GroupCondition(
        name,
        reference,
        percent,
        _mean([one.jnd for one in own], probability),
        _mean([one.weber for one in own if one.weber is not None], probability),
        math.exp(sum(map(math.log, true)) / len(true)) if true else None,
        sum(bool(one.holds_truth) for one in own),
        sum(one.holds_truth is not None for one in own),
    )


def _mean(estimates: Sequence[Estimate], probability: float) -> Group | None:
    if all(one.bound for one in estimates):
        return None
    return group_estimate(estimates, probability)


def _magnitude(experiment: Experiment, people: Sequence[PersonResult], settings: AnalysisSettings) -> Magnitude | None:
    if experiment.task_name != "estimation":
        return None
    stimuli: list[float] = []
    numbers: list[float] = []
    who: list[str] = []
    codes = {one.code for one in people}
    for person in experiment.people:
        if person.code in codes:
            given = estimates_of(person)
            stimuli += given[0]
            numbers += given[1]
            who += [person.code] * len(given[0])
    try:
        return magnitude_exponent(stimuli, numbers, who, settings.probability)
    except ConfigurationError:
        return None
