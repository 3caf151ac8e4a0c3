r"""Solve :math:`f \in \Phi(x - Z f)` for the friction force, independently of the elements.

The solution is vectorized over many arguments.

An isotropic law with level g sticks if |x| is at most Z times the static level, with the force x/Z. Otherwise it slides
at the speed s with s + Z g(s) = |x|. For a set of quarter ellipses, x is rotated into the axes of the set, with
semi-axes a. The contact sticks if x/Z is in the set. Otherwise the dry part d is on the boundary, the velocity is
normal to the boundary there, :math:`v = m d/a^2` with m > 0, and the viscosity D adds to it, f = d + D v. This gives
:math:`d = x / (Z + (1 + Z D) m/a^2)`, and m is the root of :math:`|d/a| = 1`.
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
"""Number of bisections that always reaches adjacent floating-point numbers."""

_NEAR = 64.0 * EPS
"""Relative distance to the limit within which rounding decides whether a contact sticks."""


def implicit(law: Law, x: Floats, Z: Floats) -> tuple[Floats, Mask, Mask]:
    """Solve for the forces, (n, 2) [N].

    Parameters
    ----------
    law : Law
        Friction law.
    x : (n, 2) array
        Velocities without friction [m/s].
    Z : (n,) array
        Mobilities [m/(N s)].

    Returns
    -------
    force : (n, 2) array
        Friction forces [N].
    rests : (n,) array
        Where the contact sticks.
    near : (n,) array
        Where rounding decides whether it sticks.
    """
    if law.approximate:
        force, limit = approximation(law, x, Z)
        return force, length(x) <= limit, _near(law, length(x), limit)
    return _isotropic(law, x, Z) if isinstance(law, Isotropic) else _quarters(law, x, Z)


def slenderness(law: Law) -> float:
    """Return the factor by which a rounding error of the direction grows in the force."""
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
    """Return the solution s of s + Z g(s) = pull by bisection between 0 and the pull."""
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
    """Solve |c/(b + n)| = 1 for n > 0, (n,), given (n, 2) arrays; return 0 where |c/b| is at most 1.

    Newton's method is applied to 1/|c/(b + n)| = 1. The left side is concave, so the iteration converges from below.
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
