"""Step kernels of the four elements and their record; `haptics.elements.models` defines the classes.

A step is compiled separately for every pair of model and kind of law. Callers use the function address in the record
(`step_element`), so that only the combinations in use are compiled.

The comparison models (`haptics.elements.classic`) share the record and store their data in ``numbers`` and
``memory``. Every kernel takes a record that begins with the fields of `ELEMENT`. Callers that need more in the same
call, such as the rendering, append their own fields.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from haptics.elements.classic_kernels import CLASSIC_NUMBERS, CLASSIC_STEPS, MEMORY, store
from haptics.friction.kernels import LAW, implicit_law
from haptics.jit import address_of_part, call_part, inlined_kernel, kernel, quotients
from haptics.records import Rows, fields

MODEL_A = 0
MODEL_B = 1
MODEL_C = 2
MODEL_D = 3

MOTION = np.dtype(
    [
        *fields("<i8", "table rows relative"),
        *fields("<f8", "integration bound max_error max_speed"),
        ("contact", "<i8"),
        ("trip", "<f8"),
        ("resting", "<i8"),
        *fields("<f8", "rest_stiffness rest_damping"),
    ]
)
"""Parameters of a motion program, except stiffness, damping and period, which elements have too.

``table`` is the address of the reference in this process, with ``rows`` rows of 6 float64. ``bound`` limits the force
[N] or the speed of the reference [m/s]. ``resting`` is the number of rows at the end in which the reference rests. For
the other fields see `haptics.rendering.programs.Motion`.
"""

PLACES = np.dtype(fields("<i8", "look_up table walls wall_count wall_part wall_emerge"))
"""Parameters of an element on a scene: address of the look-up kernel and of its table, 0 if absent.

``walls`` is the address of ``wall_count`` walls, 0 if absent. ``wall_part`` and ``wall_emerge`` are addresses of
kernels for wall contacts (`haptics.rendering.walls`).
"""

PARAMETER_FIELDS: list[tuple[Any, ...]] = [
    *fields("<i8", "step model"),
    ("law", LAW),
    *fields("<f8", "period mass stiffness damping mobility"),
    ("numbers", "<f8", (CLASSIC_NUMBERS,)),
    ("program", "<i8"),
    ("motion", MOTION),
    ("scene", PLACES),
]
"""Parameter fields of a kernel record, which depend on settings only.

