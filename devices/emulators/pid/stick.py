"""Stick on the emulated bus, with its faults, and the backend for pyusb with interrupt transfers."""

from __future__ import annotations

import array
import errno
import math
from collections.abc import Callable, Iterable
from typing import Any

from devices.emulators.pid.firmware import Firmware, StickPlant
from devices.emulators.pid.profiles import PROFILES
from devices.emulators.usb_bus import FRAME, ROUNDING, FreeTime, Handle, UsbBackend, UsbDevice, WallTime, fail, fill
from devices.emulators.wire_faults import STICK_FAULTS, WireFaults
from devices.virtual.hands.registry import HandTable
from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.settings import unknown_name


def emulated_stick(profile: str, *, period: float = 1e-3, **options: Any) -> EmulatedUsbBackend:
    """Return a backend for pyusb with one stick on its bus; see `EmulatedStick`.

    Parameters
    ----------
    profile, options
        As for `EmulatedStick`.
    period : float
        Length of a frame of the bus: 1e-3 s in real time; or 0 for simulated time, which advances with the transfers as
        fast as possible.

    Raises
    ------
    ConfigurationError
        If profile, fault, period, hand or friction is invalid.
    """
    if period not in {0.0, 1e-3}:
        raise ConfigurationError(f"period = {period!r} s: must be 1e-3 s (real time) or 0 (simulated time).")
    return EmulatedUsbBackend(EmulatedStick(profile, time=WallTime() if period else FreeTime(), **options))


def _observed(read: Callable[[EmulatedStick], Vector]) -> Any:
    """Return a property of a stick that is simulated up to the present."""

    def get(stick: EmulatedStick) -> Vector:
        with stick.lock:
            stick.catch_up()
            return read(stick)

    return property(get)


class EmulatedStick(UsbDevice):
    """Stick that can be plugged and unplugged.

    Parameters
    ----------
    profile : str
        A key of `devices.emulators.pid.profiles.PROFILES`.
    hand : mapping, optional
        Table of the hand that holds the handle (`devices.virtual.hands.registry.make_hand`).
    seed : int
        Seed of the random numbers.
    serial : str, optional
        Serial number; by default the serial number of the profile, which may be empty.
    time : WallTime, optional
        Clock; by default real time.
    faults : iterable of str
        Communication faults, ``NAME@SECONDS+DURATION`` (`devices.emulators.wire_faults.STICK_FAULTS`).
    friction : mapping, optional
        Dry friction of the handle (`devices.common.friction.parse_friction`).

    Attributes
    ----------
    firmware : Firmware
        Firmware.
    plant : StickPlant
        Handle with motors and converters.
    truths : dict
        Tables that a perfect calibration of this stick would produce (`profiles.Profile.truths`).
    force, handle, handle_velocity, hand_force : (2,) float array
        Present force of the motors on the handle [N], true position [m] and velocity [m/s] of the handle, and force of
        the hand on it [N].

    Raises
    ------
    ConfigurationError
        If profile, fault, hand or friction is invalid.
    """

    firmware: Firmware

    def __init__(
        self,
        profile: str,
        *,
        hand: HandTable | None = None,
        seed: int = 0,
        serial: str | None = None,
        time: WallTime | None = None,
        faults: Iterable[str] = (),
        friction: Any = None,
    ) -> None:
        if profile not in PROFILES:
            raise unknown_name("emulated stick", profile, PROFILES)
        super().__init__(WireFaults(STICK_FAULTS, faults), time)
        self.profile = PROFILES[profile]
        self.serial = self.profile.serial if serial is None else serial
        self.truths = self.profile.truths(self.serial)
        self.plant = StickPlant(self.profile.handle, hand, seed, friction)
        self.firmware = Firmware(self.profile, self.plant, self.serial)
        self.origin = self.time.now()
        self._gone = False
        self.plug()

    # --- information for observers -----------------------------------------------------------------------------------

    force = _observed(lambda stick: stick.plant.force_of(stick.firmware.level))
    handle = _observed(lambda stick: stick.plant.joystick.handle)
    handle_velocity = _observed(lambda stick: stick.plant.joystick.handle_velocity)
    hand_force = _observed(lambda stick: stick.plant.joystick.hand_force)

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
            self.move(address)
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
            self.firmware.power_on(powered=False)

    def bind(self, interface: int) -> None:
        """Assign an interface to the kernel's driver."""
        self.drivers.add(interface)
        if interface == self.profile.interface:
            self.firmware.machine.bind()

    def suspend(self) -> None:
        """Suspend the bus and resume it, which resets some firmware."""
        with self.lock:
            self.catch_up()
            if self.profile.suspend_resets:
                self.firmware.power_on()

    def catch_up(self) -> frozenset[str]:
        """Simulate the pending frames; return the names of the active faults."""
        now = self.now
        due = math.floor(now / FRAME + ROUNDING)
        while self.firmware.frame < due:
            self.firmware.step()
        faults = self.faults.at(now)
        self.firmware.machine.full = "full-pool" in faults
        self.firmware.machine.stale = "stale-block-load" in faults
        gone = "unplug" in faults
        if gone != self._gone:
            self._gone = gone
            if gone:
                self.unplug()
            else:
                self.plug()
        return faults


class EmulatedUsbBackend(UsbBackend):
    """Backend for pyusb with emulated sticks, of class `EmulatedStick`."""

    units: tuple[EmulatedStick, ...]

    def intr_read(self, dev_handle: Handle, ep: int, intf: int, buff: array.array[int], timeout: int) -> int:
        """Read one packet; raise a timeout if the device has none."""
        stick, deadline = dev_handle.unit, dev_handle.unit.deadline(timeout)
        report = None
        while report is None:
            self.wait_for_slot(dev_handle, ep, deadline)
            with stick.lock:
                faults = self.ready_for(dev_handle, ep, intf)
                if "read-error" in faults:
                    fail(errno.EIO)
                if faults.isdisjoint({"nak", "dropout"}):
                    report = stick.firmware.poll_in(ep)
        self.travel(dev_handle)
        return fill(buff, report[: len(report) // 2] if "short" in faults else report)

    def intr_write(self, dev_handle: Handle, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
        """Write data in packets of the endpoint's size."""
        stick, deadline = dev_handle.unit, dev_handle.unit.deadline(timeout)
        self.travel(dev_handle)
        payload, size = bytes(data), dev_handle.device.endpoint(ep).wMaxPacketSize
        for start in range(0, max(len(payload), 1), size):
            while True:
                self.wait_for_slot(dev_handle, ep, deadline)
                with stick.lock:
                    faults = self.ready_for(dev_handle, ep, intf)
                    if "write-error" in faults:
                        fail(errno.EIO)
                    if "nak" not in faults:
                        stick.firmware.out(ep, payload[start : start + size])
                        break
        return len(payload)
