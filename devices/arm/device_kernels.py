"""A tick of the arm as kernels: forward kinematics (position, velocity, orientation) and inverse kinematics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.mechanics.linkage_kernels import LINKAGE, flange_angle, inverse, jacobian, position
from haptics.jit import kernel

ARM = np.dtype(
    [
        ("linkage", LINKAGE),
        ("angles", "<f8", (2,)),
        ("position", "<f8", (2,)),
        ("velocity", "<f8", (2,)),
        ("force", "<f8", (2,)),
        ("orientation", "<f8", (3, 3)),
        ("goal", "<f8", (2,)),
        ("load", "<f8", (2,)),
    ]
)
"""The arm as its driver sees it: ``orientation`` of the flange (`devices.arm.sensors.mounting`), the joint angles
``goal`` of the latest command [rad], and ``load``, what the hand does to the joints [N m]."""


def new_record(linkage: PlacedLinkage) -> NDArray[Any]:
    """Return the record, (1,), of an arm at its zero."""
    record = np.zeros(1, ARM)
    linkage.fill(record["linkage"])
    record["orientation"] = np.eye(3)
    return record


@kernel
def take_joints(record: Any, first: float, second: float, first_speed: float, second_speed: float) -> None:
    """Take the angles of the joints [rad] and their speeds [rad/s]; the position is nan where the links do not meet."""
    s = record[0]
    s.angles[0], s.angles[1] = first, second
    s.position[0], s.position[1] = position(s.linkage, first, second)
    xx, xy, yx, yy = jacobian(s.linkage, first, second)
    s.velocity[0] = xx * first_speed + xy * second_speed
    s.velocity[1] = yx * first_speed + yy * second_speed
    angle = flange_angle(s.linkage, first, second)
    cosine, sine = math.cos(angle), math.sin(angle)
    s.orientation[0, 0] = s.orientation[1, 1] = cosine
    s.orientation[0, 1], s.orientation[1, 0] = -sine, sine


@kernel
def take_force(record: Any, fx: float, fy: float) -> None:
    """Take the force of the hand [N]: ``load`` is what it does to the joints, J^T f."""
    s = record[0]
    s.force[0], s.force[1] = fx, fy
    xx, xy, yx, yy = jacobian(s.linkage, s.angles[0], s.angles[1])
    s.load[0] = xx * fx + yx * fy
    s.load[1] = xy * fx + yy * fy


@kernel
def aim(record: Any, x: float, y: float) -> None:
    """Inverse kinematics: fill ``goal`` with the joint angles for the end effector at (x, y) [m]; nan out of reach."""
    s = record[0]
    s.goal[0], s.goal[1] = inverse(s.linkage, x, y)
