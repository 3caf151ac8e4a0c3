"""Host of an emulated stick that uses pyusb only, with explicit bytes for each family."""

import struct
from typing import NamedTuple

import numpy as np
import usb.core
import usb.util

from devices.emulators.pid import profiles
from devices.emulators.pid.stick import EmulatedStick, EmulatedUsbBackend
from devices.emulators.usb_bus import FreeTime

# Profiles with two axes.
PROFILES = tuple(name for name, profile in profiles.PROFILES.items() if not profile.handle.rim_radius)
NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
ENABLE, DISABLE, STOP_ALL, RESET, PAUSE = range(1, 6)
CONSTANT, SPRING = 1, 8
START, STOP = 1, 3
ENDLESS = 0xFFFF


class Family(NamedTuple):
    """Numbers of one family of sticks."""

    create: int
    load: int
    pool: int
    full: int
    input_form: str
    axes_from: int


FAMILIES = {
    "openffboard": Family(17, 18, 19, 32767, "<BQhh", 2),
    "sidewinder-ff2": Family(1, 2, 3, 255, "<BHH", 1),
    "arduino": Family(5, 6, 7, 10000, "<BBhh", 2),
}


def push(fx, fy):
    """A hand that does not hold the handle but pushes it for ever [N]."""
    return {"name": "scripted-force", "script": [[0.0, fx, fy]]}


class Host:
    """Program that uses one stick."""

    def __init__(self, profile, *, hand=NO_HAND, start=True, **options):
        self.name, self.family = profile, FAMILIES[profile]
        self.stick = EmulatedStick(profile, hand=hand, time=options.pop("time", None) or FreeTime(), **options)
        self.backend = EmulatedUsbBackend(self.stick)
        self.open()
        if start:
            for command in (RESET, STOP_ALL, ENABLE):
                self.control(command)
            self.out(13, 0xFF)

    def open(self):
        self.device = usb.core.find(backend=self.backend)
        self.latest = np.full(2, np.nan)
        (self.interface,) = (i for i in self.device.get_active_configuration() if i.bInterfaceClass == 3)
        self.number = self.interface.bInterfaceNumber
        if self.device.is_kernel_driver_active(self.number):
            self.device.detach_kernel_driver(self.number)
        usb.util.claim_interface(self.device, self.number)
        ends = {bool(end.bEndpointAddress & 0x80): end for end in self.interface}
        self.input, self.output = ends[True], ends[False]

    # --- reports

    def out(self, *numbers):
        self.output.write(bytes(numbers))

    def control(self, command):
        self.out(12, 1 << (command - 1) if self.name == "openffboard" else command)

    def request_block(self, kind):
        self.device.ctrl_transfer(
            0x21, 9, 0x300 | self.family.create, self.number, bytes([self.family.create, kind, 0, 0])
        )

    def block_load(self):
        """Return the block and the status."""
        answer = self.device.ctrl_transfer(0xA1, 1, 0x300 | self.family.load, self.number, 5)
        assert len(answer) == 5
        assert answer[0] == self.family.load
        return answer[1], answer[2]

    def create(self, kind=CONSTANT):
        self.request_block(kind)
        block, status = self.block_load()
        assert status == 1
        return block

    def set_effect(self, block, kind, degrees=0.0, duration=ENDLESS, delay=0, gain=255):
        eighths = round(degrees / 360.0 * 255.0)
        if self.name == "openffboard":
            form, times, tail = "<BBB4HBBB4H", (0, 0, delay), (round(degrees * 100.0), 0, 0, 0)
        elif self.name == "arduino":
            form, times, tail = "<BBB3HBBBBBHH", (0, 0), (eighths, 0, 0, 0)
        else:
            form, times, tail = "<BBB3HBBBBBH", (0, 0), (eighths, 0, delay)
        self.output.write(struct.pack(form, 1, block, kind, duration, *times, gain, 0, 4, *tail))

    def magnitude(self, block, level):
        self.output.write(struct.pack("<BBh", 5, block, round(level * self.family.full)))

    def play(self, block, operation=START, loops=1):
        self.out(10, block, operation, loops)

    def constant(self, degrees, level, **more):
        """Make and start a constant force; return its block."""
        block = self.create(CONSTANT)
        self.set_effect(block, CONSTANT, degrees, **more)
        self.magnitude(block, level)
        self.play(block)
        return block

    def read(self, timeout=1000):
        return bytes(self.input.read(64, timeout))

    def counts(self):
        """Return the counts of the next input report; the last ones if nothing changes."""
        try:
            report = self.read(timeout=5)
            while report[0] != 1:
                report = self.read(timeout=5)
        except usb.core.USBTimeoutError:
            return self.latest
        x, y = struct.unpack_from(self.family.input_form, report)[self.family.axes_from :][:2]
        if self.name == "sidewinder-ff2":
            x, y = ((value & 0x3FF ^ 0x200) - 0x200 for value in (x, y))
        self.latest = np.array((x, y), float)
        return self.latest

    def settle(self):
        """Wait until the motors have applied the written reports."""
        self.stick.wait(2e-3)


def force_of_level(stick):
    """Return the matrix from the two levels to newtons, as a calibration gives it."""
    return np.linalg.inv(np.array(stick.truths["force"]["newton_to_level"]))
