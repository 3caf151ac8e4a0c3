"""Effects on thresholds: ratios between the levels of a factor, and between groups of participants."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

import numpy as np

from apps.experiment.journal.tables import factors_of
from apps.experiment.report.analysis import PersonResult
from apps.experiment.report.data import Experiment
from apps.experiment.settings import AnalysisSettings
from calibration.fitting.intervals import quantile
from calibration.psychometric import Estimate, mean_and_spread


@dataclass(frozen=True)
class Effect:
    """Ratio of the thresholds at two levels of a factor.

    Attributes
    ----------
    factor, first, second : str
        Factor, and the compared levels; ``group`` and the names of two groups; for an interaction the factor with two
        levels, ``damping (high / low) by group``, and the groups whose ratios are compared.
    percent : float
        Percentage correct that defines the thresholds.
    quantity : str
        ``weber_fraction``, or ``jnd`` in conditions without a reference.
    ratio : Estimate or None
        Geometric mean over participants of the ratio of `second` to `first`, with the interval of Student's t on
        logarithms; between groups the ratio of geometric means, with the interval of Welch; for an interaction, this
        ratio of the participants' ratios. None with fewer than two
        participants, or two in each group.
    participants : int
        Number of participants with thresholds at both levels, or in both groups.
    """

    factor: str
    first: str
    second: str
    percent: float
    quantity: str
    ratio: Estimate | None
    participants: int


def analyse_effects(experiment: Experiment, people: Sequence[PersonResult], settings: AnalysisSettings) -> list[Effect]:
    """Return the effects of all factors over the participants that are not excluded.

    A level is compared with the first level of its factor, in conditions that do not differ in other factors. The ratio
    of a participant is the geometric mean over these pairs of conditions. Thresholds that are only bounds are left out.
    The ratios of each group are compared with those of the first group.
    """
    factors, effects = factors_of(experiment.sessions[0].header), []
    counted = [one for one in people if not one.excluded]
    percents = {one.percent for person in counted for condition in person.conditions for one in condition.differences}
    quantity = _quantity(counted)
    groups, group_of = _groups(experiment)
    for factor, of_condition in factors.items():
        first, *others = dict.fromkeys(of_condition.values())
        for second, percent in itertools.product(others, sorted(percents)):
            pairs = list(_pairs(factors, factor, first, second))
            logs: dict[str, float] = {}
            for person in counted:
                thresholds = _thresholds(person, percent, quantity)
                ratios = [thresholds[b] - thresholds[a] for a, b in pairs if a in thresholds and b in thresholds]
                logs |= {person.code: fmean(ratios)} if ratios else {}
            values = list(logs.values())
            ratio = mean_and_spread(values, settings.probability)[0].transformed(math.exp) if len(logs) > 1 else None
            effects.append(Effect(factor, first, second, percent, quantity, ratio, len(logs)))
            for group in groups[1:]:
                samples = [[log for code, log in logs.items() if group_of[code] == one] for one in (groups[0], group)]
                if all(samples):
                    ratio, count = _ratio_of(samples, settings.probability), sum(map(len, samples))
                    name = f"{factor} ({second} / {first}) by group"
                    effects.append(Effect(name, groups[0], group, percent, quantity, ratio, count))
    return [*_between_groups(experiment, counted, sorted(percents), settings.probability), *effects]


def _groups(experiment: Experiment) -> tuple[list[str], dict[str, str | None]]:
    """Return the groups that have participants, in the order of the design, and the group of each participant."""
    group_of = {person.code: person.group for person in experiment.people}
    present, names = set(group_of.values()), experiment.table("groups").get("names")
    groups = [name for name in names if isinstance(name, str) and name in present] if isinstance(names, list) else []
    return groups, group_of


def _ratio_of(samples: Sequence[Sequence[float]], probability: float) -> Estimate | None:
    """Return the ratio of the geometric means of two samples of logarithms, None if one has fewer than two values."""
    if min(map(len, samples)) < 2:
        return None
    return welch(samples[0], samples[1], probability).transformed(math.exp)


def _between_groups(
    experiment: Experiment, people: Sequence[PersonResult], percents: Sequence[float], probability: float
) -> Iterator[Effect]:
    """Yield the comparison of each group with the first.

    A participant has the geometric mean of the thresholds in the conditions that all groups have, or, if there are
    none, in all conditions. Participants without a threshold in one of them are left out.
    """
    quantity = _quantity(people)
    groups, group_of = _groups(experiment)
    tested: dict[str, set[str]] = {name: set() for name in groups}
    for person in people:
        tested.get(str(group_of.get(person.code)), set()).update(one.name for one in person.conditions)
    common = set.intersection(*tested.values()) if tested else set()
    for second, percent in itertools.product(groups[1:], percents):
        samples = []
        for group in (groups[0], second):
            logs = []
            for person in (one for one in people if group_of.get(one.code) == group):
                thresholds, needed = _thresholds(person, percent, quantity), common or tested[group]
                if needed and needed <= thresholds.keys():
                    logs.append(fmean(thresholds[name] for name in needed))
            samples.append(logs)
        ratio = _ratio_of(samples, probability)
        yield Effect("group", groups[0], second, percent, quantity, ratio, sum(map(len, samples)))


def welch(first: Sequence[float], second: Sequence[float], probability: float) -> Estimate:
    """Return the difference of two means, `second` minus `first`, with the interval of Welch (1947)."""
    errors = [variance(one) / len(one) for one in (first, second)]
    difference = fmean(second) - fmean(first)
    if not any(errors):
        return Estimate(difference, difference, difference, probability)
    degrees = [len(one) - 1 for one in (first, second)]
    freedom = sum(errors) ** 2 / sum(one**2 / free for one, free in zip(errors, degrees, strict=True))
    half = math.sqrt(sum(errors)) * float(quantile(probability, np.array([freedom]))[0])
    return Estimate(difference, difference - half, difference + half, probability)


def _thresholds(person: PersonResult, percent: float, quantity: str) -> dict[str, float]:
    """Return the logarithm of a quantity (`_quantity`) in each condition where it is known."""
    found = {}
    for condition in person.conditions:
        for one in condition.differences:
            value = one.weber if quantity == "weber_fraction" else one.jnd
            if one.percent == percent and value is not None and not value.bound:
                found[condition.name] = math.log(value.value)
    return found


def _quantity(people: Sequence[PersonResult]) -> str:
    """Return ``weber_fraction`` if all conditions have a reference."""
    found = [one.weber for person in people for condition in person.conditions for one in condition.differences]
    return "jnd" if None in found else "weber_fraction"


def _pairs(factors: dict[str, dict[str, str]], factor: str, first: str, second: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of conditions with two levels of a factor and the same levels of all others."""
    others = [levels for name, levels in factors.items() if name != factor]
    for a, b in itertools.permutations(factors[factor], 2):
        if (factors[factor][a], factors[factor][b]) == (first, second):
            if all(levels.get(a) == levels.get(b) for levels in others):
                yield a, b
