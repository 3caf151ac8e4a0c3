"""Step kernels of the classic models without a bristle.

Models: explicit Coulomb, viscous ramp, Karnopp, Quinn. Each is a rule for the friction force f from the velocity v and,
for the last two, the applied force h (Kikuuwe et al. 2006, (3)-(5)), here for vectors: scalar clipping becomes clipping
of the length. ``F`` of the scalar equations is the level of the law, so that every model slides with the same force.
The mass is integrated by explicit Euler.

Numbers of the record: 0 the threshold epsilon [m/s]; 1 the fraction of its velocity at which a mass below the threshold
continues to move (Karnopp).
"""

from __future__ import annotations

import math
from typing import Any

from haptics.friction.kernels import law_force
from haptics.friction.sliding_kernels import sliding_level
from haptics.jit import kernel

EXPLICIT = 0
RAMP = 1
KARNOPP = 2
QUINN = 3


@kernel
def store(s: Any, f: Any, v: Any, sticking: bool) -> None:
    """Store friction force, sliding velocity and sticking state in the record."""
    s.friction_force[0], s.friction_force[1] = f
    s.sliding_velocity[0], s.sliding_velocity[1] = v
    s.sticking = 1 if sticking else 0


@kernel
def clipped(x: float, y: float, length: float) -> tuple[float, float, bool]:
    """Return (x, y) clipped to `length`, and True if it was not longer.

    A vector that exceeds `length` only by rounding, as after earlier clipping, counts as not longer.
    """
    r = math.hypot(x, y)
    if r <= length * (1.0 + 1e-15):
        return x, y, True
    return length * (x / r), length * (y / r), False


@kernel
def _ramp(s: Any, vx: float, vy: float, speed: float) -> tuple[float, float, bool]:
    """Return the force of the viscous ramp: linear up to the threshold, and the law beyond; (5)."""
    reach = max(speed, s.numbers[0])
    slope = sliding_level(s.law, reach) / reach
    return slope * vx, slope * vy, speed <= s.numbers[0]


@kernel
def _karnopp(s: Any, vx: float, vy: float, speed: float, hx: float, hy: float) -> tuple[float, float, bool]:
    """Return the force of Karnopp's model: h clipped at the break-away force below the threshold; (3)."""
    if speed > s.numbers[0]:
        fx, fy = law_force(s.law, vx, vy)
        return fx, fy, False
    return clipped(hx, hy, s.law.numbers[0])


@kernel
def _quinn(s: Any, vx: float, vy: float, speed: float, hx: float, hy: float) -> tuple[float, float, bool]:
    """Return the force of Quinn's model; (4).

    The force is F q clipped at |q| = eps, with q = v + eps (h clipped at F)/F. In the plane the component of h across v
    is faded out up to |v| = 2 eps. Beyond it h has no effect in the scalar model either, and sliding friction has the
    direction of v.
    """
    eps = s.numbers[0]
    F = sliding_level(s.law, speed)
    if F <= 0.0:
        return 0.0, 0.0, False
    cx, cy, _ = clipped(hx / F, hy / F, 1.0)
    if speed > 0.0:
        across = (cy * (vx / speed) - cx * (vy / speed)) * min(0.5 * speed / eps, 1.0)
        cx, cy = cx + across * (vy / speed), cy - across * (vx / speed)
    qx, qy = vx + eps * cx, vy + eps * cy
    q = math.hypot(qx, qy)
    scale = F / max(q, eps)
    return scale * qx, scale * qy, q <= eps


@kernel
def _rule(s: Any, rule: int, v: Any, h: Any) -> tuple[float, float, bool]:
    """Return the friction force at velocity v under the force h, and True if it is static friction."""
    speed = math.hypot(v[0], v[1])
    if rule == RAMP:
        return _ramp(s, v[0], v[1], speed)
    if rule == KARNOPP:
        return _karnopp(s, v[0], v[1], speed, h[0], h[1])
    if rule == QUINN:
        return _quinn(s, v[0], v[1], speed, h[0], h[1])
    fx, fy = law_force(s.law, v[0], v[1])
    return fx, fy, speed == 0.0


@kernel
def _moving(s: Any, rule: int) -> tuple[float, float]:
    """Return the velocity of the motion: for Karnopp a fraction of `mass_velocity` below the threshold."""
    v = s.mass_velocity
    share = s.numbers[1] if rule == KARNOPP and math.hypot(v[0], v[1]) <= s.numbers[0] else 1.0
    return share * v[0], share * v[1]


@kernel
def _push(s: Any, rule: int, hx: float, hy: float) -> None:
    """Advance the mass by explicit Euler under h and the friction force of its last velocity; (7)."""
    T, M, v = s.period, s.mass, s.mass_velocity
    fx, fy, sticking = _rule(s, rule, (v[0], v[1]), (hx, hy))
    v[0] += T * (hx - fx) / M
    v[1] += T * (hy - fy) / M
    store(s, (fx, fy), _moving(s, rule), sticking)


@kernel
def step_mass(s: Any, rule: int, hx: float, hy: float) -> None:
    """Compute the velocity [m/s] of a mass on the surface from the force h [N]."""
    _push(s, rule, hx, hy)
    s.output[0], s.output[1] = s.sliding_velocity[0], s.sliding_velocity[1]


@kernel
def step_applied(s: Any, rule: int, ux: float, uy: float) -> None:
    """Compute the force f [N] from the velocity u [m/s], for a rule that needs no applied force."""
    fx, fy, sticking = _rule(s, rule, (ux, uy), (0.0, 0.0))
    s.output[0], s.output[1] = fx, fy
    store(s, (fx, fy), (ux, uy), sticking)


@kernel
def step_pulled(s: Any, rule: int, ux: float, uy: float) -> None:
    """Compute the force h [N] of the spring-damper that pulls the mass from the velocity u [m/s].

    The coupling is that shown in Fig. 12(a). The spring is stretched with the velocity of the mass after the last step.
    """
    T, K, B, e = s.period, s.stiffness, s.damping, s.displacement
    vx, vy = _moving(s, rule)
    e[0] += T * (ux - vx)
    e[1] += T * (uy - vy)
    hx, hy = K * e[0] + B * (ux - vx), K * e[1] + B * (uy - vy)
    _push(s, rule, hx, hy)
    s.output[0], s.output[1] = hx, hy
