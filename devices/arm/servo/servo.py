"""Servo of both joints: gains from a bandwidth, stability of the sampled joint, and kernel records.

The records are for servos that compute torques, and for drives that control their motors themselves.

A joint is modelled as two masses, link and rotor with the gearbox between them, sampled with a zero-order hold, and
with the filters and states of the servo. This loop is linear, and stable if no eigenvalue of a period has a magnitude
above 1. The damping ratio of a gearbox is assumed to be 2 %. A gearbox so stiff that its resonance exceeds the sampling
frequency counts as rigid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.flatness.joint import ElasticJoint, FeedForwardServo, LinearisingServo, ServoLaw
from devices.arm.flatness.laws import SmoothCoulomb
from devices.arm.mechanics.dynamics import Links
from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.servo import kernels
from devices.arm.servo.fractional import weights
from devices.arm.servo.kernels import fill_chain
from devices.arm.servo.settings import FLATNESS, FRACTIONAL, LINEARISING, RIGID, SLIDING, ServoSettings
from haptics.errors import ConfigurationError

# --- gains and stability ----------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

Feedback = Callable[[Array, Array, Array, Array], tuple[Array, Array]]

MEMORY = 6
"""State of the feedback: errors of link and motor, their filtered rates, integrator and its trim."""

_LOSS = 0.02  # damping ratio of a gearbox

_MARGIN = 1e-9  # tolerance for rounding of an eigenvalue

LOADED = 1e3
"""Torque beyond any play [N m]."""

_BANDWIDTHS = tuple(np.geomspace(0.5, 500.0, 100).tolist())  # bandwidths [Hz] that are tried to suggest a stable one


@dataclass(frozen=True)
class Gains:
    """Gains seen at the joint.

    Attributes
    ----------
    position, velocity, integral : float
        Gains [N m/rad], [N m s/rad], [N m/(rad s)].
    fractional : float
        Gain of the derivative of the law's order, [N m s^order/rad].
    proportional : float
        Additional proportional gain of the fractional law [N m/rad].
    """

    position: float = 0.0
    velocity: float = 0.0
    integral: float = 0.0
    fractional: float = 0.0
    proportional: float = 0.0


@dataclass(frozen=True)
class TwoMasses:
    """Model of a joint for the servo, with all quantities seen at the joint.

    Attributes
    ----------
    link, rotor : float
        Inertias [kg m^2].
    stiffness : float
        Stiffness of the gearbox [N m/rad], may be infinite.
    drag : float
        Slope of the friction on the link [N m s/rad].
    """

    link: float
    rotor: float
    stiffness: float
    drag: float

    @classmethod
    def of(cls, joint: ElasticJoint, inertia: float, period: float, *, torque: float, drag: float) -> TwoMasses:
        """Return the joint with a link of `inertia` [kg m^2], linearized at a `torque` in its gearbox [N m]."""
        rotor = joint.motor_inertia * joint.gear_ratio**2
        slope = float(joint.stiffness.twist_derivatives(torque)[1])
        stiffness = 1.0 / slope if slope > 0.0 else math.inf
        if not stiffness * (1.0 / inertia + 1.0 / rotor) * period**2 < math.pi**2:
            stiffness = math.inf
        return cls(inertia, rotor, stiffness, drag)

    @property
    def total(self) -> float:
        """Total inertia [kg m^2]."""
        return self.link + self.rotor

    def sampled(self, period: float) -> tuple[Array, Array]:
        """Return the sampled system (zero-order hold): (4, 4) for (q, q', rotor, rotor'), (4,) for the torque."""
        rates = np.zeros((5, 5))  # of the four states and of the constant torque
        rates[0, 1] = rates[2, 3] = 1.0
        if self.stiffness == math.inf:
            rates[(1, 3), 1] = -self.drag / self.total
            rates[(1, 3), 4] = 1.0 / self.total
        else:
            reduced = 1.0 / (1.0 / self.link + 1.0 / self.rotor)
            spring = np.array([self.stiffness, 2.0 * _LOSS * math.sqrt(self.stiffness * reduced)])
            rates[1, :4] = np.concatenate((-spring, spring)) / self.link
            rates[3, :4] = np.concatenate((spring, -spring)) / self.rotor
            rates[1, 1] -= self.drag / self.link
            rates[3, 4] = 1.0 / self.rotor
        moved = exponential(period * rates)
        return moved[:4, :4], moved[:4, 4]


def exponential(matrix: Array) -> Array:
    """Return the exponential of a small square matrix, by scaling and squaring of its series."""
    halvings = max(0, math.ceil(math.log2(max(float(abs(matrix).sum(axis=1).max()), 1e-300))) + 2)
    part, term = matrix / 2.0**halvings, np.eye(len(matrix))
    result: Array = term
    for k in range(1, 16):
        term = term @ part / k
        result = result + term
    for _ in range(halvings):
        result = result @ result
    return result


def gains(settings: ServoSettings, inertia: float) -> Gains:
    """Return the gains for a joint with the total `inertia` [kg m^2] of link and rotor."""
    law, own, b = settings.kind, settings.position_gain, 2.0 * math.pi * settings.bandwidth
    if law == LINEARISING:
        return Gains()
    if law == FRACTIONAL:
        gain = own if own > 0.0 else inertia * b ** (2.0 - settings.order)
        return Gains(fractional=gain, proportional=settings.proportional)
    if own > 0.0:
        return Gains(own, settings.velocity_gain, settings.integral_gain)
    z, k = settings.damping_ratio, settings.integral
    return Gains(inertia * b * b * (1.0 + 2.0 * z * k), inertia * b * (2.0 * z + k), inertia * k * b**3)


def stiffness(settings: ServoSettings, plant: TwoMasses) -> float:
    """Return the static stiffness of the servo against an unknown torque on the joint [N m/rad].

    It excludes the integrator and refers to the motor behind the gearbox. Exact linearisation interprets the twist
    caused by the torque as an acceleration of the link and reacts to it: the stiffness is positive, and the loop
    stable, only where 6 b^2 > c/M.
    """
    own = gains(settings, plant.total)
    if settings.kind == LINEARISING:
        b = 2.0 * math.pi * settings.bandwidth
        spring = plant.stiffness / plant.link
        return plant.link * b**4 / (6.0 * b**2 - spring) if spring < math.inf else plant.total * b**2
    return own.position + own.proportional + own.fractional * float(law_weights(settings).sum())


def filter_share(settings: ServoSettings) -> float:
    """Return the coefficient of the low-pass filter of the speed for one period."""
    return 1.0 - math.exp(-2.0 * math.pi * settings.speed_filter * settings.period)


def trim_share(settings: ServoSettings, own: Gains) -> float:
    """Return the coefficient with which the integrator's trim follows the link in a period."""
    return 1.0 - math.exp(-settings.period * own.integral / own.position) if own.position > 0.0 else 0.0


