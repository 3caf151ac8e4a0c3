"""Kernels for a tick of the arm: forward kinematics, hand force, inverse kinematics, motor references.

The arm's record stores the memory addresses of the records of the motors, the force sensor and the motor references.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.mechanics.linkage_kernels import LINKAGE, flange_angle, inverse, jacobian, position
from devices.arm.motors.motor_kernels import MOTORS, give_motors, take_motors
from devices.arm.sensors.sensor_kernels import SENSOR, take_reading
from devices.arm.servo.kernels import refer_motors
from devices.common.driver_kernels import DRIVER_FIELDS, LOST, NOT_FINITE, record_command, record_time
from haptics.device import Channel
from haptics.jit import kernel, merged_kernel
from haptics.parts import float_at, record_at

SENSOR_LOST, SENSOR_SILENT, TOO_FAR = 3, 4, 5
"""Further values of ``fault``: the sensor has failed; the sensor has sent no usable force for too long; the motors
cannot execute the command.
"""

CHANNELS: tuple[Channel, ...] = (
    ("joint_angles", "rad", 2),
    ("raw_wrench", "N, N m", 6),
    ("sensor_gravity", "m/s^2", 3),
)
"""Channels in addition to the sample: joint angles, wrench in the axes of the sensor (nan if unusable), and gravity in
the axes of the sensor.
"""

ARM = np.dtype(
    [
        *DRIVER_FIELDS,
        ("motors", "<i8"),
        ("sensor", "<i8"),
        ("servo", "<i8"),
        ("refer", "<i8"),
        ("follows", "<i8"),
        ("linkage", LINKAGE),
        ("orientation", "<f8", (3, 3)),
        ("goal", "<f8", (2,)),
        ("load", "<f8", (2,)),
    ]
)
"""Record of the arm's driver. ``motors``, ``sensor`` and ``servo`` are the addresses of their records, and ``refer`` is
the address of the function that updates the references. Where ``follows`` is not 0, the torque of the references is
the load alone. ``orientation`` is the orientation of the flange, ``goal`` the joint angles of the latest command
[rad], and ``load`` the joint torques caused by the hand [N m].
"""


def fill_linkage(record: NDArray[Any], linkage: PlacedLinkage) -> None:
    """Initialize `record`, (1,) of dtype `ARM`, with the arm at its zero position."""
    linkage.fill(record["linkage"])
    record["orientation"] = np.eye(3)


# --- sample -----------------------------------------------------------------------------------------------------------


@merged_kernel
def take_joints(s: Any, m: Any) -> None:
    """Copy joint angles and speeds from the motors and compute the pose; nan where the links do not meet."""
    first, second = m.angles[0], m.angles[1]
    s.position[0], s.position[1] = position(s.linkage, first, second)
    xx, xy, yx, yy = jacobian(s.linkage, first, second)
    s.velocity[0] = xx * m.speeds[0] + xy * m.speeds[1]
    s.velocity[1] = yx * m.speeds[0] + yy * m.speeds[1]
    angle = flange_angle(s.linkage, first, second)
    cosine, sine = math.cos(angle), math.sin(angle)
    s.orientation[0, 0] = s.orientation[1, 1] = cosine
    s.orientation[0, 1], s.orientation[1, 0] = -sine, sine


@merged_kernel
def take_force(s: Any, m: Any, q: Any) -> None:
    """Copy the hand's force from the sensor and set ``load`` to its joint torques, J^T f."""
    fx, fy = q.wrench[0], q.wrench[1]
    s.force[0], s.force[1] = fx, fy
    xx, xy, yx, yy = jacobian(s.linkage, m.angles[0], m.angles[1])
    s.load[0] = xx * fx + yx * fy
    s.load[1] = xy * fx + yy * fy


@merged_kernel
def fill_channels(s: Any, m: Any, q: Any) -> None:
    """Copy joint angles, raw wrench and gravity to the channels."""
    for i in range(2):
        s.channels[i] = m.angles[i]
    for i in range(6):
        s.channels[2 + i] = q.raw[i]
    for i in range(3):
        s.channels[8 + i] = q.gravity[i]


@kernel
def take_arm(s: Any, now: float, elapsed: float) -> None:
    """Take the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s].

    The time of the sample is the time of the older of its two parts.
    """
    record_time(s, now, elapsed)
    m, q = record_at(s.motors, MOTORS), record_at(s.sensor, SENSOR)
    if float_at(m.lost) != 0.0:
        s.fault = LOST
    elif float_at(q.lost) != 0.0:
        s.fault = SENSOR_LOST
    if s.fault != 0:
        return
    take_motors(m)
    take_joints(s, m)
    if not take_reading(q, s.instant, s.orientation):
        s.fault = SENSOR_SILENT
        return
    take_force(s, m, q)
    fill_channels(s, m, q)
    s.time = min(m.sampled, q.usable) - s.origin


@kernel
def take_pose(records: Any) -> None:
    """Update position, velocity and orientation from the latest motor angles; `records` is (1,)."""
    s = records[0]
    take_joints(s, record_at(s.motors, MOTORS))


# --- command ----------------------------------------------------------------------------------------------------------


@kernel
def give_arm(s: Any, x: float, y: float) -> None:
    """Command the motors to the position reference (x, y) [m]; set a fault if it is out of reach."""
    s.goal[0], s.goal[1] = inverse(s.linkage, x, y)
    if not math.fabs(s.goal[0]) + math.fabs(s.goal[1]) < math.inf:
        s.fault = NOT_FINITE
        return
    m = record_at(s.motors, MOTORS)
    refer_motors(s.servo, s.refer, s.follows != 0, s.goal, s.load, m.told)
    if not give_motors(m, s.instant):
        s.fault = TOO_FAR
        return
    record_command(s, x, y)
    if float_at(m.lost) != 0.0:
        s.fault = LOST
