"""What the suite is about: the friction asked for, the plant, the hand's grips, and the cells of the comparison.

Everything a renderer is judged by is a constant here; ``docs/conformance.md`` has the equations they enter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from devices.common.velocity import VelocitySettings

FRICTION = 4.0
"""The friction force F that every renderer is asked for [N]."""

STIFFNESS, DAMPING, MASS = 6000.0, 10.0, 2.0
"""Virtual coupling K [N/m], B [N s/m] and virtual mass M [kg], where there are any (Kikuuwe et al. 2006, V)."""

HANDLE_MASS, HANDLE_DAMPING, HANDLE_MAX_FORCE = 0.25, 1.0, 20.0
"""The joystick: mass of its handle [kg], viscous friction of its own [N s/m], saturation of its motors [N]."""

ARM_MASS, ARM_FREQUENCY, ARM_DAMPING_RATIO = 5.0, 30.0, 1.0
"""The arm: moving mass [kg], natural frequency [Hz] and damping ratio of its position servo."""

SENSOR_NOISE, SENSOR_BIAS, SENSOR_STEP = 0.05, (0.1, -0.05), 0.01
"""The arm's force sensor: rms noise per axis, bias, resolution [N]."""

LONGEST_SUBSTEP = 1e-4
"""Upper bound of the plant's substep [s]; half a period is a whole number of substeps."""


@dataclass(frozen=True)
class Grip:
    """How a hand holds the handle.

    Attributes
    ----------
    name : str
        Its name in the results.
    damping : float
        Damping of the hand, in every motion [N s/m].
    stiffness : float
        Stiffness with which it follows a prescribed motion [N/m]; none while it only pushes.
    """

    name: str
    damping: float
    stiffness: float


@dataclass(frozen=True)
class Cell:
    """One condition under which a renderer is judged.

    Attributes
    ----------
    grip : Grip
        The hand.
    quantisation : float
        Resolution of the encoder [m].
    rate : float
        Servo rate [Hz].
    velocity : str
        Estimator that makes the velocity of a joystick from its encoder, with its default settings.
    """

    grip: Grip
    quantisation: float
    rate: float
    velocity: str = VelocitySettings().velocity_estimator

    @property
    def quantisation_um(self) -> float:
        """Resolution of the encoder [um]."""
        return round(self.quantisation * 1e6, 6)

    @property
    def name(self) -> str:
        """In words."""
        own = "" if self.velocity == VelocitySettings().velocity_estimator else f", {self.velocity}"
        return f"{self.grip.name}, {self.quantisation_um:g} um, {self.rate:g} Hz{own}"


LIGHT = Grip("light", damping=2.0, stiffness=100.0)
FIRM = Grip("firm", damping=8.0, stiffness=400.0)

CELLS: tuple[Cell, ...] = tuple(
    Cell(grip, quantisation, rate)
    for grip, quantisation, rate in product((LIGHT, FIRM), (5e-6, 20e-6, 100e-6), (500.0, 1000.0, 2000.0))
)
"""Two grips, three encoders, three rates."""

REFERENCE = Cell(LIGHT, 20e-6, 1000.0)
"""The cell in which the limits apply: the light grip, because it damps least."""

RAW = replace(REFERENCE, velocity="difference")
"""The same with the plain difference of the encoder's positions for a velocity.

It shows what the rendering owes to the velocity estimator. It is not among `CELLS`, for it changes the device and not
the condition.
"""
