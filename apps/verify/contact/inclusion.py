r"""Residuals of the inclusion :math:`f \in \Phi(v)`: how far a recorded friction force is from those a law allows.

At rest the law is a set, and the residual is how far beyond its edge the force lies. While it slides, the residual is
the distance to the force of the law at the recorded velocity. A velocity is recorded to a few units in the last place;
the level is therefore taken over ``s (1 - 8 eps)`` to ``s (1 + 8 eps)``, which for a level that jumps at that speed is
the set of forces in between. What rounding leaves besides is `apps.verify.facts.ROUNDINGS` eps of the forces' sum.
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
    """Return vectors of length 1, (n, 2); zeros stay zeros."""
    norms = length(vectors)
    return np.divide(vectors, norms[:, None], out=np.zeros_like(vectors), where=norms[:, None] > 0.0)


def inclusion(law: Law, force: Floats, velocity: Floats, mobility: float) -> Pair:
    """Return residual and bound [N], (n,) each, of forces and velocities, (n, 2) each.

    Parameters
    ----------
    law : Law
        Of the contact.
    force, velocity : (n, 2) array
        Friction force [N] and sliding velocity [m/s].
    mobility : float
        Z of the element [m/(N s)], which decides where the law is approximated, and what sticks; 0 where the law is
        looked up.
    """
    if law.approximate:
        return _approximation(law, force, velocity, mobility)
    rests = ~velocity.any(axis=1)
    at_rest = _static(law, force)
    sliding = _isotropic(law, force, velocity) if isinstance(law, Isotropic) else _quarters(law, force, velocity)
    residual, bound = (np.where(rests, one, other) for one, other in zip(at_rest, sliding, strict=True))
    return residual, bound


def _static(law: Law, force: Floats) -> Pair:
    """Return how far a force lies beyond the set of forces at rest."""
    if isinstance(law, Isotropic):
        norm = length(force)
        return np.maximum(norm - law.static, 0.0), np.asarray(rounding(norm)) + law.loose * law.static
    own = law.turned(force)
    share = length(own / law.semi_axes(own))
    norm = length(force)
    beyond = norm * np.maximum(1.0 - 1.0 / np.maximum(share, 1.0), 0.0)
    return beyond, np.asarray(rounding(norm, law.static)) + law.loose * law.static


def _isotropic(law: Isotropic, force: Floats, velocity: Floats) -> Pair:
    """Return the distance of a force to the level at the speed, along the velocity."""
    speed, along = length(velocity), units(velocity)
    found = np.stack([law.level(share * speed) for share in _SPEEDS])
    low, high = found.min(axis=0), found.max(axis=0)
    part = (force * along).sum(axis=1)
    across = force[:, 0] * along[:, 1] - force[:, 1] * along[:, 0]
    off = np.maximum(np.maximum(low - part, part - high), 0.0)
    return np.hypot(off, across), np.asarray(rounding(length(force), high)) + law.loose * high


def level_force(law: Law, velocity: Floats) -> Floats:
    """Return the force of a law at a velocity that is not zero, (n, 2)."""
    along = units(velocity)
    if isinstance(law, Isotropic):
        return law.level(length(velocity))[:, None] * along
    own = law.turned(along)
    squares = law.semi_axes(own) ** 2
    norm = length(own * law.semi_axes(own))
    dry = np.divide(own * squares, norm[:, None], out=np.zeros_like(own), where=norm[:, None] > 0.0)
    return np.asarray(law.turned_back(dry) + np.reshape(law.viscosity, (-1, 1)) * velocity)


def _quarters(law: Quarters, force: Floats, velocity: Floats) -> Pair:
    """Return the distance of a force to that of the set's point which takes the most power, and viscosity.

    Where the velocity is small against Z F its direction follows from the force; an error of the force turns it by as
    many roundings as the set is longer than wide, squared.
    """
    residual = length(force - level_force(law, velocity))
    return residual, np.asarray(rounding(length(force), law.static) + law.loose * law.static) * law.slender


def _approximation(law: Law, force: Floats, velocity: Floats, mobility: float) -> Pair:
    """Return the distance of a force to the approximation at x = v + Z f, where it was taken."""
    x = velocity + mobility * force
    expected, _ = approximation(law, x, np.full(len(x), mobility))
    phi = level_force(law, x)
    n = length(phi)
    steep = length(level_force(law, x * (1.0 + 8.0 * EPS)) - phi)
    slender = law.slender if isinstance(law, Quarters) else 1.0
    return length(force - expected), np.asarray(rounding(n, length(force)) + law.loose * n) * slender + 4.0 * steep


def approximation(law: Law, x: Floats, Z: Floats) -> Pair:
    """Return the forces (46), (57), (59) at x, (n, 2), and up to which |x| they are those of rest, (n,)."""
    r, phi = length(x), level_force(law, x)
    n = length(phi)
    limit = Z * n
    share = (limit / np.maximum(r, 1e-300))[:, None]
    sliding = phi + share * (n[:, None] * units(x) - phi)
    return np.where((r <= limit)[:, None], x / Z[:, None], sliding), limit


def slides_though_it_could_stick(law: Law, force: Floats, velocity: Floats, mobility: float) -> NDArray[np.bool_]:
    """Return where a contact slides under x = v + Z f that it could hold, (n,): what can stick does stick."""
    if law.approximate or not isinstance(law, Isotropic) or mobility == 0.0:
        return np.zeros(len(force), bool)
    pull = length(velocity + mobility * force)
    held = pull < mobility * law.static * (1.0 - 64.0 * EPS - law.loose)
    return np.asarray(velocity.any(axis=1) & held)
