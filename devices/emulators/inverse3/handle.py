"""Emulated handle in space: a virtual joystick in a plane, and a sagging mass normal to it.

Gravity is compensated, as in the service. The sag is caused by the small constant force of a resting hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from devices.emulators.inverse3.filters import Space
from devices.virtual.joystick import VirtualJoystick
from haptics.clock import Clock
from haptics.device import Vector

ROOM = {"inverse3": 0.08, "inverse3x": 0.08, "minverse": 0.032}
"""Maximum displacement of the handle from the centre along each axis [m]."""

AXES = {"xy": (0, 1, 2), "xz": (0, 2, 1), "yz": (1, 2, 0)}

COUNT = 1e-5
"""Resolution of the position [m]."""

SAG = 0.3
"""Force of the hand normal to the plane [N]."""

_GRIP = 4.0
"""Damping of the hand normal to the plane [N s/m]."""

_SUBSTEP = 1e-4


class Handle:
    """Handle and the hand on it.

    Parameters
    ----------
    kind : str
        A key of `ROOM`.
    plane : str
        A key of `AXES`: the plane of the hand's motion.
    hand : mapping or None
        Table ``hand`` of a virtual joystick.
    seed : int
        Seed of the hand's random numbers.
    mass, damping : float
        Mass [kg] and damping [N s/m] of the handle.
    """

    def __init__(
        self, kind: str, plane: str, hand: Mapping[str, Any] | None, *, seed: int, mass: float, damping: float
    ) -> None:
        self._axes, self._room = AXES[plane], ROOM[kind]
        self._mass, self._drag = mass, damping + _GRIP
        self._clock = Clock(_SUBSTEP)
        self.joystick = VirtualJoystick(
            {
                "half_width": self._room,
                "half_height": self._room,
                "substep": _SUBSTEP,
                "mass": mass,
                "damping": damping,
                "max_force": 100.0,
                "resolution": 0.0,
                "velocity_estimator": "difference",
                "delay": 0.0,
                "watchdog": 10.0,  # the command timeout of the service is shorter
                "seed": seed,
                **({} if hand is None else {"hand": dict(hand)}),
            },
            clock=self._clock,
        )
        self.begin()

    def begin(self) -> None:
        """Move the handle to the start position of the hand, at time zero."""
        self.joystick.close()
        self._clock.start()
        self.joystick.open()
        self._height = self._rise = 0.0

    def advance(self, now: float, force: Space) -> None:
        """Advance to the time `now` [s] since the beginning with a motor `force` [N]."""
        target = int(now / _SUBSTEP)
        if target <= self._clock.tick:
            return
        duration = (target - self._clock.tick) * _SUBSTEP
        self._clock.tick = target
        first, second, third = self._axes
        self.joystick.write(np.array((force[first], force[second])))
        self.joystick.read()
        self._sag(duration, force[third] - SAG)

    def _sag(self, duration: float, force: float) -> None:
        """Move the damped mass normal to the plane under a constant force, exactly, up to the limits."""
        final = force / self._drag
        left = math.exp(-duration * self._drag / self._mass)
        self._height += final * duration + (self._rise - final) * (1.0 - left) * self._mass / self._drag
        self._rise = final + (self._rise - final) * left
        if abs(self._height) > self._room:
            self._height, self._rise = math.copysign(self._room, self._height), 0.0

    @property
    def position(self) -> Space:
        """Position relative to the centre, quantized [m]."""
        x, y, z = self._in_space(self.joystick.handle, self._height)
        return round(x / COUNT) * COUNT, round(y / COUNT) * COUNT, round(z / COUNT) * COUNT

    @property
    def velocity(self) -> Space:
        """Velocity [m/s]."""
        return self._in_space(self.joystick.handle_velocity, self._rise)

    def _in_space(self, plane: Vector, third: float) -> Space:
        point = [0.0, 0.0, 0.0]
        for axis, value in zip(self._axes, (*plane, third), strict=True):
            point[axis] = float(value)
        return point[0], point[1], point[2]
