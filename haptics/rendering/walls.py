r"""Step of an element on a scene, and one tick of contact with walls.

Before the step, the scene is looked up at the position of the proxy at the end of the last tick: the reference for
models A and D, the end effector minus the displacement for B and C. The lookup and the contacts are parts
(`haptics.jit`); their addresses are 0 without a scene or walls.

A contact has the depth d with the gradient g of the depth (`haptics.scenes.kernels`), which points inwards, and
the unit vector :math:`t \perp g` along the surface. Its normal force is :math:`N = \lambda |g|`,

.. math:: \lambda = \max(0, \min(K d + B \dot d, 2 K d)),

so that the damper force never exceeds the spring force: there is no jump at the surface and no attraction. Friction
follows Coulomb's law, :math:`|f| \le \mu N`, with equality during sliding. The force on the hand is
:math:`-\lambda g - f t`.

**Impedance** (`push_handle`). The depth is that at the sample, and :math:`\dot d = g \cdot u`. Friction is model C of
Kikuuwe et al. 2006 along the surface, with the wall's K and B: a spring with elongation e connects the handle to a
point on the surface. With the displacement :math:`\Delta s = t \cdot (x_k - x_{k-1})` of the handle and its speed
:math:`u_t = t \cdot u`, the force under sticking is :math:`f^* = K (e_{k-1} + \Delta s) + B u_t`. If :math:`|f^*| \le
\mu N`, the point does not move, f is :math:`f^*` and :math:`e_k = e_{k-1} + \Delta s`. Otherwise f is :math:`\mu N` in
the direction of :math:`f^*`, and the point slides at :math:`v = (f^* - f)/(B + T K)`, :math:`e_k = e_{k-1} + \Delta s -
T v`. This is (38) with a level that changes in each tick. As :math:`f v \ge 0` for any level, friction dissipates
energy for any normal force. The displacement is measured by the encoder, not integrated from the velocity, so that a
sticking point does not creep with errors of the velocity estimate.

**Admittance** (`push_mass`). The reference r moves with the mass,
:math:`M (v' - v)/T = h - \lambda g - f t`, and the friction of the plane. The equation is solved implicitly, with
:math:`d' = d + T g \cdot v'` instead of d and :math:`\dot d = g \cdot v'`, which is stable for any K; a very large K
gives a rigid wall. With the velocity :math:`w = v + T h / M` without the wall, :math:`r = g \cdot w`, :math:`Z = T/M`
and :math:`c = B + T K`,

.. math:: \lambda = \max\Bigl(0, \min\Bigl(\frac{K d + c r}{1 + Z c |g|^2},
          \frac{2 K (d + T r)}{1 + 2 Z T K |g|^2}\Bigr)\Bigr).

With N known, friction is :math:`(53)`: :math:`f = t \cdot w / Z` if its magnitude is at most :math:`\mu N`, which stops
the motion along the wall; otherwise :math:`\pm \mu N`. Several walls are solved in turn until none changes. The element
then receives :math:`h - \lambda g - f t` instead of the hand's force, and its law applies unchanged. An isotropic law
only reduces the velocity for which the wall was solved (model A), so that wall and friction remain dissipative. For
models whose friction acts through a spring (D and the bristle models), the friction force of the last tick is part of h
here, because it changes little in a tick.

A wall cannot stop a reference faster than the device can decelerate. The approach speed of a very stiff wall is
therefore limited to :math:`a \sqrt{M/(2 K)}` at the surface (for 2 kN/m, 2 kg and 50 m/s^2: 1.1 m/s). While the output
fades in, stiffness and damping of the walls fade in with it, so that a reference that starts inside a wall is moved out
gently.
"""

from __future__ import annotations

import math
from typing import Any

from haptics.elements.kernels import MODEL_A, step_element
from haptics.jit import call_part, inlined_kernel, kernel
from haptics.records import fields
from haptics.scenes.kernels import depth_in, out_of_walls, wall_at

# --- scene ------------------------------------------------------------------------------------------------------------
#
# Kernel of the step of an element on a scene, with law parameters that depend on the proxy position.
#
# Before the step, the scene is looked up at the position of the proxy at the end of the last tick: the reference for
# models A and D, the end effector minus the displacement for B and C. The lookup is a part (`haptics.scenes.kernels`);
# its address is 0 without a scene.

NO_REGION = -1
"""Value of the column ``region`` without a scene."""

REGION_FIELDS: list[tuple[Any, ...]] = [("region", "<i8")]
"""Fields for the position of the proxy in the scene."""


