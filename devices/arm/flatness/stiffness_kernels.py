"""Kernels of stiffness laws: torque of a twisted gearbox, and twist under a torque.

A law is given in closed form in one direction. The other direction is its numerical inverse, to machine precision,
with the derivatives of an inverse function: D' = 1/E', D'' = -E''/E'^3. Both directions are therefore consistent.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from devices.arm.flatness.law_kernels import saturation
from haptics.jit import inlined_kernel, kernel
from haptics.records import Rows

KNEE = 0
LAGGING = 1
BROKEN = 2

_Triple = tuple[Any, Any, Any]


@inlined_kernel
def _knee_twist(law: Any, tau: float) -> _Triple:
    """Return tau/c + phi tanh(s tau/2) and its derivatives, p = (c, phi, s); Weigand et al. 2020, (11)."""
    p = law.numbers
    t, t1, t2 = saturation(0.5 * p[2] * tau)
    half = 0.5 * p[2]
    return tau / p[0] + p[1] * t, 1.0 / p[0] + p[1] * half * t1, p[1] * half * half * t2


@kernel
def _ramp_response(z: float) -> _Triple:
    """Return h = z - 3 + exp(-z) (3 + 2 z + z^2/2) for z >= 0 and derivatives; (7) in units of phi_B/3.

    Below 3 the terms of the closed form cancel. There, h and h' are exp(-z) times the sums of (k - 3) z^k/k! for k >= 4
    and of z^k/k! for k >= 3: the power series without the terms that cancel. No term of these sums is negative.
    """
    decay = math.exp(-z)
    h2 = 0.5 * z * z * decay
    if z >= 3.0:
        return z - 3.0 + decay * (3.0 + z * (2.0 + 0.5 * z)), 1.0 - decay * (1.0 + z * (1.0 + 0.5 * z)), h2
    term = z * z * z / 6.0
    h, h1, k = 0.0, term, 3.0
    while (k - 2.0) * term > 1e-18 * h:
        k += 1.0
        term *= z / k
        h1 += term
        h += (k - 3.0) * term
    return decay * h, decay * h1, h2


@kernel
def _lagging_torque(law: Any, x: float) -> _Triple:
    """Return sgn(x) c phi/3 h(3|x|/phi) + c_0 x and its derivatives, p = (c, phi, c_0); (7), (8).

    The odd continuation is itself three times continuously differentiable: (9) with s_E1 to infinity.
    """
    p = law.numbers
    h, h1, h2 = _ramp_response(3.0 * abs(x) / p[1])
    return (
        math.copysign(p[0] * p[1] / 3.0 * h, x) + p[2] * x,
        p[0] * h1 + p[2],
        math.copysign(3.0 * p[0] / p[1] * h2, x),
    )


@kernel
def _broken_torque(law: Any, x: float) -> _Triple:
    """Return the piecewise linear torque, p = (c_TR, c_LM, phi_B*, phi_LM); (6) made continuous."""
    p = law.numbers
    r = abs(x)
    if r <= p[2]:
        return 0.0, 0.0, 0.0
    if r <= p[2] + p[3]:
        return math.copysign(p[1] * (r - p[2]), x), p[1], 0.0
    return math.copysign(p[0] * (r - p[2] - p[3]) + p[1] * p[3], x), p[0], 0.0


@kernel
def _broken_twist(law: Any, tau: float) -> _Triple:
    """Return the inverse of the piecewise linear law, 0 within the backlash; (10) corrected."""
    p = law.numbers
    r, lost = abs(tau), p[1] * p[3]
    if r == 0.0:
        return 0.0, math.inf, 0.0
    if r <= lost:
        return tau / p[1] + math.copysign(p[2], tau), 1.0 / p[1], 0.0
    return (tau - math.copysign(lost, tau)) / p[0] + math.copysign(p[2] + p[3], tau), 1.0 / p[0], 0.0


@inlined_kernel
def _direct(law: Any, x: float) -> _Triple:
    """Return the closed form of a law at x, with its derivatives."""
    if law.kind == KNEE:
        return _knee_twist(law, x)
    return _lagging_torque(law, x)


@kernel
def _guess(law: Any, y: float) -> float:
    """Return the initial value of the search for the x with y = f(x)."""
    p = law.numbers
    if law.kind == KNEE:  # left of the root of a concave function
        return math.copysign(p[0] * max(abs(y) - p[1], 0.0), y)
    if law.kind == LAGGING:
        r = 3.0 * abs(y) / (p[0] * p[1])
        z = r + 3.0 if r > 0.5 else math.sqrt(math.sqrt(24.0 * r))
        x = z * p[1] / 3.0
        return math.copysign(min(x, abs(y) / p[2]) if p[2] > 0.0 else x, y)
    return 0.0


@kernel
def _inverse(law: Any, y: float) -> _Triple:
    """Return the x with y = f(x) of an increasing function and its derivatives, to machine precision.

    Newton's method inside a bracket that every step narrows. Steps are not limited until both sides are bracketed.
    """
    low, high, x, last = -math.inf, math.inf, _guess(law, y), math.inf
    for _ in range(200):
        f, f1, _f2 = _direct(law, x)
        if f == y or math.isnan(f):
            break
        if f < y:
            low = x
        else:
            high = x
        step = (y - f) / f1 if f1 > 0.0 else math.inf
        bracketed = low > -math.inf and high < math.inf
        if abs(step) <= 1.2e-16 * abs(x):
            break
        if not low < x + step < high or (bracketed and abs(step) > 0.5 * last):
            step = 0.5 * (low + high) - x if bracketed else math.copysign(2.0 * abs(x) + 1e-9, y - f)
        if not low < x + step < high:  # no floating-point number left inside the bracket
            break
        last = abs(step)
        x += step
    _f, f1, f2 = _direct(law, x)
    if f1 == 0.0:
        return x, math.inf, 0.0
    return x, 1.0 / f1, -f2 / (f1 * f1 * f1)


@inlined_kernel
def gear_twist(law: Any, tau: float) -> _Triple:
    """Return twist D [rad], D' [rad/(N m)] and D'' [rad/(N m)^2] under the torque tau [N m].

    The laws are (11) and the inverses of the others.
    """
    if law.kind == KNEE:
        return _knee_twist(law, tau)
    if law.kind == BROKEN:
        return _broken_twist(law, tau)
    return _inverse(law, tau)


@inlined_kernel
def gear_torque(law: Any, twist: float) -> _Triple:
    """Return torque E [N m], E' [N m/rad] and E'' [N m/rad^2] at a twist [rad].

    The laws are (6), (9) and the inverse of (11).
    """
    if law.kind == LAGGING:
        return _lagging_torque(law, twist)
    if law.kind == BROKEN:
        return _broken_torque(law, twist)
    return _inverse(law, twist)


_TWISTS: dict[int, Callable[..., Any]] = {KNEE: _knee_twist, BROKEN: _broken_twist}
_TORQUES: dict[int, Callable[..., Any]] = {LAGGING: _lagging_torque, BROKEN: _broken_torque}


def twist_of(kind: int) -> Callable[..., Any]:
    """Return `gear_twist` specialized for laws of this `kind`, which compiles in a fraction of the time."""
    return _TWISTS.get(kind, _inverse)


def torque_of(kind: int) -> Callable[..., Any]:
    """Return `gear_torque` specialized for laws of this `kind`."""
    return _TORQUES.get(kind, _inverse)


@functools.cache
def values_of(function: Callable[..., Any]) -> Callable[..., None]:
    """Return the kernel that evaluates `function` of a law.

    Its arguments are the law in the (1,) array `laws`, `arguments`, (n,), and `results`, (n, 3).
    """

    @kernel
    def fill(laws: Rows, arguments: Any, results: Any) -> None:
        for k in range(len(arguments)):
            results[k, 0], results[k, 1], results[k, 2] = function(laws[0], arguments[k])

    return fill
