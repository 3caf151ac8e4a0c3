"""Iwan's model: elements of model C side by side, each followed from tick to tick, for rows show their means only.

Of n elements each has the stiffness K/n and the damping B/n, and the share c/n of the law's level; c goes in equal
steps from 1 - spread to 1 + spread (Iwan 1966; Kikuuwe et al. 2006, section VI). With Z = 1/(B + T K) an element whose
displacement is e is pulled by x = u + K Z e. It sticks where |x| is at most c Z times the level at rest, and gives x/Z;
else it slides at s with s + c Z g(s) = |x|. Where it is then follows from its force: e_k = Z (B e_(k-1) + T f).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.inclusion import length, units
from apps.verify.contact.laws import Isotropic, Law
from apps.verify.contact.models import Element, Step
from apps.verify.contact.rigid import Outcome, column, equation, level_of, steepness
from apps.verify.envelope.history import History
from apps.verify.facts import EPS, rounding
from apps.verify.recorded import Stretch

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MODEL = "iwan"

_MOST = 12
"""Elements that there may be: one that is added later begins without tension."""

_STEPS = 200
"""Bisections that are enough for two numbers with nothing in between."""


class Elements:
    """Follows elements from stretch to stretch."""

    def __init__(self) -> None:
        self._stretched, self._blur = np.zeros((_MOST, 2)), 0.0

    def outcome(self, law: Law, stretch: Stretch, step: Step, element: Element, T: float, history: History) -> Outcome:
        """Return the equations of force, displacement and slip of the means.

        Raises
        ------
        KeyError
            If a setting is missing, or the law is none with a level.
        """
        isotropic, n = level_of(law), int(element["count"])
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
                e, forces, slides, near = _stepped(isotropic, weights, step.given[k], before, element, T)
                self._blur += 8.0 * EPS * float(np.abs(e).max() + T * np.abs(step.given[k]).max())
                self._stretched[:n], self._stretched[n:] = e, 0.0
                force[k], sticks[k], unsure[k] = forces.mean(axis=0), not slides.any(), near
                slip[k] = step.given[k] - (e - before).mean(axis=0) / T
                stored[k] = 0.5 * element["stiffness"] * float((e**2).sum()) / n
            place[k], blur[k] = self._stretched[:n].mean(axis=0), self._blur
        return self._compared(step, element, T, isotropic, force, slip, place, blur, sticks, unsure, stored)

    @staticmethod
    def _compared(
        step: Step,
        element: Element,
        T: float,
        law: Isotropic,
        force: Floats,
        slip: Floats,
        place: Floats,
        blur: Floats,
        sticks: Mask,
        unsure: Mask,
        stored: Floats,
    ) -> Outcome:
        stiff = element["stiffness"] + element["damping"] / T
        rough = column(stiff * blur + steepness(law, length(step.given)) + np.asarray(rounding(length(force))))
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


def _stepped(
    law: Isotropic, weights: Floats, u: Floats, e: Floats, element: Element, T: float
) -> tuple[Floats, Floats, Mask, bool]:
    """Return displacements and forces, (n, 2), a tick later, which elements slide, and whether one is near that."""
    K, B = element["stiffness"], element["damping"]
    Z = 1.0 / (B + T * K)
    x = u + K * Z * e
    pull, held = length(x), weights * Z * law.static
    slides = pull > held
    forces = x / Z
    if slides.any():
        speed = _speed(law, pull[slides], weights[slides] * Z)
        forces[slides] = (weights[slides] * law.level(speed))[:, None] * units(x[slides])
    moved = np.where(slides[:, None], Z * (B * e + T * forces), e + T * u)
    near = bool((np.abs(pull - held) <= 64.0 * EPS * held).any())
    return moved, forces, slides, near


def _speed(law: Isotropic, pull: Floats, Z: Floats) -> Floats:
    """Return s of s + Z g(s) = pull, by bisection: it lies between 0 and the pull."""
    low, high = np.zeros_like(pull), pull.copy()
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        more = middle + Z * law.level(middle) > pull
        if ((middle == low) | (middle == high)).all():
            break
        low, high = np.where(more, low, middle), np.where(more, middle, high)
    return 0.5 * (low + high)
