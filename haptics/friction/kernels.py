r"""Kernels of friction laws: the force and its exact implicit counterpart, in 2 and n dimensions.

A law :math:`\Phi` gives the friction force of a sliding contact. Its *implicit counterpart* :math:`\Phi_Z` solves
:math:`f = \Phi(x - Z f)` (Kikuuwe et al. 2006, (16), (52)). For isotropic laws,
:math:`\Phi(v) = g(|v|)\,v/|v|`, this is a scalar problem. `haptics.friction.laws` defines the classes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from haptics.jit import call_level, inlined_kernel, kernel, quotients
from haptics.records import Rows

# --- sliding levels ---------------------------------------------------------------------------------------------------
#
# With a level :math:`g(s)` at sliding speed ``s`` the implicit counterpart of an isotropic law (Kikuuwe et al. 2006,
# (16), (52)) reduces to the scalar problem :math:`s + Z g(s) = |x|` in any number of dimensions.

LAW_NUMBERS = 10
"""Size of a law's numbers; the first is the largest force at rest, the last the mobility limit."""

_LIMIT = LAW_NUMBERS - 1

LAW = np.dtype([("kind", "<i8"), ("address", "<i8"), ("numbers", "<f8", (LAW_NUMBERS,))])
"""Kernel record of a law: kind, address of the compiled function (custom laws), and numbers."""

VISCOUS = 0
STRIBECK = 1
DEAD_ZONE = 2
GAUSSIAN = 3
CUSTOM = 4
ELLIPTIC = 5
CLOSED_FORM = 16
"""Flag added to a kind: the law is solved by the approximation of the paper instead of exactly."""

_SCAN = 512  # number of points searched for the outermost solution of a custom law that violates condition (15)


@kernel
def _custom_level(law: Any, s: float) -> Any:
    """Return the value of a user-defined function at speed s [m/s]."""
    p = law.numbers
    return call_level(law.address, s, p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8])


@inlined_kernel
def sliding_level(law: Any, s: float) -> Any:
    """Return the friction level g(s) [N] of an isotropic law at sliding speed s >= 0 [m/s]."""
    kind, p = law.kind & (CLOSED_FORM - 1), law.numbers
    if kind == VISCOUS:
        return p[0] + p[1] * s
    if kind == STRIBECK:
        return p[1] + (p[0] - p[1]) * math.exp(-s / p[2]) + p[3] * s
    if kind == DEAD_ZONE:
        return p[0] + p[1] * max(s - p[2], 0.0)
    if kind == GAUSSIAN:
        return p[1] + (p[0] - p[1]) * math.exp(-((s / p[2]) ** 2)) + p[3] * s
    if kind != CUSTOM or law.address == 0:
        return math.nan
    g = _custom_level(law, s)
    return 0.0 if g < 0.0 else g


@kernel
def _solve_intersection(law: Any, r: float, Z: float, s: float, other: float) -> tuple[float, float]:
    """Return (g, s) of a solution at `s` or between `s` and its neighbour `other`.

    At a jump of the level, the force is the intermediate value (r - s)/Z.
    """
    here, there = sliding_level(law, s), sliding_level(law, other)
    if math.isnan(here + there):
        return math.nan, math.nan
    return min(max((r - s) / Z, min(here, there)), max(here, there)), s


@kernel
def _bisect(law: Any, r: float, Z: float, low: float, high: float) -> tuple[float, float]:
    """Return (g, s) with s + Z g(s) = r on [low, high], with the left side below r only at `low`.

    The method is inverse quadratic interpolation with bisection as a fallback (Chandrupatla 1997). It stops when the
    bracket consists of two neighbouring floating-point numbers.
    """
    a, b = high, low
    fa, fb = a + Z * sliding_level(law, a) - r, b + Z * sliding_level(law, b) - r
    c, fc, t = a, fa, 0.5
    for _ in range(200):
        s = a + t * (b - a)
        fs = s + Z * sliding_level(law, s) - r
        if (fs < 0.0) == (fa < 0.0):
            c, fc = a, fa
        else:
            c, fc = b, fb
            b, fb = a, fa
        a, fa = s, fs
        best, f_best, other = (a, fa, b) if abs(fa) < abs(fb) else (b, fb, a)
        tolerance = 2.3e-16 * abs(best)
        if f_best == 0.0:
            return sliding_level(law, best), best
        if abs(b - a) <= 2.0 * tolerance + 1e-300:
            return _solve_intersection(law, r, Z, best, other)
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
            t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        else:
            t = 0.5
        margin = tolerance / abs(b - a)
        t = min(max(t, margin), 1.0 - margin)
    return _solve_intersection(law, r, Z, a, b)


