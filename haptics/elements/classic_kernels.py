"""Kinds and step kernels of the classic friction models.

`haptics.elements.classic` defines the classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from haptics.friction.kernels import implicit_force, law_force, sliding_level
from haptics.jit import inlined_kernel, kernel

# --- models without a state of the contact, and with regularised friction ---------------------------------------------
#
# Step kernels of the classic models without a bristle.
#
# Models: explicit Coulomb, viscous ramp, Karnopp, Quinn. Each is a rule for the friction force f from the velocity v
# and, for the last two, the applied force h (Kikuuwe et al. 2006, (3)-(5)), here for vectors: scalar clipping becomes
# clipping of the length. ``F`` of the scalar equations is the level of the law, so that every model slides with the
# same force. The mass is integrated by explicit Euler.
#
# Numbers of the record: 0 the threshold epsilon [m/s]; 1 the fraction of its velocity at which a mass below the
# threshold continues to move (Karnopp).

EXPLICIT = 0
RAMP = 1
KARNOPP = 2
QUINN = 3


@inlined_kernel
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
    """Return the friction force at velocity v under the force h, and True if it is static friction.

    The viscous ramp is linear up to the threshold, and the law beyond; (5). Karnopp's force below the threshold is h
    clipped at the break-away force; (3). The explicit model has the force of the law; (6).
    """
    speed = math.hypot(v[0], v[1])
    if rule == RAMP:
        reach = max(speed, s.numbers[0])
        slope = sliding_level(s.law, reach) / reach
        return slope * v[0], slope * v[1], speed <= s.numbers[0]
    if rule == KARNOPP and speed <= s.numbers[0]:
        return clipped(h[0], h[1], s.law.numbers[0])
    if rule == QUINN:
        return _quinn(s, v[0], v[1], speed, h[0], h[1])
    fx, fy = law_force(s.law, v[0], v[1])
    return fx, fy, rule == EXPLICIT and speed == 0.0


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


# --- bristle models ---------------------------------------------------------------------------------------------------
#
# Step kernels of the classic models with a bristle.
#
# Models: Dahl, LuGre, elastoplastic, Hayward-Armstrong, reset integrator, Iwan. Their input is the velocity u of the
# end effector, constant over a sample, and their output the force f. The bristle is deflected by z (the elastic
# displacement). The remaining motion is slip, v = u - dz/dt, the sliding velocity. The level of the law at the speed
# |u| is divided (except in Iwan's model, which solves the law): up to the break-away force, g, it loads the bristle,
# whose limit is z = g/K; the excess, for instance viscosity, opposes the motion directly, like the viscous term of the
# LuGre model. Therefore no bristle holds more than the break-away force when the motion stops. The numbers of the
# record are documented at each step.

MAX_BRISTLES = 12
"""Maximum number of equally stiff elements in `step_iwan`."""

STIFF = 2 * MAX_BRISTLES
"""Index in the memory of the deflection of the stiff element, after the other elements."""


@kernel
def _divided(s: Any, ux: float, uy: float) -> tuple[float, float, float]:
    """Return |u|, the bristle's limit g/K, and the viscosity D [N s/m] for the level above break-away."""
    speed = math.hypot(ux, uy)
    level = sliding_level(s.law, speed)
    g = min(level, s.law.numbers[0])
    return speed, g / s.stiffness, (level - g) / speed if speed > 0.0 else 0.0


@kernel
def _deflect(s: Any, zx: float, zy: float, u: Any, D: float, sticking: bool, slipping: bool) -> None:
    """Set the deflection to z and the force to f = K z + B dz/dt + D u.

    dz/dt is the mean over the sample.
    """
    T, K, B, z = s.period, s.stiffness, s.damping, s.displacement
    ux, uy = u
    rate_x, rate_y = ((zx - z[0]) / T, (zy - z[1]) / T) if slipping else (ux, uy)
    z[0], z[1] = zx, zy
    fx, fy = K * zx + B * rate_x + D * ux, K * zy + B * rate_y + D * uy
    s.output[0], s.output[1] = fx, fy
    store(s, (fx, fy), (ux - rate_x, uy - rate_y), sticking)


