r"""Residuals of :math:`f \in \Phi(v)`: distance of a recorded friction force from the law.

At rest the law is a set, and the residual is the distance of the force beyond its boundary. During sliding, the
residual is the distance to the force of the law at the recorded velocity. A recorded velocity is accurate to a few
units in the last place. The level is therefore evaluated from ``s (1 - 8 eps)`` to ``s (1 + 8 eps)``; for a level that
jumps at that speed, this gives the set of forces in between. The bound for other rounding errors is
`apps.verify.facts.ROUNDINGS` eps times the sum of the forces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.laws import Isotropic, Law, Quarters
from apps.verify.facts import EPS, rounding

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
        return _approximation(law, force, velocity, mobility)
    rests = ~velocity.any(axis=1)
    at_rest = _static(law, force)
    sliding = _isotropic(law, force, velocity) if isinstance(law, Isotropic) else _quarters(law, force, velocity)
    residual, bound = (np.where(rests, one, other) for one, other in zip(at_rest, sliding, strict=True))
    return residual, bound


def _static(law: Law, force: Floats) -> Pair:
    """Return the distance of a force beyond the set of static forces, and its bound [N]."""
    if isinstance(law, Isotropic):
        norm = length(force)
        return np.maximum(norm - law.static, 0.0), np.asarray(rounding(norm)) + law.loose * law.static
    own = law.turned(force)
    share = length(own / law.semi_axes(own))
    norm = length(force)
    beyond = norm * np.maximum(1.0 - 1.0 / np.maximum(share, 1.0), 0.0)
    return beyond, np.asarray(rounding(norm, law.static)) + law.loose * law.static


def _isotropic(law: Isotropic, force: Floats, velocity: Floats) -> Pair:
    """Return the distance between a force and the level at the speed, along the velocity."""
    speed, along = length(velocity), units(velocity)
    found = np.stack([law.level(share * speed) for share in _SPEEDS])
    low, high = found.min(axis=0), found.max(axis=0)
    part = (force * along).sum(axis=1)
    across = force[:, 0] * along[:, 1] - force[:, 1] * along[:, 0]
    off = np.maximum(np.maximum(low - part, part - high), 0.0)
    return np.hypot(off, across), np.asarray(rounding(length(force), high)) + law.loose * high


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


def _quarters(law: Quarters, force: Floats, velocity: Floats) -> Pair:
    """Return the distance of a force from the force with maximum dissipation, plus viscosity.

    Where the velocity is small compared with Z F, its direction follows from the force. An error of the force then
    changes the direction by this error times the squared aspect ratio of the set.
    """
    residual = length(force - level_force(law, velocity))
    return residual, np.asarray(rounding(length(force), law.static) + law.loose * law.static) * law.slender


def _approximation(law: Law, force: Floats, velocity: Floats, mobility: float) -> Pair:
    """Return the distance between a force and the closed-form approximation at x = v + Z f."""
    x = velocity + mobility * force
    expected, _ = approximation(law, x, np.full(len(x), mobility))
    phi = level_force(law, x)
    n = length(phi)
    steep = length(level_force(law, x * (1.0 + 8.0 * EPS)) - phi)
    slender = law.slender if isinstance(law, Quarters) else 1.0
    return length(force - expected), np.asarray(rounding(n, length(force)) + law.loose * n) * slender + 4.0 * steep


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
