"""Servo laws of elastic joints: motor torque per tick (Weigand et al. 2020, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.flatness.joint import FLAT, JOINT, ElasticJoint, feed_elastic, feed_rigid
from devices.arm.flatness.laws import evaluate_friction, gear_torque
from haptics.errors import ConfigurationError
from haptics.jit import inlined_kernel
from haptics.settings import bounded, check, choice, documented

NONE, ELASTIC, RIGID = 0, 1, 2
"""Model of the joint in the feed-forward or in the exact linearisation: none, elastic or rigid."""

CONVENTIONAL, MODEL_BASED, LINEARISING = 1, 2, 3
"""Feedback of the motor's velocity towards u q' or towards (25), or feedback through the inverse model; or `NONE`."""

CONTROL = np.dtype(
    [
        ("joint", JOINT),
        ("feed", "<i8"),
        ("feedback", "<i8"),
        ("position_gain", "<f8"),
        ("velocity_gain", "<f8"),
        ("bandwidth", "<f8"),
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
def prepare(c: Any, r: Any) -> None:
    """Compute the motor's part of row `r` with the model of the servo law."""
    if c.feed == ELASTIC or c.feedback == MODEL_BASED:
        feed_elastic(c.joint, r)
    else:
        feed_rigid(c.joint, r)


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

    feed_forward: str = choice(
        "elastic", _FEEDS, doc="model of the feed-forward: elastic (FB-FF, (20)), rigid (R-FF, (27)) or none"
    )
    feedback: str = choice(
        "model-based",
        _FEEDBACKS,
        doc="reference of the motor's velocity: model-based, as the elastic joint demands, (25), which a rigid "
        "feed-forward knows nothing of; conventional, as a rigid joint would demand, u q'; or none",
    )
    position_gain: float = bounded(
        20.0, minimum=0.0, unit="1/s", doc="K_P, velocity asked of the link per error of its angle"
    )
    velocity_gain: float = bounded(
        0.015, minimum=0.0, unit="N m s/rad", doc="K_V, motor torque per error of the velocity, at the motor"
    )

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
