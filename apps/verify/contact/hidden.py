"""Velocity of a classic model's mass before and after each tick.

The rows contain it only in part. Usually the velocity of the mass is the recorded sliding velocity. Karnopp's model
sets the sliding velocity to zero below the threshold while the momentum persists. There the velocity is integrated from
the balance of forces since the last tick above the threshold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.inclusion import length
from apps.verify.contact.models import Element, Step
from apps.verify.contact.rigid import Masses
from apps.verify.envelope.history import History
from apps.verify.facts import ENERGY, EPS, LIMITED, SLEW, WORKSPACE
from apps.verify.recorded import Stretch

Floats = NDArray[np.float64]


class Momentum:
    """Tracks the velocity of the mass over consecutive stretches."""

    def __init__(self) -> None:
        self._velocity, self._blur = np.zeros(2), 0.0

    def masses(self, stretch: Stretch, history: History, step: Step, model: str, element: Element) -> Masses:
        """Return the velocities of the mass in the ticks of a stretch."""
        anew = self._anew(stretch, history)
        given = step.given if stretch.run.impedance else stretch.last
        if model != "karnopp" or element.get("residual", 0.0) == 1.0:
            before = np.where(anew[:, None], given, stretch.back("sliding_velocity", 1))
            return Masses(before, step.velocity, step.blur)
        return self._followed(stretch, step, element, given, anew)

    @staticmethod
    def _anew(stretch: Stretch, history: History) -> NDArray[np.bool_]:
        """Return the ticks in which the mass starts with a prescribed velocity."""
        rows = stretch.rows
        anew = history.fresh[rows] | (history.after_bad[rows] > 0)
        if stretch.run.impedance:
            return np.asarray(anew)
        kept = (stretch.back("command", 1) == stretch.back("command_unlimited", 1)).all(axis=1)
        kept &= (
            stretch.back("status", 1) & (LIMITED | SLEW | ENERGY | WORKSPACE)
        ) == 0  # a limit may act by less than the rounding of the references
        return np.asarray(anew | ~kept | (np.arange(stretch.start, stretch.stop) == 0))

    def _followed(
        self, stretch: Stretch, step: Step, element: Element, given: Floats, anew: NDArray[np.bool_]
    ) -> Masses:
        T, M, eps = stretch.run.period, element["mass"], element["threshold"]
        pull = step.output if stretch.run.impedance else step.given
        change = T * (pull - step.force) / M
        shown = length(step.velocity) > eps * (1.0 + 16.0 * EPS)
        before, after, blur = np.zeros_like(change), np.zeros_like(change), np.zeros((len(change), 1))
        for k in range(len(change)):
            if anew[k]:
                self._velocity, self._blur = given[k], float(step.blur[k, 0])
            before[k], blur[k] = self._velocity, self._blur
            after[k] = step.velocity[k] if shown[k] else before[k] + change[k]
            self._velocity = after[k]
            size = float(np.abs(after[k]).max() + np.abs(change[k]).max())
            self._blur = 0.0 if shown[k] else self._blur + 8.0 * EPS * size
        return Masses(before, after, blur + step.blur)
