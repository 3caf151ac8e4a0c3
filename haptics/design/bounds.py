"""Bounds of an element's parameters: stability of the sampled loop, quantisation of the encoder, unique forces."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from haptics.design.arms import SampledArm
from haptics.design.loops import Coupling, Handle, PositionServo, growth, sliding_matrix, stuck_matrix
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from haptics.friction.law import Law

MARGIN = 2.0
"""What suggestions and advice mean by a margin: twice as much would still do."""

SETTLED = 0.5
"""A sticking contact comes to rest within this time after an impulse on the bare handle [s]; more is seen to swing."""

PRESLIDING = 1e-3
"""What a handle may give way before the contact slides [m]; more feels like rubber."""

_REST = 0.02
"""What is left of a motion that has settled."""

CRITICAL_NONOSCILLATORY = 0.25
"""T^2 K / M below which a critically damped contact holds a mass without oscillation; Kikuuwe et al. 2006, IV-C."""

CRITICAL_STABLE = (2.0 * math.sqrt(2.0) - 2.0) ** 2
"""T^2 K / M below which a critically damped contact holds a mass at all: .686."""

_HEAVIEST = 1e3
"""An element's mass [kg] beyond which `mass_limit` does not search."""

_LIGHTEST = 1e-3
_MASSES = tuple(30.0 * 0.5**k for k in range(15))
"""What `sliding_mass_limit` begins with, and the lightest that it tries [kg]."""

_SLOW = 0.1
"""A swing that grows by less is not felt before the contact stops [1/s]."""

_ROUNDING = 1e-6
"""What an eigenvalue may be above 1 and still be 1: an arm that nobody holds stays where it is put."""

_SOFT = 1e-3
"""Share of `stiffness_rule` that is as good as no stiffness, but can be told from none."""

_DIGITS, _COARSE = 1e-7, 1e-3
"""Relative width at which a bisection ends, and one on large matrices."""


# --- model C next to a bare mass: (63) ------------------------------------------------------------------------------


def contact_eigenvalues(coupling: Coupling, mass: float) -> NDArray[np.complex128]:
    r"""Return the eigenvalues of a mass held by a sticking model C whose force comes one step late, (2,).

    The matrix is (63) of Kikuuwe et al. 2006: its trace is :math:`2 - a - b` and its determinant :math:`1 - b`, with
    :math:`a = T^2 K / M` and :math:`b = T B / M`.

    Parameters
    ----------
    coupling : Coupling
        K, B and T.
    mass : float
        M [kg].
    """
    a, b = _measures(coupling, mass)
    half, determinant = 1.0 - 0.5 * (a + b), 1.0 - b
    root = np.sqrt(complex(half * half - determinant))
    return np.array((half - root, half + root))


def contact_is_stable(coupling: Coupling, mass: float) -> bool:
    r"""Tell whether a mass held by a sticking model C comes to rest: :math:`a + 2 b < 4` with a and b above 0; (63).

    Jury's test of the polynomial :math:`z^2 - (2 - a - b) z + 1 - b`: at z = -1 it must be positive, which is the
    condition, at z = 1 too (a > 0: without stiffness the place of rest is not held), and the determinant must be below
    1 (b > 0: without damping the mass swings for ever).
    """
    a, b = _measures(coupling, mass)
    return a > 0.0 and b > 0.0 and a + 2.0 * b < 4.0


def contact_is_nonoscillatory(coupling: Coupling, mass: float) -> bool:
    r"""Tell whether that mass comes to rest without swinging or flickering: both eigenvalues real and in (0, 1); (63).

    Real, :math:`(a + b)^2 \ge 4 a`; of one sign, :math:`b < 1`; and that sign positive, :math:`a + b < 2`. The last one
    is not implied: a = 3, b = .5 gives two real eigenvalues that are negative.
    """
    a, b = _measures(coupling, mass)
    return a > 0.0 and b < 1.0 and a + b < 2.0 and (a + b) ** 2 >= 4.0 * a