def law_weights(settings: ServoSettings) -> Array:
    """Return the weights of the present and past samples in the fractional law, (terms + 1,) [s^-order]."""
    return np.asarray(weights(settings.order, settings.terms) * settings.period**-settings.order)


def feedback(settings: ServoSettings, plant: TwoMasses, own: Gains) -> Feedback:
    """Return the linear feedback of the servo as a function of rows and its state.

    It returns torque and new state.

    A row is the dependence of a quantity on the state of a loop. The arguments are (link, motor, turning, memory): the
    deviations of link, motor and, for the speed feedback, motor from the reference, and the servo's state, (6, n) or
    for the fractional law (6 + terms + 1, n), which starts with zeros.
    """
    T, share, c = settings.period, filter_share(settings), law_weights(settings)
    trimming = trim_share(settings, own)
    b = 2.0 * math.pi * settings.bandwidth

    def step(link: Array, motor: Array, turning: Array, memory: Array) -> tuple[Array, Array]:
        link_rate = memory[2] + share * ((link - memory[0]) / T - memory[2])
        motor_rate = memory[3] + share * ((turning - memory[1]) / T - memory[3])
        trim = memory[5] + trimming * (link - motor - memory[5])
        integral = memory[4] + T * own.integral * (motor + trim)
        past = np.vstack((motor, memory[6:-1])) if len(memory) > MEMORY else memory[6:]
        after = np.vstack((link, turning, link_rate, motor_rate, integral, trim, past))
        if settings.kind == LINEARISING and plant.stiffness == math.inf:
            return -plant.total * b * (2.0 * link_rate + b * link), after
        if settings.kind == LINEARISING:
            rate = plant.stiffness / plant.link
            a, jerk = rate * (motor - link), rate * (motor_rate - link_rate)
            snap = -b * (4.0 * jerk + b * (6.0 * a + b * (4.0 * link_rate + b * link)))
            return plant.rotor * (a + snap / rate) + plant.link * a, after
        if settings.kind == FRACTIONAL:
            return -own.fractional * (c @ past) - own.proportional * motor, after
        return -own.position * motor - own.velocity * motor_rate - integral, after

    return step


def memory_size(settings: ServoSettings) -> int:
    """Return the number of state variables of a joint's servo, without its reference."""
    return MEMORY + (settings.terms + 1 if settings.kind == FRACTIONAL else 0)


