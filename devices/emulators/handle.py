"""Moving handles of emulated devices: a virtual joystick whose time is advanced by the emulator, also in space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from devices.virtual.hands.registry import HandTable
from devices.virtual.joystick import VirtualJoystick
from haptics.clock import Clock


class SimulatedHandle:
    """Mass in a plane, held by a hand, with ideal sensors and without a watchdog.

    Parameters
    ----------
    period : float
        Period of the clock [s].
    hand : mapping or None
        Table of the hand that holds the handle (`devices.virtual.hands.registry.make_hand`).
    settings
        Settings of the virtual joystick, such as ``half_width``, ``half_height``, ``mass`` and ``damping``.

    Attributes
    ----------
    clock : Clock
        Clock of the joystick; its ticks are set by the emulator.
    joystick : VirtualJoystick
        The handle and its hand.
    """

    def __init__(self, period: float, hand: HandTable | None, **settings: Any) -> None:
        self.clock = Clock(period)
        ideal = {"resolution": 0.0, "velocity_estimator": "difference", "delay": 0.0}
        # the watchdog is longer than any time between two commands of the emulator
        table = {"max_force": 100.0, "watchdog": 10.0, **ideal, **settings}
        self.joystick = VirtualJoystick(table | ({} if hand is None else {"hand": hand}), clock=self.clock)

    def restart(self) -> None:
        """Move the handle to the start position of the hand, at time zero."""
        self.joystick.close()
        self.clock.start()
        self.joystick.open()


Space = tuple[float, ...]
"""Vector of 3."""

SAG = 0.3
"""Force of a resting hand normal to its plane [N]."""

SUBSTEP = 1e-4
"""Period of the clock of a handle in space [s]."""

_GRIP = 4.0
"""Damping of the hand normal to its plane [N s/m]."""


class HandleInSpace(SimulatedHandle):
    """Handle in space and the hand on it: a virtual joystick in a plane, and a sagging mass normal to it.

    Gravity is compensated. The sag is caused by the small constant force of a resting hand.

    Parameters
    ----------
    axes : sequence of (float, float, float)
        Directions of x, y and the height, in space.
    room : (float, float, float)
        Maximum displacements from the middle along them [m].
    hand : mapping or None
        Table ``hand`` of a virtual joystick.
    seed : int
        Seed of the hand's random numbers.
    mass, damping : float
        Mass [kg] and damping [N s/m] of the handle.
    sag : float
        Force of the hand against the direction of the height [N]; it may be changed.
    """

    def __init__(
        self,
        axes: Sequence[Sequence[float]],
        room: Sequence[float],
        hand: HandTable | None,
        *,
        seed: int,
        mass: float,
        damping: float,
        sag: float = SAG,
    ) -> None:
        self._axes, self._highest, self.sag = [tuple(map(float, axis)) for axis in axes], room[2], sag
        self._mass, self._drag = mass, damping + _GRIP
        own = {"half_width": room[0], "half_height": room[1], "substep": SUBSTEP, "seed": seed}
        super().__init__(SUBSTEP, hand, **own, mass=mass, damping=damping)
        self.begin()

    def begin(self) -> None:
        """Move the handle to the start position of the hand, at time zero."""
        self.restart()
        self._height = self._rise = 0.0

    def advance(self, now: float, force: Space) -> None:
        """Advance to the time `now` [s] since the beginning with a motor `force` [N]."""
        target = int(now / SUBSTEP)
        if target <= self.clock.tick:
            return
        duration = (target - self.clock.tick) * SUBSTEP
        self.clock.tick = target
        x, y, lift = (sum(map(float.__mul__, axis, map(float, force))) for axis in self._axes)
        self.joystick.write(np.array((x, y)))
        self.joystick.read()
        # the damped mass normal to the plane moves under a constant force, exactly, up to the limits
        final = (lift - self.sag) / self._drag
        left = math.exp(-duration * self._drag / self._mass)
        self._height += final * duration + (self._rise - final) * (1.0 - left) * self._mass / self._drag
        self._rise = final + (self._rise - final) * left
        if abs(self._height) > self._highest:
            self._height, self._rise = math.copysign(self._highest, self._height), 0.0

    @property
    def place(self) -> Space:
        """Position relative to the middle [m]."""
        return self._in_space((*self.joystick.handle, self._height))

    @property
    def velocity(self) -> Space:
        """Velocity [m/s]."""
        return self._in_space((*self.joystick.handle_velocity, self._rise))

    def _in_space(self, parts: Sequence[float]) -> Space:
        return tuple(sum(float(part) * axis[i] for part, axis in zip(parts, self._axes, strict=True)) for i in range(3))
