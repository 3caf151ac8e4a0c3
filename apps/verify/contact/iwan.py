"""Iwan's model: elements of model C side by side, each followed from tick to tick, for rows show their means only.

Of n elements each has the stiffness K/n and the damping B/n, and the share c/n of the law's force; c goes in equal
steps from 1 - spread to 1 + spread (Iwan 1966; Kikuuwe et al. 2006, section VI). With Z = 1/(B + T K) an element whose
displacement is e is pulled by x = u + K Z e. Its force f is c times that of the law under x with the mobility c Z
(`apps.verify.contact.implicit`). Where it sticks, it is stretched by T u; else e_k = Z (B e_(k-1) + T f).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.implicit import implicit, slenderness
from apps.verify.contact.inclusion import length, level_force
from apps.verify.contact.laws import Isotropic, Law
from apps.verify.contact.models import Element, Step
from apps.verify.contact.rigid import NEAR, Outcome, column, equation, steepness
from apps.verify.envelope.history import History
from apps.verify.facts import EPS, rounding
from apps.verify.recorded import Stretch

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MODEL = "iwan"

_MOST = 12
"""Elements that there may be: one that is added later begins without tension."""


class Elements:
    """Follows elements from stretch to stretch."""

    def __init__(self) -> None:
        self._stretched, self._blur = np.zeros((_MOST, 2)), 0.0

    def outcome(self, law: Law, stretch: Stretch, step: Step, element: Element, T: float, history: History) -> Outcome:
        """Return the equations of force, displacement and slip of the means.

        Raises
        ------
        KeyError
            If a setting is missing.
        """
        n, rough = int(element["count"]), 8.0 * EPS * slenderness(law)
        weights = 1.0 + element["spread"] * (2.0 * np.arange(n) / max(n - 1, 1) - 1.0) if n > 1 else np.ones(1)
        count = len(stretch)
        force, slip, place = (np.zeros((count, 2)) for _ in range(3))
        sticks, unsure = np.zeros(count, bool), np.zeros(count, bool)
        blur, stored = np.zeros(count), np.zeros(count)
        fresh, good = history.fresh[stretch.rows], stretch.good
        for k in range(count):
            if fresh[k]:
                self._stretched[:], self._blur = 0.0, 0.0
            if good[k]:
                before = self._stretched[:n].copy()
                e, forces, slides, near = _stepped(law, weights, step.given[k], before, element, T)
                self._blur += rough * float(np.abs(e).max() + T * np.abs(step.given[k]).max())
                self._stretched[:n], self._stretched[n:] = e, 0.0
                force[k], sticks[k], unsure[k] = forces.mean(axis=0), not slides.any(), near
                slip[k] = step.given[k] - (e - before).mean(axis=0) / T
                stored[k] = 0.5 * element["stiffness"] * float((e**2).sum()) / n
            place[k], blur[k] = self._stretched[:n].mean(axis=0), self._blur
        return self._compared(step, element, T, law, force, slip, place, blur, sticks, unsure, stored)

    @staticmethod
    def _compared(
        step: Step,
        element: Element,
        T: float,
        law: Law,
        force: Floats,
        slip: Floats,
        place: Floats,
        blur: Floats,
        sticks: Mask,
        unsure: Mask,
        stored: Floats,
    ) -> Outcome:
        stiff = element["stiffness"] + element["damping"] / T
        rough = column(stiff * blur + _steepness(law, step.given) + np.asarray(rounding(length(force))))
        off = column(blur + np.asarray(rounding(length(place))))
        equations = [
            equation("friction force", "N", step.force - force, step.force, force, slack=rough),
            equation("displacement", "m", step.stretch - place, step.stretch, place, slack=off + rough / stiff),
            equation(
                "sliding velocity", "m/s", step.velocity - slip, step.velocity, slip, slack=(off + rough / stiff) / T
            ),
            equation("output", "N", step.output - step.force),
        ]
        return Outcome(equations, sticks, unsure, stored)


def _steepness(law: Law, velocity: Floats) -> Floats:
    """Return how far the force of a law may be off at a velocity, (n,) [N], by the rounding of it."""
    if isinstance(law, Isotropic):
        return steepness(law, length(velocity))
    turned = length(level_force(law, velocity * NEAR) - level_force(law, velocity))
    return np.asarray(turned + rounding(law.static) * slenderness(law))


def _stepped(
    law: Law, weights: Floats, u: Floats, e: Floats, element: Element, T: float
) -> tuple[Floats, Floats, Mask, bool]:
    """Return displacements and forces, (n, 2), a tick later, which elements slide, and whether one is near that."""
    K, B = element["stiffness"], element["damping"]
    Z = 1.0 / (B + T * K)
    force, rests, near = implicit(law, u + K * Z * e, weights * Z)
    forces = weights[:, None] * force
    moved = np.where(rests[:, None], e + T * u, Z * (B * e + T * forces))
    return moved, forces, ~rests, bool(near.any())