def critical_stiffness(mass: float, period: float, *, nonoscillatory: bool = True) -> float:
    """Return the supremum of stiffnesses K [N/m] with critical damping, B^2 = 4 K M, that hold `mass` [kg] in (63).

    Kikuuwe et al. 2006 state it as T^2 < M/(4 K), which is the bound without oscillation.
    """
    return (CRITICAL_NONOSCILLATORY if nonoscillatory else CRITICAL_STABLE) * mass / period**2


def _measures(coupling: Coupling, mass: float) -> tuple[float, float]:
    """Return a = T^2 K/M and b = T B/M."""
    require("mass", mass, "kg")
    T = coupling.period
    return T * T * coupling.stiffness / mass, T * coupling.damping / mass


# --- models B and C on an impedance device --------------------------------------------------------------------------


def stiffness_limit(handle: Handle, damping: float, period: float = 1e-3) -> float:
    """Return the stiffness below which a sticking contact holds the bare handle without a limit cycle [N/m].

    Found by bisection on the eigenvalues of `haptics.design.stuck_matrix`; 0 if no stiffness is stable, for want
    of damping or because there is too much of it.

    Parameters
    ----------
    handle : Handle
        The device.
    damping : float
        Of the coupling [N s/m].
    period : float
        Time between two samples [s].
    """
    softest = _SOFT * stiffness_rule(handle, damping, period)
    return edge(lambda stiffness: _holds(handle, stiffness, damping, period), softest, 2.0) or 0.0


def damping_limit(handle: Handle, period: float = 1e-3) -> float:
    """Return the damping of the coupling [N s/m] from which no stiffness whatever is stable on the handle."""

    def holds(damping: float) -> bool:
        return _holds(handle, _SOFT * stiffness_rule(handle, damping, period), damping, period)

    return edge(holds, 1e-6 * handle.mass / period, 2.0) or 0.0


def settling_time(handle: Handle, coupling: Coupling) -> float:
    """Return how long the slowest motion of the bare handle, held by a sticking contact, takes to fall to 2 % [s].

    From the largest eigenvalue of `haptics.design.stuck_matrix`; infinite where the contact does not hold at all. A
    hand on the handle adds damping: the slow motion of a weakly damped contact ends sooner, that of a soft one later.
    """
    slowest = growth(stuck_matrix(coupling, handle))
    if not slowest < 1.0:
        return math.inf
    return coupling.period * math.log(_REST) / math.log(slowest) if slowest > 0.0 else 0.0


def stiffness_rule(handle: Handle, damping: float, period: float = 1e-3) -> float:
    r"""Return the rule of thumb for `stiffness_limit` [N/m]: :math:`B + b > K T (d + 1/2)`, d in periods.

    It says that damping must absorb the energy that the delay of the spring generates, half a period of which is the
    zero-order hold of the force.
    The exact limit tends to it for a heavy handle; a light one takes less, unless its own damping is large.
    """
    return (damping + handle.damping) / (handle.total_delay + 0.5 * period)


def _holds(handle: Handle, stiffness: float, damping: float, period: float) -> bool:
    return growth(stuck_matrix(Coupling(stiffness, damping, period), handle)) < 1.0


# --- models A and D on an admittance device -------------------------------------------------------------------------


def mass_limit(servo: PositionServo, period: float = 1e-3) -> float:
    """Return the mass above which a hand on the arm does not swing while the contact slides [kg].

    Found by bisection on the eigenvalues of `haptics.design.sliding_matrix`; infinite where the arm lags so much
    behind its reference that no mass helps, 0 for neither a hand with stiffness nor a handle with mass. A viscosity of
    the law is not counted.
    """
    if servo.grip_stiffness == servo.handle_mass == 0.0:
        return 0.0
    # Without stiffness the arm stays where it is put: an eigenvalue that is 1 exactly.
    still = 1.0 if servo.grip_stiffness > 0.0 else 1.0 + _ROUNDING
    limit = edge(lambda mass: growth(sliding_matrix(mass, servo, period)) < still, _HEAVIEST, 0.5)
    return math.inf if limit is None else limit


