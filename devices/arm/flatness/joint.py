r"""Elastic joint, the feed-forward that inverts it, servo laws, and their simulation (Weigand et al. 2020).

With the load :math:`L = M \ddot q + \tau_A + \tau_{CC} + g`, which is the torque on the link without its friction, the
torque in the gearbox is :math:`\tau = L + F(\dot q)` (Weigand et al. 2020, (2)). Twist :math:`D(\tau)` and link angle
give the motor angle, and the chain rule gives the rest:

.. math::
    \dot\tau &= \dot L + F' \ddot q, &
    \ddot\tau &= \ddot L + F'' \ddot q^2 + F' \dddot q, \\
    \theta &= u (q + D), \qquad \dot\theta = u (\dot q + D' \dot\tau), &
    \ddot\theta &= u (\ddot q + D'' \dot\tau^2 + D' \ddot\tau), \\
    \tau_{FF} &= J \ddot\theta + \tau/u &&

which are (25), its derivatives and (20). The paper treats everything in L except the link's own motion as constant:
:math:`\dot L = M \dddot q`, :math:`\ddot L = M q^{(4)}`. Rates of the remaining load can be added by the caller.

A motion is an array (n, 5): the angle or coordinate and its first four derivatives, which are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.arm.flatness import laws
from devices.arm.flatness.laws import Values, evaluate_friction, finite, gear_torque, gear_twist
from haptics.errors import ConfigurationError
from haptics.jit import inlined_kernel, kernel
from haptics.records import Rows, fields
from haptics.settings import bounded, check, choice, documented

JOINT = np.dtype(
    [("friction", laws.SMOOTH), ("stiffness", laws.SMOOTH), ("gear_ratio", "<f8"), ("motor_inertia", "<f8")]
)
"""Kernel record of an elastic joint."""

MOTION = ("position", "velocity", "acceleration", "jerk", "snap")
"""Names of the columns of a motion: link angle with four derivatives [rad ... rad/s^4]."""

_LOADS = ("inertia", "load", "load_rate", "load_acceleration")
_MOTOR = ("motor_angle", "motor_velocity", "motor_acceleration", "motor_torque", "gear_torque")

FLAT = np.dtype([(name, "<f8") for name in (*MOTION, *_LOADS, *_MOTOR)])
"""Reference of a joint: motion, inertia M [kg m^2], load in addition to M q'' [N m], and the two derivatives of M q''
plus that load, less M q''' and M q'''' [N m/s], [N m/s^2]; the resulting reference of the motor: [rad], [rad/s],
[rad/s^2], [N m]; torque in the gearbox at the link's side [N m].
"""


@inlined_kernel
def feed_elastic(c: Any, r: Any) -> None:
    """Compute the motor reference in row `r`, of dtype `FLAT`, for joint `c`; (20), (25)."""
    q1, q2, q3, u = r.velocity, r.acceleration, r.jerk, c.gear_ratio
    F, F1, F2 = evaluate_friction(c.friction, q1)
    tau = r.inertia * q2 + r.load + F
    tau1 = r.inertia * q3 + r.load_rate + F1 * q2
    tau2 = r.inertia * r.snap + r.load_acceleration + F2 * q2 * q2 + F1 * q3
    D, D1, D2 = gear_twist(c.stiffness, tau)
    r.motor_angle = u * (r.position + D)
    r.motor_velocity = u * (q1 + D1 * tau1)
    r.motor_acceleration = u * (q2 + D2 * tau1 * tau1 + D1 * tau2)
    r.motor_torque = c.motor_inertia * r.motor_acceleration + tau / u
    r.gear_torque = tau


@inlined_kernel
def feed_rigid(c: Any, r: Any) -> None:
    """Compute the motor reference in row `r` for a rigid gearbox; (27)."""
    u = c.gear_ratio
    F, _F1, _F2 = evaluate_friction(c.friction, r.velocity)
    r.gear_torque = r.inertia * r.acceleration + r.load + F
    r.motor_angle = u * r.position
    r.motor_velocity = u * r.velocity
    r.motor_acceleration = u * r.acceleration
    r.motor_torque = c.motor_inertia * r.motor_acceleration + r.gear_torque / u


@kernel
def feed_rows(joints: Rows, rows: Rows, rigid: bool) -> None:
    """Compute the motor reference in every row of `rows`, (n,) of dtype `FLAT`, for the joint `joints[0]`."""
    for k in range(len(rows)):
        if rigid:
            feed_rigid(joints[0], rows[k])
        else:
            feed_elastic(joints[0], rows[k])


@documented
@dataclass(frozen=True)
class ElasticJoint:
    """Motor, elastic gearbox and link with friction (Weigand et al. 2020, (1), (2)).

    Attributes
    ----------
    friction : SmoothFriction
        Friction between link and base, at the link's side.
    stiffness : Stiffness
        Stiffness of the gearbox, at the link's side.
    """

    friction: laws.SmoothFriction
    stiffness: laws.Stiffness
    gear_ratio: float = bounded(
        minimum=-1e6,
        maximum=1e6,
        doc="turns u of the motor per turn of the link; not 0, negative if they turn oppositely",
    )
    motor_inertia: float = bounded(above=0.0, unit="kg m^2", doc="inertia J of the rotor")

    def __post_init__(self) -> None:
        check(self, "joint")
        if self.gear_ratio == 0.0:
            raise ConfigurationError(f"joint.gear_ratio = {self.gear_ratio!r}: must not be 0.")

    @property
    def record(self) -> NDArray[Any]:
        """Kernel record of the joint, (1,) of dtype `devices.arm.flatness.joint.JOINT`."""
        record = np.zeros(1, JOINT)
        record["friction"], record["stiffness"] = self.friction.record, self.stiffness.record
        record["gear_ratio"], record["motor_inertia"] = self.gear_ratio, self.motor_inertia
        return record

    def require_flat(self) -> None:
        """Raise `ConfigurationError` unless the twist of the stiffness law is twice differentiable."""
        law, obstacle = self.stiffness, ""
        if isinstance(law, laws.LostMotion):
            obstacle = "its twist jumps where the torque changes its sign"
        elif isinstance(law, laws.RampBacklash) and law.slack_stiffness == 0.0:
            obstacle = "without slack_stiffness its backlash has no stiffness"
        if obstacle:
            raise ConfigurationError(f"joint.stiffness = {law!r}: no motor can follow it, because {obstacle}.")


@dataclass(frozen=True)
class MotorReference:
    """Reference of the motor, row by row.

    Attributes
    ----------
    angle, velocity, acceleration : (n,) float array
        Motor angle [rad] and its derivatives [rad/s], [rad/s^2]; (25).
    torque : (n,) float array
        Motor torque [N m]; (20) or (27).
    gear_torque : (n,) float array
        Torque in the gearbox at the link's side [N m].
    """

    angle: Values
    velocity: Values
    acceleration: Values
    torque: Values
    gear_torque: Values


def motion_rows(
    motion: ArrayLike,
    inertia: ArrayLike,
    load: ArrayLike = 0.0,
    load_rate: ArrayLike = 0.0,
    load_acceleration: ArrayLike = 0.0,
) -> NDArray[Any]:
    """Return rows (n,) of dtype `devices.arm.flatness.joint.FLAT` for `feed_forward`.

    The arguments are the same as of `feed_forward`.

    Raises
    ------
    ConfigurationError
        If an argument has a wrong shape or is not finite, or an inertia is not greater than 0.
    """
    columns = finite(motion, "motion")
    if columns.ndim != 2 or columns.shape[1] != len(MOTION):
        raise ConfigurationError(f"motion of shape {columns.shape}: must be (n, 5), the angle and four derivatives.")
    rows = np.zeros(len(columns), FLAT)
    for name, column in zip(MOTION, columns.T, strict=True):
        rows[name] = column
    for name, value in zip(_LOADS, (inertia, load, load_rate, load_acceleration), strict=True):
        array = finite(value, name)
        if array.shape not in {(), (len(rows),)}:
            raise ConfigurationError(f"{name} of shape {array.shape}: must be a number or ({len(rows)},).")
        rows[name] = array
    if not (rows["inertia"] > 0.0).all():
        raise ConfigurationError(f"inertia = {inertia!r}: must be greater than 0 kg m^2.")
    return rows


def feed_forward(
    joint: ElasticJoint,
    motion: ArrayLike,
    inertia: ArrayLike,
    load: ArrayLike = 0.0,
    *,
    load_rate: ArrayLike = 0.0,
    load_acceleration: ArrayLike = 0.0,
    rigid: bool = False,
) -> MotorReference:
    """Return the motor reference for a motion of the link: (20), (25) and its derivatives, or rigid (27).

    Parameters
    ----------
    joint : ElasticJoint
        Model of the joint.
    motion : (n, 5) array
        Link angle [rad] and its first four derivatives.
    inertia : float or (n,) array
        Inertia M_ii of the link [kg m^2], greater than 0.
    load : float or (n,) array
        All other torques on the link except its friction [N m]: tau_A + tau_CC + g.
    load_rate, load_acceleration : float or (n,) array
        First and second derivative of M q'' + load, less M q''' and M q'''' [N m/s], [N m/s^2]. The paper treats
        inertia and load as constant in its derivatives, which corresponds to the default 0.
    rigid : bool
        Ignore the elasticity (R-FF); jerk and snap of the motion are not used then.

    Raises
    ------
    ConfigurationError
        If an argument is invalid, or the stiffness law is not smooth enough.
    """
    if not rigid:
        joint.require_flat()
    rows = motion_rows(motion, inertia, load, load_rate, load_acceleration)
    feed_rows(joint.record, rows, rigid)
    return MotorReference(*(np.ascontiguousarray(rows[name]) for name in _MOTOR))


# --- servo laws -------------------------------------------------------------------------------------------------------

NONE, ELASTIC, RIGID = 0, 1, 2
"""Model of the joint in the feed-forward or in the exact linearisation: none, elastic or rigid."""

CONVENTIONAL, MODEL_BASED, LINEARISING = 1, 2, 3
"""Feedback of the motor's velocity towards u q' or towards (25), or feedback through the inverse model; or `NONE`."""

CONTROL = np.dtype(
    [
        ("joint", JOINT),
        *fields("<i8", "feed feedback"),
        *fields("<f8", "position_gain velocity_gain bandwidth"),
        ("inverse", FLAT),
    ]
)
"""Kernel record of a servo law of one joint: the controller's model of the joint and its gains; `inverse` is workspace
for the exact linearisation.
"""

_FEEDS = {"none": NONE, "elastic": ELASTIC, "rigid": RIGID}
_FEEDBACKS = {"none": NONE, "conventional": CONVENTIONAL, "model-based": MODEL_BASED}


@inlined_kernel
def linearise_elastic(c: Any, r: Any, q: Any, w: Any, theta: Any, omega: Any) -> Any:
    """Return the motor torque [N m] of (15): the elastic inverse at the measured state, four poles at -b.

    The state determines acceleration and jerk of the link, by (2) and its derivative; the snap is the free input.
    """
    j, m, b = c.joint, c.inverse, c.bandwidth
    E, E1, _E2 = gear_torque(j.stiffness, theta / j.gear_ratio - q)
    F, F1, _F2 = evaluate_friction(j.friction, w)
    a = (E - r.load - F) / r.inertia
    jerk = (E1 * (omega / j.gear_ratio - w) - r.load_rate - F1 * a) / r.inertia
    error = b * (4.0 * (r.velocity - w) + b * (r.position - q))
    error = b * (6.0 * (r.acceleration - a) + error)
    m.position, m.velocity, m.acceleration, m.jerk = q, w, a, jerk
    m.snap = r.snap + b * (4.0 * (r.jerk - jerk) + error)
    m.inertia, m.load = r.inertia, r.load
    m.load_rate, m.load_acceleration = r.load_rate, r.load_acceleration
    feed_elastic(j, m)
    return m.motor_torque


@inlined_kernel
def track(c: Any, r: Any, q: Any, omega: Any) -> Any:
    """Return the motor torque [N m] with feedback of the motor's velocity or without feedback; (16)-(18).

    (16) is printed without the gear ratio, which makes the position loop u times too weak.
    """
    tau = 0.0 if c.feed == NONE else r.motor_torque
    if c.feedback == NONE:
        return tau
    u = c.joint.gear_ratio
    wanted = r.motor_velocity if c.feedback == MODEL_BASED else u * r.velocity
    return tau + c.velocity_gain * (u * c.position_gain * (r.position - q) + wanted - omega)


@inlined_kernel
def servo_torque(c: Any, r: Any, q: Any, w: Any, theta: Any, omega: Any) -> Any:
    """Return the motor torque [N m] for the prepared row `r` at link (q, w) and motor (theta, omega)."""
    if c.feedback == LINEARISING:
        return linearise_elastic(c, r, q, w, theta, omega)
    return track(c, r, q, omega)


@documented
@dataclass(frozen=True)
class FeedForwardServo:
    """Feed-forward with feedback of link position and motor velocity (Fig. 4, (16) to (18))."""

    feed_forward: str = choice("elastic", _FEEDS, doc="elastic (FB-FF, (20)), rigid (R-FF, (27)) or none")
    feedback: str = choice(
        "model-based",
        _FEEDBACKS,
        doc="reference of the motor's velocity: model-based, as the elastic joint demands, (25), which a rigid "
        "feed-forward knows nothing of; conventional, as a rigid joint would demand, u q'; or none",
    )
    position_gain: float = bounded(20.0, minimum=0.0, unit="1/s", doc="K_P, link velocity per error of its angle")
    velocity_gain: float = bounded(0.015, minimum=0.0, unit="N m s/rad", doc="K_V, motor torque per error of its speed")

    def __post_init__(self) -> None:
        check(self, "servo")
        if self.feed_forward == "rigid" and self.feedback == "model-based":
            raise ConfigurationError(
                f"servo.feedback = {self.feedback!r}: with feed_forward = 'rigid' must be one of conventional, none."
            )

    def record(self, joint: ElasticJoint) -> NDArray[Any]:
        """Return the law for `joint` as a kernel record, (1,) of dtype `CONTROL`."""
        elastic = self.feed_forward == "elastic" or self.feedback == "model-based"
        record = _record(joint, elastic, _FEEDS[self.feed_forward], _FEEDBACKS[self.feedback])
        record["position_gain"], record["velocity_gain"] = self.position_gain, self.velocity_gain
        return record


@documented
@dataclass(frozen=True)
class LinearisingServo:
    """Exact linearisation: the inverse model at the measured state (Fig. 5, (12)-(15)).

    All four poles of the error are at minus the bandwidth.
    """

    bandwidth: float = bounded(20.0, above=0.0, unit="rad/s", doc="where the poles of the error lie")

    def __post_init__(self) -> None:
        check(self, "servo")

    def record(self, joint: ElasticJoint) -> NDArray[Any]:
        """Return the law for `joint` as a kernel record, (1,) of dtype `CONTROL`."""
        record = _record(joint, True, ELASTIC, LINEARISING)
        record["bandwidth"] = self.bandwidth
        return record


def _record(joint: ElasticJoint, elastic: bool, feed: int, feedback: int) -> NDArray[Any]:
    """Return a control record for `joint`, which must be flat if the law uses its elasticity."""
    if elastic:
        joint.require_flat()
    record = np.zeros(1, CONTROL)
    record["joint"], record["feed"], record["feedback"] = joint.record, feed, feedback
    return record


ServoLaw = FeedForwardServo | LinearisingServo


# --- simulation -------------------------------------------------------------------------------------------------------

# Polynomial from 0 to 1 on [0, 1]; velocity, acceleration and jerk are zero at both ends.
_RAMP = np.polynomial.Polynomial([0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0])

_RAMPS = tuple(_RAMP.deriv(order) if order else _RAMP for order in range(5))


def point_to_point(time: ArrayLike, start: float, end: float, duration: float, begin: float = 0.0) -> Values:
    """Return a polynomial of seventh order from `start` to `end`, at rest before and after.

    Velocity, acceleration and jerk are zero at both ends. The fourth derivative is discontinuous there. At the end
    points themselves it has its inner value, so that a motion may begin, end or reverse there without a jump.

    Parameters
    ----------
    time : (n,) array
        Times [s].
    start, end : float
        Initial and final position [rad] or [m].
    duration : float
        Duration [s], greater than 0.
    begin : float
        Start time [s].

    Returns
    -------
    (n, 5) float array
        Position and its first four derivatives.

    Raises
    ------
    ConfigurationError
        If a number is not finite or the duration is not greater than 0.
    """
    times = finite(time, "time").reshape(-1)
    first, last, length, origin = (float(finite(value, "motion")) for value in (start, end, duration, begin))
    if not length > 0.0:
        raise ConfigurationError(f"duration = {duration!r}: must be greater than 0 s.")
    share = np.clip((times - origin) / length, 0.0, 1.0)
    moving = (times >= origin) & (times <= origin + length)
    motion = np.empty((len(times), 5))
    motion[:, 0] = first + (last - first) * _RAMPS[0](share)
    for order in range(1, 5):
        motion[:, order] = np.where(moving, (last - first) / length**order * _RAMPS[order](share), 0.0)
    return motion


PLANT = np.dtype([("joint", JOINT), ("inertia_ratio", "<f8"), ("disturbance", "<f8")])
"""Record of the real joint: its laws, the ratio of its link's inertia to the reference's, a torque on the link [N m].
"""

_STATES = ("position", "velocity", "motor_angle", "motor_velocity", "motor_torque", "gear_torque")
STATE = np.dtype([(name, "<f8") for name in _STATES])
"""State of a joint: link angle and velocity, motor angle and velocity, motor torque and torque in the gearbox."""


@kernel
def run_joint(plants: Rows, controls: Rows, rows: Rows, period: float, hold: int, states: Rows) -> None:
    """Simulate the joint `plants[0]` under the servo law in `controls`, and fill `states`, (n,).

    The accelerations of link and motor are (2), (1), the method is the fourth-order Runge-Kutta method. `rows`,
    (2 n - 1,) of dtype `FLAT`, are the reference at every half `period` [s]. The torque is held for `hold` periods;
    with 0 it follows time and state without delay. The initial state is `states[0]`.
    """
    p, c, j, s, T = plants[0], controls[0], plants[0].joint, states[0], period
    q, w, theta, omega = s.position, s.velocity, s.motor_angle, s.motor_velocity
    for i in range(len(rows)):
        if c.feed == ELASTIC or c.feedback == MODEL_BASED:
            feed_elastic(c.joint, rows[i])
        else:
            feed_rigid(c.joint, rows[i])
    tau = servo_torque(c, rows[0], q, w, theta, omega)
    for k in range(len(states)):
        if hold == 0 or k % hold == 0:
            tau = servo_torque(c, rows[2 * k], q, w, theta, omega)
        s = states[k]
        s.position, s.velocity, s.motor_angle, s.motor_velocity, s.motor_torque = q, w, theta, omega, tau
        s.gear_torque, _E1, _E2 = gear_torque(j.stiffness, theta / j.gear_ratio - q)
        if k == len(states) - 1:
            break
        q1, w1, theta1, omega1 = q, w, theta, omega  # state at a stage, and the sums of the rates of all stages
        dq, dw, dtheta, domega = 0.0, 0.0, 0.0, 0.0
        for stage in range(4):
            r, weight = rows[2 * k + (stage + 1) // 2], 2.0 if 0 < stage < 3 else 1.0
            if stage > 0 and hold == 0:
                tau = servo_torque(c, r, q1, w1, theta1, omega1)
            E, _E1, _E2 = gear_torque(j.stiffness, theta1 / j.gear_ratio - q1)
            F, _F1, _F2 = evaluate_friction(j.friction, w1)
            link = (E - r.load - F + p.disturbance) / (p.inertia_ratio * r.inertia)
            motor = (tau - E / j.gear_ratio) / j.motor_inertia
            dq, dtheta = dq + weight * w1, dtheta + weight * omega1
            dw, domega = dw + weight * link, domega + weight * motor
            step = T if stage == 2 else 0.5 * T
            q1, theta1, w1, omega1 = q + step * w1, theta + step * omega1, w + step * link, omega + step * motor
        q += T / 6.0 * dq
        theta += T / 6.0 * dtheta
        w += T / 6.0 * dw
        omega += T / 6.0 * domega


@dataclass(frozen=True)
class JointRun:
    """Simulated motion of a joint; all (n,) float arrays.

    Attributes
    ----------
    time : array
        Time [s].
    error : array
        Reference minus link angle [rad].
    position, velocity, motor_angle, motor_velocity : array
        Link [rad], [rad/s] and motor [rad], [rad/s].
    motor_torque, gear_torque : array
        Torque of the motor and, at the link's side, in the gearbox [N m].
    reference_gear_torque : array
        Torque in the gearbox for exact tracking [N m].
    """

    time: Values
    error: Values
    position: Values
    velocity: Values
    motor_angle: Values
    motor_velocity: Values
    motor_torque: Values
    gear_torque: Values
    reference_gear_torque: Values


@documented
@dataclass(frozen=True)
class Circumstances:
    """Differences between the simulated joint and the model in the servo law."""

    inertia_ratio: float = bounded(1.0, above=0.0, doc="inertia of the real link over that of the model")
    disturbance: float = bounded(0.0, unit="N m", doc="torque on the link that the model does not know")
    hold: int = bounded(0, minimum=0, doc="periods for which the motor torque is held; with 0 it follows without delay")

    def __post_init__(self) -> None:
        check(self, "circumstances")


def simulate_joint(
    joint: ElasticJoint,
    law: ServoLaw,
    motion: ArrayLike,
    inertia: ArrayLike,
    period: float,
    load: ArrayLike = 0.0,
    *,
    model: ElasticJoint | None = None,
    circumstances: Circumstances | None = None,
) -> JointRun:
    """Simulate the two masses (1), (2) of `joint` under a servo law, by the Runge-Kutta method of order 4.

    The joint starts at rest at the first row of the reference, with its gearbox twisted by the load.

    Parameters
    ----------
    joint : ElasticJoint
        The real joint.
    law : FeedForwardServo or LinearisingServo
        Servo law.
    motion : (2 n - 1, 5) array
        Reference of the link at every half period: angle [rad] and four derivatives.
    inertia, load : float or (2 n - 1,) array
        Inertia of the link [kg m^2] and its other torques [N m], at every half period.
    period : float
        Step of the simulation [s], greater than 0.
    model : ElasticJoint, optional
        Model of the joint in the servo law; by default `joint`.
    circumstances : Circumstances, optional
        Further differences between model and joint, and the delay; by default none.

    Raises
    ------
    ConfigurationError
        If an argument is invalid.
    """
    real = circumstances or Circumstances()
    step = float(finite(period, "period"))
    if not step > 0.0:
        raise ConfigurationError(f"period = {period!r}: must be greater than 0 s.")
    rows = motion_rows(motion, inertia, load)
    if len(rows) % 2 == 0:
        raise ConfigurationError(
            f"motion has {len(rows)} rows: must be odd, one at every half period from start to end."
        )
    plant = np.zeros(1, PLANT)
    plant["joint"] = joint.record
    plant["inertia_ratio"], plant["disturbance"] = real.inertia_ratio, real.disturbance
    states = np.zeros((len(rows) + 1) // 2, STATE)
    first = rows[0]
    states["position"][0] = first["position"]
    twist = joint.stiffness.twist(first["load"] + joint.friction(0.0))
    states["motor_angle"][0] = joint.gear_ratio * (first["position"] + twist)
    run_joint(plant, law.record(model or joint), rows, step, real.hold, states)
    wanted = rows[::2]
    columns = {name: np.ascontiguousarray(states[name]) for name in _STATES}
    return JointRun(
        time=step * np.arange(len(states), dtype=np.float64),
        error=wanted["position"] - columns["position"],
        reference_gear_torque=np.ascontiguousarray(wanted["gear_torque"]),
        **columns,
    )
