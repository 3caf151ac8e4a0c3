"""Stick on the bus: its firmware, its handle, its connection to the bus, and its faults.

Time advances on access: before every access to the stick, the pending frames are simulated. There is no thread here;
`lock` is held by the accessing thread.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterable
from typing import Any

from devices.emulators.pid.faults import WireFaults
from devices.emulators.pid.firmware import Firmware
from devices.emulators.pid.plant import FRAME, StickPlant
from devices.emulators.pid.profiles.known import PROFILES
from devices.emulators.times import BusTime, WallTime
from devices.virtual.hands.registry import HandTable
from haptics.device import Vector
from haptics.settings import unknown_name

_ROUNDING = 1e-6
"""Tolerance within which a time belongs to the next frame [frame]."""

_addresses = itertools.count(2)


class EmulatedStick:
    """Stick that can be plugged and unplugged.

    Parameters
    ----------
    profile : str
        A key of `devices.emulators.pid.profiles.known.PROFILES`.
    hand : mapping, optional
        Table of the hand that holds the handle (`devices.virtual.hands.registry.make_hand`).
    seed : int
        Seed of the random numbers.
    serial : str, optional
        Serial number; by default the serial number of the profile, which may be empty.
    time : BusTime, optional
        Clock; by default real time.
    faults : iterable of str
        Communication faults, ``NAME@SECONDS+DURATION`` (`devices.emulators.pid.faults`).
    friction : mapping, optional
        Dry friction of the handle (`devices.common.friction.parse_friction`).

    Attributes
    ----------
    firmware : Firmware
        Firmware.
    plant : StickPlant
        Handle with motors and converters.
    faults : WireFaults
        Faults.
    plugged : bool
        Whether it is on the bus.
    address : int
        Its address on the bus.
    generation : int
        Number of times it has been plugged in; older handles are invalid.
    drivers : set of int
        Interfaces claimed by a kernel driver.
    owners : dict
        Handle by claimed interface.
    halted : set of int
        Endpoints that are halted.

    Raises
    ------
    ConfigurationError
        If profile, fault, hand or friction is invalid.
    """

    def __init__(
        self,
        profile: str,
        *,
        hand: HandTable | None = None,
        seed: int = 0,
        serial: str | None = None,
        time: BusTime | None = None,
        faults: Iterable[str] = (),
        friction: Any = None,
    ) -> None:
        if profile not in PROFILES:
            raise unknown_name("emulated stick", profile, PROFILES)
        self.profile = PROFILES[profile]
        self.serial = self.profile.serial if serial is None else serial
        self.faults = WireFaults(faults)
        self.plant = StickPlant(self.profile.handle, hand, seed, friction)
        self.firmware = Firmware(self.profile, self.plant, self.serial)
        self.time = time or WallTime()
        self.lock = threading.RLock()
        self.generation = 0
        self.plugged = False
        self.halted: set[int] = set()
        self.drivers: set[int] = set()
        self.owners: dict[int, object] = {}
        self.origin = self.time.now()
        self._gone = False
        self.plug()

    # --- information for observers -----------------------------------------------------------------------------------

    @property
    def force(self) -> Vector:
        """Present force of the motors on the handle, (2,) [N]."""
        with self.lock:
            self.catch_up()
            return self.firmware.force

    @property
    def handle(self) -> Vector:
        """True position of the handle, (2,) [m]."""
        with self.lock:
            self.catch_up()
            return self.plant.handle

    @property
    def handle_velocity(self) -> Vector:
        """True velocity of the handle, (2,) [m/s]."""
        with self.lock:
            self.catch_up()
            return self.plant.handle_velocity

    @property
    def hand_force(self) -> Vector:
        """Present force of the hand on the handle, (2,) [N]."""
        with self.lock:
            self.catch_up()
            return self.plant.hand_force

    @property
    def truths(self) -> dict[str, dict[str, Any]]:
        """Tables that a perfect calibration of this stick would produce (`profiles.profile.Profile.truths`)."""
        return self.profile.truths(self.serial)

    def received(self, kind: str) -> list[dict[str, int]]:
        """Return the fields of the received reports of one kind, oldest first."""
        with self.lock:
            self.catch_up()
            return [fields for _, name, fields in self.firmware.log if name == kind]

    def wait(self, duration: float) -> None:
        """Wait for `duration` [s] without any traffic."""
        self.time.wait_until(self.time.now() + duration)

    # --- bus ---------------------------------------------------------------------------------------------------------

    def plug(self, address: int | None = None) -> None:
        """Plug the stick in, under a new address unless one is given; the kernel claims it at once."""
        with self.lock:
            if self.plugged:
                return
            self.address = next(_addresses) % 127 + 1 if address is None else address
            self.generation += 1
            self.plugged = True
            self.firmware.power_on()
            for number in range(self.profile.interface + 1):
                self.bind(number)

    def unplug(self) -> None:
        """Unplug the stick: power and effects are off, and open handles become invalid."""
        with self.lock:
            self.catch_up()
            self.plugged = False
            self.drivers.clear()
            self.owners.clear()
            self.halted.clear()
            self.firmware.power_off()

    def bind(self, interface: int) -> None:
        """Assign an interface to the kernel's driver."""
        self.drivers.add(interface)
        if interface == self.profile.interface:
            self.firmware.machine.bind()

    def unbind(self, interface: int) -> None:
        """Release an interface from the kernel's driver."""
        self.drivers.discard(interface)

    def suspend(self) -> None:
        """Suspend the bus and resume it."""
        with self.lock:
            self.catch_up()
            self.firmware.suspend()

    @property
    def now(self) -> float:
        """Time since creation [s]."""
        return self.time.now() - self.origin

    def catch_up(self) -> frozenset[str]:
        """Simulate the pending frames; return the names of the active faults."""
        now = self.now
        due = math.floor(now / FRAME + _ROUNDING)
        while self.firmware.frame < due:
            self.firmware.step()
        faults = self.faults.at(now)
        self.firmware.machine.pool.full = "full-pool" in faults
        self.firmware.machine.pool.stale = "stale-block-load" in faults
        self._come_and_go("unplug" in faults)
        return faults

    def _come_and_go(self, gone: bool) -> None:
        if gone and not self._gone:
            self._gone = True
            self.unplug()
        elif self._gone and not gone:
            self._gone = False
            self.plug()
