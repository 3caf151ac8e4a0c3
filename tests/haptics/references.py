"""Independent mathematics of the friction laws for the tests: levels, forces, solutions.

Nothing here uses the closed forms or the searches of the code under test. Isotropic laws are solved by SciPy's
bracketed root search for the sliding speed, laws of the plane by one for the *direction* of sliding.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from haptics import Asymmetric, CustomLaw, Elliptic, friction_law
from haptics.friction.laws import Coulomb, CoulombViscous, DeadZoneViscous, GaussianStribeck, Stribeck

Array = NDArray[np.float64]
Planar = Elliptic | Asymmetric
EPS = float(np.finfo(float).eps)


@friction_law
def rubber(speed, static=5.0, kinetic=4.0, width=0.1, viscosity=0.0):
    """Custom law of the tests; `sliding_force` knows it by its parameters."""
    return kinetic + (static - kinetic) / (1.0 + speed / width) + viscosity * speed


def norms(vectors):
    """Euclidean length of each row."""
    return np.asarray(np.linalg.norm(np.atleast_2d(vectors), axis=1), dtype=float)


def region_at(scene, points):
    """Number of the region of a scene at points (n, 2) [m]: an (n,) array; 0 is the background."""
    inside = [region.shape.distance(points) < 0.0 for region in scene.regions]
    return np.max([np.zeros(len(points), int), *(number * one for number, one in enumerate(inside, 1))], axis=0)


# ---- isotropic laws: a level over the sliding speed


def sliding_force(law, speed):
    """Magnitude of the friction force [N] at a sliding speed [m/s]; at speed 0 its limit, the break-away force."""
    match law:
        case Coulomb(force):
            return force + 0.0 * speed
        case CoulombViscous(force, viscosity):
            return force + viscosity * speed
        case DeadZoneViscous(force, viscosity, dead_zone):
            return force + viscosity * (speed - dead_zone) * (speed > dead_zone)
        case Stribeck(kinetic, static, velocity, viscosity):
            return kinetic + (static - kinetic) * np.exp(-speed / velocity) + viscosity * speed
        case GaussianStribeck(kinetic, static, velocity, viscosity):
            return kinetic + (static - kinetic) * np.exp(-(speed**2) / velocity**2) + viscosity * speed
        case CustomLaw(values=values):
            static, kinetic, width, viscosity = (value for _, value in values)
            return kinetic + (static - kinetic) * width / (width + speed) + viscosity * speed
    raise TypeError(law)


def slope(law, speed):
    """Derivative of `sliding_force` [N s/m]."""
    match law:
        case Coulomb():
            return 0.0
        case CoulombViscous(_, viscosity):
            return viscosity
        case DeadZoneViscous(_, viscosity, dead_zone):
            return viscosity if speed > dead_zone else 0.0
        case Stribeck(kinetic, static, velocity, viscosity):
            return viscosity - (static - kinetic) / velocity * math.exp(-speed / velocity)
        case GaussianStribeck(kinetic, static, velocity, viscosity):
            u = speed / velocity
            return viscosity - (static - kinetic) / velocity * 2.0 * u * math.exp(-u * u)
        case CustomLaw(values=values):
            static, kinetic, width, viscosity = (value for _, value in values)
            return viscosity - (static - kinetic) * width / (width + speed) ** 2
    raise TypeError(law)


def steepest(law):
    """Z beyond which (15) fails [m/(N s)]: one over the greatest fall of the level, infinite if it never falls."""
    if isinstance(law, Elliptic | Asymmetric):
        return math.inf
    where = law.stribeck_velocity / math.sqrt(2.0) if isinstance(law, GaussianStribeck) else 0.0
    fall = -slope(law, where)
    return 1.0 / fall if fall > 0.0 else math.inf


def reference_speed(law, reach, mobility):
    """Solve ``s + Z g(s) = reach`` for the sliding speed s >= 0 by bracketing; 0 in stick."""
    if reach <= mobility * sliding_force(law, 0.0):
        return 0.0
    return float(brentq(lambda s: s + mobility * sliding_force(law, s) - reach, 0.0, reach, xtol=1e-300, rtol=4 * EPS))


# ---- laws of the plane: a convex set of forces at rest


def own_axes(law):
    """Matrix that turns a vector into the law's own axes."""
    c, s = math.cos(law.angle), math.sin(law.angle)
    return np.array([[c, s], [-s, c]])


