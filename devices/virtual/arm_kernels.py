"""Kernels of the simulated arm: the hand on its handle, its servo, its encoders and its force sensor.

The hand pulls at the handle. Links, gears and rotors move under this force and under the motors
(`devices.arm.mechanics.plant`). The servo receives encoder angles, and the force is measured by a sensor that rotates
with the outer link.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.arm.mechanics.drive import DRIVE
from devices.arm.mechanics.linkage import (
    flange_angle,
    inverse,
    jacobian,
    position,
)
from devices.arm.mechanics.plant import PLANT, step_plant
from devices.arm.servo.kernels import SERVO, servo_start, servo_step
from devices.common.driver_kernels import quantise
from devices.virtual.plant import PLANT_FIELDS, accept, estimate_velocity, pull_handle, taking
from devices.virtual.wrench import WRENCH, gravity_seen, hand_force, measure_wrench, true_wrench
from haptics.device import Channel
from haptics.jit import kernel, merged_kernel
from haptics.records import Rows

CLAMP_STIFFNESS, CLAMP_DAMPING = 1e6, 1e3
"""Stiffness [N/m] and damping [N s/m] of the clamp that blocks the arm; it yields 1 mm under 1000 N."""

BODY_FIELDS: list[tuple[Any, ...]] = [
    *PLANT_FIELDS,
    ("arm", PLANT),
    ("drives", DRIVE, (2,)),
    ("motor_torque", "<f8", (2,)),
    ("scratch", "<f8", (4,)),
    ("clamp_first", "<i8"),
    ("clamp_end", "<i8"),
    ("clamp", "<f8", (2,)),
    ("clamp_force", "<f8", (2,)),
]
"""Fields of an arm held by a hand: `PLANT_FIELDS`, and the state of the arm in ``arm``.

``motor_torque`` is at the shafts [N m]. From substep ``clamp_first`` to ``clamp_end`` a clamp holds the last link at
its position at that time, ``clamp`` [m], with ``clamp_force`` [N].
"""

BODY = np.dtype(BODY_FIELDS)

CHANNELS: tuple[Channel, ...] = (
    ("joint_angles", "rad", 2),
    ("motor_torques", "N m", 2),
    ("raw_wrench", "N, N m", 6),
    ("sensor_gravity", "m/s^2", 3),
)
"""Additional channels of the arm.

They are the joint angles of the encoders, the motor torques at the shafts, the output of the force sensor in its own
axes including bias and weight (three forces, three torques), and gravity in these axes.
"""

ARM = np.dtype(
    [
        *BODY_FIELDS,
        ("servo", SERVO),
        ("servo_steps", "<i8"),
        ("sensor", WRENCH),
        ("rotor_step", "<f8"),
        ("joint_step", "<f8"),
        ("shows_joint", "<i8"),
        ("measured", "<f8", (2,)),
        ("angle_command", "<f8", (2,)),
        ("last_velocity", "<f8", (2,)),
        ("workspace_min", "<f8", (2,)),
        ("workspace_max", "<f8", (2,)),
    ]
)
"""Record of the virtual arm.

