"""Kernels of a servo step for both joints: reference, model, feedback, integrator and limit.

Every kernel is compiled for one `ServoKind`, with only the equations that its law needs.

Speeds are not computed from differences of readings alone. The speed of the *error* is filtered, and the measured speed
is the speed of the reference less the filtered speed of the error. The filter therefore causes no delay for motion that
the reference contains.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from devices.arm.flatness.control_kernels import CONTROL, CONVENTIONAL, NONE, linearise_elastic, track
from devices.arm.flatness.joint_kernels import FLAT
from devices.arm.flatness.law_kernels import SMOOTH
from devices.arm.mechanics.dynamics import LINKS
from devices.arm.servo.chain import CHAIN_FIELDS, STATE_FIELDS
from devices.arm.servo.fractional import weighted_past
from devices.arm.servo.proxy import slide
from devices.arm.servo.reference_kernels import ServoKind, refer_part
from devices.arm.servo.rest import calm, integrate, rest
from devices.arm.servo.settings import FRACTIONAL, MAX_TERMS, SLIDING
from devices.arm.servo.settings import LINEARISING as LINEAR
from haptics.jit import inlined_kernel, kernel
from haptics.parts import address_of_part, call_part, record_at

AT_MOTOR, AT_JOINT, AT_BOTH = range(3)
"""Mounting places of the encoders."""

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
        ("ahead", "<f8"),
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
"""Servo of one joint: law, reference and the resulting motor reference, gains seen at the joint, state."""

SERVO_FIELDS: list[tuple[Any, ...]] = [
    ("step", "<i8"),
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
    ("resumption", "<f8"),
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
"""Servo of both joints; ``step`` is the address of the function that takes a step. Inputs of each step: ``command`` and
the encoder readings ``motor`` (divided by the gear ratio) and ``link`` [rad], the ``hand``'s torque on the joints
[N m]. Outputs: ``torque`` of the motors [N m], ``error`` of the links [rad].
"""

SERVO = np.dtype(SERVO_FIELDS)


@kernel
def servo_start(s: Any, q1: float, q2: float) -> None:
    """Reset the servo with the reference at rest at the angles q1, q2 [rad]."""
    s.started, s.now = 0, 0
    s.command[0], s.command[1] = q1, q2
    for i in range(2):
        a = s.axis[i]
        a.commands[:], a.average, a.rate = s.command[i], s.command[i], 0.0
        a.lag, a.chain[:], a.past[:] = 0.0, 0.0, 0.0
        a.insists, a.offset = 0, 0.0
        a.anchor, a.calm, a.calm_torque = math.inf, 0, 0.0  # the mean begins with the first torque
        a.integral, a.trim, a.link_rate, a.motor_rate, a.ahead = 0.0, 0.0, 0.0, 0.0, 0.0
        s.known[i], s.known_rate[i], s.known_acceleration[i] = 0.0, 0.0, 0.0
        s.torque[i], s.error[i] = 0.0, 0.0


def kind_of(record: Any) -> ServoKind:
    """Return the kind of the servo in `record`, (1,) of dtype `SERVO`; both joints have the same law."""
    feed = int(record["axis"]["control"]["feed"][0, 0])
    return ServoKind(int(record["law"][0]), feed, bool(record["smooth"][0]), bool(record["knows_hand"][0]))


def step_address(record: Any) -> int:
    """Return the address of the function ``(servo, 0.0, 0.0)`` that takes a step of the servo."""
    return address_of_part(_step(kind_of(record)), SERVO)


def refer_address(record: Any) -> int:
    """Return the address of the function that updates only the references of joints and motors."""
    return address_of_part(refer_part(kind_of(record)), SERVO)


@kernel
def refer_motors(servo: int, refer: int, follows: bool, angles: Any, hand: Any, told: Any) -> None:
    """Compute the references of position-controlled motors, seen at the joint, into `told`, (6,) or more.

    Parameters
    ----------
    servo : int
        Address of the record of dtype `SERVO`.
    refer : int
        Address of the function that updates its references (`refer_address`).
    follows : bool
        Whether the torque is the load alone.
    angles, hand : (2,) arrays
        Commanded joint angles [rad], and the hand's torques on the joints [N m].
    told : array
        Angles [rad], speeds [rad/s] and torques [N m].
    """
    s = record_at(servo, SERVO)
    for i in range(2):
        s.command[i], s.hand[i] = angles[i], hand[i]
    call_part(refer, servo, 0.0, 0.0)
    for i in range(2):
        r, u = s.axis[i].wanted, s.axis[i].control.joint.gear_ratio
        told[i], told[2 + i] = r.motor_angle / u, r.motor_velocity / u
        told[4 + i] = r.load if follows else r.motor_torque * u


@inlined_kernel
def servo_step(s: Any) -> None:
    """Compute the motor torques [N m] for one period; `s` has `SERVO_FIELDS`."""
    call_part(s.step, s, 0.0, 0.0)


@kernel
def start_servos(servos: Any, angles: Any) -> None:
    """Start the servo in the (1,) array `servos` at the angles, (2,) [rad]."""
    servo_start(servos[0], angles[0], angles[1])


@inlined_kernel
def _measure(s: Any, a: Any, i: int) -> tuple[Any, Any, Any]:
    """Return the errors [rad] of link, motor and, for the feedback of its speed, motor.

    The twist of the model replaces a missing encoder.
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
    """Update the filtered speeds of the errors [rad/s]."""
    if s.started:
        a.link_rate += s.filter * ((link - a.link_error) / s.period - a.link_rate)
        a.motor_rate += s.filter * ((turning - a.motor_error) / s.period - a.motor_rate)
    a.link_error, a.motor_error = link, turning


