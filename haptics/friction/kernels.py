r"""Kernels of friction laws: the force and its exact implicit counterpart, in 2 and n dimensions.

A law :math:`\Phi` gives the friction force of a sliding contact. Its *implicit counterpart* :math:`\Phi_Z` solves
:math:`f = \Phi(x - Z f)` (Kikuuwe et al. 2006, (16), (52)). `haptics.friction.sliding_kernels` solves the scalar
problem of isotropic laws, :math:`\Phi(v) = g(|v|)\,v/|v|`. `haptics.friction.laws` defines the classes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from haptics.friction.sliding_kernels import CLOSED_FORM, ELLIPTIC, SLIDING, implicit_sliding, sliding_level
from haptics.jit import inlined_kernel, kernel, quotients
from haptics.records import Rows


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
def _elliptic_force(p: Any, x: float, y: float) -> tuple[float, float]:
    """Return Phi(v) [N] of the elliptic law for v = (x, y) != 0: F^2 v/|F v| + D v in the axes of the law."""
    c, s, D = p[5], p[6], p[7]
    speed = math.hypot(x, y)
    x, y = x / speed, y / speed
    u, w = c * x + s * y, c * y - s * x
    a, b = _semi_axes(p, u, w)
    n = math.hypot(a * u, b * w)
    fu, fw = a * a * u / n + D * speed * u, b * b * w / n + D * speed * w
    return c * fu - s * fw, s * fu + c * fw


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
def _length(x: Any) -> float:
    """Return the length of a vector of any dimension, as `_norm` does in the plane."""
    n, r = 0.0, 0.0
    for i in range(len(x)):
        n += x[i] * x[i]
        r = math.hypot(r, x[i])
    return math.sqrt(n) if 1e-280 < n < 1e280 else r


@kernel
def isotropic_forces(law: Rows, x: Any, Z: float, result: Any) -> None:
    """Fill `result` with Phi_Z(x) of an isotropic law, or with Phi(x) if Z is 0.

    `x` and `result` are (m, n) for n dimensions.
    """
    the = law[0]
    for k in range(len(x)):
        r = _length(x[k])
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
