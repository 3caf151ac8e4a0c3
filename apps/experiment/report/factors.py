"""Effects of the factors of an experiment on thresholds: ratios between the levels of a factor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.experiment.journal.tables import factors_of
from apps.experiment.report.analysis import PersonResult
from apps.experiment.report.data import Experiment
from apps.experiment.settings import AnalysisSettings
from calibration.psychometric import Estimate, mean_and_spread


@dataclass(frozen=True)
class Effect:
    """Ratio of the thresholds at two levels of a factor.

    Attributes
    ----------
    factor, first, second : str
        Factor, and the compared levels.
    percent : float
        Percentage correct that defines the thresholds.
    quantity : str
        ``weber_fraction``, or ``jnd`` in conditions without a reference.
    ratio : Estimate or None
        Geometric mean over participants of the ratio of `second` to `first`, with the interval of Student's t on
        logarithms. None with fewer than two participants.
    participants : int
        Number of participants with thresholds at both levels.
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
    """
    factors, effects = factors_of(experiment.sessions[0].header), []
    counted = [one for one in people if not one.excluded]
    percents = {one.percent for person in counted for condition in person.conditions for one in condition.differences}
    for factor, of_condition in factors.items():
        first, *others = dict.fromkeys(of_condition.values())
        for second, percent in itertools.product(others, sorted(percents)):
            pairs = list(_pairs(factors, factor, first, second))
            logs, quantity = [], "weber_fraction"
            for person in counted:
                thresholds = {}
                for condition in person.conditions:
                    found = next((one for one in condition.differences if one.percent == percent), None)
                    value = None if found is None else found.weber or found.jnd
                    if found is not None and value is not None and not value.bound:
                        thresholds[condition.name] = math.log(value.value)
                        quantity = quantity if found.weber is not None else "jnd"
                ratios = [thresholds[b] - thresholds[a] for a, b in pairs if a in thresholds and b in thresholds]
                logs += [sum(ratios) / len(ratios)] if ratios else []
            ratio = mean_and_spread(logs, settings.probability)[0].transformed(math.exp) if len(logs) > 1 else None
            effects.append(Effect(factor, first, second, percent, quantity, ratio, len(logs)))
    return effects


def _pairs(factors: dict[str, dict[str, str]], factor: str, first: str, second: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of conditions with two levels of a factor and the same levels of all others."""
    others = [levels for name, levels in factors.items() if name != factor]
    for a, b in itertools.permutations(factors[factor], 2):
        if (factors[factor][a], factors[factor][b]) == (first, second):
            if all(levels.get(a) == levels.get(b) for levels in others):
                yield a, b