@kernel
def step_bristle(s: Any, ux: float, uy: float) -> None:
    """Advance Dahl's model (B = 0) or the LuGre model, dz/dt = u - K |u| z/g, exactly for a constant u.

    With a constant velocity the equation is linear: z approaches g/K u/|u| exponentially along the path, with the
    length constant g/K. Neither model has static friction. The contact counts as sticking while the bristle absorbs at
    least half of the motion.
    """
    z, T = s.displacement, s.period
    speed, limit, D = _divided(s, ux, uy)
    zx, zy = z[0], z[1]
    if speed > 0.0:
        share = -math.expm1(-T * speed / limit) if limit > 0.0 else 1.0
        zx += share * (limit * (ux / speed) - zx)
        zy += share * (limit * (uy / speed) - zy)
    slip = math.hypot(ux - (zx - z[0]) / T, uy - (zy - z[1]) / T)
    _deflect(s, zx, zy, (ux, uy), D, slip <= 0.5 * speed, True)


@kernel
def _adhesion(sine: bool, x: float, k: float) -> tuple[float, float]:
    """Return the fraction alpha of the motion that is slip, and its slope, at the deflection x > 0.

    `sine`: half a sine from k to 1, for x < 1 (Dupont et al. 2002); otherwise x^8/(k^8 + x^8) (Hayward and Armstrong
    2000).
    """
    if not sine:
        power = (x / k) ** 8
        return power / (1.0 + power), 8.0 * power / (x * (1.0 + power) * (1.0 + power))
    if x <= k:
        return 0.0, 0.0
    turn = math.pi / (1.0 - k)
    angle = turn * (x - 0.5 * (1.0 + k))
    return 0.5 + 0.5 * math.sin(angle), 0.5 * turn * math.cos(angle)


@kernel
def _relaxed(sine: bool, trial: float, way: float, k: float) -> float:
    """Solve x + path alpha(x) x = trial, the implicit Euler step of dx/dw = -alpha(x) x.

    Lengths are fractions of g/K, and the path is the parameter `way`. The left side increases with x, so that Newton's
    method with bisection as a safeguard converges.
    """
    at_limit = 1.0 + way * (1.0 if sine else _adhesion(False, 1.0, k)[0])
    if trial >= at_limit:
        return trial / at_limit
    low, high = 0.0, min(trial, 1.0)
    x = high
    for _ in range(60):
        alpha, slope = _adhesion(sine, x, k)
        excess = x + way * alpha * x - trial
        if excess > 0.0:
            high = x
        else:
            low = x
        step = excess / (1.0 + way * (alpha + x * slope))
        if abs(step) <= 2.3e-16 * x:
            break
        x = x - step if low < x - step < high else 0.5 * (low + high)
    return x


@kernel
def step_elastoplastic(s: Any, ux: float, uy: float) -> None:
    """Advance the elastoplastic model of Dupont et al. 2002 by implicit Euler.

    The equation is dz/dt = u - alpha(z) (u.n)+ K z/g with n = z/|z|. On a line (u.n)+ is |u| while the bristle is being
    loaded and 0 otherwise, as in the paper. The contact sticks while alpha is 0 or the bristle is not being loaded.
    Number 0: the fraction of the limit up to which alpha is 0.
    """
    z, T, k = s.displacement, s.period, s.numbers[0]
    _, limit, D = _divided(s, ux, uy)
    x, y = z[0] + T * ux, z[1] + T * uy
    r = math.hypot(x, y)
    load = max(T * (ux * (x / r) + uy * (y / r)), 0.0) if r > k * limit else 0.0
    if load == 0.0:
        _deflect(s, x, y, (ux, uy), D, True, False)
        return
    scale = _relaxed(True, r / limit, load / limit, k) * (limit / r) if limit > 0.0 else 0.0
    _deflect(s, scale * x, scale * y, (ux, uy), D, False, True)


