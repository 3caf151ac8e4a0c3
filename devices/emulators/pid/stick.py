"""One stick on the bus: its firmware, its handle, its place on the bus, and what goes wrong with it.

Time goes by when somebody looks: before anything is asked of the stick, its frames are caught up. Nothing here has a
thread of its own; `lock` is held by whoever looks.
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
from haptics.settings import unknown

_ROUNDING = 1e-6
"""An instant belongs to the next frame if it is so close to it [frame]."""

_addresses = itertools.count(2)


class EmulatedStick:
    """A stick that can be plugged in and out.

    Parameters
    ----------
    profile : str
        A key of `devices.emulators.pid.profiles.known.PROFILES`.
    hand : mapping, optional
        Table of the hand that holds the handle (`devices.virtual.hands.registry.make_hand`).
    seed : int
        Decides everything random.
    serial : str, optional
        Serial number; by default that of the profile, which may be none (empty).
    time : BusTime, optional
        By default the wall's.
    faults : iterable of str
        Faults of the wire, ``NAME@SECONDS+DURATION`` (`devices.emulators.pid.faults`).
    friction : mapping, optional
        The handle's own dry friction (`devices.common.friction.parse_friction`).

    Attributes
    ----------
    firmware : Firmware
        What is inside.
    plant : StickPlant
        What is behind.
    faults : WireFaults
        What is wrong.
    plugged : bool
        Whether it is on the bus.
    address : int
        Its address there.
    generation : int
        How often it has been plugged in; what was opened before is lost.
    drivers : set of int
        Interfaces that a driver of the kernel holds.
    owners : dict
        Interface to the handle that has claimed it.
    halted : set of int
        Endpoints that are halted.

    Raises
    ------
    ConfigurationError
        On an unknown profile or fault, a wrong hand or a wrong friction.
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
            raise unknown("emulated stick", profile, PROFILES)
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

    # --- for an observer ---------------------------------------------------------------------------------------------

    @property
    def force(self) -> Vector:
        """What the motors do to the handle now, (2,) [N]."""
        with self.lock:
            self.catch_up()
            return self.firmware.force

    @property
    def handle(self) -> Vector:
        """Where the handle really is now, (2,) [m]."""
        with self.lock:
            self.catch_up()
            return self.plant.handle

    @property
    def handle_velocity(self) -> Vector:
        """How fast the handle really moves now, (2,) [m/s]."""
        with self.lock:
            self.catch_up()
            return self.plant.handle_velocity

    @property
    def hand_force(self) -> Vector:
        """What the hand does to the handle now, (2,) [N]."""
        with self.lock:
            self.catch_up()
            return self.plant.hand_force

    @property
    def truths(self) -> dict[str, dict[str, Any]]:
        """What a perfect calibration of this stick would find (`profiles.profile.Profile.truths`)."""
        return self.profile.truths(self.serial)

    def received(self, kind: str) -> list[dict[str, int]]:
        """Return the fields of the reports of one kind that have arrived, oldest first."""
        with self.lock:
            self.catch_up()
            return [fields for _, name, fields in self.firmware.log if name == kind]

    def wait(self, duration: float) -> None:
        """Let `duration` [s] go by without any traffic."""
        self.time.wait_until(self.time.now() + duration)

    # --- on the bus --------------------------------------------------------------------------------------------------

    def plug(self, address: int | None = None) -> None:
        """Plug it in, under a new address unless one is given; the kernel takes it at once."""
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
        """Pull it out: no power, no effects, and whatever was opened is lost."""
        with self.lock:
            self.catch_up()
            self.plugged = False
            self.drivers.clear()
            self.owners.clear()
            self.halted.clear()
            self.firmware.power_off()

    def bind(self, interface: int) -> None:
        """Give an interface to the kernel's driver."""
        self.drivers.add(interface)
        if interface == self.profile.interface:
            self.firmware.machine.bind()

    def unbind(self, interface: int) -> None:
        """Take an interface from the kernel's driver."""
        self.drivers.discard(interface)

    def suspend(self) -> None:
        """Put the bus to sleep, and wake it up again."""
        with self.lock:
            self.catch_up()
            self.firmware.suspend()

    @property
    def now(self) -> float:
        """Time since the stick was made [s]."""
        return self.time.now() - self.origin

    def catch_up(self) -> frozenset[str]:
        """Make up for the frames that have gone by; return the names of the faults that are there now."""
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
