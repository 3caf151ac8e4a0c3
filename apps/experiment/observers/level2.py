"""Observer of level 2, which decides by noisy samples of the recorded force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.observers.decisions import ROOT_2, different_criterion, yes_criterion
from apps.experiment.observers.level1 import SimulatedObserver, word
from apps.experiment.observers.settings import Z75, Acuity
from apps.experiment.trial import Answer, TrialView
from haptics.errors import ConfigurationError
from haptics.records import Rows

Array = NDArray[np.float64]

_SLIDING, _SLOPE, _PEAK = "mean force while sliding", "force divided by speed", "highest force"

FEELINGS = {
    "law.force": _SLIDING,
    "law.kinetic_force": _SLIDING,
    "law.static_force": _PEAK,
    "law.viscosity": _SLOPE,
}
"""Force statistic by which an observer decides, for each supported axis."""


class FeelingObserver(SimulatedObserver):
    """Simulated observer that decides by the recorded force instead of the specified stimulus.

    In each interval it samples the force against the motion of the hand, every ``sampling`` seconds of sliding, up to
    ``integration`` seconds in total. The noise of the samples is independent. Its size gives the estimate of a full
    interval the noise of a presentation at level 1: J/(0.6745 sqrt 2) with J at the felt force. The differences from
    level 1 are the effects of the device, its friction and the motion of the hand on the force, and less precise
    estimates in intervals with little sliding.

    Parameters
    ----------
    settings : ObserverSettings
        Settings of the typical observer.
    rng : Generator
        Random generator for the individual acuity.
    """

    needs_rows = True

    def answer(self, trial: TrialView, rng: np.random.Generator) -> Answer:
        """Return the answer to a trial with rows, with all random numbers from `rng`.

        Raises
        ------
        ConfigurationError
            If the trial has no rows, or the axis is not supported.
        """
        if trial.task == "adjustment":
            return super().answer(trial, rng)  # an adjustment involves no comparison of intervals
        felt = [self.felt_stimulus(trial, rows, rng) for rows in _rows_of(trial)]
        unit = self.acuity(trial.axis).increment(trial.reference) / Z75
        if trial.task == "estimation":
            response: str | float = self.estimate(max(felt[0], 1e-9), rng)
        elif rng.random() < 2.0 * self.settings.lapse:
            response = word(trial.task, bool(rng.random() < 0.5))
        else:
            response = word(trial.task, self._decided(trial, felt, unit))
        return Answer(response, self.reaction_time(rng))

    def _decided(self, trial: TrialView, felt: list[float], unit: float) -> bool:
        """Return True for the responses ``2``, ``yes`` and ``different``; `unit` is the noise of a comparison."""
        settings = self.settings
        if trial.task == "detection":
            return felt[0] - trial.reference > yes_criterion(settings.false_alarms) * unit / ROOT_2
        difference = felt[1] - felt[0]
        if trial.task == "same-different":
            return abs(difference) > different_criterion(settings.false_alarms) * unit
        return difference + settings.order_bias * unit > 0.0

    def felt_stimulus(self, trial: TrialView, rows: Rows, rng: np.random.Generator) -> float:
        """Return the estimate of the stimulus in an interval, in units of the axis, or 0 without sliding."""
        feeling = _feeling(trial.axis)
        force, speed, period = felt_force(rows, self.settings.least_speed, sliding=feeling is not _PEAK)
        if not len(force):
            return 0.0
        wanted = max(round(self.settings.integration / self.settings.sampling), 1)
        apart = max(round(self.settings.sampling / period), 1)
        count = min(wanted, max(len(force) // apart, 1))
        places = np.linspace(0, len(force) - 1, count).round().astype(int)
        samples = force[places] / (speed[places] if feeling is _SLOPE else 1.0)
        if feeling is _PEAK:
            samples = np.full(count, highest(force, max(round(_SMOOTHING / period), 1)))
        return float(np.mean(samples + self._noise(self.acuity(trial.axis), samples, wanted, rng)))

    def _noise(self, acuity: Acuity, samples: Array, wanted: int, rng: np.random.Generator) -> Array:
        """Draw the noise of the samples.

        The mean of `wanted` samples has the noise of a presentation.
        """
        increment = np.hypot(acuity.weber * samples, acuity.floor)
        return np.asarray(increment / (Z75 * ROOT_2) * math.sqrt(wanted) * rng.standard_normal(len(samples)))

    def truth(self, axis: str, reference: float) -> dict[str, Any]:
        """Return the parameters that an analysis should recover, and the force statistic."""
        return super().truth(axis, reference) | {"feels": _feeling(axis)}


_SMOOTHING = 0.02
"""Averaging time of the peak force [s]."""


def felt_force(rows: Rows, least_speed: float, *, sliding: bool = True) -> tuple[Array, Array, float]:
    """Return the force against the motion [N] and the speed [m/s] at each tick, and the period [s].

    The force is the hand force if known, otherwise the computed friction. Only ticks with a fully open gate are
    included. With `sliding`, ticks at or below `least_speed` are excluded. Otherwise the force is its magnitude,
    independent of the motion.
    """
    up = rows["gate"] >= 1.0
    times, velocity, hand = rows["time"][up], rows["velocity"][up], rows["hand_force"][up]
    period = float(times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 1e-3
    speed = np.hypot(velocity[:, 0], velocity[:, 1])
    force = hand if np.isfinite(hand).all() else rows["friction_force"][up]
    if not sliding:
        return np.hypot(force[:, 0], force[:, 1]), speed, period
    moving = speed > max(least_speed, 1e-9)
    along = (force[moving] * velocity[moving]).sum(axis=1) / speed[moving]
    return along, speed[moving], period


def highest(force: Array, width: int) -> float:
    """Return the highest moving average of `width` samples of an (n,) array [N]."""
    width = min(width, len(force))
    sums = np.cumsum(np.concatenate(([0.0], force)))
    return float(np.max(sums[width:] - sums[:-width]) / width)


def _rows_of(trial: TrialView) -> tuple[Rows, ...]:
    if trial.rows is None:
        raise ConfigurationError(
            "observer.level = 2: answers by recorded rows, and this trial has none; take observer.level = 1."
        )
    return trial.rows


def _feeling(axis: str) -> str:
    if axis not in FEELINGS:
        raise ConfigurationError(
            f"observer.level = 2: does not know how {axis} is felt; it knows {', '.join(FEELINGS)}. Take level 1."
        )
    return FEELINGS[axis]
