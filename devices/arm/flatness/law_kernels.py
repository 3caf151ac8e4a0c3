"""Kernels of smooth friction laws: value, first and second derivative.

All kernels return the triple (F, F', F'') at once; the derivatives are analytical.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.jit import inlined_kernel, kernel
from haptics.records import Rows

NUMBERS = 8
"""Maximum number of parameters of a law."""

SMOOTH = np.dtype([("kind", "<i8"), ("numbers", "<f8", (NUMBERS,))])
"""Kernel record of a smooth law: its kind and its parameters."""

SATURATING = 0
FALLING = 1

_Triple = tuple[Any, Any, Any]


@inlined_kernel
def saturation(x: Any) -> _Triple:
    """Return tanh(x) and its two derivatives, each with full relative precision for any x."""
    decay = math.exp(-2.0 * abs(x))
    t = math.tanh(x) if abs(x) < 0.3 else math.copysign((1.0 - decay) / (1.0 + decay), x)
    slope = 4.0 * decay / ((1.0 + decay) * (1.0 + decay))  # 1 - t^2 would cancel to 0 for a large x
    return t, slope, -2.0 * t * slope


@kernel
def _falling(p: Any, w: float) -> _Triple:
    """Return a smooth Stribeck law and its derivatives.

    (F_c + (F_s - F_c) exp(-(w/w_s)^2)) tanh(b w) + D w
    """
    z = w / p[2]
    bell = (p[0] - p[1]) * math.exp(-z * z)
    g, g1, g2 = p[1] + bell, -2.0 * z * bell / p[2], (4.0 * z * z - 2.0) * bell / (p[2] * p[2])
    t, t1, t2 = saturation(p[4] * w)
    t1, t2 = p[4] * t1, p[4] * p[4] * t2
    return g * t + p[3] * w, g1 * t + g * t1 + p[3], g2 * t + 2.0 * g1 * t1 + g * t2


@inlined_kernel
def smooth_friction(law: Any, w: float) -> _Triple:
    """Return friction torque F [N m], F' [N m s/rad] and F'' [N m s^2/rad^2] at the velocity w [rad/s]."""
    p = law.numbers
    if law.kind == SATURATING:  # offset + D w + a tanh(b w) + a tanh(b w); Weigand et al. 2020, (4), with b = s_F/2
        t, t1, t2 = saturation(p[3] * w)
        F = p[0] + p[1] * w + p[2] * t
        F1 = p[1] + p[2] * p[3] * t1
        F2 = p[2] * p[3] * p[3] * t2
        if p[4] != 0.0:
            t, t1, t2 = saturation(p[5] * w)
            F, F1, F2 = F + p[4] * t, F1 + p[4] * p[5] * t1, F2 + p[4] * p[5] * p[5] * t2
        return F, F1, F2
    return _falling(p, w)


@kernel
def friction_values(laws: Rows, velocities: Any, results: Any) -> None:
    """Compute F, F' and F'' at `velocities`, (n,), of the law `laws[0]` into `results`, (n, 3)."""
    for k in range(len(velocities)):
        results[k, 0], results[k, 1], results[k, 2] = smooth_friction(laws[0], velocities[k])
