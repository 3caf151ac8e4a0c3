"""Moving handle of a stick: a mass held by a hand, motors, and converters of its position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devices.emulators.handle import SimulatedHandle
from devices.emulators.pid.profiles import Handle, Pair
from devices.emulators.usb_bus import FRAME
from devices.virtual.hands.registry import HandTable
from haptics.device import DEAD_MAN_BUTTON, Vector

_ROOM = 1.01
"""Factor on the maximum force of the plant, which must not clip: the firmware clips each axis."""


class StickPlant(SimulatedHandle):
    """Handle of an emulated stick. Time advances in whole frames.

    Parameters
    ----------
    handle : Handle
        True parameters of the handle.
    hand : mapping or None
        Table of the hand that holds it (`devices.virtual.hands.registry.make_hand`).
    seed : int
        Seed of the random numbers.
    friction : mapping or None
        Dry friction of the handle (`devices.common.friction.parse_friction`).

    Attributes
    ----------
    counts : (int, int)
        Converter readings of the axes X and Y.
    place : (float, float)
        Deflection along the axes, in the unit of `devices.emulators.pid.machine`.

    Raises
    ------
    ConfigurationError
        If the hand's motion exceeds the travel, or the friction is invalid.
    """

    def __init__(self, handle: Handle, hand: HandTable | None = None, seed: int = 0, friction: Any = None) -> None:
        self.truth = handle
        self._gear = np.array(handle.gear)
        self._counts = np.array(handle.counts)
        super().__init__(
            FRAME,
            hand,
            half_width=handle.half_width,
            half_height=handle.half_height,
            mass=handle.mass,
            damping=handle.damping,
            max_force=_ROOM * float(np.linalg.norm(self._gear)),
            seed=seed,
            friction=friction,
        )
        self.joystick.open()
        self._observe(0)

    def force_of(self, level: Pair) -> Vector:
        """Return the force on the handle, (2,) [N], for motor levels of X and Y as fractions of full scale."""
        return np.asarray(self._gear @ level)

    def advance(self, level: Pair) -> None:
        """Simulate one frame with these motor levels as fractions of full scale."""
        self.joystick.write(self._gear @ level)
        self.clock.tick += 1
        self._observe(self.joystick.read().buttons)

    def _observe(self, buttons: int) -> None:
        """Constrain a wheel to its rim, and update counts, deflection and buttons.

        A hand that grips firmly presses button 1, the first bit.
        """
        truth = self.truth
        if truth.rim_radius:
            self.joystick.constrain_to_x_axis()
        x, y = self._counts @ self.joystick.handle
        self.counts = _convert(x + truth.centre[0], truth), _convert(y + truth.centre[1], truth)
        self.place = float(x) / truth.limit, float(y) / truth.limit
        self.buttons = buttons >> 1 | buttons & DEAD_MAN_BUTTON


def _convert(value: float, truth: Handle) -> int:
    """Return the converter's reading of `value`: rounded to its steps, clipped to its range."""
    count = truth.quantum * math.floor(value / truth.quantum + 0.5)
    return max(-truth.limit, min(truth.limit, count))
