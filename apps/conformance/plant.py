"""Plant record, and its simulation: compiled for elements, tick by tick for Python renderers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apps.conformance import cells
from apps.conformance.cells import Cell, Grip
from apps.conformance.kernels import PLANT, ROW, command_joystick, run_element, sample_joystick
from apps.conformance.motions import Motion
from devices.common.settings import VelocitySettings
from devices.common.velocity import fill_velocity, prepare_velocity
from haptics.device import Causality
from haptics.elements.models import Element
from haptics.errors import ConfigurationError
from haptics.records import Rows

Array = NDArray[np.float64]

Renderer = Callable[[Array, Array], ArrayLike]
"""``renderer(position, velocity) -> force``: each (2,), in m, m/s and N; the force acts on the handle."""

_SEED = 1


def substeps(rate: float) -> int:
    """Return the number of substeps in a period at `rate` [Hz]: even, each at most `LONGEST_SUBSTEP` long."""
    return 2 * math.ceil(0.5 / (rate * cells.LONGEST_SUBSTEP) - 1e-9)


def transition(mass: float, stiffness: float, damping: float, step: float) -> tuple[Array, Array]:
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
    count, stiffness = substeps(cell.rate), motion.stiffness(cell.grip)
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
    record["transition"], record["response"] = transition(mass, stiffness, damping + cell.grip.damping, step)
    return record


@lru_cache(maxsize=32)
def drive_of(motion: Motion, grip: Grip, rate: float) -> Array:
    """Return the force of the hand in every substep of `motion`, (n, 2) [N], cached."""
    count = substeps(rate)
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
        x, y = _pair(renderer(position.copy(), velocity.copy()))
        if not command_joystick(plant, x, y, drive, tick, rows):
            return None
    return rows


def _pair(force: Any) -> tuple[float, float]:
    try:
        x, y = force
        return float(x), float(y)
    except (TypeError, ValueError):
        raise ConfigurationError(f"the renderer returned {force!r}: must be a force of two numbers in N.") from None
