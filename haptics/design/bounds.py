"""Bounds of element parameters: stability, encoder quantisation, uniqueness of the force."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from haptics.design import loops
from haptics.design.loops import Coupling, Handle, Matrix
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from haptics.friction.laws import Law

MARGIN = 2.0
"""Safety factor used by suggestions and advice."""

SETTLED = 0.5
"""Maximum settling time of a sticking contact after an impulse on the bare handle [s]."""

PRESLIDING = 1e-3
"""Maximum displacement of the handle before the contact slides [m]; beyond it, the contact feels soft."""

_REST = 0.02  # fraction of the initial amplitude at which a motion counts as settled

_HEAVIEST = 1e3  # largest mass that `mass_limit` tries [kg]

# Initial masses, and the smallest mass, that `sliding_mass_limit` tries [kg].
_LIGHTEST = 1e-3
_MASSES = tuple(30.0 * 0.5**k for k in range(15))

_SLOW = 0.1  # growth rate below which an oscillation is not felt before the contact stops [1/s]

_ROUNDING = 1e-6  # tolerance on the magnitude 1 of an eigenvalue, which an arm without grip stiffness has

_SOFT = 1e-3  # fraction of `stiffness_rule` that serves as a negligible but non-zero stiffness

_DIGITS, _COARSE = 1e-7, 1e-3  # relative width at which a bisection ends, by default and for large matrices


# --- model C with a bare mass: (63) ---------------------------------------------------------------------------------


def contact_is_stable(coupling: Coupling, mass: float) -> bool:
    """Return True if a mass held by a sticking model C settles.

    The matrix of one period is (63) of Kikuuwe et al. 2006. Its trace is :math:`2 - a - b` and its determinant
    :math:`1 - b`, with :math:`a = T^2 K / M` and :math:`b = T B / M`. The condition is :math:`a + 2 b < 4` with a and b
    greater than 0. It is Jury's test of the polynomial
    :math:`z^2 - (2 - a - b) z + 1 - b`. The polynomial must be positive at z = -1 (the condition above) and at z = 1
    (``a > 0``; without stiffness there is no position of rest), and the determinant must be below 1 (``b > 0``; without
    damping the mass oscillates for ever).
    """
    require("mass", mass, "kg")
    T = coupling.period
    a, b = T * T * coupling.stiffness / mass, T * coupling.damping / mass
    return a > 0.0 and b > 0.0 and a + 2.0 * b < 4.0


# --- models B and C on an impedance device --------------------------------------------------------------------------


def stiffness_limit(handle: Handle, damping: float, period: float = 1e-3) -> float:
    """Return the stiffness below which a sticking contact holds the bare handle stably [N/m].

    Above it, a limit cycle occurs. The limit is found by bisection on the eigenvalues of `haptics.design.stuck_matrix`.
    It is 0 if no stiffness is stable, because the damping is too low or too high.

    Parameters
    ----------
    handle : Handle
        The device.
    damping : float
        Damping of the coupling [N s/m].
    period : float
        Sampling period [s].
    """
    softest = _SOFT * stiffness_rule(handle, damping, period)
    return edge(lambda stiffness: _is_stable(handle, stiffness, damping, period), softest, 2.0) or 0.0


def damping_limit(handle: Handle, period: float = 1e-3) -> float:
    """Return the damping of the coupling [N s/m] above which no stiffness is stable on the handle."""
    return (
        edge(
            lambda damping: _is_stable(handle, _SOFT * stiffness_rule(handle, damping, period), damping, period),
            1e-6 * handle.mass / period,
            2.0,
        )
        or 0.0
    )


def settling_time(handle: Handle, coupling: Coupling) -> float:
    """Return the time in which the slowest motion of the held bare handle decays to 2 % [s].

    The time follows from the largest eigenvalue of `haptics.design.stuck_matrix`. It is infinite if the contact is
    unstable. A hand on the handle adds damping, which shortens the decay of a weakly damped contact and prolongs the
    decay of a soft one.
    """
    slowest = loops.growth(loops.stuck_matrix(coupling, handle))
    if not slowest < 1.0:
        return math.inf
    return coupling.period * math.log(_REST) / math.log(slowest) if slowest > 0.0 else 0.0


def stiffness_rule(handle: Handle, damping: float, period: float = 1e-3) -> float:
    """Return the rule of thumb for `stiffness_limit` [N/m]: :math:`B + b > K T (d + 1/2)`, d in periods.

    Damping must absorb the energy that the delay of the spring generates, including half a period for the zero-order
    hold of the force. The exact limit approaches the rule for a heavy handle. For a light handle the exact limit is
    lower, unless the damping of the handle is large.
    """
    return (damping + handle.damping) / (handle.total_delay + 0.5 * period)


def _is_stable(handle: Handle, stiffness: float, damping: float, period: float) -> bool:
    return loops.growth(loops.stuck_matrix(Coupling(stiffness, damping, period), handle)) < 1.0


# --- models A and D on an admittance device -------------------------------------------------------------------------


def mass_limit(servo: loops.PositionServo, period: float = 1e-3) -> float:
    """Return the mass above which an arm in the hand does not oscillate while the contact slides [kg].

    The limit is found by bisection on the eigenvalues of `haptics.design.sliding_matrix`. It is infinite if the lag of
    the arm makes every mass unstable, and 0 if both grip stiffness and handle mass are 0. The viscosity of the friction
    law is neglected.
    """
    if servo.grip_stiffness == servo.handle_mass == 0.0:
        return 0.0
    # Without grip stiffness the arm stays where it is placed: one eigenvalue is exactly 1.
    still = 1.0 if servo.grip_stiffness > 0.0 else 1.0 + _ROUNDING
    limit = edge(lambda mass: loops.growth(loops.sliding_matrix(mass, servo, period)) < still, _HEAVIEST, 0.5)
    return math.inf if limit is None else limit


def sliding_mass_limit(arms: Sequence[loops.SampledArm]) -> float:
    """Return the mass above which a sliding contact is stable in all poses of an arm [kg].

    The limit is found by bisection on the eigenvalues of `haptics.design.SampledArm.sliding`, to a relative width of
    1e-3. It is infinite if no mass up to 30 kg is stable, and 0 if about a gram is stable. An oscillation that takes 10
    seconds or more to grow by a factor of e counts as stable, because no contact slides for that long.
    """
    limit = 0.0
    for arm in arms:
        if limit > 0.0 and _spectral_radius_below_one(arm, limit):
            continue
        steady = partial(_spectral_radius_below_one, arm)
        start = next((mass for mass in _MASSES if steady(mass)), 0.0)  # the heaviest may swing slowly with the hand
        limit = max(limit, edge(steady, start, 0.5, _LIGHTEST, _COARSE) or math.inf)
    return limit if limit > 2.0 * _LIGHTEST else 0.0


def _spectral_radius_below_one(arm: loops.SampledArm, mass: float) -> bool:
    return loops.growth(arm.sliding(mass)) < 1.0 + _SLOW * arm.period


# --- encoder quantisation -------------------------------------------------------------------------------------------


def count_jump(coupling: Coupling, handle: Handle) -> float:
    """Return the change of a sticking contact's force per count of the encoder [N]: (K + B/T) q.

    It must be much smaller than the friction force that the hand leaves unused, F - |hold|. Otherwise the contact slips
    because of a count, not because of the hand. A lagging velocity estimator spreads the damper's part over two more
    lags.
    """
    return coupling.stiffness * handle.resolution + hold_buzz(coupling, handle)


def hold_buzz(coupling: Coupling, handle: Handle) -> float:
    """Return the force noise of a held contact whose encoder flickers by one count [N]: B q/T."""
    return coupling.damping * handle.resolution / (coupling.period + 2.0 * handle.velocity_lag)


def smallest_force(coupling: Coupling, handle: Handle) -> float:
    """Return the smallest renderable break-away force [N]: half for `count_jump`, half for the hand."""
    return 2.0 * count_jump(coupling, handle)


# --- laws that fall with speed --------------------------------------------------------------------------------------


def smallest_stribeck_velocity(law: Law, mobility: float) -> float:
    r"""Return the Stribeck velocity above which `law` gives a unique force, by condition (15) [m/s].

    For a law whose steepest fall is :math:`c\,(F_s - F_c)/v_s - D`, (15) is :math:`v_s > c\,(F_s - F_c)/(1/Z + D)`,
    with the mobility Z. The result is 0 for a law that never falls with speed.

    Parameters
    ----------
    law : Law
        A law with a ``stribeck_velocity``, for instance `haptics.Stribeck`.
    mobility : float
        Mobility Z of the element [m/(N s)].

    Raises
    ------
    ConfigurationError
        If the law has no Stribeck velocity.
    """
    require("mobility", mobility, "m/(N s)")
    velocity, viscosity = getattr(law, "stribeck_velocity", None), getattr(law, "viscosity", 0.0)
    if velocity is None:
        raise ConfigurationError(f"law {law}: must be one with a stribeck_velocity.")
    if math.isinf(law.mobility_limit):
        return 0.0
    return float(velocity * (1.0 / law.mobility_limit + viscosity) / (1.0 / mobility + viscosity))


# --- search ---------------------------------------------------------------------------------------------------------


def edge(
    allowed: Callable[[float], bool], start: float, factor: float, least: float = 1e-12, digits: float = _DIGITS
) -> float | None:
    """Return the boundary of the allowed range that begins at `start`, or None if `start` is not allowed.

    The search multiplies by `factor` until a value is not allowed, and then bisects on a logarithmic scale. It stops
    below `least` and above 1e15.
    """
    if not (start > 0.0 and allowed(start)):
        return None
    good, bad = start, start * factor
    while least < bad < 1e15 and allowed(bad):
        good, bad = bad, bad * factor
    while abs(bad - good) > digits * good:
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if allowed(middle) else (good, middle)
    return good


def require(name: str, value: float, unit: str, above: float = 0.0) -> None:
    """Raise `ConfigurationError` unless `value` is finite and greater than `above`."""
    if not above < value < math.inf:
        allowed = f"a finite number greater than {above:g} {unit}".strip()
        raise ConfigurationError(f"{name} = {value!r}: must be {allowed}.")


# --- corners of walls -------------------------------------------------------------------------------------------------
#
# Stability limits of corners, where the surfaces of two walls meet.
#
# In a corner both walls hold the handle. With the unit normals n of their surfaces and tangents t, spring and damper
# are the matrices
#
# .. math:: S = \sum_i K_i (n_i n_i^T + h_i\, t_i t_i^T), \qquad D = \sum_i B_i (n_i n_i^T + h_i\, t_i t_i^T),
#
# where h is 1 as long as friction holds along that wall, and 0 without. Two equal walls without friction whose normals
# enclose the angle :math:`\varphi` give :math:`K (1 + |\cos \varphi|)` along one bisector and :math:`K (1 - |\cos
# \varphi|)` along the other. Two walls whose friction holds give :math:`K_1 + K_2` in every direction, for every angle.
# Dampers add up in the same way. A corner may therefore allow more or less stiffness than its single walls, since too
# much damping is as harmful as too little. A sticking element adds its K and B in all directions.
#
# The matrix of a period (`haptics.design.stuck_matrix`) is linear in K and B. The matrix in two dimensions contains S
# and D in their place, as Kronecker products. It is exact, whether or not S and D have the same axes.
#
# A corner of flat walls generates no energy as long as neither wall does: both undergo the same motion, their forces
# add up, and so do the energies.

if TYPE_CHECKING:
    from haptics.scenes.walls import Wall

_CELLS = 300  # number of grid cells along the longer side of the workspace

_NEAR = 1.5  # maximum distance to both surfaces, in grid cells, at a corner; from sqrt(2) on, no corner is missed

_SOFTEST = 1e-3
# Tolerance on eigenvalues of magnitude 1. Across a smooth corner the handle may be entirely free.
_CORNER_ROUNDING = 1e-6

_CORNER_DIGITS = 1e-4


@functools.lru_cache(maxsize=64)
def corner_factor(
    handle: Handle, walls: tuple[Wall, Wall], cosine: float, period: float = 1e-3, coupling: Coupling | None = None
) -> float:
    """Return the largest stable factor on the stiffness of two walls, for the bare handle in their corner.

    The result is the minimum over all cases: friction along each wall, and the contact of the element, may hold or not.
    It is 0 if no stiffness is stable, because the damping is too low or too high.

    Parameters
    ----------
    handle : Handle
        The device.
    walls : (Wall, Wall)
        The two walls.
    cosine : float
        Cosine of the angle between the normals of their surfaces, of any sign.
    period : float
        Sampling period [s].
    coupling : Coupling, optional
        Spring and damper of the element, which can hold the handle at the same time.
    """
    cosine = round(abs(cosine), 2)
    flat, soft, damped = (
        loops.stuck_matrix(Coupling(K, B, period), handle) for K, B in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    )
    by_stiffness, by_damping, still = soft - flat, damped - flat, np.kron(flat, np.eye(2))
    normals = np.array([(1.0, 0.0), (cosine, math.sqrt(max(1.0 - cosine * cosine, 0.0)))])
    held = itertools.product(*((0.0, 1.0)[: 1 + (wall.friction > 0.0)] for wall in walls))  # along each wall: 1 holds
    own_couplings = [(0.0, 0.0)] if coupling is None else [(0.0, 0.0), (coupling.stiffness, coupling.damping)]
    factors = []
    for holds, own in itertools.product(held, own_couplings):
        axes = [np.outer(n, n) + h * (np.eye(2) - np.outer(n, n)) for n, h in zip(normals, holds, strict=True)]
        springs = sum(wall.stiffness * axis for wall, axis in zip(walls, axes, strict=True))
        dampers = sum(wall.damping * axis for wall, axis in zip(walls, axes, strict=True))
        rest = still + np.kron(by_damping, dampers + own[1] * np.eye(2)) + np.kron(by_stiffness, own[0] * np.eye(2))
        stiffer = np.asarray(np.kron(by_stiffness, springs), np.float64)

        def is_stable(factor: float, rest: Matrix = rest, stiffer: Matrix = stiffer) -> bool:
            return loops.growth(rest + factor * stiffer) < 1.0 + _CORNER_ROUNDING

        factors.append(edge(is_stable, _SOFTEST, 2.0, digits=_CORNER_DIGITS) or 0.0)
    return min(factors)


@functools.lru_cache(maxsize=4)
def corners(
    walls: tuple[Wall, ...], lower: tuple[float, float], upper: tuple[float, float]
) -> tuple[tuple[tuple[Wall, Wall], float], ...]:
    """Return the pairs of walls whose surfaces meet inside the workspace [m], or just outside of it.

    `lower` and `upper` are opposite corners of the workspace. Each pair comes with the cosine of the angle between the
    normals, the one of largest magnitude if the walls meet in several places. Places deep inside a third wall are
    skipped because the handle cannot reach them.
    """
    if len(walls) < 2:
        return ()
    span = np.subtract(upper, lower)
    step = float(span.max()) / _CELLS
    margin = 2.0 * _NEAR * step
    x, y = (np.arange(low - margin, high + margin, step) for low, high in zip(lower, upper, strict=True))
    places = np.stack(np.meshgrid(x, y), axis=2)
    depths = [-wall.shape.distance(places.reshape(-1, 2)).reshape(places.shape[:2]) for wall in walls]
    reached = np.logical_and.reduce([depth < _NEAR * step for depth in depths])
    touched = [reached & (depth > 0.0) for depth in depths]
    found = []
    for one, other in itertools.combinations(range(len(walls)), 2):
        both = touched[one] & touched[other]
        if both.any():
            units = []
            for k in (one, other):
                gradient = np.column_stack([np.gradient(depths[k], axis=axis)[both] for axis in (0, 1)])
                units.append(gradient / np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-12))
            cosines = (units[0] * units[1]).sum(axis=1)
            found.append(((walls[one], walls[other]), float(cosines[np.argmax(np.abs(cosines))])))
    return tuple(found)
