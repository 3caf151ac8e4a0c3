r"""The force of a law under a pull: f with :math:`f \in \Phi(x - Z f)`, found from the law alone, for many at once.

A law with a level g sticks where |x| is at most Z times the level at rest, and gives x/Z; else it slides at the speed s
with s + Z g(s) = |x|. A set of quarters of ellipses with semi-axes a is looked at in its own axes. It sticks where x/Z
is in the set; else the dry part d lies on its edge, the velocity is normal to the edge there, :math:`v = m d/a^2` with
m > 0, and viscosity D comes on top, f = d + D v. So :math:`d = x / (Z + (1 + Z D) m/a^2)`, and m is where the
:math:`|d/a|` of this is 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.inclusion import approximation, length, units
from apps.verify.contact.laws import Isotropic, Law, Quarters
from apps.verify.facts import EPS

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STEPS = 200
"""Bisections that are enough for two numbers with nothing in between."""

_NEAR = 64.0 * EPS
"""So near its limit, relative to that, rounding decides whether a contact sticks."""


def implicit(law: Law, x: Floats, Z: Floats) -> tuple[Floats, Mask, Mask]:
    """Return forces, (n, 2) [N], where they stick, and where rounding decides that, (n,).

    Parameters
    ----------
    law : Law
        The law.
    x : (n, 2) array
        Velocities that there would be without friction [m/s].
    Z : (n,) array
        Mobilities [m/(N s)].
    """
    if law.approximate:
        force, limit = approximation(law, x, Z)
        return force, length(x) <= limit, _near(law, length(x), limit)
    return _isotropic(law, x, Z) if isinstance(law, Isotropic) else _quarters(law, x, Z)


def slenderness(law: Law) -> float:
    """Return by how much a rounding of the direction grows in a force."""
    return float(law.slender) if isinstance(law, Quarters) else 1.0


def _near(law: Law, pull: Floats, limit: Floats) -> Mask:
    return np.asarray(np.abs(pull - limit) <= _NEAR * slenderness(law) * limit)


def _isotropic(law: Isotropic, x: Floats, Z: Floats) -> tuple[Floats, Mask, Mask]:
    pull, limit = length(x), Z * law.static
    rests = pull <= limit
    force = x / Z[:, None]
    slides = ~rests
    if slides.any():
        speed = _speed(law, pull[slides], Z[slides])
        force[slides] = law.level(speed)[:, None] * units(x[slides])
    return force, rests, _near(law, pull, limit)


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


def _quarters(law: Quarters, x: Floats, Z: Floats) -> tuple[Floats, Mask, Mask]:
    own, z = law.turned(x), Z[:, None]
    axes = law.semi_axes(own)
    pull = length(own / (z * axes))
    rests = pull <= 1.0
    normal = _normal(own * axes, z * axes**2)[:, None]
    dry = own / (z + normal / axes**2)
    slides = dry + law.viscosity * normal / ((1.0 + z * law.viscosity) * axes**2) * dry
    force = np.where(rests[:, None], x / z, law.turned_back(slides))
    return force, rests, _near(law, pull, np.ones_like(pull))


def _normal(c: Floats, b: Floats) -> Floats:
    """Return the n > 0 with |c/(b + n)| = 1, (n,), for (n, 2) numbers; 0 where |c/b| is at most 1.

    Newton's method for 1/|c/(b + n)| = 1, whose left side is concave: from 0 it comes nearer from below.
    """
    n = np.zeros(len(c))
    for _ in range(_STEPS):
        y = c / (b + n[:, None])
        size = length(y)
        slope = (y**2 / (b + n[:, None])).sum(axis=1)
        step = np.where(size > 1.0, size**2 * (size - 1.0) / np.where(slope > 0.0, slope, 1.0), 0.0)
        if not (step > EPS * n).any():
            break
        n = n + step
    return n