@kernel
def step_creep(s: Any, ux: float, uy: float) -> None:
    """Advance the model of Hayward and Armstrong 2000 by implicit Euler.

    The equation is dz/dt = u - alpha(z) |u| K z/g with |z| <= g/K. Number 0: the fraction of the limit around which
    alpha rises; number 1: a factor on alpha. The contact sticks, creeping or not, while |z| is below its limit.
    """
    z, T = s.displacement, s.period
    speed, limit, D = _divided(s, ux, uy)
    x, y = z[0] + T * ux, z[1] + T * uy
    way = s.numbers[1] * T * speed
    r = math.hypot(x, y)
    if way > 0.0 and limit > 0.0 and r > 0.0:
        scale = _relaxed(False, r / limit, way / limit, s.numbers[0]) * (limit / r)
        x, y = scale * x, scale * y
    x, y, sticking = clipped(x, y, limit)
    _deflect(s, x, y, (ux, uy), D, sticking, way > 0.0 or not sticking)


@kernel
def step_reset(s: Any, ux: float, uy: float) -> None:
    """Advance the reset integrator of Haessig and Friedland 1991.

    The force is f = K (1 + a) z + B u + D u while sticking and K z + D u while slipping. The contact slips, and z stays
    at its limit, when the bristle is at its limit and being loaded. Number 0: the gain a.
    """
    T, K, z = s.period, s.stiffness, s.displacement
    _, limit, D = _divided(s, ux, uy)
    x, y = z[0] + T * ux, z[1] + T * uy
    loaded = ux * x + uy * y > 0.0
    x, y, inside = clipped(x, y, limit)
    sticking = inside or not loaded
    gain, damping = (K * (1.0 + s.numbers[0]), D + s.damping) if sticking else (K, D)
    fx, fy = gain * x + damping * ux, gain * y + damping * uy
    vx, vy = (0.0, 0.0) if inside else (ux - (x - z[0]) / T, uy - (y - z[1]) / T)
    z[0], z[1] = x, y
    s.output[0], s.output[1] = fx, fy
    store(s, (fx, fy), (vx, vy), sticking)


# --- parallel elements ----------------------------------------------------------------------------------------------


@inlined_kernel
def _step_part(
    s: Any, j: int, K: float, B: float, c: float, ux: float, uy: float
) -> tuple[float, float, float, float, bool]:
    """Advance one element, whose e is at `j` in the memory; return its force and sliding velocity, and if it sticks."""
    T, m = s.period, s.memory
    impedance = B + T * K
    Z, stretch = 1.0 / impedance, K / impedance
    px, py, wx, wy, sticks = implicit_force(s.law, ux + stretch * m[j], uy + stretch * m[j + 1], c * Z)
    m[j] = m[j] + T * ux if sticks else (B * m[j] + T * (c * px)) / impedance
    m[j + 1] = m[j + 1] + T * uy if sticks else (B * m[j + 1] + T * (c * py)) / impedance
    return c * px, c * py, wx, wy, sticks