@kernel
def _gaussian_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Return the outermost solution of s + Z g(s) = r for the Gaussian law, even if (15) fails."""
    p = law.numbers
    if Z < p[_LIMIT]:
        return _bisect(law, r, Z, 0.0, r)
    # The left side rises, falls and rises again. u is its last minimum: u exp(-u^2) = ratio, u > sqrt(1/2).
    log_ratio = math.log((1.0 + Z * p[3]) * p[2] / (2.0 * Z * (p[0] - p[1])))
    u = 1.0 + math.sqrt(max(-log_ratio, 0.0))
    for _ in range(50):
        step = (math.log(u) - u * u - log_ratio) / (1.0 / u - 2.0 * u)
        u -= step
        if abs(step) <= 1e-15 * u:
            break
    turn = min(u * p[2], r)
    if turn + Z * sliding_level(law, turn) <= r:
        return _bisect(law, r, Z, turn, r)
    return _bisect(law, r, Z, 0.0, turn)


@kernel
def _custom_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Return the solution of s + Z g(s) = r for a custom law.

    Where condition (15) fails, it is the outermost solution found by a search.
    """
    if Z < law.numbers[_LIMIT]:
        return _bisect(law, r, Z, 0.0, r)
    high = r
    for k in range(1, _SCAN):
        low = r * (1.0 - k / _SCAN)
        if low + Z * sliding_level(law, low) < r:
            return _bisect(law, r, Z, low, high)
        high = low
    return _bisect(law, r, Z, 0.0, high)


@kernel
def _viscous_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Return (g, s) for Coulomb friction with viscosity; (25)."""
    p = law.numbers
    solution: tuple[float, float] = quotients(p[0] + p[1] * r, r - Z * p[0], 1.0 + Z * p[1])
    return solution


@kernel
def _stribeck_ratio(d: float, q: float) -> float:
    """Solve t + q (exp(-t) - 1) = d for t = s/v_s > 0, with d > 0 and q >= 0; the solution is unique.

    The solution is t = x + W0(-q exp(-x)) with x = d + q and Lambert's W. Halley's iteration on the equation itself is
    faster, and avoids the cancellation in that form for small t.
    """
    p = 1.0 - q
    # Start left of the solution, from the parabola above the exponential, or right of it if the left side falls.
    t = max(2.0 * d / (p + math.sqrt(p * p + 2.0 * q * d)), d) if p > 0.0 else d + q
    for _ in range(50):
        decay = math.expm1(-t)
        h = t + q * decay - d
        curvature = q * (1.0 + decay)
        slope = 1.0 - curvature
        step = h / (slope - 0.5 * curvature * h / slope)
        t -= step
        if abs(step) <= 1e-6 * t:
            break
    return t


@kernel
def _stribeck_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Return (g, s) for the exponential Stribeck law."""
    p = law.numbers
    a = 1.0 + Z * p[3]
    q = Z * (p[0] - p[1]) / (a * p[2])
    s = p[2] * _stribeck_ratio((r - Z * p[0]) / (a * p[2]), q)
    return p[1] + (p[0] - p[1]) * math.exp(-s / p[2]) + p[3] * s, s


@kernel
def _dead_zone_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Return (g, s) for a level that rises only above a speed."""
    p = law.numbers
    s = r - Z * p[0]
    if s > p[2]:
        s = (s + Z * p[1] * p[2]) / (1.0 + Z * p[1])
    return p[0] + p[1] * max(s - p[2], 0.0), s


SLIDING: dict[int, Callable[..., tuple[float, float]]] = {
    VISCOUS: _viscous_sliding,
    STRIBECK: _stribeck_sliding,
    DEAD_ZONE: _dead_zone_sliding,
    GAUSSIAN: _gaussian_sliding,
    CUSTOM: _custom_sliding,
}
"""Solution (g, s) of every kind of isotropic law; see `implicit_sliding`."""


@kernel
def implicit_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Return level g and speed s with s + Z g(s) = r for r > Z g(0), i.e. while sliding; (25) and others."""
    kind = law.kind
    if kind == VISCOUS:
        return _viscous_sliding(law, r, Z)
    if kind == STRIBECK:
        return _stribeck_sliding(law, r, Z)
    if kind == DEAD_ZONE:
        return _dead_zone_sliding(law, r, Z)
    if kind == GAUSSIAN:
        return _gaussian_sliding(law, r, Z)
    return _custom_sliding(law, r, Z)


