"""Drive on a bus: its firmware, its USB descriptors, and its faults.

Time advances on access: before every access, the pending control iterations are executed. There is no thread here;
`lock` is held by the accessing thread.
"""

from __future__ import annotations

import errno
import itertools
import math
import struct
import threading
from collections.abc import Iterable
from types import SimpleNamespace

from devices.emulators.odrive.axis import DRIVER_FAULT, MOTOR_FAILED, STEP
from devices.emulators.odrive.faults import OdriveFaults
from devices.emulators.odrive.firmware import Firmware
from devices.emulators.odrive.pipes import NativePipe, TextPipe
from devices.emulators.odrive.plant import Flywheels, Plant
from devices.emulators.pid import enumeration
from devices.emulators.pid.firmware import Stall
from devices.emulators.pid.transfers import fail
from devices.emulators.times import BusTime, WallTime

VENDOR, PRODUCT = 0x1209, 0x0D32
NATIVE, TEXT = 2, 1
"""Numbers of the native interface and of the serial port's data interface; 0 also belongs to the serial port."""

ENDPOINT_OUT, ENDPOINT_IN = 0x03, 0x83
"""Endpoints of the native interface."""

TEXT_OUT, TEXT_IN = 0x01, 0x81
"""Endpoints of the serial port."""

SERIAL_PORT = frozenset({0, TEXT})
"""Interfaces that the kernel's serial port driver claims, both at once, when a drive is plugged in."""

JUMP = 0.125
"""Error of an encoder that jumps [turn]."""

_ROUNDING = 1e-6
_IN_STRING = 0x80
_GET_DESCRIPTOR = 0x06

_addresses = itertools.count(2)


def _configuration() -> bytes:
    """Return the configuration: a serial port (0, 1) and the native interface (2)."""
    body = bytes.fromhex(
        "08 0b 00 02 02 02 01 00"  # 0 and 1 belong together
        "09 04 00 00 01 02 02 01 00  05 24 00 10 01  05 24 01 00 01  04 24 02 02  05 24 06 00 01  07 05 82 03 08 00 10"
        "09 04 01 00 02 0a 00 00 00  07 05 01 02 40 00 00  07 05 81 02 40 00 00"
        "09 04 02 00 02 00 01 00 00  07 05 03 02 40 00 00  07 05 83 02 40 00 00"
    )
    return struct.pack("<BBHBBBBB", 9, enumeration.CONFIGURATION, 9 + len(body), 3, 1, 0, 0xC0, 50) + body


class _Descriptors:
    """Firmware interface that `devices.emulators.pid.usb_backend` requires."""

    device_descriptor = struct.pack(
        "<BBHBBBBHHHBBBB", 18, enumeration.DEVICE, 0x0200, 0xEF, 2, 1, 64, VENDOR, PRODUCT, 0x0300, 1, 2, 3, 1
    )
    configuration_descriptor = _configuration()

    def __init__(self, board: EmulatedOdrive) -> None:
        self._board = board
        self._strings = "ODrive Robotics", "ODrive 3.6 Native Interface", f"{board.serial:012X}"

    def control(self, request_type: int, request: int, value: int, index: int, given: bytes | int) -> bytes:
        """Reply to a request on endpoint 0: the strings."""
        kind, number = value >> 8, value & 0xFF
        if (request_type, request, kind) != (_IN_STRING, _GET_DESCRIPTOR, enumeration.STRING):
            raise Stall
        if number > len(self._strings):
            raise Stall
        text = enumeration.string(self._strings[number - 1]) if number else enumeration.LANGUAGES
        return text[: given if isinstance(given, int) else len(given)]

    def power_on(self) -> None:
        """Set the configuration, which discards pending replies."""
        self._board.flush()


