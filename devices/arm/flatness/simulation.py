"""Simulation of an elastic joint as two masses under a servo law (Weigand et al. 2020, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from devices.arm.flatness.control import ServoLaw
from devices.arm.flatness.joint import ElasticJoint, motion_rows
from devices.arm.flatness.plant_kernels import PLANT, STATE, run_joint
from devices.arm.flatness.values import Values, finite
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented


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
    columns = {name: np.ascontiguousarray(states[name]) for name in states.dtype.names or ()}
    return JointRun(
        time=step * np.arange(len(states), dtype=np.float64),
        error=wanted["position"] - columns["position"],
        reference_gear_torque=np.ascontiguousarray(wanted["gear_torque"]),
        **columns,
    )