def growth(settings: ServoSettings, plant: TwoMasses, encoders: str) -> float:
    """Return the largest magnitude of an eigenvalue of one period of the loop: below 1 it is stable."""
    moved, pushed = plant.sampled(settings.period)
    own = gains(settings, plant.total)
    link, rotor = np.eye(4)[0], np.eye(4)[2]
    sees = {"motor": (rotor, rotor), "joint": (link, link), "both": (link, rotor)}[encoders]
    count = 4 + memory_size(settings)
    x = np.eye(count)
    link, motor = sees[0] @ x[:4], sees[1] @ x[:4]
    torque, memory = feedback(settings, plant, own)(link, motor, motor, x[4:])
    loop = np.vstack((moved @ x[:4] + np.outer(pushed, torque), memory))
    # an integrator without gain has the eigenvalue 1
    used = [k for k in range(count) if k not in (8, 9) or own.integral > 0.0]
    return float(abs(np.linalg.eigvals(loop[np.ix_(used, used)])).max())


def require_stable(settings: ServoSettings, joint: ElasticJoint, inertia: float, encoders: str, number: int) -> None:
    """Raise `ConfigurationError` unless joint `number` with a link of `inertia` [kg m^2] is stable.

    It must be stable within the play of its gearbox and under load, for a sliding link and for a link near rest.
    """
    rotor, rest = joint.motor_inertia * joint.gear_ratio**2, float(joint.friction.derivatives(0.0)[1])
    plants = [
        TwoMasses.of(joint, inertia, settings.period, torque=torque, drag=drag)
        for torque in (0.0, LOADED)
        for drag in (0.0, rest)
    ]

    def stable(tried: ServoSettings) -> bool:
        return all(growth(tried, plant, encoders) < 1.0 + _MARGIN for plant in plants)

    if stable(settings):
        return
    where = f"joint {number} (link of {inertia:.4g} and rotor of {rotor:.4g} kg m^2, {settings.period:g} s period)"
    if settings.position_gain > 0.0:
        raise ConfigurationError(f"device.servo.position_gain = {settings.position_gain!r}: unstable at {where}.")
    others = [b for b in _BANDWIDTHS if stable(replace(settings, bandwidth=b))]
    nearest = min(others, key=lambda b: abs(math.log(b / settings.bandwidth)), default=0.0)
    bound = "most" if nearest < settings.bandwidth else "least"
    advice = f"must be at {bound} {nearest:.3g} Hz" if others else "no other would be stable either"
    raise ConfigurationError(f"device.servo.bandwidth = {settings.bandwidth!r}: unstable at {where}; {advice}.")


# --- records ----------------------------------------------------------------------------------------------------------

ENCODERS = {"motor": kernels.AT_MOTOR, "joint": kernels.AT_JOINT, "both": kernels.AT_BOTH}
"""Mounting places of the encoders, by the name used in settings."""

_PATIENCE = 0.05  # time for which a joint at rest must be calm until its torque is held [s]

# Time constant with which a servo at rest yields to the error of a free joint [s]; behind a spring it takes longer.
_YIELDING = 0.02

_FLICKER = 4.5  # maximum motion of a calm joint in encoder steps

_NO_FRICTION = SmoothCoulomb(0.0, 0.0, 1.0)

Pair = tuple[float, float]


def _law(settings: ServoSettings, joint: ElasticJoint, own: Gains) -> ServoLaw:
    """Return the servo law of the paper with these gains: (16) to (18), or (12) to (15)."""
    if settings.kind == LINEARISING:
        return LinearisingServo(2.0 * np.pi * settings.bandwidth)
    feed = {FLATNESS: "elastic", RIGID: "rigid"}.get(settings.kind, "none")
    feedback = settings.feedback if settings.kind == FLATNESS else "conventional"
    if settings.kind == FRACTIONAL:
        return FeedForwardServo(feed, feedback)
    return FeedForwardServo(feed, feedback, own.position / own.velocity, own.velocity / joint.gear_ratio**2)


def _model(
    settings: ServoSettings, links: Links, period: float, tick: float, placed: PlacedLinkage | None
) -> NDArray[Any]:
    """Return a record, (1,), without the joints and their gains."""
    record = np.zeros(1, kernels.SERVO)
    links.fill(record["links"], placed)
    fill_chain(record, settings.reference_frequency, period, tick)
    record["law"], record["smooth"], record["period"] = settings.kind, settings.smooth, period
    record["holds_weight"], record["knows_hand"] = settings.holds_weight, settings.knows_hand
    record["hand_pole"] = 2.0 * np.pi * settings.hand_filter
    return record


