"""Reference motions, and the simulation of an elastic joint under a servo law (Weigand et al. 2020, section 4).

A motion is an array (n, 5): the angle or coordinate and its first four derivatives, which are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from devices.arm.flatness.joint import (
    ELASTIC,
    JOINT,
    MODEL_BASED,
    ElasticJoint,
    ServoLaw,
    feed_elastic,
    feed_rigid,
    motion_rows,
    servo_torque,
)
from devices.arm.flatness.laws import Values, evaluate_friction, finite, gear_torque
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.records import Rows
from haptics.settings import bounded, check, documented

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