@inlined_kernel
def step_on_scene(s: Any, x: float, y: float) -> None:
    """Advance the program in record `s` by one period under the input (x, y), on its scene if it has one.

    The parameters of the law are set to the values of the scene at the proxy position after the last tick. If that
    position is unknown, after the start or an unusable sample, the present end effector position minus the displacement
    is used.
    """
    if s.scene.look_up != 0:
        if s.admittance != 0:
            proxy_x, proxy_y = s.reference[0], s.reference[1]
        elif s.observed != 0:
            proxy_x = s.observed_position[0] - s.displacement[0]
            proxy_y = s.observed_position[1] - s.displacement[1]
        else:
            proxy_x, proxy_y = s.position[0] - s.displacement[0], s.position[1] - s.displacement[1]
        call_part(s.scene.look_up, s, proxy_x, proxy_y)
    step_element(s, x, y)


# --- contact with walls: fields, common steps, impedance --------------------------------------------------------------

WALL_FIELDS: list[tuple[Any, ...]] = [
    ("wall_seen", "<i8"),
    ("wall_position", "<f8", (2,)),
    ("wall_share", "<f8"),
    *fields("<f8", "wall_force wall_proxy", 2),
    *fields("<f8", "normal_force wall_stored wall_stiffness wall_damping wall_spring_power wall_damper_power"),
    ("wall_held", "<i8"),
]
"""Fields for contact with walls in the record of the rendering.

``wall_force`` [N] is the total force of the walls on the hand (impedance), or the force to add to the hand's force
(admittance).

The other fields are for the energy balance (`haptics.rendering.passivity`) and refer to the touched walls: the stored
energy :math:`K d^2/2` plus :math:`K e^2/2` of the spring along the surface [J], stiffness and damping of the stiffest
wall, the sums of :math:`K w^2` and :math:`B w^2` with the speeds w of the springs, and whether the walls stick (1) or
friction slides on one of them (2).
"""


@kernel
def begin_contact(s: Any) -> None:
    """Reset the contact forces and energies of the last tick."""
    s.wall_force[0] = s.wall_force[1] = s.normal_force = 0.0
    s.wall_stored = s.wall_stiffness = s.wall_damping = s.wall_spring_power = s.wall_damper_power = 0.0
    s.wall_held = 0


@kernel
def add_wall(s: Any, w: Any, rates: tuple[float, float], slides: bool) -> None:
    """Add force and stored energy of wall `w`.

    `rates` [m/s] are the rate of its depth and the speed along it.
    """
    gx, gy = w.inwards[0], w.inwards[1]
    length = math.hypot(gx, gy)
    tx, ty = (-gy / length, gx / length) if length > 0.0 else (0.0, 0.0)
    s.wall_force[0] -= w.push * gx + w.drag * tx
    s.wall_force[1] -= w.push * gy + w.drag * ty
    s.normal_force += w.push * length
    depth = max(w.depth, 0.0)
    s.wall_stored += 0.5 * w.stiffness * (depth * depth + w.stretch * w.stretch)
    s.wall_stiffness = max(s.wall_stiffness, w.stiffness)
    s.wall_damping = max(s.wall_damping, w.damping)
    square = rates[0] * rates[0] + (0.0 if slides else rates[1] * rates[1])
    s.wall_spring_power += w.stiffness * square
    s.wall_damper_power += w.damping * square
    s.wall_held = s.wall_held | (2 if slides and w.drag != 0.0 else 1)


# --- both causalities -------------------------------------------------------------------------------------------------


@kernel
def project_proxy(s: Any, x: float, y: float) -> None:
    """Part: project a proxy at (x, y) out of the walls onto their surface."""
    s.wall_proxy[0], s.wall_proxy[1] = out_of_walls(s.scene.walls, s.scene.wall_count, x, y)


# --- impedance ----------------------------------------------------------------------------------------------------


@kernel
def push_handle(s: Any, x: float, y: float) -> None:
    """Part: compute the wall forces on the handle at the position of the sample."""
    anew = s.wall_seen == 0  # after the start and after rejected samples
    dx, dy = s.position[0] - s.wall_position[0], s.position[1] - s.wall_position[1]
    ux, uy = s.velocity[0], s.velocity[1]
    begin_contact(s)
    for k in range(s.scene.wall_count):
        w = wall_at(s.scene.walls, k)
        depth, gx, gy = depth_in(w, s.position[0], s.position[1])
        w.depth, w.inwards[0], w.inwards[1] = depth, gx, gy
        length = math.hypot(gx, gy)
        first = anew or w.touching == 0
        w.touching = 1 if depth > 0.0 and length > 0.0 else 0
        if w.touching == 0:
            w.push = w.drag = w.stretch = 0.0
            continue
        rate = gx * ux + gy * uy
        elastic = w.stiffness * depth
        w.push = max(0.0, min(elastic + w.damping * rate, 2.0 * elastic))
        tx, ty = -gy / length, gx / length
        way, speed = tx * dx + ty * dy, tx * ux + ty * uy
        if first:  # a new contact starts with a relaxed spring and no tangential motion
            w.stretch = way = speed = 0.0
        level = w.friction * w.push * length
        K, B, T = w.stiffness, w.damping, s.period
        stretch = w.stretch + way
        f = K * stretch + B * speed
        slides = not abs(f) <= level
        if slides:
            w.drag = math.copysign(level, f)
            stretch -= T * (f - w.drag) / (B + T * K)
        else:
            w.drag = f
        w.stretch = stretch
        add_wall(s, w, (rate, speed), slides)
    s.wall_seen = 1
    s.wall_position[0], s.wall_position[1] = s.position[0], s.position[1]


