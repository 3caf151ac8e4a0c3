"""A step of the servo of both joints as a kernel: reference, model, feedback, integrator and limit.

Speeds are never differences of readings alone: the speed of the *error* is filtered, and what a law takes for a
measured speed is the reference's, less that. The filter then delays nothing that the reference foresees.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devices.arm.dynamics import LINKS, centrifugal, gravity, inertia
from devices.arm.flatness.control_kernels import CONTROL, CONVENTIONAL, LINEARISING, NONE, prepare, servo_torque
from devices.arm.flatness.joint_kernels import FLAT
from devices.arm.flatness.law_kernels import SMOOTH, smooth_friction
from devices.arm.fractional import weighted_past
from devices.arm.servo.chain import CHAIN_FIELDS, STATE_FIELDS, follow
from devices.arm.servo.rest import calm, integrate, rest
from devices.arm.servo.settings import FRACTIONAL, MAX_TERMS
from devices.arm.servo.settings import LINEARISING as LINEAR
from haptics._jit import inlined_kernel, kernel

AT_MOTOR, AT_JOINT, AT_BOTH = range(3)
"""Where the encoders are."""

AXIS = np.dtype(
    [
        *STATE_FIELDS,
        ("control", CONTROL),
        ("wanted", FLAT),
        ("friction", SMOOTH),
        ("integral_gain", "<f8"),
        ("rest_band", "<f8"),
        ("yield_band", "<f8"),
        ("calm_band", "<f8"),
        ("torque_limit", "<f8"),
        ("integral", "<f8"),
        ("link_error", "<f8"),
        ("motor_error", "<f8"),
        ("trim_share", "<f8"),
        ("trim", "<f8"),
        ("link_rate", "<f8"),
        ("motor_rate", "<f8"),
        ("insists", "<i8"),
        ("offset", "<f8"),
        ("anchor", "<f8"),
        ("calm", "<i8"),
        ("calm_torque", "<f8"),
        ("fractional_gain", "<f8"),
        ("proportional", "<f8"),
        ("past", "<f8", (MAX_TERMS + 1,)),
    ]
)
"""The servo of one joint: law, reference and what the motor is to do for it, gains seen at the joint, memory."""

SERVO_FIELDS: list[tuple[Any, ...]] = [
    ("links", LINKS),
    *CHAIN_FIELDS,
    ("law", "<i8"),
    ("period", "<f8"),
    ("smooth", "<i8"),
    ("encoders", "<i8"),
    ("holds_weight", "<i8"),
    ("knows_hand", "<i8"),
    ("hand_pole", "<f8"),
    ("known", "<f8", (2,)),
    ("known_rate", "<f8", (2,)),
    ("known_acceleration", "<f8", (2,)),
    ("filter", "<f8"),
    ("recovery", "<f8"),
    ("yielding", "<f8"),
    ("patience", "<i8"),
    ("count", "<i8"),
    ("weights", "<f8", (MAX_TERMS + 1,)),
    ("now", "<i8"),
    ("started", "<i8"),
    ("axis", AXIS, (2,)),
    ("command", "<f8", (2,)),
    ("motor", "<f8", (2,)),
    ("link", "<f8", (2,)),
    ("hand", "<f8", (2,)),
    ("torque", "<f8", (2,)),
    ("error", "<f8", (2,)),
]
"""The servo of both joints. Handed in at each step: ``command`` and the encoders' ``motor`` (over the gear ratio) and
``link`` [rad], the ``hand``'s torque on the joints [N m]; handed out: ``torque`` of the motors [N m], ``error`` [rad]
of the links."""

SERVO = np.dtype(SERVO_FIELDS)


@kernel
def servo_start(s: Any, q1: float, q2: float) -> None:
    """Forget the past: the reference rests at the angles q1, q2 [rad]."""
    s.started, s.now = 0, 0
    s.command[0], s.command[1] = q1, q2
    for i in range(2):
        a = s.axis[i]
        a.commands[:], a.average, a.rate = s.command[i], s.command[i], 0.0
        a.lag, a.chain[:], a.past[:] = 0.0, 0.0, 0.0
        a.insists, a.offset = 0, 0.0
        a.anchor, a.calm, a.calm_torque = math.inf, 0, 0.0  # the mean begins with the first torque
        a.integral, a.trim, a.link_rate, a.motor_rate = 0.0, 0.0, 0.0, 0.0
        s.known[i], s.known_rate[i], s.known_acceleration[i] = 0.0, 0.0, 0.0
        s.torque[i], s.error[i] = 0.0, 0.0


@inlined_kernel
def _refer(s: Any, a: Any, command: Any) -> None:
    """Bring the reference of joint `a` to the present: smooth, or the command itself and its speed."""
    r = a.wanted
    if s.smooth:
        follow(s, a, r, command, s.period)
        return
    r.position, r.velocity = command, (command - a.average) / s.period
    a.average = command


@inlined_kernel
def _know_hand(s: Any) -> None:
    """Advance what is known of the hand's torques [N m] and their derivatives: two poles, implicitly, always stable."""
    T, b = s.period, s.hand_pole
    for i in range(2):
        before = s.known_rate[i]
        s.known_rate[i] = (before + T * b * b * (s.hand[i] - s.known[i])) / (1.0 + T * b * (2.0 + T * b))
        s.known_acceleration[i] = (s.known_rate[i] - before) / T
        s.known[i] += T * s.known_rate[i]


