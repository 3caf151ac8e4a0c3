"""The moving handle behind a stick: a mass that a hand holds, motors that push it, and converters that count it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devices.emulators.pid.effects import UNIT_SPEED
from devices.emulators.pid.profiles.profile import Handle, Pair
from devices.virtual.hands.hand import Hand
from devices.virtual.hands.registry import HandTable
from devices.virtual.joystick import VirtualJoystick
from haptics.clock import Clock
from haptics.device import DEAD_MAN_BUTTON, Vector

FRAME = 1e-3
"""Length of a frame [s]."""

_ROOM = 1.01
"""The plant never cuts a force that the motors give; they are cut axis by axis in the firmware."""


class StickPlant:
    """The handle of an emulated stick. Time goes by in whole frames.

    Parameters
    ----------
    handle : Handle
        The truths about it.
    hand : mapping or None
        Table of the hand that holds it (`devices.virtual.hands.registry.make_hand`).
    seed : int
        Decides everything random.
    friction : mapping or None
        The handle's own dry friction (`devices.common.friction.parse_friction`).

    Attributes
    ----------
    counts : (int, int)
        What the converters say of the axes X and Y.
    place, speed : (float, float)
        Deflection and speed along the axes, in the units of `devices.emulators.pid.effects`.

    Raises
    ------
    ConfigurationError
        If the hand cannot do what it should within the travel, or the friction is none.
    """

    def __init__(self, handle: Handle, hand: HandTable | None = None, seed: int = 0, friction: Any = None) -> None:
        self.truth = handle
        self._gear = np.array(handle.gear)
        self._counts = np.array(handle.counts)
        self._clock = Clock(FRAME)
        largest = _ROOM * float(np.linalg.norm(self._gear))
        self.joystick = VirtualJoystick(
            {
                "half_width": handle.half_width,
                "half_height": handle.half_height,
                "mass": handle.mass,
                "damping": handle.damping,
                "max_force": largest,
                "resolution": 0.0,
                "delay": 0.0,
                "watchdog": 10.0,
                "velocity_estimator": "difference",
                "seed": seed,
                "friction": friction,
                **({"hand": hand} if hand is not None else {}),
            },
            clock=self._clock,
        )
        self.joystick.open()
        self._stay_on_the_rim()
        self._observe(0)

    @property
    def handle(self) -> Vector:
        """Where the handle really is, (2,) [m]."""
        return self.joystick.handle

    @property
    def handle_velocity(self) -> Vector:
        """How fast it really moves, (2,) [m/s]."""
        return self.joystick.handle_velocity

    @property
    def hand_force(self) -> Vector:
        """What the hand really does to it, (2,) [N]."""
        return self.joystick.hand_force

    @property
    def hand(self) -> Hand:
        """The hand that holds it."""
        return self.joystick.hand

    def force_of(self, level: Pair) -> Vector:
        """Return the force on the handle, (2,) [N], where the motors of X and Y are at these parts of full scale."""
        force: Vector = self._gear @ level
        return force

    def advance(self, level: Pair) -> None:
        """Let one frame go by, the motors being at these parts of full scale."""
        self.joystick.write(self._gear @ level)
        self._clock.tick += 1
        buttons = self.joystick.read().buttons
        self._stay_on_the_rim()
        self._observe(buttons)

    def _stay_on_the_rim(self) -> None:
        if self.truth.rim_radius:
            self.joystick.stay_on_x()

    def _observe(self, buttons: int) -> None:
        """Take the counts; the hand that grips firmly presses button 1, the first bit of the stick's own."""
        truth = self.truth
        (x, y), (vx, vy) = self._counts @ self.joystick.handle, self._counts @ self.joystick.handle_velocity
        self.counts = _convert(x + truth.centre[0], truth), _convert(y + truth.centre[1], truth)
        self.place = float(x) / truth.limit, float(y) / truth.limit
        unit = truth.limit * UNIT_SPEED
        self.speed = float(vx) / unit, float(vy) / unit
        self.buttons = buttons >> 1 | buttons & DEAD_MAN_BUTTON


def _convert(value: float, truth: Handle) -> int:
    """Return what a converter makes of `value`: rounded to its steps, cut to its range."""
    count = truth.quantum * math.floor(value / truth.quantum + 0.5)
    return max(-truth.limit, min(truth.limit, count))