def sliding_mass_limit(arms: Sequence[SampledArm]) -> float:
    """Return the mass above which a sliding contact shakes none of `arms`, one arm in several poses [kg].

    Found by bisection on the eigenvalues of `haptics.design.SampledArm.sliding`, to a thousandth; infinite where no
    mass up to 30 kg is steady, 0 where a gram is. A swing that takes 10 s to grow e-fold is none: no contact slides
    for so long.
    """
    limit = 0.0
    for arm in arms:
        if limit > 0.0 and _steady(arm, limit):
            continue
        steady = functools.partial(_steady, arm)
        start = next((mass for mass in _MASSES if steady(mass)), 0.0)  # the heaviest may swing slowly with the hand
        limit = max(limit, edge(steady, start, 0.5, _LIGHTEST, _COARSE) or math.inf)
    return limit if limit > 2.0 * _LIGHTEST else 0.0


def _steady(arm: SampledArm, mass: float) -> bool:
    return growth(arm.sliding(mass)) < 1.0 + _SLOW * arm.period


def mass_rule(servo: PositionServo) -> float:
    r"""Return the rule of thumb for `mass_limit` of a servo that is not told velocities and has no delay [kg].

    :math:`M > b^2 / (2 z (w b - 2 z k))` for a hand of stiffness k and damping b, from Routh's criterion for
    :math:`M s^2 + (k + b s)\, w^2 / (s^2 + 2 z w s + w^2)`; infinite where :math:`w b \le 2 z k`: the servo lags by
    2 z / w, and the hand's spring, felt that much later, outdoes its damper.
    """
    z, w, b = servo.damping_ratio, 2.0 * math.pi * servo.frequency, servo.grip_damping
    surplus = w * b - 2.0 * z * servo.grip_stiffness
    return b * b / (2.0 * z * surplus) if surplus > 0.0 else math.inf


# --- behind an encoder ----------------------------------------------------------------------------------------------


def count_jump(coupling: Coupling, handle: Handle) -> float:
    """Return how much one count of the encoder changes the force of a sticking contact [N]: (K + B/T) q.

    It must be much smaller than what the friction has left beside the hand's force, F - |hold|; else the contact slips
    because of a count, not because of the hand. An estimator that lags spreads the damper's part over 2 lags more.
    """
    return coupling.stiffness * handle.resolution + hold_buzz(coupling, handle)


def hold_buzz(coupling: Coupling, handle: Handle) -> float:
    """Return the quantisation noise of a held contact's force, the encoder flickering by one count [N]: B q/T."""
    return coupling.damping * handle.resolution / (coupling.period + 2.0 * handle.velocity_lag)


def smallest_force(coupling: Coupling, handle: Handle) -> float:
    """Return the smallest break-away force that can be rendered [N]: half is for `count_jump`, half for the hand."""
    return 2.0 * count_jump(coupling, handle)


# --- laws that fall with speed --------------------------------------------------------------------------------------


def smallest_stribeck_velocity(law: Law, mobility: float) -> float:
    r"""Return the Stribeck velocity above which `law` gives a unique force at this `mobility` Z; (15) [m/s].

    With a law that falls at most at :math:`c\,(F_s - F_c)/v_s - D`, (15) is :math:`v_s > c\,(F_s - F_c)/(1/Z + D)`.
    0 for a law that never falls.

    Parameters
    ----------
    law : Law
        One with a ``stribeck_velocity``, for instance `haptics.Stribeck`.
    mobility : float
        Of the element [m/(N s)].

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


# --- searching ------------------------------------------------------------------------------------------------------


def edge(
    allowed: Callable[[float], bool], start: float, factor: float, least: float = 1e-12, digits: float = _DIGITS
) -> float | None:
    """Return the last value, going from `start` by `factor`, that is allowed with all before it; None if none is."""
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
