"""Moving handle of an emulated device: a virtual joystick whose time is advanced by the emulator."""

from __future__ import annotations

from typing import Any

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
