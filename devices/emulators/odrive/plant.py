"""The load of the emulated drive: two flywheels, or an arm in their place."""

from __future__ import annotations

import math
from typing import Protocol

Pair = tuple[float, float]

_TURN = math.tau


class Plant(Protocol):
    """Two shafts that torques turn."""

    @property
    def angles(self) -> Pair:
        """Of the motors' shafts [turn]."""
        ...

    @property
    def speeds(self) -> Pair:
        """Of the motors' shafts [turn/s]."""
        ...

    def advance(self, torques: Pair, duration: float) -> None:
        """Let `duration` [s] go by with these torques of the motors [N m]."""
        ...


class Flywheels:
    """Two inertias with viscous friction, and what else pushes them.

    Parameters
    ----------
    inertia : float
        Of each [kg m^2].
    friction : float
        Torque per speed [N m s/rad].

    Attributes
    ----------
    angles, speeds : (float, float)
        Of the shafts [turn], [turn/s].
    loads : (float, float)
        Torques that act besides those of the motors [N m].
    """

    def __init__(self, inertia: float = 2e-4, friction: float = 1e-4) -> None:
        self.angles: Pair = (0.0, 0.0)
        self.speeds: Pair = (0.0, 0.0)
        self.loads: Pair = (0.0, 0.0)
        self._per_torque = 1.0 / (inertia * _TURN)
        self._decay = friction / inertia

    def advance(self, torques: Pair, duration: float) -> None:
        """Let `duration` [s] go by; see `Plant`. Friction is implicit, so that it never adds energy."""
        damped = 1.0 / (1.0 + self._decay * duration)
        push = self._per_torque * duration
        first, second = (
            (speed + push * (torque + load)) * damped
            for speed, torque, load in zip(self.speeds, torques, self.loads, strict=True)
        )
        self.speeds = first, second
        self.angles = self.angles[0] + duration * first, self.angles[1] + duration * second
