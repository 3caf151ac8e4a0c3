r"""Condition (15) for a scene: every mixture of laws in borders, images and textures must be solvable.

All numbers in a scene are weighted means of the numbers of some laws: the laws of the materials that meet there, at
both ends of the scale of an image and at both amplitudes of a texture. The steepest fall of a law with speed is
:math:`c (F_s - F_c)/v_s - D`, and the law is solvable for mobilities below the inverse (condition (15) of Kikuuwe et
al. 2006). As a function of the weights :math:`\lambda` the fall is a ratio of two linear functions minus a linear
function. For more than two laws there is a direction of the weights that keeps the mean of :math:`v_s` constant, and
along it the fall is linear. Its maximum is therefore not in the interior, but where one law fewer contributes. By
induction the maximum is between two laws, where it has a closed form. All pairs that can meet are tested.
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
"""Steepest fall of each kind of falling law, in units of (F_s - F_c)/v_s."""

RINGING = 1.5
"""Factor on the width of borders for model B, whose mass overshoots, and the force with it."""

Fall = tuple[float, str]
"""Steepest fall of a law [N s/m], and a description of its place."""


def mobility_limit(scene: Scene) -> float:
    """Return the supremum of the mobilities [m/(N s)] for which all mixtures in a scene are solvable."""
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
    """Return the steepest fall [N s/m] of all mixtures in a scene, at least 0, and its place."""
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
    """Return name, extreme numbers and box of the background and the regions."""
    found = [("the background", [numbers_of(scene.law)], EVERYWHERE)]
    found += [(f"region {one.name!r}", one.extremes, one.shape.bounds) for one in scene.regions]
    return found


def _meet(one: Box, other: Box, band: float) -> bool:
    """Return True if the bands around the contents of two boxes can overlap."""
    return all(one[0][k] - band <= other[1][k] and other[0][k] - band <= one[1][k] for k in range(2))


def _fall(one: Floats, other: Floats, steepness: float) -> float:
    """Return the steepest fall [N s/m] of all mixtures of two laws, given by their numbers.

    The fall is (a + b w)/(c + d w) - (D + e w) for w from 0 to 1. An extremum inside this interval is only possible
    where (c + d w)^2 = (b c - a d)/e.
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
    """Return the scene with the border width for an element; elements A and D keep the border unchanged.

    Models B and C pull the proxy with a spring K. Where the level falls by s [N/m], the spring relaxes and the proxy
    runs ahead of the hand, at ``K/(K - s)`` of its speed; with a slope ``s > K`` it would jump. A border that is wider
    by the difference of forces divided by K has ``s = S K/(K + S)`` instead of ``S = dF/border``. The force then
    changes per distance of the *hand* as it would change per distance of the proxy without a spring. The mass of model
    B oscillates on that spring; `RINGING` adds margin for it.
    """
    stiffness = element.coupling_stiffness
    if element.causality is not Causality.IMPEDANCE or stiffness == 0.0:
        return scene
    wider = scene.border + spread(scene) / stiffness
    return replace(scene, border=min(RINGING * wider if element.model == "B" else wider, WIDEST_BORDER))
