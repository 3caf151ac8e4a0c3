r"""Condition (15) for a scene: every law that its borders, images and textures can mix must be solvable.

All numbers that can be found in a scene are weighted means of the numbers of some laws: those of the materials that
meet there, at both ends of the scale of an image and at both amplitudes of a texture. A law that falls with speed does
so at most with :math:`c (F_s - F_c)/v_s - D`, and is solvable for mobilities below the inverse of that (condition (15)
of Kikuuwe et al. 2006). Of weighted means :math:`\lambda` this is a ratio of two linear functions, less a linear one.
Wherever more than two laws are mixed there is a direction in which the mean of :math:`v_s` stays as it is, and along it
the fall is linear: its largest value is not inside, but where one law less takes part. So it lies between two laws, and
there it has a closed form. Every pair that can meet is looked at.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from haptics.device import Causality
from haptics.elements.models import STEADIER, Element
from haptics.errors import ConfigurationError
from haptics.friction.laws import GaussianStribeck, Stribeck
from haptics.friction.sliding_kernels import GAUSSIAN, STRIBECK
from haptics.scenes.family import forces_of, numbers_of
from haptics.scenes.scene import BAND, EVERYWHERE, WIDEST_BORDER
from haptics.scenes.shapes import Box, Floats

if TYPE_CHECKING:
    from haptics.scenes.scene import Scene

_STEEPNESS = {STRIBECK: Stribeck.steepness, GAUSSIAN: GaussianStribeck.steepness}
"""Steepest fall of each kind of law that falls, in units of (F_s - F_c)/v_s."""

RINGING = 1.5
"""Borders are so many times wider in front of model B: its mass overshoots, and the force with it."""

Fall = tuple[float, str]
"""How steeply a law falls at most [N s/m], and where."""


def mobility_limit(scene: Scene) -> float:
    """Return the supremum of the mobilities [m/(N s)] for which every law that a scene mixes is solvable."""
    fall, _ = steepest(scene)
    return 1.0 / fall if fall > 0.0 else math.inf


def require_solvable(scene: Scene, mobility: float) -> None:
    """Raise `ConfigurationError` unless condition (15) holds in the whole scene at a `mobility` [m/(N s)]."""
    fall, where = steepest(scene)
    if fall * mobility >= 1.0:
        raise ConfigurationError(
            f"scene {scene.name!r}: {where} the law falls by {fall:.4g} N s/m, too steeply for this element: its "
            f"mobility is {mobility:.4g} m/(N s) and must be less than {1.0 / fall:.4g} (condition 15); choose laws "
            f"that fall more gently or {STEADIER}."
        )


def steepest(scene: Scene) -> Fall:
    """Return the steepest fall [N s/m] of all laws that a scene mixes, and where it is; at least 0."""
    steepness = _STEEPNESS.get(scene.kind)
    if steepness is None:
        return 0.0, "nowhere"
    places = _places(scene)
    worst: Fall = (0.0, "nowhere")
    for name, extremes, _ in places:
        for one, other in itertools.combinations_with_replacement(extremes, 2):
            worst = max(worst, (_fall(one, other, steepness), f"in {name}"), key=lambda fall: fall[0])
    for (name, extremes, box), (other_name, others, other_box) in itertools.combinations(places, 2):
        if not _meet(box, other_box, BAND * scene.border):
            continue
        for one, other in itertools.product(extremes, others):
            where = f"between {name} and {other_name}"
            worst = max(worst, (_fall(one, other, steepness), where), key=lambda fall: fall[0])
    return worst


def _places(scene: Scene) -> list[tuple[str, list[Floats], Box]]:
    """Return the background and the regions: name, numbers between which all of theirs lie, and box."""
    found = [("the background", [numbers_of(scene.law)], EVERYWHERE)]
    found += [(f"region {one.name!r}", one.extremes, one.shape.bounds) for one in scene.regions]
    return found


def _meet(one: Box, other: Box, band: float) -> bool:
    """Tell whether boxes are so near that the bands around what is in them can overlap."""
    return all(one[0][k] - band <= other[1][k] and other[0][k] - band <= one[1][k] for k in range(2))


def _fall(one: Floats, other: Floats, steepness: float) -> float:
    """Return the steepest fall [N s/m] of all laws on the straight line between two, by their numbers.

    It is (a + b w)/(c + d w) - (D + e w) for w from 0 to 1; inside it can only have an extreme where
    (c + d w)^2 = (b c - a d)/e.
    """
    a, c, D = steepness * (one[0] - one[1]), one[2], one[3]
    b, d, e = steepness * (other[0] - other[1]) - a, other[2] - c, other[3] - D
    shares = [0.0, 1.0]
    if e != 0.0 and d != 0.0 and (b * c - a * d) / e > 0.0:
        inside = (math.sqrt((b * c - a * d) / e) - c) / d
        shares += [inside] if 0.0 < inside < 1.0 else []
    return float(max((a + b * w) / (c + d * w) - D - e * w for w in shares))


def spread(scene: Scene) -> float:
    """Return the largest difference of a force of the law between two places of a scene [N]."""
    forces = np.array(
        [numbers[list(forces_of(scene.law))] for _, extremes, _ in _places(scene) for numbers in extremes]
    )
    return float((forces.max(axis=0) - forces.min(axis=0)).max())


def fitted(scene: Scene, element: Element) -> Scene:
    """Return a scene with its borders as wide as they are in front of an element; A and D leave them as they are.

    Models B and C pull the proxy by a spring K. Where the level falls by s [N/m], the spring relaxes and the proxy
    runs ahead of the hand, at ``K/(K - s)`` of its speed; with a slope ``s > K`` it would jump. A border that is wider
    by the difference of forces over K has ``s = S K/(K + S)`` instead of ``S = dF/border``: then the force changes
    per way of the *hand* as it would change per way of the proxy without a spring. The mass of model B rings on that
    spring; `RINGING` leaves room for it.
    """
    stiffness = element.coupling_stiffness
    if element.causality is not Causality.IMPEDANCE or stiffness == 0.0:
        return scene
    wider = scene.border + spread(scene) / stiffness
    return replace(scene, border=min(RINGING * wider if element.model == "B" else wider, WIDEST_BORDER))