def new_servo(
    settings: ServoSettings,
    links: Links,
    joints: Sequence[ElasticJoint],
    pose: Pair,
    *,
    encoders: str = "motor",
    resolution: Pair = (0.0, 0.0),
    torque_limit: Pair = (np.inf, np.inf),
    placed: PlacedLinkage | None = None,
    tick: float = 1e-3,
) -> NDArray[Any]:
    """Return the servo of both joints, (1,) of dtype `kernels.SERVO`, at rest at `pose`.

    Parameters
    ----------
    settings : ServoSettings
        Selects the law.
    links : Links
        Rigid arm in the model of the law.
    joints : sequence of ElasticJoint
        Both joints in the model of the law.
    pose : (2,)
        Joint angles [rad] whose inertia determines the gains: the middle of the workspace.
    encoders : str
        "motor", "joint" or "both"; exact linearisation needs both, the other laws work with any.
    resolution : (2,)
        Encoder steps in the feedback, seen at the joint [rad].
    torque_limit : (2,)
        Torque limits of the motors [N m].
    placed : PlacedLinkage, optional
        Placement of the links; by default in their own coordinates.
    tick : float
        Time from one command to the next [s].

    Raises
    ------
    ConfigurationError
        If the law does not suit the joints or the encoders, or a joint is unstable with its gains.
    """
    if settings.kind == LINEARISING and encoders != "both":
        raise ConfigurationError(
            f"device.servo.law = 'linearising': must be another one with encoders at the {encoders} alone; it needs "
            "the angles of motor and link."
        )
    record = _model(settings, links, settings.period, tick, placed)
    record["encoders"], record["filter"] = ENCODERS[encoders], filter_share(settings)
    record["patience"] = round(_PATIENCE / settings.period)
    record["recovery"] = 1.0 - np.exp(-2.0 * np.pi * settings.bandwidth * settings.period)
    record["yielding"] = 1.0 - np.exp(-settings.period / _YIELDING)
    fir = law_weights(settings)
    record["resumption"] = settings.resume_time / (settings.resume_time + settings.period)
    record["count"], record["weights"][0, : len(fir)] = len(fir), fir
    inertias = np.diag(links.terms(pose, placed=placed)["inertia"][0]).tolist()
    speeds = np.geomspace(1e-6, 1.0, 200)  # near rest, where dry friction holds a joint against the servo
    speeds = np.concatenate((speeds, -speeds))
    for i, (joint, inertia) in enumerate(zip(joints, inertias, strict=True)):
        require_stable(settings, joint, inertia, encoders, i + 1)
        plant = TwoMasses.of(joint, inertia, settings.period, torque=LOADED, drag=0.0)
        own, axis = gains(settings, plant.total), record["axis"][0, i]
        model = replace(joint, friction=_NO_FRICTION) if settings.kind == LINEARISING else joint
        axis["control"], axis["friction"] = _law(settings, joint, own).record(model)[0], joint.friction.record[0]
        axis["integral_gain"], axis["trim_share"] = own.integral, trim_share(settings, own)
        axis["fractional_gain"], axis["proportional"] = own.fractional, own.proportional
        viscosity = float(joint.friction.derivatives(1.0)[1])
        dry = float(abs(joint.friction(speeds) - viscosity * speeds).max())
        axis["rest_band"] = 2.0 * (resolution[i] + dry / stiffness(settings, plant))
        axis["yield_band"] = axis["rest_band"] + float(joint.stiffness.twist(dry))
        axis["calm_band"], axis["torque_limit"] = _FLICKER * resolution[i], torque_limit[i]
        if settings.kind == SLIDING:
            axis["torque_limit"] = min(torque_limit[i], settings.torque_bound / abs(joint.gear_ratio))
    record["step"] = kernels.part_address(record, kernels.step_part)
    kernels.start_servos(record, np.asarray(pose, np.float64))
    return record


def new_references(
    settings: ServoSettings,
    links: Links,
    joints: Sequence[ElasticJoint],
    period: float,
    placed: PlacedLinkage | None = None,
) -> NDArray[Any]:
    """Return the references of motors that control their position themselves, (1,) of dtype `kernels.SERVO`.

    `kernels.start_servos` starts them, and `kernels.refer_motors` computes angles, speeds and torques per tick.

    ===========  =============================================================================================
    `pid`        the command and its speed; the torque holds the weight, depending on the settings
    `flatness`   angle and speed of the motor of an elastic joint, (25), and its torque (20) (Weigand et al. 2020)
    `rigid`      angle, speed and torque of the motor of a rigid joint, (27)
    ===========  =============================================================================================

    Parameters
    ----------
    settings : ServoSettings
        Law and reference; its gains are not used, because the drive has its own.
    links, joints, placed :
        As for `new_servo`.
    period : float
        Period of the tick [s].

    Raises
    ------
    ConfigurationError
        If the law has no references for the motors: exact linearisation, fractional and sliding-mode compute torques.
    """
    if settings.kind in (LINEARISING, FRACTIONAL, SLIDING):
        raise ConfigurationError(
            f"device.servo.law = {settings.law!r}: must be one of pid, flatness, rigid for motors that control "
            "their position themselves."
        )
    record = _model(settings, links, period, period, placed)
    for i, joint in enumerate(joints):
        record["axis"]["control"][0, i] = _law(settings, joint, Gains(velocity=1.0)).record(joint)[0]
    return record
