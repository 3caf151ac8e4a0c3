"""Which servo law the arm has, and its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from devices.arm.servo.fractional import MAX_ORDER
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, free

PID, FLATNESS, RIGID, LINEARISING, FRACTIONAL = range(5)
LAWS = {"pid": PID, "flatness": FLATNESS, "rigid": RIGID, "linearising": LINEARISING, "fractional": FRACTIONAL}
"""Servo laws by the name used in settings."""

NEED_DERIVATIVES = (FLATNESS, RIGID, LINEARISING)
"""Laws that need a reference with derivatives."""

MAX_TERMS = 63
"""Longest memory of the fractional law, besides the present sample."""


@dataclass(frozen=True)
class ServoSettings:
    """The servo of both joints.

    Without gains of its own the servo works them out from the bandwidth, so that joint, rotor and integrator have
    their poles there. Gains given by a person are seen at the joint.

    Attributes
    ----------
    law : str
        "pid", "flatness", "rigid", "linearising" or "fractional".
    period : float
        Of the servo [s].
    bandwidth : float
        [Hz]; of "linearising" where its four poles lie, of "fractional" where its loop gain is one.
    damping_ratio : float
        Of the two poles of joint and rotor; 1 is critical.
    integral : float
        Pole of the integrator as a share of the bandwidth; 0 for none. For "pid", "flatness" and "rigid".
    position_gain, velocity_gain, integral_gain : float
        [N m/rad], [N m s/rad], [N m/(rad s)]. With a `position_gain` above 0 these three count instead of `bandwidth`,
        `damping_ratio` and `integral`. For "fractional" the position gain is that of the derivative,
        [N m s^order/rad].
    speed_filter : float
        Cut-off of the low-pass for the speed of the error, which is a difference of encoder readings [Hz].
    feedback : str
        Of "flatness": "model-based" or "conventional" (`devices.arm.flatness.control.FeedForwardServo`).
    reference : str
        "smooth": a reference with derivatives follows the command; "none": the command is the reference; "auto": what
        the law needs.
    reference_frequency : float
        Where the four poles of that reference lie [Hz].
    holds_weight : bool
        Whether "pid" and "fractional" add what holds the arm against its weight. The others always do.
    knows_hand : bool
        Whether the torque that the hand exerts on the joints, measured, is fed forward as a load.
    hand_filter : float
        Cut-off of the low-pass it goes through, two poles [Hz]. A device that gives way to the hand by what the hand
        does is a loop of its own: the faster it knows the hand, the less of it is stable.
    order : float
        Of the derivative of "fractional"; 1 with `terms` 1 and a `proportional` gain is PD.
    terms : int
        How many samples of the past count in it, from 0 to 63.
    proportional : float
        Of "fractional", on the error itself [N m/rad].
    """

    law: str = choice("pid", LAWS, "servo law")
    period: float = bounded(2e-4, minimum=2e-5, maximum=2e-3, unit="s", doc="of the servo")
    bandwidth: float = bounded(50.0, above=0.0, maximum=500.0, unit="Hz", doc="decides the gains")
    damping_ratio: float = bounded(1.0, minimum=0.2, maximum=5.0, doc="of the servo's poles")
    integral: float = bounded(0.2, minimum=0.0, maximum=1.0, doc="pole of the integrator over the bandwidth")
    position_gain: float = bounded(0.0, minimum=0.0, maximum=1e9, unit="N m/rad", doc="0: from the bandwidth")
    velocity_gain: float = bounded(0.0, minimum=0.0, maximum=1e9, unit="N m s/rad", doc="with a position_gain")
    integral_gain: float = bounded(0.0, minimum=0.0, maximum=1e9, unit="N m/(rad s)", doc="with a position_gain")
    speed_filter: float = bounded(300.0, above=0.0, maximum=1e5, unit="Hz", doc="low-pass of the speed's error")
    feedback: str = choice("model-based", ("model-based", "conventional"), "of the flatness law")
    reference: str = choice("auto", ("auto", "smooth", "none"), "whether a smooth reference follows the command")
    reference_frequency: float = bounded(60.0, minimum=1.0, maximum=1e3, unit="Hz", doc="poles of that reference")
    holds_weight: bool = free(True, "true or false", "whether pid and fractional hold the arm against its weight")
    knows_hand: bool = free(False, "true or false", "whether the measured torque of the hand is fed forward")
    hand_filter: float = bounded(10.0, above=0.0, maximum=1e3, unit="Hz", doc="low-pass of what is known of the hand")
    order: float = bounded(0.5, minimum=-MAX_ORDER, maximum=MAX_ORDER, doc="of the fractional law")
    terms: int = bounded(17, minimum=0, maximum=MAX_TERMS, doc="samples of the past in the fractional law")
    proportional: float = bounded(0.0, minimum=0.0, maximum=1e9, unit="N m/rad", doc="of the fractional law")

    def __post_init__(self) -> None:
        check(self, "device.servo")
        if self.position_gain == 0.0 and (self.velocity_gain > 0.0 or self.integral_gain > 0.0):
            raise ConfigurationError(
                "device.servo.position_gain = 0.0: must be greater than 0 N m/rad with other gains."
            )
        if self.position_gain > 0.0 and self.velocity_gain == 0.0 and self.kind in (PID, FLATNESS, RIGID):
            raise ConfigurationError(
                "device.servo.velocity_gain = 0.0: must be greater than 0 N m s/rad with a position gain."
            )
        if self.kind in NEED_DERIVATIVES and self.reference == "none":
            raise ConfigurationError(
                f"device.servo.reference = 'none': must be one of auto, smooth for device.servo.law = {self.law!r}, "
                "which needs the derivatives of the reference."
            )
        if not isinstance(self.terms, int):
            raise ConfigurationError(
                f"device.servo.terms = {self.terms!r}: must be a whole number from 0 to {MAX_TERMS}."
            )

    @property
    def kind(self) -> int:
        """The law as kernels know it."""
        return LAWS[self.law]

    @property
    def smooth(self) -> bool:
        """Whether a smooth reference follows the command."""
        return self.reference == "smooth" or (self.reference == "auto" and self.kind in NEED_DERIVATIVES)
