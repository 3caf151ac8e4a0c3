"""Constants of the suite: rendered friction, plant, grips of the hand, and test conditions (cells).

``docs/conformance.md`` contains the equations that use these constants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from devices.common.settings import VelocitySettings

FRICTION = 4.0
"""Friction force F that every renderer must render [N]."""

STIFFNESS, DAMPING, MASS = 6000.0, 10.0, 2.0
"""Virtual coupling K [N/m], B [N s/m] and virtual mass M [kg], if the model has them (Kikuuwe et al. 2006, V)."""

HANDLE_MASS, HANDLE_DAMPING, HANDLE_MAX_FORCE = 0.25, 1.0, 20.0
"""Joystick: mass of the handle [kg], viscous friction of the device [N s/m], saturation of the motors [N]."""

ARM_MASS, ARM_FREQUENCY, ARM_DAMPING_RATIO = 5.0, 30.0, 1.0
"""Arm: moving mass [kg], natural frequency [Hz] and damping ratio of the position servo."""

SENSOR_NOISE, SENSOR_BIAS, SENSOR_STEP = 0.05, (0.1, -0.05), 0.01
"""Force sensor of the arm: rms noise per axis, bias, resolution [N]."""

LONGEST_SUBSTEP = 1e-4
"""Upper bound of the plant's substep [s]; half a period contains a whole number of substeps."""


@dataclass(frozen=True)
class Grip:
    """Grip of the hand on the handle.

    Attributes
    ----------
    name : str
        Name in the results.
    damping : float
        Damping of the hand, in every motion [N s/m].
    stiffness : float
        Stiffness of the hand during a prescribed motion [N/m]; zero for pushes.
    """

    name: str
    damping: float
    stiffness: float


@dataclass(frozen=True)
class Cell:
    """Test condition.

    Attributes
    ----------
    grip : Grip
        Grip of the hand.
    quantisation : float
        Resolution of the encoder [m].
    rate : float
        Servo rate [Hz].
    velocity : str
        Velocity estimator of a joystick, with its default settings.
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
        """Label of the condition."""
        own = "" if self.velocity == VelocitySettings().velocity_estimator else f", {self.velocity}"
        return f"{self.grip.name}, {self.quantisation_um:g} um, {self.rate:g} Hz{own}"


LIGHT = Grip("light", damping=2.0, stiffness=100.0)
FIRM = Grip("firm", damping=8.0, stiffness=400.0)

CELLS: tuple[Cell, ...] = tuple(
    Cell(grip, quantisation, rate)
    for grip, quantisation, rate in product((LIGHT, FIRM), (5e-6, 20e-6, 100e-6), (500.0, 1000.0, 2000.0))
)
"""All combinations of two grips, three encoders and three rates."""

REFERENCE = Cell(LIGHT, 20e-6, 1000.0)
"""Cell to which the limits apply. It has the light grip, which has the lowest damping."""

RAW = replace(REFERENCE, velocity="difference")
"""Reference cell with the difference of encoder positions as the velocity.

It shows the contribution of the velocity estimator. It is not in `CELLS`, because it changes the device instead of the
condition.
"""