def semi_axes(law, along):
    """Semi-axes [N] of the set of forces at rest on the side where the first coordinate is `along`."""
    if isinstance(law, Elliptic):
        return np.array([law.force_x, law.force_y])
    return np.array([law.forward_force if along >= 0.0 else law.backward_force, law.sideways_force])


def fullness(law, force):
    """Return the size of a force (n,) relative to the set of forces at rest; at most 1 in stick."""
    if not isinstance(law, Elliptic | Asymmetric):
        return float(np.linalg.norm(force) / sliding_force(law, 0.0))
    own = own_axes(law) @ force
    return float(np.linalg.norm(own / semi_axes(law, own[0])))


def force_at(law, velocity):
    """Friction force Phi(v) [N] of a velocity (n,) other than zero.

    In the plane it is the force of the resting set that takes the most power, and viscosity.
    """
    speed = float(np.linalg.norm(velocity))
    if not isinstance(law, Elliptic | Asymmetric):
        return np.asarray(sliding_force(law, speed) / speed * velocity)
    own = own_axes(law) @ velocity
    scaled = semi_axes(law, own[0]) * (own / speed)
    strongest = semi_axes(law, own[0]) * scaled / np.linalg.norm(scaled)
    return np.asarray(own_axes(law).T @ strongest + law.viscosity * velocity)


def _planar_implicit(law, x, mobility):
    """Phi_Z of a law of the plane: the one direction of sliding in which x - Z Phi(v) and v are parallel."""
    own = own_axes(law) @ x
    axes, reach = semi_axes(law, own[0]), np.abs(own)

    def strongest(angle):
        direction = np.array([math.cos(angle), math.sin(angle)])
        return direction, axes**2 * direction / np.linalg.norm(axes * direction)

    def across(angle):
        direction, force = strongest(angle)
        rest = reach - mobility * force
        return float(direction[0] * rest[1] - direction[1] * rest[0])

    quarter = 0.5 * math.pi
    if across(0.0) <= 0.0 or across(quarter) >= 0.0:  # along one of the axes, to rounding
        angle = 0.0 if across(0.0) <= 0.0 else quarter
    else:
        angle = brentq(across, 0.0, quarter, xtol=1e-20, rtol=4 * EPS)
    direction, force = strongest(angle)
    speed = float(direction @ (reach - mobility * force)) / (1.0 + mobility * law.viscosity)
    return np.asarray(own_axes(law).T @ (np.copysign(1.0, own) * (force + law.viscosity * speed * direction)))


# ---- all laws


def reference_implicit(law, x, mobility):
    """Return Phi_Z(x) of (16), (52), both (n,)."""
    if fullness(law, x / mobility) <= 1.0:
        return np.asarray(x / mobility)
    if isinstance(law, Elliptic | Asymmetric):
        return _planar_implicit(law, x, mobility)
    reach = float(np.linalg.norm(x))
    return np.asarray(sliding_force(law, reference_speed(law, reach, mobility)) * x / reach, dtype=float)


def inclusion_residual(law, velocity, force):
    """Distance [N] of each pair from ``f = Phi(v) if v != 0, f in the resting set if v == 0``; (9), (51)."""
    pairs = zip(np.atleast_2d(velocity), np.atleast_2d(force), strict=True)
    return np.array(
        [
            np.linalg.norm(f - force_at(law, v)) if v.any() else law.breakaway_force * max(fullness(law, f) - 1.0, 0.0)
            for v, f in pairs
        ]
    )
