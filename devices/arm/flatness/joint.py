r"""Elastic joint and the feed-forward that inverts it (Weigand et al. 2020, sections 2 and 3.2).

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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.arm.flatness.laws import SMOOTH, SmoothFriction, Stiffness, Values, evaluate_friction, finite, gear_twist
from haptics.errors import ConfigurationError
from haptics.jit import inlined_kernel, kernel
from haptics.records import Rows
from haptics.settings import bounded, check, documented

JOINT = np.dtype([("friction", SMOOTH), ("stiffness", SMOOTH), ("gear_ratio", "<f8"), ("motor_inertia", "<f8")])
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
        """Kernel record of the joint, (1,) of dtype `devices.arm.flatness.joint.JOINT`."""
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
