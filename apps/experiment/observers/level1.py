"""Observer of level 1, which answers by signal detection from the specified stimuli."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from apps.experiment.observers.decisions import different, second_stronger, with_lapses, yes
from apps.experiment.observers.settings import Z75, Acuity, ObserverSettings
from apps.experiment.trial import Answer, TrialView


class SimulatedObserver:
    """Simulated observer with P(correct) = lapse + (1 - 2 lapse) Phi(0.6745 dx/J) in two intervals.

    J^2 = (w75 x)^2 + J0^2 is the increment on the reference x with 75 % correct without lapses. With w75 = 0.23 this
    reproduces both values of Jones, Hunter and Lafontaine (1997) for viscosity, 19 % at 71 % and 34 % at 84 %.

    Parameters
    ----------
    settings : ObserverSettings
        Settings of the typical observer.
    rng : Generator
        Random generator for the individual acuity and modulus of magnitude estimates.

    Attributes
    ----------
    acuity_factor : float
        Weber fraction and floor, relative to the typical ones. The median over observers is 1.
    needs_rows : bool
        Whether the observer evaluates recorded rows.
    """

    needs_rows = False

    def __init__(self, settings: ObserverSettings, rng: np.random.Generator) -> None:
        self.settings = settings
        self.acuity_factor = math.exp(settings.log_spread * float(rng.standard_normal()))
        self.modulus = 10.0 * math.exp(0.5 * float(rng.standard_normal()))

    def acuity(self, axis: str) -> Acuity:
        """Return the acuity of this observer."""
        typical = self.settings.acuity(axis)
        return Acuity(typical.weber * self.acuity_factor, typical.floor * self.acuity_factor)

    def truth(self, axis: str, reference: float) -> dict[str, Any]:
        """Return the parameters that an analysis should recover for this observer.

        ``increment_75`` is the increment with 75 % correct in two intervals without lapses. ``weber_fraction_75`` is
        its ratio to the reference, None without a reference. ``adjustment_sd`` is the standard deviation of
        adjustments.
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
        """Return the probability of the response ``2``, ``yes`` or ``different``, depending on the task."""
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
        """Return the answer to a trial, with all random numbers from `rng`."""
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
        """Draw a magnitude estimate of a value."""
        noise = math.exp(self.settings.estimate_spread * float(rng.standard_normal()))
        return float(self.modulus * value**self.settings.exponent * noise)


_LEAST = 0.01
"""Lower bound of adjustments, relative to the reference."""

_WORDS = {"detection": ("no", "yes"), "same-different": ("same", "different")}


def word(task: str, second: bool) -> str:
    """Return the first or second response of a task with two responses."""
    return _WORDS.get(task, ("1", "2"))[second]


def _ratio(difference: float, unit: float) -> float:
    """Return difference/unit, also for an observer without noise (unit 0)."""
    if unit > 0.0:
        return difference / unit
    return 0.0 if difference == 0.0 else math.copysign(math.inf, difference)
