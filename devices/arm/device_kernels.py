"""A tick of the arm, as the parts of its port: forward kinematics, the hand's force, inverse kinematics, references.

The record knows by their places what belongs to others: the motors, the force sensor, the references of the motors.
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
from devices.common.driver_kernels import DRIVER_FIELDS, LOST, NOT_FINITE, note_command, note_time
from haptics.device import Channel
from haptics.jit import kernel, merged_kernel
from haptics.parts import float_at, record_at

SENSOR_LOST, SENSOR_SILENT, TOO_FAR = 3, 4, 5
"""What ``fault`` says besides: the sensor has failed; it has sent no usable force for too long; the motors cannot be
told the command."""

CHANNELS: tuple[Channel, ...] = (
    ("joint_angles", "rad", 2),
    ("raw_wrench", "N, N m", 6),
    ("sensor_gravity", "m/s^2", 3),
)
"""What it shows beside its handle: its joints, what the force sensor shows in its own axes (nan where that is not
usable), and gravity in those axes."""

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
"""The arm as its driver sees it. At ``motors``, ``sensor`` and ``servo`` lie their records, ``refer`` is the address of
the part that brings the references up to date; where ``follows`` is not 0 their torque is that of the load alone.
``orientation`` is the flange's, ``goal`` the joint angles of the latest command [rad], and ``load`` what the hand does
to the joints [N m]."""


def fill_linkage(record: NDArray[Any], linkage: PlacedLinkage) -> None:
    """Put the arm at its zero into `record`, (1,) of dtype `ARM`."""
    linkage.fill(record["linkage"])
    record["orientation"] = np.eye(3)


# --- the sample -------------------------------------------------------------------------------------------------------


@merged_kernel
def take_joints(s: Any, m: Any) -> None:
    """Take angles and speeds of the joints from the motors; the position is nan where the links do not meet."""
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
    """Take the force of the hand from the sensor: ``load`` is what it does to the joints, J^T f."""
    fx, fy = q.wrench[0], q.wrench[1]
    s.force[0], s.force[1] = fx, fy
    xx, xy, yx, yy = jacobian(s.linkage, m.angles[0], m.angles[1])
    s.load[0] = xx * fx + yx * fy
    s.load[1] = xy * fx + yy * fy


@merged_kernel
def fill_channels(s: Any, m: Any, q: Any) -> None:
    """Fill in the channels."""
    for i in range(2):
        s.channels[i] = m.angles[i]
    for i in range(6):
        s.channels[2 + i] = q.raw[i]
    for i in range(3):
        s.channels[8 + i] = q.gravity[i]


@kernel
def take_arm(s: Any, now: float, elapsed: float) -> None:
    """Take the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s].

    It is as old as the older of its two parts.
    """
    note_time(s, now, elapsed)
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
    """Fill in position, velocity and orientation from where the motors were found last; `records` is (1,)."""
    s = records[0]
    take_joints(s, record_at(s.motors, MOTORS))


# --- the command ------------------------------------------------------------------------------------------------------


@kernel
def give_arm(s: Any, x: float, y: float) -> None:
    """Have the motors go to the position reference (x, y) [m]; it must be within reach."""
    s.goal[0], s.goal[1] = inverse(s.linkage, x, y)
    if not math.fabs(s.goal[0]) + math.fabs(s.goal[1]) < math.inf:
        s.fault = NOT_FINITE
        return
    m = record_at(s.motors, MOTORS)
    refer_motors(s.servo, s.refer, s.follows != 0, s.goal, s.load, m.told)
    if not give_motors(m, s.instant):
        s.fault = TOO_FAR
        return
    note_command(s, x, y)
    if float_at(m.lost) != 0.0:
        s.fault = LOST
