"""Arms of an emulated pantograph: effect of torques on the handle, and encoder angles of the arms.

The handle is the mass of a virtual joystick in the plane. Its position determines the angles of the arms, by one
triangle each. Torques exert a force on it by virtual work, with numerical derivatives of the angles.

Initially the operator holds the arms at their home pose. After the first set-up of the board, the operator holds on
for a moment, moves the handle to the start position of the hand, and releases it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.virtual.joystick import VirtualJoystick
from haptics.clock import Clock

HOLD = 0.35
"""Time for which the operator holds the arms at home after the set-up [s]."""

CARRY = 0.25
"""Time in which the handle is moved to the start position of the hand [s]."""

_SUBSTEP = 1e-4
_CHUNK = 5
"""Substeps for which the force of constant torques is treated as constant."""

_NUDGE = 1e-6


@dataclass(frozen=True)
class Profile:
    """Geometry of the arms.

    Attributes
    ----------
    inner, outer, base : float
        Lengths of the links, distance of the motors [m].
    home : (float, float)
        Home pose of the left and the right arm [degree].
    counts : float
        Counts per revolution.
    arm_of_port : (int, int)
        Arm, 0 left or 1 right, at the first and the second port.
    middle, room : (float, float)
        Centre and half size of the rectangle in which the handle can move [m].
    """

    inner: float
    outer: float
    base: float
    home: tuple[float, float]
    counts: float
    arm_of_port: tuple[int, int]
    middle: tuple[float, float]
    room: tuple[float, float]


PROFILES = {
    "gen-1": Profile(0.05, 0.07, 0.02, (180.0, 0.0), 13824.0, (0, 1), (0.01, 0.06), (0.045, 0.036)),
    "2diy": Profile(0.07, 0.09, 0.0, (97.23, 82.77), 5219.328, (0, 1), (0.0, 0.08), (0.065, 0.05)),
    "2diy-38mm": Profile(0.07, 0.09, 0.038, (241.0, -61.0), 10752.0, (1, 0), (0.019, 0.0775), (0.06, 0.045)),
}


class Arms:
    """Two arms, a handle, and its operator or hand.

    Parameters
    ----------
    profile : Profile
        Geometry of the arms.
    hand : mapping or None
        Table ``hand`` of a virtual joystick.
    seed : int
        Seed of the hand's random numbers.
    mass, damping : float
        Mass [kg] and damping [N s/m] of the handle.
    """

    def __init__(
        self, profile: Profile, hand: Mapping[str, Any] | None, *, seed: int = 0, mass: float, damping: float
    ) -> None:
        self.profile = profile
        self._clock = Clock(_SUBSTEP)
        width, height = profile.room
        self.joystick = VirtualJoystick(
            {
                "half_width": width,
                "half_height": height,
                "substep": _SUBSTEP,
                "mass": mass,
                "damping": damping,
                "max_force": 100.0,
                "resolution": 0.0,
                "velocity_estimator": "difference",
                "delay": 0.0,
                "watchdog": 10.0,  # each chunk sends a new command, so the watchdog never expires
                "seed": seed,
                **({} if hand is None else {"hand": dict(hand)}),
            },
            clock=self._clock,
        )
        self._released: float | None = None
        self.go_home()

    def go_home(self) -> None:
        """Return the arms to the home pose, held by the operator."""
        self.joystick.close()
        self._clock.start()
        self.joystick.open()
        self._released = None

    def release(self, now: float) -> None:
        """Notify the operator at `now` [s] that the board is set up."""
        if self._released is None:
            self._released = now + HOLD

    def since_let_go(self, now: float) -> float:
        """Return the time since the operator released the handle at `now` [s]; negative while it is held."""
        return -math.inf if self._released is None else now - self._released - CARRY

    @property
    def free(self) -> bool:
        """Whether the handle is moved by the hand and the motors."""
        return self._clock.tick > 0

    def advance(self, now: float, torques: tuple[float, float]) -> None:
        """Advance to the time `now` [s] with `torques` of the left and the right motor [N m]."""
        if self._released is None:
            return
        target = int(self.since_let_go(now) / _SUBSTEP)
        while self._clock.tick < target:
            self._clock.tick = min(self._clock.tick + _CHUNK, target)
            self.joystick.write(np.array(self.force(torques)))
            self.joystick.read()

    def force(self, torques: tuple[float, float]) -> tuple[float, float]:
        """Return the force on the handle [N] that does the same work as the `torques` [N m]."""
        x, y = self._tip()
        across = self._difference(self._reach(x + _NUDGE, y), self._reach(x - _NUDGE, y))
        along = self._difference(self._reach(x, y + _NUDGE), self._reach(x, y - _NUDGE))
        left, right = torques
        return left * across[0] + right * across[1], left * along[0] + right * along[1]

    def angles(self, now: float) -> tuple[float, float]:
        """Return the true angles of the arms at `now` [s], continuous from the home pose on [degree]."""
        left, right = self.profile.home
        if self._released is None or now <= self._released:
            return left, right
        there = [math.degrees(angle) for angle in self._reach(*self._tip())]
        there = [
            angle + 360.0 * round((home - angle) / 360.0) for angle, home in zip(there, (left, right), strict=True)
        ]
        u = min((now - self._released) / CARRY, 1.0)
        part = u * u * (3.0 - 2.0 * u)
        return left + part * (there[0] - left), right + part * (there[1] - right)

    def _tip(self) -> tuple[float, float]:
        x, y = self.joystick.handle
        return x + self.profile.middle[0], y + self.profile.middle[1]

    def _reach(self, x: float, y: float) -> tuple[float, float]:
        """Return the angles [rad] of the arms, elbows out, for the tip at (x, y) [m]."""
        own = self.profile
        angles = []
        for foot, bend in ((0.0, 1.0), (own.base, -1.0)):
            reach = math.hypot(x - foot, y)
            cosine = (own.inner**2 + reach**2 - own.outer**2) / (2.0 * own.inner * reach)
            angles.append(math.atan2(y, x - foot) + bend * math.acos(max(min(cosine, 1.0), -1.0)))
        return angles[0], angles[1]

    @staticmethod
    def _difference(ahead: tuple[float, float], behind: tuple[float, float]) -> tuple[float, float]:
        """Return the derivatives of both angles as central differences."""
        return (ahead[0] - behind[0]) / (2.0 * _NUDGE), (ahead[1] - behind[1]) / (2.0 * _NUDGE)