@kernel
def custom_levels(law: Rows, speeds: Any, result: Any) -> None:
    """Fill `result` with the unmodified values of a user-defined function at `speeds`, both (n,)."""
    for k in range(len(speeds)):
        result[k] = _custom_level(law[0], speeds[k])


# --- implicit steps ---------------------------------------------------------------------------------------------------


@inlined_kernel
def _norm(x: float, y: float) -> float:
    """Return the length of a vector.

    The result is rounded identically on every machine, and takes half the time of the library's hypot.
    """
    n = x * x + y * y
    return math.sqrt(n) if 1e-280 < n < 1e280 else math.hypot(x, y)


@kernel
def _semi_axes(p: Any, x: float, y: float) -> tuple[float, float]:
    """Return the semi-axes [N] of the elliptic law in the quadrant of (x, y)."""
    return p[1] if x >= 0.0 else p[2], p[3] if y >= 0.0 else p[4]


@kernel
def _implicit_elliptic(law: Any, x: float, y: float, Z: float) -> tuple[float, float, float, float, bool]:
    """Return the implicit counterpart of the elliptic law; for the values see `implicit_force`.

    The counterpart is the Yosida approximation of the subdifferential of the dissipation potential. Without viscosity f
    is the point of the ellipse closest to x/Z, found from the only root t of |F x/Z / (t + F^2)| = 1. Viscosity only
    changes x and Z. The velocity is Z t f/F^2, which avoids the difference of nearly equal numbers.
    """
    p = law.numbers
    c, s, D = p[5], p[6], p[7]
    Z1 = Z / (1.0 + Z * D)
    u, w = (c * x + s * y) / Z, (c * y - s * x) / Z
    a, b = _semi_axes(p, u, w)
    if math.hypot(u / a, w / b) <= 1.0:
        return x / Z, y / Z, 0.0, 0.0, True
    A, B = a * a, b * b
    t = max(math.hypot(a * u, b * w) - max(A, B), 0.0)  # left of the root of a convex, falling function
    for _ in range(100):
        gu, gw = a * u / (t + A), b * w / (t + B)
        n2 = gu * gu + gw * gw
        n = math.sqrt(n2)
        step = n2 * (n - 1.0) / (gu * gu / (t + A) + gw * gw / (t + B))  # Newton's method on 1 - 1/n, nearly linear
        t = max(t + step, 0.0)
        if step <= 4e-16 * (t + min(A, B)):  # 1 - 1/n is convex too: only rounding steps back
            break
    fu, fw = A * u / (t + A), B * w / (t + B)
    vu, vw = Z1 * u * (t / (t + A)), Z1 * w * (t / (t + B))
    fu, fw = fu + D * vu, fw + D * vw
    return c * fu - s * fw, s * fu + c * fw, c * vu - s * vw, s * vu + c * vw, t == 0.0


@kernel
def _elliptic_force(p: Any, x: float, y: float) -> tuple[float, float]:
    """Return F^2 v/|F v| + D v [N] in the axes of the law, for v = (x, y) != 0."""
    c, s, D = p[5], p[6], p[7]
    speed = math.hypot(x, y)
    x, y = x / speed, y / speed
    u, w = c * x + s * y, c * y - s * x
    a, b = _semi_axes(p, u, w)
    n = math.hypot(a * u, b * w)
    fu, fw = a * a * u / n + D * speed * u, b * b * w / n + D * speed * w
    return c * fu - s * fw, s * fu + c * fw


@kernel
def law_force(law: Any, x: float, y: float) -> tuple[float, float]:
    """Return the friction force Phi(v) [N] for v = (x, y) [m/s].

    The result is zero at rest, where the law only bounds the force.
    """
    s = _norm(x, y)
    if s == 0.0:
        return 0.0, 0.0
    if law.kind & (CLOSED_FORM - 1) == ELLIPTIC:
        return _elliptic_force(law.numbers, x, y)
    g = sliding_level(law, s)
    return g * (x / s), g * (y / s)


