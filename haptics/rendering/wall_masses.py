"""One tick of contact with walls on an admittance device.

See `haptics.rendering.wall_contacts` for the equations.
"""

from __future__ import annotations

import math
from typing import Any

from haptics.elements.kernels import MODEL_A
from haptics.jit import kernel
from haptics.rendering.wall_contacts import add_wall, begin_contact
from haptics.scenes.wall_kernels import depth_in, wall_at

_BRAKES = 8.0 / 9.0
"""Fraction of the maximum acceleration for braking before walls, as at the edge of the workspace."""

_SWEEPS = 50
"""Maximum number of Gauss-Seidel sweeps over the walls of a corner; usually a few are sufficient."""


@kernel
def _solve(s: Any, w: Any, vx: float, vy: float) -> tuple[float, float]:
    """Solve one wall for the velocity without it; return the velocity with it."""
    Z, T = s.period / s.mass, s.period
    K, B = s.wall_share * w.stiffness, s.wall_share * w.damping
    gx, gy = w.inwards[0], w.inwards[1]
    square = gx * gx + gy * gy
    rate, c = gx * vx + gy * vy, B + T * K
    soft = (K * w.depth + c * rate) / (1.0 + Z * c * square)
    capped = 2.0 * K * (w.depth + T * rate) / (1.0 + 2.0 * Z * T * K * square)
    w.push, w.drag = max(0.0, min(soft, capped)) if square > 0.0 else 0.0, 0.0
    if w.push == 0.0:
        return vx, vy
    length = math.sqrt(square)
    nx, ny = gx / length, gy / length
    inwards = nx * vx + ny * vy - Z * w.push * length
    along, level = nx * vy - ny * vx, w.friction * w.push * length
    if abs(along) <= Z * level:
        w.drag = along / Z
        return nx * inwards, ny * inwards
    w.drag = math.copysign(level, along)
    along -= Z * w.drag
    return nx * inwards - ny * along, ny * inwards + nx * along


@kernel
def _without(s: Any, w: Any, vx: float, vy: float) -> tuple[float, float]:
    """Return the velocity without the contribution of wall `w`."""
    Z, gx, gy = s.period / s.mass, w.inwards[0], w.inwards[1]
    length = math.hypot(gx, gy)
    if length == 0.0:
        return vx, vy
    tx, ty = -gy / length, gx / length
    return vx + Z * (w.push * gx + w.drag * tx), vy + Z * (w.push * gy + w.drag * ty)


@kernel
def _measure(s: Any) -> None:
    """Compute the depth of the reference in each wall and reset the wall forces."""
    for k in range(s.scene.wall_count):
        w = wall_at(s.scene.walls, k)
        w.depth, w.inwards[0], w.inwards[1] = depth_in(w, s.reference[0], s.reference[1])
        w.push = w.drag = w.stretch = 0.0


@kernel
def _brake(s: Any, vx: float, vy: float) -> tuple[float, float]:
    """Limit the velocity so that the walls can stop the reference within the permitted acceleration.

    A spring K with its damper stops a mass M with an initial speed v with an acceleration of at most ``v sqrt(2 K/M)``.
    """
    T, a = s.period, _BRAKES * s.max_rate
    for k in range(s.scene.wall_count):
        w = wall_at(s.scene.walls, k)
        gx, gy = w.inwards[0], w.inwards[1]
        length = math.hypot(gx, gy)
        if length == 0.0:
            continue
        nx, ny = gx / length, gy / length
        rate, half = nx * vx + ny * vy, 0.5 * a * T
        at_wall = a * max(math.sqrt(0.5 * s.mass / w.stiffness), T)
        fastest = math.sqrt(half * half + at_wall * at_wall + 2.0 * a * max(-w.depth, 0.0)) - half
        if rate > fastest:
            vx, vy = vx - (rate - fastest) * nx, vy - (rate - fastest) * ny
    return vx, vy


@kernel
def _meet(s: Any, vx: float, vy: float) -> tuple[float, float]:
    """Solve all walls for the velocity without them; return the velocity with them."""
    for _ in range(_SWEEPS):
        changed = False
        for k in range(s.scene.wall_count):
            w = wall_at(s.scene.walls, k)
            before, drag = w.push, w.drag
            free_x, free_y = _without(s, w, vx, vy)
            vx, vy = _solve(s, w, free_x, free_y)
            apart = abs(w.push - before) + abs(w.drag - drag)
            changed = changed or apart > 1e-12 * (w.push + abs(w.drag))
        if not changed or s.scene.wall_count == 1:
            break
    return vx, vy


@kernel
def hold_off(s: Any, hx: float, hy: float) -> None:
    """Part: compute the wall forces on the mass of an admittance device under the force (hx, hy) [N]."""
    T, Z = s.period, s.period / s.mass
    fx, fy = hx, hy
    if s.stiffness > 0.0:  # friction that acts through a spring
        fx, fy = hx - s.friction_force[0], hy - s.friction_force[1]
    free_x, free_y = s.mass_velocity[0] + Z * fx, s.mass_velocity[1] + Z * fy
    _measure(s)
    vx, vy = _meet(s, free_x, free_y)
    vx, vy = _brake(s, vx, vy)
    begin_contact(s)
    for k in range(s.scene.wall_count):
        w = wall_at(s.scene.walls, k)
        gx, gy = w.inwards[0], w.inwards[1]
        rate, along = gx * vx + gy * vy, gx * vy - gy * vx
        w.touching = 1 if w.push > 0.0 else 0
        w.depth += T * rate
        slides = abs(w.drag) >= w.friction * w.push * math.hypot(gx, gy)
        if w.touching != 0 or w.depth > 0.0:
            add_wall(s, w, (rate, along), slides)
    if s.model == MODEL_A:  # continue with this velocity, which is exactly zero at rest
        s.mass_velocity[0], s.mass_velocity[1] = vx, vy
        s.wall_force[0], s.wall_force[1] = -hx, -hy
    else:
        s.wall_force[0], s.wall_force[1] = (vx - free_x) / Z, (vy - free_y) / Z
