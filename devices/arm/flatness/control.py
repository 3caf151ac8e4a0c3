"""Servo laws of elastic joints: motor torque per tick (Weigand et al. 2020, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from devices.arm.flatness import control_kernels as kernels
from devices.arm.flatness.joint import ElasticJoint
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented

_FEEDS = {"none": kernels.NONE, "elastic": kernels.ELASTIC, "rigid": kernels.RIGID}
_FEEDBACKS = {"none": kernels.NONE, "conventional": kernels.CONVENTIONAL, "model-based": kernels.MODEL_BASED}


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
        """Return the law for `joint` as a kernel record, (1,) of dtype `control_kernels.CONTROL`."""
        if self.feed_forward == "elastic" or self.feedback == "model-based":
            joint.require_flat()
        record = np.zeros(1, kernels.CONTROL)
        record["joint"] = joint.record
        record["feed"], record["feedback"] = _FEEDS[self.feed_forward], _FEEDBACKS[self.feedback]
        record["position_gain"], record["velocity_gain"] = self.position_gain, self.velocity_gain
        return record


@documented
@dataclass(frozen=True)
class LinearisingServo:
    """Exact linearisation: the inverse model at the measured state (Fig. 5, (12)-(15)).

    All poles of the error are at minus the bandwidth: four with the elastic model, two with the rigid model. The rigid
    model is for rigid joints only: on an elastic joint with backlash it is unstable at any useful bandwidth.
    """

    MODELS: ClassVar[tuple[str, ...]] = ("elastic", "rigid")
    model: str = choice("elastic", MODELS, doc="model to invert: elastic, (15), or rigid, (14)")
    bandwidth: float = bounded(20.0, above=0.0, unit="rad/s", doc="where the poles of the error lie")

    def __post_init__(self) -> None:
        check(self, "servo")

    def record(self, joint: ElasticJoint) -> NDArray[Any]:
        """Return the law for `joint` as a kernel record, (1,) of dtype `control_kernels.CONTROL`."""
        if self.model == "elastic":
            joint.require_flat()
        record = np.zeros(1, kernels.CONTROL)
        record["joint"] = joint.record
        record["feed"], record["feedback"] = _FEEDS[self.model], kernels.LINEARISING
        record["bandwidth"] = self.bandwidth
        return record


ServoLaw = FeedForwardServo | LinearisingServo