@kernel
def _approximate(law: Any, x: float, y: float, Z: float) -> tuple[float, float, float, float, bool]:
    """Return the values of `implicit_force` by the closed-form approximation (59).

    (57) and (46) are special cases.
    """
    r = _norm(x, y)
    fx, fy = law_force(law, x, y)
    n = _norm(fx, fy)
    if r <= Z * n or r == 0.0:
        return x / Z, y / Z, 0.0, 0.0, True
    share = Z * n / r
    fx += share * (n * (x / r) - fx)
    fy += share * (n * (y / r) - fy)
    return fx, fy, x - Z * fx, y - Z * fy, x == Z * fx and y == Z * fy


def _isotropic(sliding: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of an isotropic law whose scalar problem the kernel `sliding` solves; (52)."""

    @inlined_kernel
    def implicit(law: Any, x: float, y: float, Z: float) -> tuple[float, float, float, float, bool]:
        r = _norm(x, y)
        if r <= Z * law.numbers[0]:
            fx, fy = quotients(x, y, Z)
            return fx, fy, 0.0, 0.0, True
        g, s = sliding(law, r, Z)
        nx, ny = quotients(x, y, r)
        return g * nx, g * ny, s * nx, s * ny, s == 0.0

    return implicit


@functools.cache
def implicit_law(kind: int) -> Callable[..., Any]:
    """Return the kernel `implicit_force` for one `kind` of law only, which compiles much faster."""
    if kind == ELLIPTIC:
        return _implicit_elliptic
    return _approximate if kind >= CLOSED_FORM else _isotropic(SLIDING[kind])


_implicit_isotropic = _isotropic(implicit_sliding)


@inlined_kernel
def implicit_force(law: Any, x: float, y: float, Z: float) -> tuple[float, float, float, float, bool]:
    """Return (fx, fy, vx, vy, sticking) with f = Phi_Z((x, y)) and v = (x, y) - Z f; (52).

    v is exactly zero while sticking. Sticking takes precedence where condition (15) fails and sliding is a solution
    too. The velocity is computed from the scalar solution, not by subtraction, so that it cannot point backwards, and
    is never almost zero instead of zero.
    """
    if law.kind == ELLIPTIC:
        return _implicit_elliptic(law, x, y, Z)
    if law.kind >= CLOSED_FORM:
        return _approximate(law, x, y, Z)
    solution: tuple[float, float, float, float, bool] = _implicit_isotropic(law, x, y, Z)
    return solution


# --- interface for Python: law is a (1,) array of dtype LAW ---------------------------------------------------------


@kernel
def isotropic_forces(law: Rows, x: Any, Z: float, result: Any) -> None:
    """Fill `result` with Phi_Z(x) of an isotropic law, or with Phi(x) if Z is 0.

    `x` and `result` are (m, n) for n dimensions.
    """
    the = law[0]
    for k in range(len(x)):
        square, r = 0.0, 0.0  # the length of x, as `_norm` computes it in the plane
        for i in range(x.shape[1]):
            square += x[k, i] * x[k, i]
            r = math.hypot(r, x[k, i])
        r = math.sqrt(square) if 1e-280 < square < 1e280 else r
        if Z > 0.0 and the.kind < CLOSED_FORM:
            sticks = r <= Z * the.numbers[0]
            g = 0.0 if sticks else implicit_sliding(the, r, Z)[0]
        else:
            g = sliding_level(the, r)
            sticks = r <= Z * g
        for i in range(x.shape[1]):
            if sticks:  # Z is 0 for the explicit force, which is zero at rest
                result[k, i] = x[k, i] / Z if Z > 0.0 else 0.0
            else:
                result[k, i] = g * (x[k, i] / r)


@kernel
def plane_forces(law: Rows, x: Any, Z: float, result: Any) -> None:
    """Fill `result` with Phi_Z(x) of any law, or with Phi(x) if Z is 0.

    `x` and `result` are (m, 2). `law` has one row, or m rows.
    """
    for k in range(len(x)):
        the = law[k % len(law)]
        if Z > 0.0:
            result[k, 0], result[k, 1], _, _, _ = implicit_force(the, x[k, 0], x[k, 1], Z)
        else:
            result[k, 0], result[k, 1] = law_force(the, x[k, 0], x[k, 1])
