"""Results of the analysis, for the pages and the JSON output of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibration.psychometric import Detectability, Estimate, Group, Magnitude, OrderBias, PsychometricFit


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

    def as_dict(self) -> dict[str, Any]:
        """Return the difference for JSON."""
        return {
            "percent": self.percent,
            "jnd": self.jnd.as_dict(),
            "weber_fraction": None if self.weber is None else self.weber.as_dict(),
            "true_jnd": self.true_jnd,
            "true_weber_fraction": self.true_weber,
            "interval_holds_truth": self.holds_truth,
        }


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
    fit : PsychometricFit or None
        None if the task has no psychometric function or the data are insufficient.
    differences : tuple of Difference
        Differences by percentage.
    check : Estimate or None
        Spearman-Karber mean.
    order : OrderBias or None
        Interval bias in tasks with two intervals.
    detectability : dict
        d' and criterion by level, in yes/no and same/different tasks.
    settings : dict
        Mean and spread of adjustments.
    procedures : list of dict
        Report of each track's procedure, with the name of the track.
    notes : tuple of str
        Notes on the result.
    """

    name: str
    reference: float
    rows: list[dict[str, Any]]
    fit: PsychometricFit | None = None
    differences: tuple[Difference, ...] = ()
    check: Estimate | None = None
    order: OrderBias | None = None
    detectability: Mapping[float, Detectability] = field(default_factory=dict)
    settings: Mapping[str, Estimate] = field(default_factory=dict)
    procedures: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        order = None
        if self.order is not None:
            order = {"level": self.order.level.as_dict(), "preference": self.order.preference.as_dict()}
        return {
            "condition": self.name,
            "reference": self.reference,
            "trials": len(self.rows),
            "differences": [one.as_dict() for one in self.differences],
            "fit": None if self.fit is None else self.fit.as_dict(),
            "spearman_karber": None if self.check is None else self.check.as_dict(),
            "order_bias": order,
            "detectability": [
                {"level": level, "d_prime": one.d_prime.as_dict(), "criterion": one.criterion.as_dict()}
                for level, one in self.detectability.items()
            ],
            "adjustment": {name: one.as_dict() for name, one in self.settings.items()},
            "procedures": list(self.procedures),
            "notes": list(self.notes),
        }


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

    def as_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {
            **{name: getattr(self, name) for name in ("easy", "easy_wrong", "null", "null_second")},
            "lapse": None if self.lapse is None else self.lapse.as_dict(),
            "preference": None if self.preference is None else self.preference.as_dict(),
        }


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
        Number of repeated attempts for each reason.
    """

    code: str
    conditions: tuple[ConditionResult, ...]
    catches: CatchResult
    magnitude: Magnitude | None
    truth: Mapping[str, Mapping[str, Any]]
    excluded: tuple[str, ...]
    repeated: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {
            "participant": self.code,
            "conditions": [one.as_dict() for one in self.conditions],
            "catch_trials": self.catches.as_dict(),
            "magnitude": None if self.magnitude is None else magnitude_dict(self.magnitude),
            "truth": {name: dict(one) for name, one in self.truth.items()},
            "excluded": list(self.excluded),
            "repeated": dict(self.repeated),
        }


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

    def as_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {
            "condition": self.name,
            "reference": self.reference,
            "percent": self.percent,
            "jnd": group_dict(self.jnd),
            "weber_fraction": group_dict(self.weber),
            "true_weber_fraction": self.true_weber,
            "intervals_that_hold_the_truth": self.held,
            "simulated_observers": self.simulated,
        }


@dataclass(frozen=True)
class GroupResult:
    """Results over participants.

    Attributes
    ----------
    conditions : tuple of GroupCondition
        Results by condition and percentage.
    magnitude : Magnitude or None
        Result of magnitude estimation.
    counted : int
        Number of included participants.
    """

    conditions: tuple[GroupCondition, ...]
    magnitude: Magnitude | None
    counted: int

    def as_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {
            "participants": self.counted,
            "conditions": [one.as_dict() for one in self.conditions],
            "magnitude": None if self.magnitude is None else magnitude_dict(self.magnitude),
        }


def magnitude_dict(found: Magnitude) -> dict[str, Any]:
    """Return a power law for JSON."""
    return {
        "exponent": found.exponent.as_dict(),
        "factor": found.factor.as_dict(),
        "levels": found.levels.tolist(),
        "geometric_means": found.means.tolist(),
        "exponents": {str(who): one for who, one in found.exponents.items()},
    }


def group_dict(found: Group | None) -> dict[str, Any] | None:
    """Return an estimate over participants for JSON."""
    if found is None:
        return None
    cvs = {
        name: value if math.isfinite(value) else None
        for name, value in (("cv", found.cv), ("cv_between", found.cv_between))
    }
    return {"mean": found.mean.as_dict(), **cvs, "participants": found.count, "bounds": found.bounds}
