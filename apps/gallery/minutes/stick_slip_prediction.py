"""What stick-slip must be, found without the elements: by the text-book switch between stick and slip, and by roots.

A mass m on a grip (k, b) that is pulled at a constant speed V rubs on a surface with the exponential Stribeck law,
through a spring and damper (K, B) as every rendered contact has them. ``period`` integrates it in steps of a hundredth
of a tick with two phases, ``critical_damping`` linearises it about steady sliding.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Pulled:
    """A mass that is pulled over a surface.

    Attributes
    ----------
    mass : float
        [kg].
    grip : float
        Stiffness of the grip [N/m].
    speed : float
        Of the pull [m/s].
    kinetic, static, stribeck : float
        Of the law [N], [N], [m/s].
    stiffness, damping : float
        Of the contact [N/m], [N s/m].
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
        """Return its derivative [N s/m], which is negative."""
        return -(self.static - self.kinetic) / self.stribeck * math.exp(-speed / self.stribeck)

    @property
    def steepest(self) -> float:
        """Damping of the grip from which on friction and grip together rise at every speed [N s/m]."""
        return -self.slope(0.0)


def critical_damping(pulled: Pulled, late: float) -> float:
    """Return the damping of the grip below which steady sliding at that speed is unstable [N s/m].

    On the edge of stability the mass swings as ``exp(i w t)`` under the impedance of the contact, the slope F' of the
    law in series with spring and damper: ``1/Z = 1/F' + i w / (K + i w B)``, which comes `late` [s]. The imaginary part
    of ``i w Z exp(-i w late) + k - m w^2 + i w b = 0`` gives b, the real part w. With a stiff contact ``b = -F'``.
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
    """Return the time from one slip to the next [s]: the mean over `duration` [s] without the first two; nan if none.

    Parameters
    ----------
    pulled : Pulled
        What is pulled, from rest with nothing stretched.
    grip_damping : float
        [N s/m].
    """
    place = velocity = stretch = sliding = 0.0
    begins: list[float] = []
    sticks = True
    for number in range(round(duration / step)):
        push = pulled.stiffness * stretch + pulled.damping * velocity  # what the contact gives if it sticks
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
    """Return the speed at which ``push - B s`` is the level of the law, by Newton's method [m/s]."""
    speed = guess
    for _ in range(30):
        slope = pulled.damping + pulled.slope(speed)
        better = max(speed - (pulled.damping * speed + pulled.level(speed) - push) / slope, 0.0)
        if abs(better - speed) < 1e-12:
            return better
        speed = better
    return speed
