"""Settings of the arm's servo law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from devices.arm.servo.fractional import MAX_ORDER
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, flag

PID, FLATNESS, RIGID, LINEARISING, FRACTIONAL, SLIDING = range(6)
LAWS = {
    "pid": PID,
    "flatness": FLATNESS,
    "rigid": RIGID,
    "linearising": LINEARISING,
    "fractional": FRACTIONAL,
    "sliding-mode": SLIDING,
}
"""Servo laws by the name used in settings."""

_NEED_DERIVATIVES = (FLATNESS, RIGID, LINEARISING)  # laws that need a reference with derivatives

MAX_TERMS = 63
"""Maximum number of past samples of the fractional law, without the present sample."""


_GAIN: dict[str, Any] = {"minimum": 0.0, "maximum": 1e9}


@documented
@dataclass(frozen=True)
class ServoSettings:
    """Settings of the servo of both joints.

    Without explicit gains they follow from the bandwidth, so that joint, rotor and integrator have their poles there.
    Explicit gains are seen at the joint.
    """

    law: str = choice("pid", LAWS, doc="servo law")
    period: float = bounded(2e-4, minimum=2e-5, maximum=2e-3, unit="s", doc="period of the servo")
    bandwidth: float = bounded(
        50.0,
        above=0.0,
        maximum=500.0,
        unit="Hz",
        doc="determines the gains; for linearising its four poles, for fractional the frequency of unit loop gain",
    )
    damping_ratio: float = bounded(1.0, minimum=0.2, maximum=5.0, doc="damping ratio of the poles of joint and rotor")
    integral: float = bounded(
        0.2,
        minimum=0.0,
        maximum=1.0,
        doc="pole of the integrator over the bandwidth, 0 for none; for pid, flatness, rigid and sliding-mode",
    )
    position_gain: float = bounded(
        0.0,
        **_GAIN,
        unit="N m/rad",
        doc="above 0 the three gains replace bandwidth, damping_ratio and integral; for fractional the "
        "gain of the derivative (N m s^order/rad)",
    )
    velocity_gain: float = bounded(0.0, **_GAIN, unit="N m s/rad", doc="velocity gain, with a position_gain")
    integral_gain: float = bounded(0.0, **_GAIN, unit="N m/(rad s)", doc="integral gain, with a position_gain")
    speed_filter: float = bounded(300.0, above=0.0, maximum=1e5, unit="Hz", doc="low-pass filter of the error's speed")
    feedback: str = choice("model-based", ("model-based", "conventional"), doc="feedback of the flatness law")
    reference: str = choice("auto", ("auto", "smooth", "none"), doc="smooth reference; auto: where the law needs it")
    reference_frequency: float = bounded(60.0, minimum=1.0, maximum=1e3, unit="Hz", doc="four poles of that reference")
    holds_weight: bool = flag(True, doc="whether pid and fractional hold the arm against its weight; others always do")
    knows_hand: bool = flag(False, doc="whether the measured torque of the hand on the joints is fed forward as a load")
    hand_filter: float = bounded(
        10.0, above=0.0, maximum=1e3, unit="Hz", doc="cut-off of its two-pole low-pass; higher is less stable"
    )
    order: float = bounded(
        0.5, minimum=-MAX_ORDER, maximum=MAX_ORDER, doc="order of the derivative in the fractional law"
    )
    terms: int = bounded(17, minimum=0, maximum=MAX_TERMS, doc="samples of the past in the fractional law")
    proportional: float = bounded(0.0, **_GAIN, unit="N m/rad", doc="gain of the fractional law on the error itself")

    torque_bound: float = bounded(
        60.0, above=0.0, maximum=1e6, unit="N m", doc="largest joint torque under sliding-mode, limited by the motor"
    )
    resume_time: float = bounded(0.25, minimum=1e-3, maximum=100.0, unit="s", doc="time constant of leaving that bound")

    def __post_init__(self) -> None:
        check(self, "device.servo")
        if self.position_gain == 0.0 and (self.velocity_gain > 0.0 or self.integral_gain > 0.0):
            raise ConfigurationError(
                "device.servo.position_gain = 0.0: must be greater than 0 N m/rad with other gains."
            )
        if self.position_gain > 0.0 and self.velocity_gain == 0.0 and self.kind in (PID, FLATNESS, RIGID, SLIDING):
            raise ConfigurationError(
                "device.servo.velocity_gain = 0.0: must be greater than 0 N m s/rad with a position gain."
            )
        if self.kind in _NEED_DERIVATIVES and self.reference == "none":
            raise ConfigurationError(
                f"device.servo.reference = 'none': must be one of auto, smooth for device.servo.law = {self.law!r}, "
                "which needs the derivatives of the reference."
            )

    @property
    def kind(self) -> int:
        """Number of the law in the kernels."""
        return LAWS[self.law]

    @property
    def smooth(self) -> bool:
        """Whether a smooth reference follows the command."""
        return self.reference == "smooth" or (self.reference == "auto" and self.kind in _NEED_DERIVATIVES)