``step`` is the address of the step kernel. ``program`` is the number of the program in a run. ``motion`` is for a
program that is not an element (`haptics.rendering.programs`). ``scene`` is for an element on a scene
(`haptics.rendering.programs`).
"""

STATE_FIELDS: list[tuple[Any, ...]] = [
    *fields("<f8", "mass_velocity displacement output friction_force sliding_velocity", 2),
    ("sticking", "<i8"),
    ("memory", "<f8", (MEMORY,)),
]
"""State fields of a kernel record, written by `step_element`."""

PARAMETERS = np.dtype(PARAMETER_FIELDS)
ELEMENT = np.dtype(PARAMETER_FIELDS + STATE_FIELDS)


# --- the four models: s is a record with the fields above, `implicit` solves its law -------------------------------


@inlined_kernel
def _displace(s: Any, u: Any, f: Any, sticking: bool) -> None:
    """Update the displacement e of a massless contact; (38c), (45c).

    While the contact sticks, e grows by exactly T u.
    """
    T, K, B, e = s.period, s.stiffness, s.damping, s.displacement
    if sticking:
        e[0] += T * u[0]
        e[1] += T * u[1]
    else:
        e[0], e[1] = quotients(B * e[0] + T * f[0], B * e[1] + T * f[1], B + T * K)


def _model_a(implicit: Callable[..., Any]) -> Callable[..., None]:
    @inlined_kernel
    def step(s: Any, hx: float, hy: float) -> None:
        """Compute the velocity v [m/s] of the mass from the force h [N]; (26)."""
        T, M, v = s.period, s.mass, s.mass_velocity
        dx, dy = quotients(T * hx, T * hy, M)
        fx, fy, vx, vy, sticking = implicit(s.law, v[0] + dx, v[1] + dy, s.mobility)
        v[0], v[1] = vx, vy
        s.output[0], s.output[1] = vx, vy
        store(s, (fx, fy), (vx, vy), sticking)

    return step


def _model_b(implicit: Callable[..., Any]) -> Callable[..., None]:
    @inlined_kernel
    def step(s: Any, ux: float, uy: float) -> None:
        """Compute the force h [N] of the spring-damper from the velocity u [m/s].

        This is (36) in the state (e, v), without second differences.
        """
        T, M, K, B = s.period, s.mass, s.stiffness, s.damping
        v, e = s.mass_velocity, s.displacement
        C = M + T * B + T * T * K
        coupling = T * B + T * T * K
        x, y = quotients(coupling * ux + T * K * e[0] + M * v[0], coupling * uy + T * K * e[1] + M * v[1], C)
        fx, fy, vx, vy, sticking = implicit(s.law, x, y, s.mobility)
        v[0], v[1] = vx, vy
        e[0] += T * (ux - vx)
        e[1] += T * (uy - vy)
        s.output[0] = K * e[0] + B * (ux - vx)
        s.output[1] = K * e[1] + B * (uy - vy)
        store(s, (fx, fy), (vx, vy), sticking)

    return step


def _model_c(implicit: Callable[..., Any]) -> Callable[..., None]:
    @inlined_kernel
    def step(s: Any, ux: float, uy: float) -> None:
        """Compute the force f [N] from the velocity u [m/s]; (38)."""
        T, K, B, e = s.period, s.stiffness, s.damping, s.displacement
        stretch = K / (B + T * K)
        x, y = ux + stretch * e[0], uy + stretch * e[1]
        fx, fy, vx, vy, sticking = implicit(s.law, x, y, s.mobility)
        _displace(s, (ux, uy), (fx, fy), sticking)
        s.output[0], s.output[1] = fx, fy
        s.mass_velocity[0], s.mass_velocity[1] = vx, vy
        store(s, (fx, fy), (vx, vy), sticking)

    return step


def _model_d(implicit: Callable[..., Any]) -> Callable[..., None]:
    @inlined_kernel
    def step(s: Any, hx: float, hy: float) -> None:
        """Compute the velocity u [m/s] of the mass from the force h [N]; (45)."""
        T, M, K, B = s.period, s.mass, s.stiffness, s.damping
        u, e = s.mass_velocity, s.displacement
        stretch = K / (B + T * K)
        dx, dy = quotients(T * hx, T * hy, M)
        x, y = u[0] + dx + stretch * e[0], u[1] + dy + stretch * e[1]
        fx, fy, vx, vy, sticking = implicit(s.law, x, y, s.mobility)
        dx, dy = quotients(T * (hx - fx), T * (hy - fy), M)
        u[0] += dx
        u[1] += dy
        _displace(s, u, (fx, fy), sticking)
        s.output[0], s.output[1] = u[0], u[1]
        store(s, (fx, fy), (vx, vy), sticking)

    return step


_MODELS = {MODEL_A: _model_a, MODEL_B: _model_b, MODEL_C: _model_c, MODEL_D: _model_d}


# --- steps by address -----------------------------------------------------------------------------------------------


@functools.cache
def step_address(model: int, law: int) -> int:
    """Return the address of the step kernel of a `model` with a kind of `law`, compiling it if necessary."""
    step = _MODELS[model](implicit_law(law)) if model in _MODELS else CLASSIC_STEPS[model]
    return address_of_part(step, ELEMENT)


@inlined_kernel
def step_element(s: Any, x: float, y: float) -> None:
    """Advance the element in record `s` by one period with the input (x, y)."""
    call_part(s.step, s, x, y)


@kernel
def step_record(records: Rows, x: float, y: float) -> None:
    """Advance the element in the (1,) array `records`; for callers in Python."""
    step_element(records[0], x, y)
