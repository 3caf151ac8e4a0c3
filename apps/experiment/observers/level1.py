"""The observer of level 1: answers with the probability that signal detection gives, by what was asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from apps.experiment.observers.decisions import different, second_stronger, with_lapses, yes
from apps.experiment.observers.settings import Z75, Acuity, ObserverSettings
from apps.experiment.trial import Answer, TrialView


class SimulatedObserver:
    """A simulated person. In two intervals, P(correct) = lapse + (1 - 2 lapse) Phi(0.6745 dx/J).

    J^2 = (w75 x)^2 + J0^2 is the increment on the reference x that is told in 75 % of trials without lapses. One w75 of
    0.23 gives both figures that Jones, Hunter and Lafontaine (1997) have for viscosity, 19 % at 71 % and 34 % at 84 %.

    Parameters
    ----------
    settings : ObserverSettings
        The typical person.
    rng : Generator
        From which this person is drawn: a factor of acuity, the modulus of magnitude estimates.

    Attributes
    ----------
    acuity_factor : float
        This person's Weber fraction and floor, divided by the typical ones; its median over people is 1.
    needs_rows : bool
        Whether it goes by recorded rows.
    """

    needs_rows = False

    def __init__(self, settings: ObserverSettings, rng: np.random.Generator) -> None:
        self.settings = settings
        self.acuity_factor = math.exp(settings.log_spread * float(rng.standard_normal()))
        self.modulus = 10.0 * math.exp(0.5 * float(rng.standard_normal()))

    def acuity(self, axis: str) -> Acuity:
        """Return the acuity of this person."""
        typical = self.settings.acuity(axis)
        return Acuity(typical.weber * self.acuity_factor, typical.floor * self.acuity_factor)

    def truth(self, axis: str, reference: float) -> dict[str, Any]:
        """Return what an analysis should find for this person.

        ``increment_75`` is told in 75 % of trials of two intervals, were there no lapses; ``weber_fraction_75`` is that
        divided by the reference, None without one; ``adjustment_sd`` the spread of adjustments.
        """
        acuity = self.acuity(axis)
        increment = acuity.increment(reference)
        return {
            "observer": self.settings.level,
            "w75": acuity.weber,
            "floor": acuity.floor,
            "increment_75": increment,
            "weber_fraction_75": increment / reference if reference > 0.0 else None,
            "adjustment_sd": increment / Z75,
            "lapse": self.settings.lapse,
            "order_bias": self.settings.order_bias,
            "exponent": self.settings.exponent,
        }

    def probability(self, trial: TrialView) -> float:
        """Return the probability of ``2``, ``yes`` or ``different``, whichever the task has."""
        settings = self.settings
        unit = self.acuity(trial.axis).increment(trial.reference) / Z75
        if trial.task == "detection":
            p = yes(_ratio(trial.values[0] - trial.reference, unit), settings.false_alarms)
        elif trial.task == "same-different":
            p = different(_ratio(trial.values[1] - trial.values[0], unit), settings.false_alarms)
        else:
            p = second_stronger(_ratio(trial.values[1] - trial.values[0], unit), settings.order_bias)
        return with_lapses(p, settings.lapse)

    def answer(self, trial: TrialView, rng: np.random.Generator) -> Answer:
        """Return the answer to a trial; every random number comes from `rng`."""
        return Answer(self._response(trial, rng), self.reaction_time(rng))

    def reaction_time(self, rng: np.random.Generator) -> float:
        """Draw a reaction time [s], log-normal."""
        settings = self.settings
        return settings.reaction_time * math.exp(settings.reaction_spread * float(rng.standard_normal()))

    def _response(self, trial: TrialView, rng: np.random.Generator) -> str | float:
        if trial.task == "adjustment":
            unit = self.acuity(trial.axis).increment(trial.reference) / Z75
            return max(trial.reference + unit * float(rng.standard_normal()), _LEAST * trial.reference)
        if trial.task == "estimation":
            return self.estimate(trial.values[0], rng)
        return word(trial.task, bool(rng.random() < self.probability(trial)))

    def estimate(self, value: float, rng: np.random.Generator) -> float:
        """Draw the number that this person gives to a value."""
        noise = math.exp(self.settings.estimate_spread * float(rng.standard_normal()))
        return float(self.modulus * value**self.settings.exponent * noise)


_LEAST = 0.01
"""Share of the reference below which nobody sets a value."""

_WORDS = {"detection": ("no", "yes"), "same-different": ("same", "different")}


def word(task: str, second: bool) -> str:
    """Return the one or the other answer of a task of two answers."""
    return _WORDS.get(task, ("1", "2"))[second]


def _ratio(difference: float, unit: float) -> float:
    """Return difference/unit, also where an observer without noise meets none."""
    if unit > 0.0:
        return difference / unit
    return 0.0 if difference == 0.0 else math.copysign(math.inf, difference)