@inlined_kernel
def _overlook(s: Any, a: Any, link: Any, turning: Any) -> None:
    """Do nothing: the law computes the speed of the error itself."""


@inlined_kernel
def _fractional(s: Any, a: Any, link: Any, motor: Any) -> Any:
    """Return the motor torque [N m] of the fractional law."""
    r = a.wanted
    if not s.started:
        a.past[:] = motor
    now = weighted_past(s.weights[: s.count], a.past[: s.count], s.now, motor)
    return (a.fractional_gain * now + a.proportional * motor + r.load) / a.control.joint.gear_ratio


@inlined_kernel
def _linearised(s: Any, a: Any, link: Any, motor: Any) -> Any:
    """Return the motor torque [N m] of exact linearisation."""
    c, r, u = a.control, a.wanted, a.control.joint.gear_ratio
    q, omega = r.position - link, r.motor_velocity - u * a.motor_rate
    return linearise_elastic(c, r, q, r.velocity - a.link_rate, r.motor_angle - u * motor, omega)


@inlined_kernel
def _tracked(s: Any, a: Any, link: Any, motor: Any) -> Any:
    """Return the motor torque [N m] of any other law, without integrator.

    With encoders on both sides, the feedback uses the motor: feedback of a link behind a spring would be unstable.
    """
    c, r, u = a.control, a.wanted, a.control.joint.gear_ratio
    wanted = u * r.velocity if c.feedback == CONVENTIONAL else r.motor_velocity
    tau = track(c, r, r.position - motor, wanted - u * a.motor_rate)
    return tau + r.load / u if c.feed == NONE else tau


_LAWS: dict[int, Callable[..., Any]] = {FRACTIONAL: _fractional, LINEAR: _linearised}


@inlined_kernel
def _act_bounded(s: Any, a: Any, link: Any, motor: Any) -> Any:
    """Return the motor torque [N m] of proxy-based sliding mode control, calmed at rest."""
    a.trim += a.trim_share * (link - motor - a.trim)
    resting = rest(s, a, motor + a.trim, motor)
    return calm(s, a, slide(s, a, motor, resting), motor, resting)


@functools.cache
def _acting(kind: int) -> tuple[Callable[..., None], Callable[..., Any]]:
    """Return the functions for the speeds of the errors and for the torque, for a law of this kind."""
    if kind == SLIDING:
        return _overlook, _act_bounded
    law: Callable[..., Any] = _LAWS.get(kind, _tracked)

    @inlined_kernel
    def act(s: Any, a: Any, link: Any, motor: Any) -> Any:
        """Return the motor torque [N m] with integrator and limit, calmed at rest.

        The integrator uses the motor's error with a slow correction towards the link's error, because the link
        oscillates on its spring.
        """
        a.trim += a.trim_share * (link - motor - a.trim)
        error = motor + a.trim
        resting = rest(s, a, error, link if s.law == LINEAR else motor)
        tau = law(s, a, link - a.offset, motor - a.offset)
        return calm(s, a, integrate(s, a, tau, error, resting), motor, resting)

    return _filter, act


@functools.cache
def _step(kind: ServoKind) -> Callable[..., None]:
    """Return the function that takes a step of the servo."""
    refer = refer_part(kind)
    look, act = _acting(kind.law)

    @kernel
    def step(s: Any, _x: float, _y: float) -> None:
        refer(s, 0.0, 0.0)
        for i in range(2):
            a = s.axis[i]
            link, motor, turning = _measure(s, a, i)
            look(s, a, link, turning)
            s.error[i] = link
            s.torque[i] = act(s, a, link, motor)
        s.now = s.now + 1 if s.now + 1 < s.count else 0
        s.started = 1

    return step
