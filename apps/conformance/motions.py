"""Motions of the hand, pushes and prescribed paths, converted to forces that drive the plant.

A hand that pushes is a force and a damper: ``h = p(t) - b_h x'``. A hand that follows a path ``x*`` is also a spring,
and anticipates a friction of F: ``h = k_h (x* - x) + b_h (x*' - x') + F x*'/|x*'|``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.conformance.cells import FRICTION, Grip

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

    def stiffness(self, grip: Grip) -> float:
        """Return the stiffness of the hand [N/m]; zero for pushes."""
        return grip.stiffness if self.prescribed else 0.0

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


def _hold(t: Array) -> Array:
    return np.outer(HOLD_FORCE * _rise(t, _PUSH_START), PUSH_DIRECTION)


def _fluctuate(t: Array) -> Array:
    wave = FLUCTUATION_FORCE * np.sin(2.0 * np.pi * FLUCTUATION_FREQUENCY * t)
    return np.outer((HOLD_FORCE + wave) * _rise(t, _PUSH_START), PUSH_DIRECTION)


def _ramp(t: Array) -> Array:
    return np.outer(RAMP_RATE * t, PUSH_DIRECTION)


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

    return Motion(
        f"slide-{round(speed * 1e3)}-{round(math.degrees(direction))}",
        SLIDING_SETTLING,
        SLIDING_DURATION,
        shape,
        prescribed=True,
    )


HOLD = Motion("hold", SETTLING, HOLD_DURATION, _hold)
FLUCTUATION = Motion("fluctuation", SETTLING, FLUCTUATION_DURATION, _fluctuate)
BREAKAWAY = Motion("breakaway", 0.0, RAMP_DURATION, _ramp)
CIRCLE = Motion("circle", CIRCLE_SETTLING, 2.0 * math.pi * CIRCLE_RADIUS / CIRCLE_SPEED, _circle, prescribed=True)
SLIDES = {(speed, direction): slide(speed, direction) for speed in SLIDING_SPEEDS for direction in DIRECTIONS}
