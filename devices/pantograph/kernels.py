"""What a tick of the pantograph computes: angles to position and velocity, force to torques."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.linkage import close_linkage, motor_torques
from devices.pantograph.mechanisms import CLEARANCE, MAX_TORQUE, Mechanism
from devices.velocity import VELOCITY, VelocitySettings, fill_velocity, update_velocity
from haptics._jit import kernel

_close = kernel(close_linkage)
_torques = kernel(motor_torques)

_SHAPE = ("left_inner", "left_outer", "right_outer", "right_inner", "motor_distance", "side")
"""Fields for what `close_linkage` wants to know, in its order; a record's ``base`` is something else to NumPy."""

PANTOGRAPH = np.dtype(
    [
        *((name, "<i8" if name == "side" else "<f8") for name in _SHAPE),
        ("centre", "<f8", (2,)),
        ("angles", "<f8", (2,)),
        ("position", "<f8", (2,)),
        ("torques", "<f8", (2,)),
        ("estimator", VELOCITY),
    ]
)
"""The whole pantograph in one record."""


def new_record(mechanism: Mechanism, settings: VelocitySettings, resolution: float, period: float) -> NDArray[Any]:
    """Return the record, (1,), of a pantograph whose position has a `resolution` [m], sampled every `period` [s]."""
    record = np.zeros(1, PANTOGRAPH)
    for name, value in zip(_SHAPE, mechanism.linkage.shape, strict=True):
        record[name] = value
    record["centre"] = mechanism.centre
    record["angles"] = np.radians(mechanism.home)
    fill_velocity(record["estimator"], settings, resolution, period)
    return record


@kernel
def take_angles(record: Any, time: float, left: float, right: float) -> None:
    """Take the angles of the inner links [degree] at `time` [s]: position [m] and velocity [m/s] follow.

    The position is nan where no linkage has such angles. A clock that begins anew begins the velocity anew.
    """
    s = record[0]
    s.angles[0], s.angles[1] = math.radians(left), math.radians(right)
    x, y, _, _, _, _, _, _ = _close(
        s.angles[0], s.angles[1], s.left_inner, s.left_outer, s.right_outer, s.right_inner, s.motor_distance, s.side
    )
    s.position[0], s.position[1] = x - s.centre[0], y - s.centre[1]
    if time < s.estimator.time:
        s.estimator.samples = 0
    update_velocity(s.estimator, time, s.position[0], s.position[1])


@kernel
def take_force(record: Any, fx: float, fy: float) -> None:
    """Compute the torques [N m] for a force (fx, fy) [N] at the latest angles.

    Where the outer links come into one line, torques per force grow beyond limits and the handle can give way all the
    same. From `CLEARANCE` to half of it the force fades to nothing, and beyond there is none. What would ask more of a
    motor than it can give is made smaller in both, so that the force keeps its direction.
    """
    s = record[0]
    _, _, left_x, left_y, right_x, right_y, left_lever, right_lever = _close(
        s.angles[0], s.angles[1], s.left_inner, s.left_outer, s.right_outer, s.right_inner, s.motor_distance, s.side
    )
    clearance = abs(left_x * right_y - left_y * right_x) / (s.left_outer * s.right_outer)
    if not clearance > 0.5 * CLEARANCE:  # nor where it is none
        s.torques[0] = s.torques[1] = 0.0
        return
    left, right = _torques(fx, fy, left_x, left_y, right_x, right_y, left_lever, right_lever)
    part = min(2.0 * clearance / CLEARANCE - 1.0, 1.0)
    largest = max(abs(left), abs(right)) * part
    if largest > MAX_TORQUE:
        part *= MAX_TORQUE / largest
    s.torques[0], s.torques[1] = part * left, part * right
