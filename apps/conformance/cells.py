"""Constants of the suite: rendered friction, plant, grips, test conditions (cells), and motions of the hand.

``docs/conformance.md`` contains the equations that use these constants.

A hand that pushes is a force and a damper: ``h = p(t) - b_h x'``. A hand that follows a path ``x*`` is also a spring,
and anticipates a friction of F: ``h = k_h (x* - x) + b_h (x*' - x') + F x*'/|x*'|``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

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


Array = NDArray[np.float64]

PUSH_DIRECTION = np.array((0.8, 0.6))
"""Direction of every push, neither along an axis nor along a diagonal."""

SETTLING = 1.0
"""Time after which a push has been applied and has settled [s]."""

HOLD_FORCE, HOLD_DURATION = 0.5 * FRICTION, 8.0
"""Constant push [N] and its observation time [s]."""

FLUCTUATION_FORCE, FLUCTUATION_FREQUENCY, FLUCTUATION_DURATION = 0.4 * FRICTION, 3.0, 9.0
"""Amplitude [N] and frequency [Hz] of the fluctuation added to the constant push, and its observation time [s]."""

RAMP_RATE, RAMP_DURATION = 0.125 * FRICTION, 12.0
"""Rate [N/s] and duration [s] of the growing push, which reaches 1.5 F."""

SLIDING_SPEEDS = (0.02, 0.2)
"""Speeds of steady sliding [m/s]."""

DIRECTIONS = tuple(math.radians(40.0 * k) for k in range(9))
"""Directions of steady sliding [rad]. Folded into one quadrant they are 0, 10, ... 80 degrees."""

SLIDING_SETTLING, SLIDING_DURATION = 2.0, 1.0
"""Settling time and observation time of steady sliding [s]."""

CIRCLE_RADIUS, CIRCLE_SPEED = 0.1, 0.1
"""Radius and speed of the circle [m], [m/s]. The elastic lag of an exact element, asin(F/(K R)), is 0.4 degrees."""

CIRCLE_SETTLING = 2.0
"""Settling time of the circle [s], which is then observed for one turn."""

_START = 0.5
_PUSH_START = 0.2


def _rise(t: Array, duration: float) -> Array:
    """Return a smooth step from 0 to 1 within `duration`, with continuous acceleration."""
    u = np.clip(t / duration, 0.0, 1.0)
    return np.asarray(u**3 * (10.0 - 15.0 * u + 6.0 * u**2))


def _way(t: Array, duration: float) -> Array:
    """Return the integral of `_rise` over time [s]."""
    u = np.clip(t / duration, 0.0, 1.0)
    return np.asarray(duration * u**4 * (2.5 - 3.0 * u + u**2) + np.maximum(t - duration, 0.0))


@dataclass(frozen=True)
class Motion:
    """Motion of the hand.

    Attributes
    ----------
    name : str
        Name.
    settling, duration : float
        Settling time and observation time [s].
    shape : callable
        ``shape(t)`` with ``t`` (n,) [s]: a push, (n, 2) [N], or a path as position and velocity, (n, 2) [m] and [m/s].
    prescribed : bool
        True for a path.
    """

    name: str
    settling: float
    duration: float
    shape: Callable[[Array], Array | tuple[Array, Array]]
    prescribed: bool = False

    def ticks(self, rate: float) -> int:
        """Return the number of ticks at `rate` [Hz]."""
        return math.ceil((self.settling + self.duration) * rate - 1e-9)

    def drive(self, times: Array, grip: Grip) -> Array:
        """Return the force of the hand on a handle at rest at the origin at `times`, (n, 2) [N]."""
        shape = self.shape(times)
        if not isinstance(shape, tuple):
            return shape
        position, velocity = shape
        speed = np.hypot(velocity[:, 0], velocity[:, 1])[:, None]
        direction = velocity / np.where(speed > 0.0, speed, 1.0)
        expected = FRICTION * _rise(times, _START)[:, None] * direction
        return np.asarray(grip.stiffness * position + grip.damping * velocity + expected)


def _circle(t: Array) -> tuple[Array, Array]:
    angle = CIRCLE_SPEED / CIRCLE_RADIUS * _way(t, _START)
    speed = CIRCLE_SPEED * _rise(t, _START)
    out = np.stack((np.cos(angle) - 1.0, np.sin(angle)), axis=1)
    along = np.stack((-np.sin(angle), np.cos(angle)), axis=1)
    return CIRCLE_RADIUS * out, speed[:, None] * along


def slide(speed: float, direction: float) -> Motion:
    """Return steady sliding at `speed` [m/s] in `direction` [rad]."""
    unit = np.array((math.cos(direction), math.sin(direction)))

    def shape(t: Array) -> tuple[Array, Array]:
        return speed * np.outer(_way(t, _START), unit), speed * np.outer(_rise(t, _START), unit)

    name = f"slide-{round(speed * 1e3)}-{round(math.degrees(direction))}"
    return Motion(name, SLIDING_SETTLING, SLIDING_DURATION, shape, prescribed=True)


HOLD = Motion("hold", SETTLING, HOLD_DURATION, lambda t: np.outer(HOLD_FORCE * _rise(t, _PUSH_START), PUSH_DIRECTION))
FLUCTUATION = Motion(
    "fluctuation",
    SETTLING,
    FLUCTUATION_DURATION,
    lambda t: np.outer(
        (HOLD_FORCE + FLUCTUATION_FORCE * np.sin(2.0 * np.pi * FLUCTUATION_FREQUENCY * t)) * _rise(t, _PUSH_START),
        PUSH_DIRECTION,
    ),
)
BREAKAWAY = Motion("breakaway", 0.0, RAMP_DURATION, lambda t: np.outer(RAMP_RATE * t, PUSH_DIRECTION))
CIRCLE = Motion("circle", CIRCLE_SETTLING, 2.0 * math.pi * CIRCLE_RADIUS / CIRCLE_SPEED, _circle, prescribed=True)
SLIDES = {(speed, direction): slide(speed, direction) for speed in SLIDING_SPEEDS for direction in DIRECTIONS}
