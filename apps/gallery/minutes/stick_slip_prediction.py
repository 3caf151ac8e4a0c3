"""Predictions of stick-slip without the elements: period by integration, stability by linearisation.

A mass m on a grip (k, b) is pulled at a constant speed V over a surface with the exponential Stribeck law, through the
spring and damper (K, B) of every rendered contact. ``period`` integrates the motion with the two phases stick and slip
in steps of a hundredth of a tick. ``critical_damping`` linearises the motion about steady sliding.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Pulled:
    """Parameters of a mass that is pulled over a surface.

    Attributes
    ----------
    mass : float
        Mass [kg].
    grip : float
        Stiffness of the grip [N/m].
    speed : float
        Speed of the pull [m/s].
    kinetic, static, stribeck : float
        Kinetic force [N], static force [N] and Stribeck velocity [m/s] of the law.
    stiffness, damping : float
        Stiffness [N/m] and damping [N s/m] of the contact.
    """

    mass: float
    grip: float
    speed: float
    kinetic: float
    static: float
    stribeck: float
    stiffness: float
    damping: float

    def level(self, speed: float) -> float:
        """Return the friction at a sliding `speed` >= 0 [N]."""
        return self.kinetic + (self.static - self.kinetic) * math.exp(-speed / self.stribeck)

    def slope(self, speed: float) -> float:
        """Return the derivative of the friction level by speed [N s/m], which is negative."""
        return -(self.static - self.kinetic) / self.stribeck * math.exp(-speed / self.stribeck)

    @property
    def steepest(self) -> float:
        """Grip damping at which grip and friction together increase at every speed [N s/m]."""
        return -self.slope(0.0)


def critical_damping(pulled: Pulled, late: float) -> float:
    """Return the grip damping below which steady sliding at the pulling speed is unstable [N s/m].

    At the stability limit the mass oscillates as ``exp(i w t)`` under the impedance of the contact, which is the slope
    F' of the law in series with spring and damper: ``1/Z = 1/F' + i w / (K + i w B)``, delayed by `late` [s]. The
    imaginary part of ``i w Z exp(-i w late) + k - m w^2 + i w b = 0`` gives b, the real part w. With a stiff contact
    ``b = -F'``.
    """

    def impedance(w: float) -> complex:
        contact = 1j * w / (pulled.stiffness + 1j * w * pulled.damping)
        return cmath.exp(-1j * w * late) / (1.0 / pulled.slope(pulled.speed) + contact)

    low, high = 1.0, 1e3
    for _ in range(60):
        middle = 0.5 * (low + high)
        stiffer = pulled.grip - pulled.mass * middle**2 - middle * impedance(middle).imag > 0.0
        low, high = (middle, high) if stiffer else (low, middle)
    return -impedance(low).real


def period(pulled: Pulled, grip_damping: float, duration: float, step: float = 1e-5) -> float:
    """Return the mean time between slips during `duration` [s], without the first two; nan without slips.

    Parameters
    ----------
    pulled : Pulled
        The mass, initially at rest with relaxed springs.
    grip_damping : float
        Damping of the grip [N s/m].
    duration : float
        Simulated time [s].
    step : float
        Step of the integration [s].

    Returns
    -------
    float
        Period of the stick-slip motion [s].
    """
    place = velocity = stretch = sliding = 0.0
    begins: list[float] = []
    sticks = True
    for number in range(round(duration / step)):
        push = pulled.stiffness * stretch + pulled.damping * velocity  # contact force if it sticks
        if abs(push) <= pulled.static:
            force, sliding, stuck = push, 0.0, True
        else:
            size = _sliding(pulled, abs(push), abs(sliding))
            sliding, stuck = math.copysign(size, push), False
            force = math.copysign(pulled.level(size), push)
        if sticks and not stuck and (not begins or number * step - begins[-1] > 0.02):
            begins.append(number * step)
        sticks = stuck
        stretch += step * (velocity - sliding)
        ahead = pulled.speed * number * step - place
        pull = pulled.grip * ahead + grip_damping * (pulled.speed - velocity)
        velocity += step * (pull - force) / pulled.mass
        place += step * velocity
    return float(np.mean(np.diff(begins[2:]))) if len(begins) > 3 else math.nan


def _sliding(pulled: Pulled, push: float, guess: float) -> float:
    """Return the speed s at which ``push - B s`` is the level of the law [m/s], by Newton's method."""
    speed = guess
    for _ in range(30):
        slope = pulled.damping + pulled.slope(speed)
        better = max(speed - (pulled.damping * speed + pulled.level(speed) - push) / slope, 0.0)
        if abs(better - speed) < 1e-12:
            return better
        speed = better
    return speed
