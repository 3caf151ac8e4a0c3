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

from devices.arm.flatness.joint import CONTROL, CONVENTIONAL, FLAT, NONE, linearise_elastic, track
from devices.arm.flatness.laws import SMOOTH
from devices.arm.mechanics.dynamics import LINKS
from devices.arm.servo.fractional import weighted_past
from devices.arm.servo.reference_kernels import CHAIN_FIELDS, STATE_FIELDS, ServoKind, refer_part
from devices.arm.servo.settings import FRACTIONAL, LINEARISING, MAX_TERMS, PID, SLIDING
from haptics.jit import address_of_part, call_part, inlined_kernel, kernel, record_at
from haptics.records import fields

AT_MOTOR, AT_JOINT, AT_BOTH = range(3)
"""Mounting places of the encoders."""

AXIS = np.dtype(
    [
        *STATE_FIELDS,
        ("control", CONTROL),
        ("wanted", FLAT),
        ("friction", SMOOTH),
        *fields("<f8", "integral_gain rest_band yield_band calm_band torque_limit ahead integral link_error"),
        *fields("<f8", "motor_error trim_share trim link_rate motor_rate"),
        ("insists", "<i8"),
        *fields("<f8", "offset anchor"),
        ("calm", "<i8"),
        *fields("<f8", "calm_torque fractional_gain proportional"),
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
    *fields("<i8", "smooth encoders holds_weight knows_hand"),
    ("hand_pole", "<f8"),
    *fields("<f8", "known known_rate known_acceleration", 2),
    *fields("<f8", "filter recovery resumption yielding"),
    *fields("<i8", "patience count"),
    ("weights", "<f8", (MAX_TERMS + 1,)),
    *fields("<i8", "now started"),
    ("axis", AXIS, (2,)),
    *fields("<f8", "command motor link hand torque error", 2),
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
def refer_motors(servo: int, refer: int, angles: Any, hand: Any, references: Any) -> None:
    """Compute the references of position-controlled motors, seen at the joint, into `references`, (6,) or more.

    The torque of `pid` is the load alone.

    Parameters
    ----------
    servo : int
        Address of the record of dtype `SERVO`.
    refer : int
        Address of the function that updates its references (`refer_address`).
    angles, hand : (2,) arrays
        Commanded joint angles [rad], and the hand's torques on the joints [N m].
    references : array
        Angles [rad], speeds [rad/s] and torques [N m].
    """
    s = record_at(servo, SERVO)
    for i in range(2):
        s.command[i], s.hand[i] = angles[i], hand[i]
    call_part(refer, servo, 0.0, 0.0)
    for i in range(2):
        r, u = s.axis[i].wanted, s.axis[i].control.joint.gear_ratio
        references[i], references[2 + i] = r.motor_angle / u, r.motor_velocity / u
        references[4 + i] = r.load if s.law == PID else r.motor_torque * u


@inlined_kernel
def servo_step(s: Any) -> None:
    """Compute the motor torques [N m] for one period; `s` has `SERVO_FIELDS`."""
    call_part(s.step, s, 0.0, 0.0)


@kernel
def start_servos(servos: Any, angles: Any) -> None:
    """Start the servo in the (1,) array `servos` at the angles, (2,) [rad]."""
    servo_start(servos[0], angles[0], angles[1])


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


@inlined_kernel
def slide(s: Any, a: Any, motor: Any, resting: Any) -> Any:
    r"""Return the motor torque [N m] of joint `a` at the error `motor` [rad]: PID with bounded torque.

    A plain PID control with a saturated torque winds up: when a blocked joint is freed, it overshoots its reference.
    Kikuuwe, Yasukouchi, Fujimoto and Yamamoto (T-RO 26(4), 2010) put a massless proxy between reference and joint. The
    PID control holds the joint to the proxy, and a sliding mode control the proxy to the reference. Here :math:`d` is
    the error (reference minus joint), :math:`x` is proxy minus joint, :math:`w = x - d` is proxy minus reference. With
    the bound F and a time constant H the law is the inclusion

    .. math::
        \tau = K x + B \dot x + L \int x\,dt + \tau_L \in F\,\mathrm{Sgn}(-w - H \dot w) \qquad (*)

    where :math:`\tau_L` is the known load. Inside the bound :math:`w + H \dot w = 0`: the proxy converges to the
    reference exponentially and without overshoot, independent of the joint. After convergence :math:`x = d`, which is
    the PID control itself.

    With the implicit Euler method, as in the friction elements of this project (Kikuuwe et al. 2006, (16) to (25)), all
    terms on the right of (*) and the torque are evaluated at the end of the step. With the filtered speed of the PID
    control, :math:`\dot x_k = \dot x_{k-1} + \varphi ((x_k - x_{k-1})/T - \dot x_{k-1})`, the left side is affine in
    :math:`x_k`, with the slope :math:`C = K + \varphi B/T + L T > 0`, and the argument on the right decreases with it,

    .. math::
        -w_k - \frac{H}{T} (w_k - w_{k-1}) = -\frac{T + H}{T} (w_k - \rho w_{k-1}) = \frac{T + H}{T} (x^* - x_k),
        \qquad \rho = \frac{H}{T + H}, \quad x^* = d_k + \rho w_{k-1}.

    With :math:`\tau^*` for the left side at :math:`x^*`, so that :math:`\tau_k - \tau^* = C (x_k - x^*)`, the inclusion
    is :math:`\tau_k \in F\,\mathrm{Sgn}(\tau^* - \tau_k)`. This has exactly one solution, a saturation, like a rigid
    body with dry friction in model A:

    .. math::
        \tau_k = \mathrm{sat}_F(\tau^*), \qquad x_k = x^* + (\tau_k - \tau^*)/C .

    No speed of the reference or of the joint is differentiated: :math:`w_k = \rho w_{k-1}` inside the bound. The
    integrator sums :math:`x_k`, which is consistent with the bounded torque: it cannot wind up.

    Sampling of set-valued controls without chatter is the subject of Brogliato and Polyakov (Int. J. Robust Nonlinear
    Control 31(9), 2021). Torque-bounded admittance control (Kikuuwe, T-RO 35(5), 2019) also feeds the bound back to the
    virtual mass; here the safety envelope holds the reference (`haptics.rendering.envelope`).

    The integrator is held if `resting`.

    All quantities are seen at the joint. The integrator uses the trim towards the link, the proportional part the
    offset from yielding at rest.
    """
    c, u, T = a.control, a.control.joint.gear_ratio, s.period
    B = c.velocity_gain * u * u
    K, L, F = c.position_gain * B, 0.0 if resting else a.integral_gain, abs(u) * a.torque_limit
    share = s.filter if s.started else 0.0
    x = motor + s.resumption * a.ahead
    rate = a.motor_rate + share * ((x - a.motor_error) / T - a.motor_rate)
    integral = a.integral + T * L * (x + a.trim)
    tau = K * (x - a.offset) + B * rate + integral + a.wanted.load
    bounded = min(max(tau, -F), F)
    cut = (bounded - tau) / (K + share * B / T + T * L)
    a.motor_error, a.motor_rate = x + cut, rate + share * cut / T
    a.integral, a.ahead = integral + T * L * cut, x + cut - motor
    return bounded / u


@inlined_kernel
def rest(s: Any, a: Any, error: Any, seen: Any) -> Any:
    """Return True if the integrator of joint `a` is held, and yield while the reference rests.

    Yielding means to accept the error `seen` by the feedback slowly: the motor stops pushing against the friction that
    stopped the joint, so that all of this friction can hold the joint against the hand. A joint that is moved further
    than friction can explain does not yield again until the reference moves.
    """
    if a.wanted.velocity != 0.0 or a.wanted.acceleration != 0.0:
        a.insists = 0
        a.offset -= s.recovery * a.offset
        return False
    if abs(error) > a.yield_band:
        a.insists = 1
    if a.insists:
        a.offset -= s.recovery * a.offset
        return abs(error) <= a.rest_band
    a.offset += s.yielding * (seen - a.offset)
    a.integral -= s.yielding * a.integral
    return True


@inlined_kernel
def integrate(s: Any, a: Any, tau: Any, error: Any, resting: Any) -> Any:
    """Add the integrator to the torque [N m] and limit both (anti-windup).

    At rest the integrator is held: it would only wind up until the joint breaks away, and then again in the other
    direction. Nor does it grow at the limit.
    """
    u = a.control.joint.gear_ratio
    step = 0.0 if resting else s.period * a.integral_gain * error
    total = tau + (a.integral + step) / u
    clamped = min(max(total, -a.torque_limit), a.torque_limit)
    if total == clamped or (total - clamped) * step * u < 0.0:
        a.integral += step
    return clamped


@inlined_kernel
def calm(s: Any, a: Any, tau: Any, motor: Any, resting: Any) -> Any:
    """Return the torque [N m], or its mean if a joint at rest only moves between encoder steps.

    The torque that the gearbox needs may lie between the torques of two encoder steps. The rotor, which nothing else
    holds, would then oscillate between the two steps permanently.
    """
    if not resting or s.knows_hand or abs(motor - a.anchor) > a.calm_band:
        a.anchor, a.calm, a.calm_torque = motor, 0, tau
    elif a.calm < s.patience:
        a.calm += 1
        a.calm_torque += (tau - a.calm_torque) / (a.calm + 1)
    else:
        return a.calm_torque
    return tau


@functools.cache
def _action(kind: int) -> Callable[..., Any]:
    """Return the kernel ``(s, a, link, motor, turning)`` of the motor torque [N m], for a law of this kind.

    The integrator uses the motor's error with a slow correction towards the link's error, because the link oscillates
    on its spring. The torque is limited, and calmed at rest.
    """
    law: Callable[..., Any] = {FRACTIONAL: _fractional, LINEARISING: _linearised}.get(kind, _tracked)

    @inlined_kernel
    def slide_bounded(s: Any, a: Any, link: Any, motor: Any, turning: Any) -> Any:
        a.trim += a.trim_share * (link - motor - a.trim)
        resting = rest(s, a, motor + a.trim, motor)
        return calm(s, a, slide(s, a, motor, resting), motor, resting)

    @inlined_kernel
    def act(s: Any, a: Any, link: Any, motor: Any, turning: Any) -> Any:
        if s.started:
            a.link_rate += s.filter * ((link - a.link_error) / s.period - a.link_rate)
            a.motor_rate += s.filter * ((turning - a.motor_error) / s.period - a.motor_rate)
        a.link_error, a.motor_error = link, turning
        a.trim += a.trim_share * (link - motor - a.trim)
        error = motor + a.trim
        resting = rest(s, a, error, link if s.law == LINEARISING else motor)
        tau = law(s, a, link - a.offset, motor - a.offset)
        return calm(s, a, integrate(s, a, tau, error, resting), motor, resting)

    return slide_bounded if kind == SLIDING else act


@functools.cache
def _step(kind: ServoKind) -> Callable[..., None]:
    """Return the function that takes a step of the servo.

    The twist of the model replaces a missing encoder.
    """
    refer, act = refer_part(kind), _action(kind.law)

    @kernel
    def step(s: Any, _x: float, _y: float) -> None:
        refer(s, 0.0, 0.0)
        for i in range(2):
            a = s.axis[i]
            c, r = a.control, a.wanted
            twist = r.motor_angle / c.joint.gear_ratio - r.position
            if s.encoders == AT_JOINT:
                link = r.position - s.link[i]
                motor = link
            else:
                motor = r.position + twist - s.motor[i]
                link = motor if s.encoders == AT_MOTOR else r.position - s.link[i]
            s.error[i] = link
            s.torque[i] = act(s, a, link, motor, motor - twist if c.feedback == CONVENTIONAL else motor)
        s.now = s.now + 1 if s.now + 1 < s.count else 0
        s.started = 1

    return step