Encoder steps refer to the joint [rad]. ``shows_joint`` selects the encoder for ``measured`` and for the position of the
sample. ``acting`` is the command limited to the workspace [m], and ``angle_command`` the last one in joint angles.
``channels`` begins with `CHANNELS`, one after the other.
"""


@kernel
def place_handle(s: Any) -> None:
    """Set position and velocity of the handle from the links."""
    q1, q2, w1, w2 = s.arm.angle[0], s.arm.angle[1], s.arm.speed[0], s.arm.speed[1]
    s.handle[0], s.handle[1] = position(s.arm.links.linkage, q1, q2)
    xx, xy, yx, yy = jacobian(s.arm.links.linkage, q1, q2)
    s.handle_velocity[0], s.handle_velocity[1] = xx * w1 + xy * w2, yx * w1 + yy * w2


@kernel
def _hold_link(s: Any) -> None:
    """Block the last link with a stiff spring and a damper, between the arm and the force sensor."""
    blocked = s.clamp_first <= s.steps < s.clamp_end
    if s.steps == s.clamp_first:
        s.clamp[0], s.clamp[1] = s.handle[0], s.handle[1]
    for i in range(2):
        force = CLAMP_STIFFNESS * (s.clamp[i] - s.handle[i]) - CLAMP_DAMPING * s.handle_velocity[i]
        s.clamp_force[i] = force if blocked else 0.0


@merged_kernel
def move_body(s: Any, part: float, rate: float) -> None:
    """Advance an arm with `BODY_FIELDS` by one substep under ``s.motor_torque``.

    `part` (0 to 1) is the elapsed fraction of the interval for which the intentions of the hand are known, and `rate`
    its inverse length.
    """
    pull_handle(s, part, rate)
    _hold_link(s)
    for i in range(2):
        s.arm.hand_force[i] = s.hand_force[i] + s.clamp_force[i]
    step_plant(s.arm, s.drives, s.motor_torque, s.scratch)
    place_handle(s)
    s.steps += 1


@kernel
def _read_encoders(s: Any) -> None:
    """Read the encoders."""
    for i in range(2):
        s.servo.motor[i] = quantise(s.arm.rotor[i], s.rotor_step)
        s.servo.link[i] = quantise(s.arm.angle[i], s.joint_step)
        s.measured[i] = s.servo.link[i] if s.shows_joint else s.servo.motor[i]


@merged_kernel
def _control(s: Any, part: float, way_1: float, way_2: float) -> None:
    """Compute the servo torques; `part` is the completed fraction of the path to the new command."""
    _read_encoders(s)
    s.servo.command[0], s.servo.command[1] = s.angle_command[0] + part * way_1, s.angle_command[1] + part * way_2
    servo_step(s.servo)
    s.motor_torque[0], s.motor_torque[1] = s.servo.torque[0], s.servo.torque[1]


@merged_kernel
def _sense(s: Any, period: float) -> None:
    """Measure the sample: position and velocity from the encoders, the force of the hand from the sensor."""
    _read_encoders(s)
    q1, q2 = s.measured[0], s.measured[1]
    s.position[0], s.position[1] = position(s.arm.links.linkage, q1, q2)
    estimate_velocity(s)
    rate = 1.0 / period if period > 0.0 else 0.0
    ax = rate * (s.handle_velocity[0] - s.last_velocity[0])
    ay = rate * (s.handle_velocity[1] - s.last_velocity[1])
    s.last_velocity[0], s.last_velocity[1] = s.handle_velocity[0], s.handle_velocity[1]
    true_wrench(
        s.sensor,
        flange_angle(s.arm.links.linkage, s.arm.angle[0], s.arm.angle[1]),
        s.hand_force[0],
        s.hand_force[1],
        ax,
        ay,
    )
    measure_wrench(s.sensor, period)
    s.force[0], s.force[1] = hand_force(s.sensor, flange_angle(s.arm.links.linkage, q1, q2))
    for i in range(2):
        s.channels[i], s.channels[2 + i] = s.measured[i], s.motor_torque[i]
    for i in range(6):
        s.channels[4 + i] = s.sensor.shown[i]
    s.channels[10], s.channels[11], s.channels[12] = gravity_seen(s.sensor, flange_angle(s.arm.links.linkage, q1, q2))
    xx, xy, yx, yy = jacobian(s.arm.links.linkage, q1, q2)
    s.servo.hand[0] = xx * s.force[0] + yx * s.force[1]
    s.servo.hand[1] = xy * s.force[0] + yy * s.force[1]


@kernel
def _act(s: Any, x: float, y: float) -> None:
    """Set the command to (x, y) [m], limited to the workspace."""
    s.acting[0] = min(max(x, s.workspace_min[0]), s.workspace_max[0])
    s.acting[1] = min(max(y, s.workspace_min[1]), s.workspace_max[1])


@kernel
def begin_arm(record: Rows) -> None:
    """Initialise handle, servo reference and command at the position of the arm."""
    s = record[0]
    place_handle(s)
    _read_encoders(s)
    x, y = position(s.arm.links.linkage, s.measured[0], s.measured[1])
    _act(s, x, y)
    s.angle_command[0], s.angle_command[1] = s.measured[0], s.measured[1]
    servo_start(s.servo, s.measured[0], s.measured[1])


@merged_kernel
def _advance(s: Any, steps: int) -> None:
    """Integrate up to substep number `steps`, with the hand sampled at that time, and measure the sample.

    The reference of the servo moves linearly from one command to the next, in joint angles.
    """
    q1, q2 = inverse(s.arm.links.linkage, s.acting[0], s.acting[1])
    way_1, way_2 = q1 - s.angle_command[0], q2 - s.angle_command[1]
    count = steps - s.steps
    rate = 1.0 / (max(count, 1) * s.substep)
    for k in range(count):
        if s.steps % s.servo_steps == 0:
            _control(s, k / count, way_1, way_2)
        move_body(s, k / count, rate)
    pull_handle(s, 1.0, rate)
    s.angle_command[0], s.angle_command[1] = q1, q2
    _sense(s, count * s.substep)


take_arm = taking(_advance)


@kernel
def give_arm(s: Any, x: float, y: float) -> None:
    """Process a position reference [m]."""
    if accept(s, x, y):
        _act(s, x, y)