@inlined_kernel
def _load(s: Any) -> None:
    """Fill in inertia and load of both links at the reference: what the model knows of weight, coupling and hand.

    The load changes with the other joint's acceleration; its derivatives hold all else for constant, as the paper does.
    """
    r, o = s.axis[0].wanted, s.axis[1].wanted
    g1, g2 = gravity(s.links, r.position, o.position)
    if s.knows_hand:
        _know_hand(s)
    h1, h2 = s.known[0], s.known[1]
    if s.axis[0].control.feed == NONE:
        w = 1.0 if s.holds_weight else 0.0
        r.load, o.load = w * g1 - h1, w * g2 - h2
        return
    h11, h12, h22 = inertia(s.links, r.position, o.position)
    c1, c2 = centrifugal(s.links, r.position, o.position, r.velocity, o.velocity)
    r.inertia, o.inertia = h11, h22
    r.load, o.load = h12 * o.acceleration + c1 + g1 - h1, h12 * r.acceleration + c2 + g2 - h2
    r.load_rate, o.load_rate = h12 * o.jerk - s.known_rate[0], h12 * r.jerk - s.known_rate[1]
    r.load_acceleration = h12 * o.snap - s.known_acceleration[0]
    o.load_acceleration = h12 * r.snap - s.known_acceleration[1]


@inlined_kernel
def _rub(friction: Any, r: Any) -> None:
    """Add to the load of row `r` the friction at the reference's speed.

    Exact linearisation takes it so: friction at the measured speed, as in (14) and (15), would make of a friction that
    is steep at rest a feedback that no sampled servo can bear, F'/M [1/s] against the sampling rate.
    """
    F, F1, F2 = smooth_friction(friction, r.velocity)
    r.load += F
    r.load_rate += F1 * r.acceleration
    r.load_acceleration += F2 * r.acceleration * r.acceleration + F1 * r.jerk


@kernel
def refer(s: Any) -> None:
    """Bring the reference of both joints to the present and fill in what their motors have to do for it."""
    for i in range(2):
        _refer(s, s.axis[i], s.command[i])
    _load(s)
    for i in range(2):
        if s.law == LINEAR:
            _rub(s.axis[i].friction, s.axis[i].wanted)
        prepare(s.axis[i].control, s.axis[i].wanted)


@inlined_kernel
def _measure(s: Any, a: Any, i: int) -> tuple[Any, Any, Any]:
    """Return how far link, motor and, in the eyes of the feedback of its speed, motor are behind the reference [rad].

    The model's twist stands for a missing encoder.
    """
    c, r = a.control, a.wanted
    twist = r.motor_angle / c.joint.gear_ratio - r.position
    if s.encoders == AT_JOINT:
        link = r.position - s.link[i]
        motor = link
    else:
        motor = r.position + twist - s.motor[i]
        link = motor if s.encoders == AT_MOTOR else r.position - s.link[i]
    return link, motor, motor - twist if c.feedback == CONVENTIONAL else motor


@inlined_kernel
def _filter(s: Any, a: Any, link: Any, turning: Any) -> None:
    """Advance the filtered speeds of the errors [rad/s]."""
    if s.started:
        a.link_rate += s.filter * ((link - a.link_error) / s.period - a.link_rate)
        a.motor_rate += s.filter * ((turning - a.motor_error) / s.period - a.motor_rate)
    a.link_error, a.motor_error = link, turning


@inlined_kernel
def _law(s: Any, a: Any, link: Any, motor: Any) -> Any:
    """Return the motor torque [N m] that the law asks for, without integrator.

    Where there are encoders on both sides, feedback is of the motor: round a link behind a spring it would be unstable.
    """
    c, r, u = a.control, a.wanted, a.control.joint.gear_ratio
    if s.law == FRACTIONAL:
        if not s.started:
            a.past[:] = motor
        now = weighted_past(s.weights[: s.count], a.past[: s.count], s.now, motor)
        return (a.fractional_gain * now + a.proportional * motor + r.load) / u
    wanted = u * r.velocity if c.feedback == CONVENTIONAL else r.motor_velocity
    q = r.position - (link if c.feedback == LINEARISING else motor)
    omega = wanted - u * a.motor_rate
    tau = servo_torque(c, r, q, r.velocity - a.link_rate, r.motor_angle - u * motor, omega)
    return tau + r.load / u if c.feed == NONE else tau


@inlined_kernel
def _act(s: Any, a: Any, link: Any, motor: Any) -> Any:
    """Return the motor torque [N m] with integrator and limit, and calmed at rest.

    The integrator has the motor's error, trimmed slowly to the link's: the link swings on its spring.
    """
    a.trim += a.trim_share * (link - motor - a.trim)
    error = motor + a.trim
    resting = rest(s, a, error, link if s.law == LINEAR else motor)
    tau = _law(s, a, link - a.offset, motor - a.offset)
    return calm(s, a, integrate(s, a, tau, error, resting), motor, resting)


@kernel
def servo_step(s: Any) -> None:
    """Fill in the motor torques [N m] for one period, from the inputs in record `s`, which has `SERVO_FIELDS`."""
    refer(s)
    for i in range(2):
        a = s.axis[i]
        link, motor, turning = _measure(s, a, i)
        _filter(s, a, link, turning)
        s.error[i] = link
        s.torque[i] = _act(s, a, link, motor)
    s.now = s.now + 1 if s.now + 1 < s.count else 0
    s.started = 1


@kernel
def start_servos(servos: Any, angles: Any) -> None:
    """Start the servo in the (1,) array `servos` at the angles, (2,) [rad]."""
    servo_start(servos[0], angles[0], angles[1])


@kernel
def refer_servos(servos: Any, commands: Any, hand: Any) -> None:
    """Bring the references in `servos`, (1,), to `commands`, (2,) [rad], under the torques `hand`, (2,) [N m]."""
    s = servos[0]
    for i in range(2):
        s.command[i], s.hand[i] = commands[i], hand[i]
    refer(s)