# --- admittance: mass against walls -----------------------------------------------------------------------------------
#
# One tick of contact with walls on an admittance device.
#
# See `haptics.rendering.walls` for the equations.

# Fraction of the maximum acceleration for braking before walls, as at the edge of the workspace.
_BRAKING_FRACTION = 8.0 / 9.0

_SWEEPS = 50  # maximum number of Gauss-Seidel sweeps over the walls of a corner; usually a few are sufficient


@kernel
def _brake(s: Any, vx: float, vy: float) -> tuple[float, float]:
    """Limit the velocity so that the walls can stop the reference within the permitted acceleration.

    A spring K with its damper stops a mass M with an initial speed v with an acceleration of at most ``v sqrt(2 K/M)``.
    """
    T, a = s.period, _BRAKING_FRACTION * s.max_rate
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
def _solve_all(s: Any, vx: float, vy: float) -> tuple[float, float]:
    """Solve all walls for the velocity without them; return the velocity with them."""
    Z, T = s.period / s.mass, s.period
    for _ in range(_SWEEPS):
        changed = False
        for k in range(s.scene.wall_count):
            w = wall_at(s.scene.walls, k)
            before, drag = w.push, w.drag
            K, B = s.wall_share * w.stiffness, s.wall_share * w.damping
            gx, gy = w.inwards[0], w.inwards[1]
            length = math.hypot(gx, gy)
            if length != 0.0:  # the velocity without the contribution of this wall
                tx, ty = -gy / length, gx / length
                vx, vy = vx + Z * (w.push * gx + w.drag * tx), vy + Z * (w.push * gy + w.drag * ty)
            square = gx * gx + gy * gy
            rate, c = gx * vx + gy * vy, B + T * K
            soft = (K * w.depth + c * rate) / (1.0 + Z * c * square)
            capped = 2.0 * K * (w.depth + T * rate) / (1.0 + 2.0 * Z * T * K * square)
            w.push, w.drag = max(0.0, min(soft, capped)) if square > 0.0 else 0.0, 0.0
            if w.push != 0.0:
                length = math.sqrt(square)
                nx, ny = gx / length, gy / length
                inwards = nx * vx + ny * vy - Z * w.push * length
                along, level = nx * vy - ny * vx, w.friction * w.push * length
                if abs(along) <= Z * level:
                    w.drag = along / Z
                    vx, vy = nx * inwards, ny * inwards
                else:
                    w.drag = math.copysign(level, along)
                    along -= Z * w.drag
                    vx, vy = nx * inwards - ny * along, ny * inwards + nx * along
            apart = abs(w.push - before) + abs(w.drag - drag)
            changed = changed or apart > 1e-12 * (w.push + abs(w.drag))
        if not changed or s.scene.wall_count == 1:
            break
    return vx, vy


@kernel
def push_mass(s: Any, hx: float, hy: float) -> None:
    """Part: compute the wall forces on the mass of an admittance device under the force (hx, hy) [N]."""
    T, Z = s.period, s.period / s.mass
    fx, fy = hx, hy
    if s.stiffness > 0.0:  # friction that acts through a spring
        fx, fy = hx - s.friction_force[0], hy - s.friction_force[1]
    free_x, free_y = s.mass_velocity[0] + Z * fx, s.mass_velocity[1] + Z * fy
    for k in range(s.scene.wall_count):
        w = wall_at(s.scene.walls, k)
        w.depth, w.inwards[0], w.inwards[1] = depth_in(w, s.reference[0], s.reference[1])
        w.push = w.drag = w.stretch = 0.0
    vx, vy = _solve_all(s, free_x, free_y)
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


# --- walls in a tick --------------------------------------------------------------------------------------------------

_NO_WALL = math.nan  # value of the column ``normal_force`` without walls


@kernel
def add_walls(s: Any, x: float, y: float) -> tuple[float, float]:
    """Add the wall forces [N] to the force (x, y) on the hand (impedance) or the mass (admittance)."""
    if s.scene.walls == 0:
        return x, y
    call_part(s.scene.wall_part, s, x, y)
    return x + s.wall_force[0], y + s.wall_force[1]


@kernel
def report_walls(s: Any, row: Any) -> None:
    """Add the normal force to a trace `row`, and move its proxy to the surface of the walls."""
    if s.scene.walls != 0:
        call_part(s.scene.wall_emerge, s, row.proxy[0], row.proxy[1])
        row.proxy[0], row.proxy[1] = s.wall_proxy[0], s.wall_proxy[1]
        row.normal_force = s.normal_force if s.bad_ticks == 0 else 0.0
    else:
        row.normal_force = _NO_WALL
