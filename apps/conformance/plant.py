"""Plant of the suite: record, compiled loop, and simulation of an element or of a Python renderer.

The plant is a mass in the plane. The force is constant during a substep, for which the transition matrix of the mass on
the hand's spring and damper gives the exact motion.

The loop is separate from the loop of sessions (decision 12), because the envelope of sessions limits steps, energy and
speed, which are measured here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apps.conformance import cells
from apps.conformance.cells import Cell, Grip, Motion
from devices.common.kernels import quantise
from devices.common.settings import VelocitySettings
from devices.common.velocity import VELOCITY, fill_velocity, prepare_velocity, update_velocity
from devices.virtual.noise import NOISE_FIELDS, normal_pair
from haptics.device import Causality
from haptics.elements.kernels import step_element
from haptics.elements.models import Element
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.records import Rows
from haptics.rendering.envelope import limit_norm

_NUMBERS = (
    *("period", "grip_stiffness", "grip_damping", "resolution", "max_force"),
    *("servo_stiffness", "servo_damping", "force_noise", "force_resolution"),
)
_VECTORS = (
    "response",
    "force_bias",
    "handle",
    "handle_velocity",
    "hand_force",
    "position",
    "force",
    "acting",
    "reference",
)

PLANT = np.dtype(
    [
        ("admittance", "<i8"),
        ("substeps", "<i8"),
        *((name, "<f8") for name in _NUMBERS),
        *((name, "<f8", (2,)) for name in _VECTORS),
        ("transition", "<f8", (2, 2)),
        *NOISE_FIELDS,
        ("estimator", VELOCITY),
    ]
)
"""Plant: parameters, state, and the latest sample (``position`` and the estimator's velocity, or ``force``)."""

ROW = np.dtype([("position", "<f8", (2,)), ("velocity", "<f8", (2,)), ("force", "<f8", (2,)), ("felt", "<f8", (2,))])
"""Tick for the metrics.

``position`` is the position of the handle, or of the reference of an admittance [m], and ``velocity`` the velocity of
the handle [m/s]; both are true, not measured. ``force`` is the rendered friction, ``felt`` the force on the hand [N];
both oppose motion.
"""


@kernel
def move_mass(s: Any, i: int, force: float) -> None:
    """Advance coordinate `i` by one substep under a constant `force` [N] and the hand's spring and damper."""
    x, v = s.handle[i], s.handle_velocity[i]
    s.handle[i] = s.transition[0, 0] * x + s.transition[0, 1] * v + s.response[0] * force
    s.handle_velocity[i] = s.transition[1, 0] * x + s.transition[1, 1] * v + s.response[1] * force


@kernel
def _sample(s: Any, drive: NDArray[np.float64], tick: int) -> None:
    """Sample the position and velocity of a joystick, or the hand's force on an arm."""
    if s.admittance == 0:
        s.position[0] = quantise(s.handle[0], s.resolution)
        s.position[1] = quantise(s.handle[1], s.resolution)
        update_velocity(s.estimator, tick * s.period, s.position[0], s.position[1])
        return
    before = max(tick * s.substeps - 1, 0)
    noise = normal_pair(s)
    for i in range(2):
        s.hand_force[i] = drive[before, i] - s.grip_stiffness * s.handle[i] - s.grip_damping * s.handle_velocity[i]
        s.force[i] = quantise(s.hand_force[i] + s.force_bias[i] + s.force_noise * noise[i], s.force_resolution)


@kernel
def _joystick(s: Any, force_x: float, force_y: float, drive: NDArray[np.float64], tick: int, row: Any) -> bool:
    """Apply a force command [N] and advance to the next sample.

    Return True if all values are finite. The command takes effect half a period late.
    """
    if not math.isfinite(force_x + force_y):
        return False
    row.force[0], row.force[1], _ = limit_norm(force_x, force_y, s.max_force)
    for i in range(2):
        row.position[i], row.velocity[i] = s.handle[i], s.handle_velocity[i]
        row.felt[i] = row.force[i]
        for k in range(s.substeps):
            held = s.acting[i] if 2 * k < s.substeps else row.force[i]
            move_mass(s, i, held + drive[tick * s.substeps + k, i])
        s.acting[i] = row.force[i]
    return math.isfinite(s.handle[0] + s.handle[1])


@kernel
def _arm(s: Any, velocity: Any, friction: Any, drive: NDArray[np.float64], tick: int, row: Any) -> bool:
    """Advance the reference with `velocity` [m/s] and the servo.

    Return True if all values are finite. The reference moves linearly to its new value during the period after the
    tick. In every substep, the servo uses the encoder position and the true velocity.
    """
    if not math.isfinite(velocity[0] + velocity[1]):
        return False
    for i in range(2):
        row.position[i], row.velocity[i] = s.reference[i], s.handle_velocity[i]
        row.force[i], row.felt[i] = -friction[i], -s.hand_force[i]
        for k in range(s.substeps):
            target = s.reference[i] + (k + 0.5) / s.substeps * s.period * velocity[i]
            servo = s.servo_stiffness * (target - quantise(s.handle[i], s.resolution)) + s.servo_damping * velocity[i]
            move_mass(s, i, servo + drive[tick * s.substeps + k, i])
        s.reference[i] += s.period * velocity[i]
    return math.isfinite(s.handle[0] + s.handle[1])


@kernel
def run_element(elements: Rows, plants: Rows, drive: NDArray[np.float64], rows: Rows) -> int:
    """Run the element in ``elements[0]`` on ``plants[0]``.

    Parameters
    ----------
    elements : (1,) structured array
        Record of the element.
    plants : (1,) array of dtype `PLANT`
        Plant at rest.
    drive : (n * substeps, 2) array
        Force of the hand on a handle at rest at the origin, in the middle of each substep [N].
    rows : (n,) array of dtype `ROW`
        Output rows.

    Returns
    -------
    int
        Number of completed ticks; fewer than n if a value was not finite.
    """
    e, s = elements[0], plants[0]
    for tick in range(len(rows)):
        _sample(s, drive, tick)
        if s.admittance:
            step_element(e, s.force[0], s.force[1])
            fine = _arm(s, e.output, e.friction_force, drive, tick, rows[tick])
        else:
            step_element(e, s.estimator.velocity[0], s.estimator.velocity[1])
            fine = _joystick(s, -e.output[0], -e.output[1], drive, tick, rows[tick])
        if not fine:
            return tick
    return len(rows)


@kernel
def sample_joystick(plants: Rows, tick: int) -> None:
    """Sample position and velocity, for renderers in Python."""
    _sample(plants[0], np.empty((0, 2)), tick)


@kernel
def command_joystick(plants: Rows, x: float, y: float, drive: NDArray[np.float64], tick: int, rows: Rows) -> bool:
    """Apply the force (x, y) [N] and advance to the next sample, for renderers in Python."""
    return bool(_joystick(plants[0], x, y, drive, tick, rows[tick]))


Array = NDArray[np.float64]

Renderer = Callable[[Array, Array], ArrayLike]
"""``renderer(position, velocity) -> force``: each (2,), in m, m/s and N; the force acts on the handle."""

_SEED = 1


def substep_count(rate: float) -> int:
    """Return the number of substeps in a period at `rate` [Hz]: even, each at most `LONGEST_SUBSTEP` long."""
    return 2 * math.ceil(0.5 / (rate * cells.LONGEST_SUBSTEP) - 1e-9)


def mass_transition(mass: float, stiffness: float, damping: float, step: float) -> tuple[Array, Array]:
    """Return the transition of a mass on a spring and damper during `step` under a constant force.

    Parameters
    ----------
    mass, stiffness, damping, step : float
        [kg], [N/m], [N s/m], [s].

    Returns
    -------
    (2, 2) array, (2,) array
        Contributions of the old position and velocity, and of the force, to the new position and velocity. They are the
        first two rows of the exponential of ``step [[0, 1, 0], [-K/m, -b/m, 1/m], [0, 0, 0]]``, summed from its series.
    """
    generator = step * np.array(((0.0, 1.0, 0.0), (-stiffness / mass, -damping / mass, 1.0 / mass), (0.0, 0.0, 0.0)))
    total, term = np.eye(3), np.eye(3)
    for k in range(1, 30):
        term = term @ generator / k
        total += term
    return total[:2, :2], total[:2, 2]


def new_plant(cell: Cell, causality: Causality, motion: Motion) -> Rows:
    """Return the plant of `cell` at rest at the origin as a (1,) record: a joystick or an arm."""
    record = np.zeros(1, PLANT)
    count, stiffness = substep_count(cell.rate), cell.grip.stiffness if motion.prescribed else 0.0
    record["period"], record["substeps"], record["resolution"] = 1.0 / cell.rate, count, cell.quantisation
    record["grip_stiffness"], record["grip_damping"] = stiffness, cell.grip.damping
    record["max_force"] = cells.HANDLE_MAX_FORCE
    fill_velocity(record["estimator"], VelocitySettings(cell.velocity), cell.quantisation, 1.0 / cell.rate)
    prepare_velocity(record["estimator"])
    mass, damping = cells.HANDLE_MASS, cells.HANDLE_DAMPING
    if causality is Causality.ADMITTANCE:
        speed = 2.0 * math.pi * cells.ARM_FREQUENCY
        mass, damping = cells.ARM_MASS, 2.0 * cells.ARM_DAMPING_RATIO * cells.ARM_MASS * speed
        record["admittance"] = 1
        record["servo_stiffness"], record["servo_damping"] = mass * speed**2, damping
        record["force_noise"], record["force_bias"] = cells.SENSOR_NOISE, cells.SENSOR_BIAS
        record["force_resolution"], record["noise_state"] = cells.SENSOR_STEP, _SEED
    step = 1.0 / (cell.rate * count)
    record["transition"], record["response"] = mass_transition(mass, stiffness, damping + cell.grip.damping, step)
    return record


@lru_cache(maxsize=32)
def drive_of(motion: Motion, grip: Grip, rate: float) -> Array:
    """Return the force of the hand in every substep of `motion`, (n, 2) [N], cached."""
    count = substep_count(rate)
    times: Array = (np.arange(motion.ticks(rate) * count, dtype=np.float64) + 0.5) / (rate * count)
    return motion.drive(times, grip)


def run_compiled(element: Element, cell: Cell, motion: Motion) -> Rows | None:
    """Run `element`, which has the period of `cell`, through `motion`.

    Return None if a value was not finite.
    """
    drive = drive_of(motion, cell.grip, cell.rate)
    rows = np.zeros(motion.ticks(cell.rate), ROW)
    done = run_element(element.copy_record(), new_plant(cell, element.causality, motion), drive, rows)
    return rows if done == len(rows) else None


def run_python(renderer: Renderer, cell: Cell, motion: Motion) -> Rows | None:
    """Run a `renderer` written in Python on the joystick.

    Return None if a value was not finite.

    Raises
    ------
    ConfigurationError
        If the renderer does not return two numbers.
    """
    drive = drive_of(motion, cell.grip, cell.rate)
    rows = np.zeros(motion.ticks(cell.rate), ROW)
    plant = new_plant(cell, Causality.IMPEDANCE, motion)
    position, velocity = plant["position"][0], plant["estimator"]["velocity"][0]
    for tick in range(len(rows)):
        sample_joystick(plant, tick)
        force: Any = renderer(position.copy(), velocity.copy())
        try:
            x, y = map(float, force)
        except (TypeError, ValueError):
            raise ConfigurationError(f"the renderer returned {force!r}: must be a force of two numbers in N.") from None
        if not command_joystick(plant, x, y, drive, tick, rows):
            return None
    return rows
