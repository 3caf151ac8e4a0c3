"""Elastic joint and the feed-forward that inverts it (Weigand et al. 2020, sections 2 and 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.arm.flatness.friction import SmoothFriction
from devices.arm.flatness.joint_kernels import FLAT, JOINT, feed_rows
from devices.arm.flatness.stiffness import Stiffness
from devices.arm.flatness.values import Values, finite
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented

MOTION = ("position", "velocity", "acceleration", "jerk", "snap")
"""Names of the columns of a motion."""


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

    friction: SmoothFriction
    stiffness: Stiffness
    gear_ratio: float = bounded(
        minimum=-1e6,
        maximum=1e6,
        doc="turns u of the motor for one of the link; not 0, negative where they turn against each other",
    )
    motor_inertia: float = bounded(above=0.0, unit="kg m^2", doc="inertia J of the rotor")

    def __post_init__(self) -> None:
        for name, value, kind in (
            ("friction", self.friction, SmoothFriction),
            ("stiffness", self.stiffness, Stiffness),
        ):
            if not isinstance(value, kind):
                raise ConfigurationError(f"joint.{name} = {value!r}: must be a {kind.__name__}.")
        check(self, "joint")
        if self.gear_ratio == 0.0:
            raise ConfigurationError(f"joint.gear_ratio = {self.gear_ratio!r}: must not be 0.")

    @property
    def record(self) -> NDArray[Any]:
        """Kernel record of the joint, (1,) of dtype `devices.arm.flatness.joint_kernels.JOINT`."""
        record = np.zeros(1, JOINT)
        record["friction"], record["stiffness"] = self.friction.record, self.stiffness.record
        record["gear_ratio"], record["motor_inertia"] = self.gear_ratio, self.motor_inertia
        return record

    def require_flat(self) -> None:
        """Raise `ConfigurationError` unless the twist of the stiffness law is twice differentiable."""
        if self.stiffness.obstacle:
            raise ConfigurationError(
                f"joint.stiffness = {self.stiffness!r}: no motor can follow it, because {self.stiffness.obstacle}."
            )


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
    """Return rows (n,) of dtype `devices.arm.flatness.joint_kernels.FLAT` for `feed_forward`.

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
    loads = {"inertia": inertia, "load": load, "load_rate": load_rate, "load_acceleration": load_acceleration}
    for name, value in loads.items():
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
    names = ("motor_angle", "motor_velocity", "motor_acceleration", "motor_torque", "gear_torque")
    return MotorReference(*(np.ascontiguousarray(rows[name]) for name in names))