class EmulatedOdrive:
    """Drive that can be plugged and unplugged; its two motors turn `plant`.

    Parameters
    ----------
    plant : Plant, optional
        Load of the motors; by default two flywheels.
    serial : int
        Serial number.
    time : BusTime, optional
        Clock; by default real time.
    faults : iterable of str
        Faults with their times from now, ``NAME@SECONDS+DURATION`` (`devices.emulators.odrive.faults`).

    Attributes
    ----------
    inside : Firmware
        Firmware of the drive.
    plant : Plant
        Load of the motors.
    faults : OdriveFaults
        Faults.
    plugged : bool
        Whether it is on the bus.
    loose_at : float
        Time at which the last motor was disarmed, on the time scale of the faults [s]; nan while one is armed.
    address, generation : int
        Address on the bus, and number of times that it has been plugged in.
    owners, drivers, halted : dict, set, set
        Handle by claimed interface; interfaces claimed by the kernel; endpoints that are halted.
    """

    def __init__(
        self,
        plant: Plant | None = None,
        *,
        serial: int = 0x2065339F304B,
        time: BusTime | None = None,
        faults: Iterable[str] = (),
    ) -> None:
        self.serial = serial
        self.plant: Plant = plant if plant is not None else Flywheels()
        self.inside = Firmware(self.plant, serial)
        self.firmware = _Descriptors(self)
        self.profile = SimpleNamespace(interface=NATIVE)
        self.faults = OdriveFaults(faults)
        self.time = time or WallTime()
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.generation = 0
        self.loose_at = 0.0
        native, text = NativePipe(self.inside), TextPipe(self.inside)
        self._pipes: dict[int, NativePipe | TextPipe] = {
            ENDPOINT_OUT: native,
            ENDPOINT_IN: native,
            TEXT_OUT: text,
            TEXT_IN: text,
        }
        self.plugged = False
        self.owners: dict[int, object] = {}
        self.drivers: set[int] = set()
        self.halted: set[int] = set()
        self.origin = self.time.now()
        self._iterations = 0
        self._last: frozenset[str] = frozenset()
        self.plug()

    @property
    def now(self) -> float:
        """Time since creation [s]."""
        return self.time.now() - self.origin

    def catch_up(self) -> frozenset[str]:
        """Execute the pending control iterations; return the names of the active faults."""
        with self.lock:
            now = self.now
            due = math.floor(now / STEP + _ROUNDING)
            if due > self._iterations:
                self.inside.iterate(due - self._iterations)
                self._iterations = due
                self._check_loose_motors(now)
            faults = self.faults.at(now)
            if faults != self._last:
                self._begin(faults - self._last, self._last - faults)
                self._last = faults
            return faults

    def _check_loose_motors(self, now: float) -> None:
        first, second = self.inside.axes
        if first.driven or second.driven:
            self.loose_at = math.nan
        elif math.isnan(self.loose_at):
            self.loose_at = now - self.faults.origin

    def _begin(self, begun: frozenset[str], ended: frozenset[str]) -> None:
        """Apply the effects of faults that begin or end."""
        if "unplug" in begun:
            self.unplug()
        if "unplug" in ended:
            self.plug()
        if "motor-fault" in begun:
            self.inside.axes[0].fail(MOTOR_FAILED, "motor", DRIVER_FAULT)
        if "encoder-jump" in begun:
            self.inside.axes[0].jump(JUMP)

    # --- bus ---------------------------------------------------------------------------------------------------------

    def plug(self) -> None:
        """Plug the drive in under a new address; its encoders start at zero."""
        with self.lock:
            if not self.plugged:
                self._switch_on()
                self.plugged = True
            self.come_anew()

    def unplug(self) -> None:
        """Unplug the drive and switch its power off."""
        with self.lock:
            self.plugged = False
            self._switch_on()
            self.flush()

    def _switch_on(self) -> None:
        self.inside.switch_on()
        for pipe in self._pipes.values():
            pipe.switch_on()

    def come_anew(self) -> None:
        """Reappear on the bus under another address; all open handles become invalid."""
        with self.lock:
            self.address = next(_addresses) % 127 + 1
            self.generation += 1
            self.owners.clear()
            self.halted.clear()
            self.bind(TEXT)
            self.flush()

    def bind(self, interface: int) -> None:
        """Assign an interface to the kernel's driver, which only drives the serial port."""
        if interface in SERIAL_PORT:
            self.drivers |= SERIAL_PORT

    def unbind(self, interface: int) -> None:
        """Release an interface from the kernel's driver, which releases both interfaces of the serial port."""
        self.drivers -= SERIAL_PORT if interface in SERIAL_PORT else {interface}

    # --- bulk endpoints ----------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Reset the endpoints and discard pending replies of the native protocol.

        For text, see `TextPipe`.
        """
        with self.changed:
            for pipe in self._pipes.values():
                pipe.reset()
            self.changed.notify_all()

    def busy(self, endpoint: int) -> bool:
        """Return True if an endpoint does not accept a packet at present."""
        return self._pipe(endpoint).busy

    def out(self, endpoint: int, packet: bytes, faults: frozenset[str]) -> None:
        """Process a packet from the host."""
        with self.changed:
            self._pipe(endpoint).out(packet, faults)
            self.changed.notify_all()

    def poll_in(self, endpoint: int) -> bytes | None:
        """Return the pending packet, None if there is no packet."""
        with self.changed:
            answer = self._pipe(endpoint).poll_in()
            if answer is not None:
                self.changed.notify_all()
            return answer

    def _pipe(self, endpoint: int) -> NativePipe | TextPipe:
        pipe = self._pipes.get(endpoint)
        return pipe if pipe is not None else fail(errno.ENOENT)
