"""Iwan's model: parallel elements of model C, simulated because the rows contain only means.

Each of n elements has the stiffness K/n and the share c/n of the law's force; c increases in equal steps from 1 -
spread to 1 + spread (Iwan 1966; Kikuuwe et al. 2006, section VI). With a ``stiff_share`` q, an additional element has a
separate stiffness and the share q, and the others share 1 - q. The damping is divided in the same way. An element of
stiffness k and damping b has the mobility z = 1/(b + T k). With displacement e, its free velocity is x = u + k z e.
With the share w, its force f is w times the force of the law at x with the mobility w z
(`apps.verify.contact.implicit`). While it sticks, T u adds to its displacement; otherwise e_k = z (b e_(k-1) + T f).
Displacement and slip in the rows are means weighted by stiffness.
"""

from __future__ import annotations

from dataclasses import dataclass

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
"""Maximum number of equally stiff elements. Elements that are added later start without displacement."""


@dataclass(frozen=True)
class Parallel:
    """State index, share of the law, stiffness and damping of the elements, the stiff one last.

    Raises
    ------
    KeyError
        If a setting is missing.
    """

    place: NDArray[np.int64]
    share: Floats
    stiffness: Floats
    damping: Floats

    @classmethod
    def of(cls, element: Element) -> Parallel:
        """Create the elements from a table of settings."""
        n, stiff = int(element["count"]), element.get("stiff_share", 0.0)
        rise = element["spread"] * (2.0 * np.arange(n) / max(n - 1, 1) - 1.0) if n > 1 else np.zeros(1)
        place, share, springs = np.arange(n), (1.0 - stiff) * (1.0 + rise) / n, np.full(n, element["stiffness"] / n)
        dampers = np.full(n, (1.0 - stiff) * element["damping"] / n)
        if stiff > 0.0:
            place, share = np.append(place, _MOST), np.append(share, stiff)
            springs = np.append(springs, element["stiff_stiffness"])
            dampers = np.append(dampers, stiff * element["damping"])
        return cls(place, share, springs, dampers)


class Elements:
    """Tracks the displacements of the elements over consecutive stretches."""

    def __init__(self) -> None:
        self._stretched, self._blur = np.zeros((_MOST + 1, 2)), 0.0

    def outcome(self, law: Law, stretch: Stretch, step: Step, element: Element, T: float, history: History) -> Outcome:
        """Return the equations of the mean force, displacement and slip.

        Raises
        ------
        KeyError
            If a setting is missing.
        """
        parallel, rough = Parallel.of(element), 8.0 * EPS * slenderness(law)
        weight = (parallel.stiffness / parallel.stiffness.sum())[:, None]
        count = len(stretch)
        force, slip, place = (np.zeros((count, 2)) for _ in range(3))
        sticks, unsure = np.zeros(count, bool), np.zeros(count, bool)
        blur, stored = np.zeros(count), np.zeros(count)
        fresh, good = history.fresh[stretch.rows], stretch.good
        for k in range(count):
            if fresh[k]:
                self._stretched[:], self._blur = 0.0, 0.0
            if good[k]:
                before = self._stretched[parallel.place]
                e, forces, slides, near = _stepped(law, parallel, step.given[k], before, T)
                self._blur += rough * float(np.abs(e).max() + T * np.abs(step.given[k]).max())
                self._stretched[:] = 0.0
                self._stretched[parallel.place] = e
                force[k], sticks[k], unsure[k] = forces.sum(axis=0), not slides.any(), near
                slip[k] = step.given[k] - (weight * (e - before)).sum(axis=0) / T
                stored[k] = 0.5 * float((parallel.stiffness[:, None] * e**2).sum())
            place[k], blur[k] = (weight * self._stretched[parallel.place]).sum(axis=0), self._blur
        return self._compared(step, parallel, T, law, force, slip, place, blur, sticks, unsure, stored)

    @staticmethod
    def _compared(
        step: Step,
        parallel: Parallel,
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
        stiff = float(parallel.stiffness.sum() + parallel.damping.sum() / T)
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
    """Return the error bound of a law's force, (n,) [N], due to the rounding of the velocity."""
    if isinstance(law, Isotropic):
        return steepness(law, length(velocity))
    turned = length(level_force(law, velocity * NEAR) - level_force(law, velocity))
    return np.asarray(turned + rounding(law.static) * slenderness(law))


def _stepped(law: Law, parallel: Parallel, u: Floats, e: Floats, T: float) -> tuple[Floats, Floats, Mask, bool]:
    """Advance the elements by one tick.

    Returns
    -------
    moved, forces : (n, 2) array
        Displacements after the tick [m] and forces [N].
    slides : (n,) array
        Elements that slide.
    near : bool
        True if rounding decides whether an element slides.
    """
    k, b = parallel.stiffness, parallel.damping
    z = 1.0 / (b + T * k)
    force, rests, near = implicit(law, u + (k * z)[:, None] * e, parallel.share * z)
    forces = parallel.share[:, None] * force
    moved = np.where(rests[:, None], e + T * u, z[:, None] * (b[:, None] * e + T * forces))
    return moved, forces, ~rests, bool(near.any())
