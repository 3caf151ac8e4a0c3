r"""Residuals of :math:`f \in \Phi(v)`: distance of a recorded friction force from the law.

At rest the law is a set, and the residual is the distance of the force beyond its boundary. During sliding, the
residual is the distance to the force of the law at the recorded velocity. A recorded velocity is accurate to a few
units in the last place. The level is therefore evaluated from ``s (1 - 8 eps)`` to ``s (1 + 8 eps)``; for a level that
jumps at that speed, this gives the set of forces in between. The bound for other rounding errors is
`apps.verify.recorded.ROUNDINGS` eps times the sum of the forces.

`implicit` solves :math:`f \in \Phi(x - Z f)` for the friction force, independently of the elements and vectorized over
many arguments. An isotropic law with level g sticks if |x| is at most Z times the static level, with the force x/Z.
Otherwise it slides at the speed s with s + Z g(s) = |x|. For a set of quarter ellipses, x is rotated into the axes of
the set, with semi-axes a. The contact sticks if x/Z is in the set. Otherwise the dry part d is on the boundary, the
velocity is normal to the boundary there, :math:`v = m d/a^2` with m > 0, and the viscosity D adds to it, f = d + D v.
This gives :math:`d = x / (Z + (1 + Z D) m/a^2)`, and m is the root of :math:`|d/a| = 1`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.verify.laws import Isotropic, Law, Quarters
from apps.verify.recorded import EPS, rounding

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]

_SPEEDS = (1.0 - 8.0 * EPS, 1.0, 1.0 + 8.0 * EPS)


def length(vectors: Floats) -> Floats:
    """Return the norms of vectors, (n, 2)."""
    norms: Floats = np.hypot(vectors[:, 0], vectors[:, 1])
    return norms


def units(vectors: Floats) -> Floats:
    """Return vectors normalized to length 1, (n, 2); zero vectors stay zero."""
    norms = length(vectors)
    return np.divide(vectors, norms[:, None], out=np.zeros_like(vectors), where=norms[:, None] > 0.0)


def inclusion(law: Law, force: Floats, velocity: Floats, mobility: float) -> Pair:
    """Return residual and bound [N], (n,) each, for the given forces and velocities.

    Parameters
    ----------
    law : Law
        Law of the contact.
    force, velocity : (n, 2) array
        Friction force [N] and sliding velocity [m/s].
    mobility : float
        Mobility Z of the element [m/(N s)]. It determines where the law is approximated, and when it sticks; 0 for an
        explicit law.
    """
    if law.approximate:
        x = velocity + mobility * force
        expected, _ = approximation(law, x, np.full(len(x), mobility))
        phi = level_force(law, x)
        n = length(phi)
        steep = length(level_force(law, x * (1.0 + 8.0 * EPS)) - phi)
        slender = law.slender if isinstance(law, Quarters) else 1.0
        return length(force - expected), (rounding(n, length(force)) + law.loose * n) * slender + 4.0 * steep
    rests = ~velocity.any(axis=1)
    at_rest = _static(law, force)
    if isinstance(law, Isotropic):
        sliding = _isotropic_distance(law, force, velocity)
    else:
        # Where the velocity is small compared with Z F, its direction follows from the force. An error of the force
        # then changes the direction by this error times the squared aspect ratio of the set.
        distance = length(force - level_force(law, velocity))
        sliding = distance, (rounding(length(force), law.static) + law.loose * law.static) * law.slender
    residual, bound = (np.where(rests, one, other) for one, other in zip(at_rest, sliding, strict=True))
    return residual, bound


def _static(law: Law, force: Floats) -> Pair:
    """Return the distance of a force beyond the set of static forces, and its bound [N]."""
    if isinstance(law, Isotropic):
        norm = length(force)
        return np.maximum(norm - law.static, 0.0), rounding(norm) + law.loose * law.static
    own = law.turned(force)
    share = length(own / law.semi_axes(own))
    norm = length(force)
    beyond = norm * np.maximum(1.0 - 1.0 / np.maximum(share, 1.0), 0.0)
    return beyond, rounding(norm, law.static) + law.loose * law.static


def _isotropic_distance(law: Isotropic, force: Floats, velocity: Floats) -> Pair:
    """Return the distance between a force and the level at the speed, along the velocity."""
    speed, along = length(velocity), units(velocity)
    found = np.stack([law.level(share * speed) for share in _SPEEDS])
    low, high = found.min(axis=0), found.max(axis=0)
    part = (force * along).sum(axis=1)
    across = force[:, 0] * along[:, 1] - force[:, 1] * along[:, 0]
    off = np.maximum(np.maximum(low - part, part - high), 0.0)
    return np.hypot(off, across), rounding(length(force), high) + law.loose * high


def level_force(law: Law, velocity: Floats) -> Floats:
    """Return the force of a law at nonzero velocities, (n, 2) [N]."""
    along = units(velocity)
    if isinstance(law, Isotropic):
        return law.level(length(velocity))[:, None] * along
    own = law.turned(along)
    squares = law.semi_axes(own) ** 2
    norm = length(own * law.semi_axes(own))
    dry = np.divide(own * squares, norm[:, None], out=np.zeros_like(own), where=norm[:, None] > 0.0)
    return np.asarray(law.turned_back(dry) + np.reshape(law.viscosity, (-1, 1)) * velocity)


def approximation(law: Law, x: Floats, Z: Floats) -> Pair:
    """Return the forces (46), (57), (59) at x, (n, 2), and the |x| of break-away, (n,)."""
    r, phi = length(x), level_force(law, x)
    n = length(phi)
    limit = Z * n
    share = (limit / np.maximum(r, 1e-300))[:, None]
    sliding = phi + share * (n[:, None] * units(x) - phi)
    return np.where((r <= limit)[:, None], x / Z[:, None], sliding), limit


def slides_though_it_could_stick(law: Law, force: Floats, velocity: Floats, mobility: float) -> NDArray[np.bool_]:
    """Return where a contact slides although it could stick under x = v + Z f, (n,)."""
    if law.approximate or not isinstance(law, Isotropic) or mobility == 0.0:
        return np.zeros(len(force), bool)
    pull = length(velocity + mobility * force)
    held = pull < mobility * law.static * (1.0 - 64.0 * EPS - law.loose)
    return np.asarray(velocity.any(axis=1) & held)


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
    return _solve_isotropic(law, x, Z) if isinstance(law, Isotropic) else _solve_quarters(law, x, Z)


def slenderness(law: Law) -> float:
    """Return the factor by which a rounding error of the direction grows in the force."""
    return float(law.slender) if isinstance(law, Quarters) else 1.0


def _near(law: Law, pull: Floats, limit: Floats) -> Mask:
    return np.asarray(np.abs(pull - limit) <= _NEAR * slenderness(law) * limit)


def _solve_isotropic(law: Isotropic, x: Floats, Z: Floats) -> tuple[Floats, Mask, Mask]:
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


def _solve_quarters(law: Quarters, x: Floats, Z: Floats) -> tuple[Floats, Mask, Mask]:
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
