r"""One tick of contact with walls, as parts: what they do to the handle, or to the mass of an admittance.

A wall is met at depth d with the gradient g of the depth (`haptics.scenes.wall_kernels`), which points inwards, and
along the surface with the unit vector :math:`t \perp g`. Its normal force is :math:`N = \lambda |g|`,

.. math:: \lambda = \max(0, \min(K d + B \dot d, 2 K d)),

so that the damper is at most as strong as the spring: no jump at the surface, no pull. Friction is Coulomb's,
:math:`|f| \le \mu N`, with equality while it slides. What the hand feels is :math:`-\lambda g - f t`.

**Impedance** (`push`). The depth is that of the sample, :math:`\dot d = g \cdot u`. Friction is model C of Kikuuwe et
al. 2006 along the surface, with the wall's own K and B: its end, held by the surface, stretches a spring by e. With the
way :math:`\Delta s = t \cdot (x_k - x_{k-1})` of the handle and its speed :math:`u_t = t \cdot u`, the force with which
it would stick is :math:`f^* = K (e_{k-1} + \Delta s) + B u_t`. If :math:`|f^*| \le \mu N`, the end does not move, f is
:math:`f^*` and :math:`e_k = e_{k-1} + \Delta s`; else f is :math:`\mu N` in its direction, and the end slides at
:math:`v = (f^* - f)/(B + T K)`, :math:`e_k = e_{k-1} + \Delta s - T v`: (38) with a level that is set anew in each
tick. As :math:`f v \ge 0` for any level, friction takes energy whatever the normal force does. The way is that of the
encoder, not of the velocity: an end that sticks does not creep, however the velocity is estimated.

**Admittance** (`haptics.rendering.wall_masses`). The reference r moves with the mass,
:math:`M (v' - v)/T = h - \lambda g - f t` and the friction of the plane. It is solved implicitly, with
:math:`d' = d + T g \cdot v'` in place of d and :math:`\dot d = g \cdot v'`: stable for any K, of which a very large one
is a rigid wall. With the velocity :math:`w = v + T h / M` without the wall, :math:`r = g \cdot w`, :math:`Z = T/M` and
:math:`c = B + T K`,

.. math:: \lambda = \max\Bigl(0, \min\Bigl(\frac{K d + c r}{1 + Z c |g|^2},
          \frac{2 K (d + T r)}{1 + 2 Z T K |g|^2}\Bigr)\Bigr),

and with N known, friction is :math:`(53)`: :math:`f = t \cdot w / Z` if that is at most :math:`\mu N`, and then nothing
is left of the motion along the wall; else :math:`\pm \mu N`. Several walls are solved one after the other, until none
changes any more. The element then gets :math:`h - \lambda g - f t` in place of the hand's force, and its law holds as
ever. With an isotropic law it only makes the velocity smaller that the wall was solved for (model A), so that wall and
friction stay dissipative. Of a model whose friction comes through a spring (D and the bristle models) the force of the
last tick is part of h here: it changes little in a tick.

A wall cannot stop a reference faster than the device may be accelerated. So a very stiff one is approached no faster
than that it can: at most with :math:`a \sqrt{M/(2 K)}` at the surface (of 2 kN/m, with 2 kg and 50 m/s^2: 1.1 m/s).
While the output fades in, the numbers of a wall fade in with it: a reference that begins inside is moved out gently.
"""

from __future__ import annotations

import math
from typing import Any

from haptics.jit import kernel
from haptics.scenes.wall_kernels import depth_in, out_of_walls, wall_at

WALL_FIELDS: list[tuple[Any, ...]] = [
    ("wall_seen", "<i8"),
    ("wall_position", "<f8", (2,)),
    ("wall_share", "<f8"),
    ("wall_force", "<f8", (2,)),
    ("wall_proxy", "<f8", (2,)),
    ("normal_force", "<f8"),
    ("wall_stored", "<f8"),
    ("wall_stiffness", "<f8"),
    ("wall_damping", "<f8"),
    ("wall_spring_power", "<f8"),
    ("wall_damper_power", "<f8"),
    ("wall_held", "<i8"),
]
"""What contact with walls needs in the record of the rendering.

``wall_force`` [N] is what all walls do to the hand, or what is to be added to its force.

The rest is for the ledger of energy (`haptics.rendering.passivity`), of the walls that are touched: what they store,
:math:`K d^2/2` and :math:`K e^2/2` of the spring along the surface [J], stiffness and damping of the stiffest, the sums
of :math:`K w^2` and :math:`B w^2` with the speeds w of their springs, and whether they hold (1) or friction slides on
one (2)."""


@kernel
def begin_contact(s: Any) -> None:
    """Forget the forces of the last tick."""
    s.wall_force[0] = s.wall_force[1] = s.normal_force = 0.0
    s.wall_stored = s.wall_stiffness = s.wall_damping = s.wall_spring_power = s.wall_damper_power = 0.0
    s.wall_held = 0


@kernel
def add_wall(s: Any, w: Any, rates: tuple[float, float], slides: bool) -> None:
    """Add what wall `w` does and stores; `rates` [m/s] are those of its depth and along it."""
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


# --- for both --------------------------------------------------------------------------------------------------------


@kernel
def emerge(s: Any, x: float, y: float) -> None:
    """Part: the point that a proxy at (x, y) has on the surface of walls."""
    s.wall_proxy[0], s.wall_proxy[1] = out_of_walls(s.scene.walls, s.scene.wall_count, x, y)


# --- impedance ----------------------------------------------------------------------------------------------------


@kernel
def _rub(s: Any, w: Any, way: float, speed: float, level: float) -> bool:
    """Let the end of the spring along the surface stick or slide; tell whether it slides."""
    K, B, T = w.stiffness, w.damping, s.period
    stretch = w.stretch + way
    f = K * stretch + B * speed
    if abs(f) <= level:
        w.stretch, w.drag = stretch, f
        return False
    w.drag = math.copysign(level, f)
    w.stretch = stretch - T * (f - w.drag) / (B + T * K)
    return True


@kernel
def push(s: Any, x: float, y: float) -> None:
    """Part: what walls do to the handle at the position of the sample."""
    anew = s.wall_seen == 0  # after the start, and after samples that were refused
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
        if first:  # the end of the spring comes down where the handle is, and as fast
            w.stretch = way = speed = 0.0
        slides = _rub(s, w, way, speed, w.friction * w.push * length)
        add_wall(s, w, (rate, speed), slides)
    s.wall_seen = 1
    s.wall_position[0], s.wall_position[1] = s.position[0], s.position[1]
