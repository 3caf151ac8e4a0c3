"""Servo laws of elastic joints: what torque the motors get, tick by tick (Weigand et al. 2020, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.arm.flatness import control_kernels as kernels
from devices.arm.flatness.joint import MOTION, ElasticJoint
from devices.arm.flatness.joint_kernels import FLAT
from devices.arm.flatness.values import Values, finite
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice

_FEEDS = {"none": kernels.NONE, "elastic": kernels.ELASTIC, "rigid": kernels.RIGID}
_FEEDBACKS = {"none": kernels.NONE, "conventional": kernels.CONVENTIONAL, "model-based": kernels.MODEL_BASED}


@dataclass(frozen=True)
class FeedForwardServo:
    """Feed-forward of a reference, and a feedback of link position and motor velocity (Fig. 4, (16) to (18)).

    Attributes
    ----------
    feed_forward : str
        "elastic" (FB-FF, (20)), "rigid" (R-FF, (27)) or "none".
    feedback : str
        "model-based": the motor is to turn as the elastic joint demands, (25), which a rigid feed-forward knows
        nothing of; "conventional": as a rigid joint would demand, u q'; or "none".
    position_gain : float
        K_P [1/s], at least 0: velocity asked of the link per angle it is off.
    velocity_gain : float
        K_V [N m s/rad], at least 0, motor side.
    """

    feed_forward: str = choice("elastic", _FEEDS, "model of the feed-forward")
    feedback: str = choice("model-based", _FEEDBACKS, "reference of the motor's velocity")
    position_gain: float = bounded(20.0, minimum=0.0, unit="1/s", doc="link velocity per angle off")
    velocity_gain: float = bounded(0.015, minimum=0.0, unit="N m s/rad", doc="motor torque per velocity off")

    def __post_init__(self) -> None:
        check(self, "servo")
        if self.feed_forward == "rigid" and self.feedback == "model-based":
            raise ConfigurationError(
                f"servo.feedback = {self.feedback!r}: with feed_forward = 'rigid' must be one of conventional, none."
            )

    def record(self, joint: ElasticJoint) -> NDArray[Any]:
        """Return this law for `joint` as kernels read it, (1,) of dtype `control_kernels.CONTROL`."""
        if self.feed_forward == "elastic" or self.feedback == "model-based":
            joint.require_flat()
        record = np.zeros(1, kernels.CONTROL)
        record["joint"] = joint.record
        record["feed"], record["feedback"] = _FEEDS[self.feed_forward], _FEEDBACKS[self.feedback]
        record["position_gain"], record["velocity_gain"] = self.position_gain, self.velocity_gain
        return record


@dataclass(frozen=True)
class LinearisingServo:
    """Exact linearisation: the inverse model at the measured state, round which the link is linear (Fig. 5, (12)-(15)).

    All poles of the error lie at minus the bandwidth: four with the elastic model, two with the rigid one. The rigid
    one is for joints that are rigid: on an elastic joint with backlash it is unstable at any useful bandwidth.

    Attributes
    ----------
    model : str
        "elastic", (15), or "rigid", (14).
    bandwidth : float
        [rad/s], greater than 0.
    """

    MODELS: ClassVar[tuple[str, ...]] = ("elastic", "rigid")
    model: str = choice("elastic", MODELS, "model to invert")
    bandwidth: float = bounded(20.0, above=0.0, unit="rad/s", doc="where the poles of the error lie")

    def __post_init__(self) -> None:
        check(self, "servo")

    def record(self, joint: ElasticJoint) -> NDArray[Any]:
        """Return this law for `joint` as kernels read it, (1,) of dtype `control_kernels.CONTROL`."""
        if self.model == "elastic":
            joint.require_flat()
        record = np.zeros(1, kernels.CONTROL)
        record["joint"] = joint.record
        record["feed"], record["feedback"] = _FEEDS[self.model], kernels.LINEARISING
        record["bandwidth"] = self.bandwidth
        return record


ServoLaw = FeedForwardServo | LinearisingServo


class JointServos:
    """The servo laws of all joints of an arm, for one compiled call per tick.

    Parameters
    ----------
    joints : sequence of ElasticJoint
        What the servo laws believe the joints to be.
    law : FeedForwardServo or LinearisingServo
        The servo law of all of them.

    Raises
    ------
    ConfigurationError
        If there is no joint, or a joint's stiffness law is not smooth enough for the law.
    """

    def __init__(self, joints: Sequence[ElasticJoint], law: ServoLaw) -> None:
        if not joints:
            raise ConfigurationError("joints: there must be at least one.")
        self.controls = np.concatenate([law.record(joint) for joint in joints])
        self.rows = np.zeros(len(joints), FLAT)
        self.measured = np.zeros(len(joints), kernels.MEASURED)
        self._torques = np.zeros(len(joints))

    def step(
        self,
        motion: ArrayLike,
        inertia: ArrayLike,
        load: ArrayLike,
        position: ArrayLike,
        velocity: ArrayLike,
        motor_angle: ArrayLike,
        motor_velocity: ArrayLike,
    ) -> Values:
        """Return the motor torques (m,) [N m] of one tick.

        Parameters
        ----------
        motion : (m, 5) array
            Reference of each link: angle [rad] and four derivatives.
        inertia, load : (m,) array
            Inertia of each link [kg m^2] and its other torques [N m]; see `devices.arm.flatness.joint.feed_forward`.
        position, velocity, motor_angle, motor_velocity : (m,) array
            What is measured: link angle [rad] and velocity [rad/s], motor angle [rad] and velocity [rad/s]. A
            `FeedForwardServo` uses position and motor velocity only.

        Raises
        ------
        ConfigurationError
            If an argument is not finite or of another shape, or an inertia is not greater than 0.
        """
        count = len(self.rows)
        columns = self._shaped(motion, "motion", (count, len(MOTION)))
        for k, name in enumerate(MOTION):
            self.rows[name] = columns[:, k]
        self.rows["inertia"] = self._shaped(inertia, "inertia", (count,))
        if not (self.rows["inertia"] > 0.0).all():
            raise ConfigurationError(f"inertia = {inertia!r}: must be greater than 0 kg m^2.")
        self.rows["load"] = self._shaped(load, "load", (count,))
        measured = (position, velocity, motor_angle, motor_velocity)
        for field, value in zip(kernels.MEASURED.names or (), measured, strict=True):
            self.measured[field] = self._shaped(value, field, (count,))
        kernels.servo_tick(self.controls, self.rows, self.measured, self._torques)
        return self._torques.copy()

    @staticmethod
    def _shaped(values: ArrayLike, what: str, shape: tuple[int, ...]) -> Values:
        array = finite(values, what)
        if array.shape != shape:
            raise ConfigurationError(f"{what} of shape {array.shape}: must be {shape}.")
        return array