@kernel
def step_iwan(s: Any, ux: float, uy: float) -> None:
    """Advance parallel elements of model C, a sum of steps (38).

    See Iwan 1966; Kikuuwe et al. 2006, section VI. A group of n elements has the share k of K, q of B and q of the law.
    One stiff element has the rest, if k < 1. An element with the share w of the law has f = w phi, phi = Phi_wZ(u + K_i
    Z e), Z = 1/(B_i + T K_i). In the group w is q c/n, where c rises from 1 - spread to 1 + spread. Numbers: 0 n, 1
    spread, 2 k, 3 q. Memory: the e of each element. Displacement and velocity are means weighted by stiffness. The
    contact sticks while no element slides.
    """
    e, m = s.displacement, s.memory
    n, k, q = int(s.numbers[0]), s.numbers[2], s.numbers[3]
    fx, fy, vx, vy, ex, ey = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    sticking = True
    for i in range(n):
        c = q * (1.0 + s.numbers[1] * (2.0 * i / (n - 1.0) - 1.0) if n > 1 else 1.0)
        px, py, wx, wy, sticks = _step_part(s, 2 * i, k * s.stiffness, q * s.damping, c, ux, uy)
        fx, fy = fx + px, fy + py
        vx, vy = vx + wx, vy + wy
        ex, ey = ex + m[2 * i], ey + m[2 * i + 1]
        sticking = sticking and sticks
    fx, fy, vx, vy, ex, ey = fx / n, fy / n, vx / n, vy / n, ex / n, ey / n
    for j in range(2 * n, STIFF if k < 1.0 else len(m)):
        m[j] = 0.0  # an element added later starts without tension
    if k < 1.0:
        K, B = (1.0 - k) * s.stiffness, (1.0 - q) * s.damping
        px, py, wx, wy, sticks = _step_part(s, STIFF, K, B, 1.0 - q, ux, uy)
        fx, fy = fx + px, fy + py
        vx, vy = k * vx + (1.0 - k) * wx, k * vy + (1.0 - k) * wy
        ex, ey = k * ex + (1.0 - k) * m[STIFF], k * ey + (1.0 - k) * m[STIFF + 1]
        sticking = sticking and sticks
    e[0], e[1] = ex, ey
    s.output[0], s.output[1] = fx, fy
    store(s, (fx, fy), (vx, vy), sticking)


# --- steps ------------------------------------------------------------------------------------------------------------

_FIRST_CLASSIC = 10  # first kind of a classic model; smaller numbers are reserved for models A to D

CLASSIC_NUMBERS = 8
"""Maximum number of additional parameters of a classic model."""

MEMORY = 32
"""Maximum number of additional state variables of a classic model."""

EXPLICIT_ADMITTANCE = _FIRST_CLASSIC + EXPLICIT
RAMP_ADMITTANCE = _FIRST_CLASSIC + RAMP
KARNOPP_ADMITTANCE = _FIRST_CLASSIC + KARNOPP
QUINN_ADMITTANCE = _FIRST_CLASSIC + QUINN

EXPLICIT_IMPEDANCE = 14 + EXPLICIT
RAMP_IMPEDANCE = 14 + RAMP
KARNOPP_IMPEDANCE = 14 + KARNOPP
QUINN_IMPEDANCE = 14 + QUINN

BRISTLE = 18
ELASTOPLASTIC = 19
HAYWARD_ARMSTRONG = 20
RESET_INTEGRATOR = 21
IWAN = 22


def _of_rule(step: Callable[..., None], rule: int) -> Callable[..., None]:
    """Return the step kernel for one of the rules that depend on velocity and force."""

    @kernel
    def step_rule(s: Any, x: float, y: float) -> None:
        step(s, rule, x, y)

    return step_rule


CLASSIC_STEPS: dict[int, Callable[..., None]] = {
    EXPLICIT_ADMITTANCE: _of_rule(step_mass, EXPLICIT),
    RAMP_ADMITTANCE: _of_rule(step_mass, RAMP),
    KARNOPP_ADMITTANCE: _of_rule(step_mass, KARNOPP),
    QUINN_ADMITTANCE: _of_rule(step_mass, QUINN),
    EXPLICIT_IMPEDANCE: _of_rule(step_applied, EXPLICIT),
    RAMP_IMPEDANCE: _of_rule(step_applied, RAMP),
    KARNOPP_IMPEDANCE: _of_rule(step_pulled, KARNOPP),
    QUINN_IMPEDANCE: _of_rule(step_pulled, QUINN),
    BRISTLE: step_bristle,
    ELASTOPLASTIC: step_elastoplastic,
    HAYWARD_ARMSTRONG: step_creep,
    RESET_INTEGRATOR: step_reset,
    IWAN: step_iwan,
}
"""Step kernel ``(record, x, y)`` of every classic model, which advances it by one period."""
