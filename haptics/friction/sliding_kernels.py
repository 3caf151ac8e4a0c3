r"""Isotropic friction laws as kernels: the record of a law, its level, and the exact solution while it slides.

With a level :math:`g(s)` at sliding speed ``s`` the implicit counterpart of an isotropic law (Kikuuwe et al. 2006,
(16), (52)) reduces to the scalar problem :math:`s + Z g(s) = |x|` in any number of dimensions. The vectors are in
`haptics.friction.kernels`, the classes in `haptics.friction.laws`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from haptics.jit import call_level, inlined_kernel, kernel, quotients
from haptics.records import Rows

LAW_NUMBERS = 10
"""Room for a law's numbers; the first is always the largest friction force at rest, the last the mobility limit."""

_LIMIT = LAW_NUMBERS - 1

LAW = np.dtype([("kind", "<i8"), ("address", "<i8"), ("numbers", "<f8", (LAW_NUMBERS,))])
"""A law as kernels read it: which one, where its compiled function lies (custom laws), and its numbers."""

VISCOUS = 0
STRIBECK = 1
DEAD_ZONE = 2
GAUSSIAN = 3
CUSTOM = 4
ELLIPTIC = 5
CLOSED_FORM = 16
"""Added to one of the kinds above: solved by the approximation of the paper instead of exactly."""

_SCAN = 512
"""Points at which a custom law that breaks condition (15) is searched for its outermost solution."""


@kernel
def _custom_level(law: Any, s: float) -> Any:
    """Return what a person's own function says at speed s [m/s]."""
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
def _stribeck_ratio(d: float, q: float) -> float:
    """Solve t + q (exp(-t) - 1) = d for t = s/v_s > 0, with d > 0 and q >= 0; there is exactly one solution.

    It is t = x + W0(-q exp(-x)) with x = d + q and Lambert's W. Halley's iteration on the equation itself gives it
    without the cancellation of that form where t is small, and faster.
    """
    p = 1.0 - q
    # Left of the solution from the parabola above the exponential; right of it where the left side first falls.
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
def _meet(law: Any, r: float, Z: float, s: float, other: float) -> tuple[float, float]:
    """Return (g, s) of a solution that lies at `s` or between it and its neighbour `other`.

    Where the level jumps there, the force is in between: just what is left over, (r - s)/Z.
    """
    here, there = sliding_level(law, s), sliding_level(law, other)
    if math.isnan(here + there):
        return math.nan, math.nan
    return min(max((r - s) / Z, min(here, there)), max(here, there)), s


@kernel
def _bracketed(law: Any, r: float, Z: float, low: float, high: float) -> tuple[float, float]:
    """Return (g, s) with s + Z g(s) = r on [low, high], where the left side is below r at `low` and not at `high`.

    Inverse quadratic interpolation where it can be trusted, bisection where not (Chandrupatla 1997), until the bracket
    is as narrow as two neighbouring numbers.
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
            return _meet(law, r, Z, best, other)
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
            t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        else:
            t = 0.5
        margin = tolerance / abs(b - a)
        t = min(max(t, margin), 1.0 - margin)
    return _meet(law, r, Z, a, b)


@kernel
def _gaussian_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Outermost solution of s + Z g(s) = r for the Gaussian law, also where condition (15) fails."""
    p = law.numbers
    if Z < p[_LIMIT]:
        return _bracketed(law, r, Z, 0.0, r)
    # The left side rises, falls and rises again; u is where it turns up for good: u exp(-u^2) = ratio, u > sqrt(1/2).
    log_ratio = math.log((1.0 + Z * p[3]) * p[2] / (2.0 * Z * (p[0] - p[1])))
    u = 1.0 + math.sqrt(max(-log_ratio, 0.0))
    for _ in range(50):
        step = (math.log(u) - u * u - log_ratio) / (1.0 / u - 2.0 * u)
        u -= step
        if abs(step) <= 1e-15 * u:
            break
    turn = min(u * p[2], r)
    if turn + Z * sliding_level(law, turn) <= r:
        return _bracketed(law, r, Z, turn, r)
    return _bracketed(law, r, Z, 0.0, turn)


@kernel
def _custom_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Solution of s + Z g(s) = r for a custom law; where condition (15) fails, the outermost that a search finds."""
    if Z < law.numbers[_LIMIT]:
        return _bracketed(law, r, Z, 0.0, r)
    high = r
    for k in range(1, _SCAN):
        low = r * (1.0 - k / _SCAN)
        if low + Z * sliding_level(law, low) < r:
            return _bracketed(law, r, Z, low, high)
        high = low
    return _bracketed(law, r, Z, 0.0, high)


@kernel
def _viscous_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Return (g, s) for Coulomb friction with viscosity; (25)."""
    p = law.numbers
    solution: tuple[float, float] = quotients(p[0] + p[1] * r, r - Z * p[0], 1.0 + Z * p[1])
    return solution


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
    """Return (g, s) for a level that rises only beyond a speed."""
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
"""The solution (g, s) of every kind of isotropic law by itself; see `implicit_sliding`."""


@kernel
def implicit_sliding(law: Any, r: float, Z: float) -> tuple[float, float]:
    """Return (g, s): level and speed solving s + Z g(s) = r for r > Z g(0), i.e. while sliding; (25) and others."""
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
    """Fill `result` with what a person's own function says at `speeds`, both (n,), as it is."""
    for k in range(len(speeds)):
        result[k] = _custom_level(law[0], speeds[k])
