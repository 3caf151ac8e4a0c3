"""Drive on the emulated USB bus: endpoints of both protocols, descriptors, faults, and the backend for pyusb.

A bulk transfer does not wait for a frame. A drive accepts no native packet while a reply is unread.
"""

from __future__ import annotations

import errno
import math
import struct
import threading
from collections.abc import Iterable, Set
from dataclasses import dataclass

from devices.emulators import usb_bus as bus
from devices.emulators.odrive.axis import DRIVER_FAULT, MOTOR_FAILED, STEP, Flywheels, Plant
from devices.emulators.odrive.firmware import Firmware
from devices.emulators.odrive.text import TextProtocol
from devices.emulators.wire_faults import ODRIVE_FAULTS, WireFaults

PACKET = 64
"""Maximum length of a packet [byte]."""

WAITING = 510
"""Maximum length of pending text [byte]; additional text is lost."""

_TABLE = b"\0\x80"
_HEADER = 2

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


@dataclass
class NativePipe:
    """Endpoints of the native protocol: one request, one reply.

    No request is accepted while a reply is pending.

    Parameters
    ----------
    inside : Firmware
        The drive.
    """

    inside: Firmware
    _answer: bytes | None = None

    def out(self, packet: bytes, faults: Set[str]) -> bool:
        """Process a packet from the host; return False if it is not accepted, because a reply is pending."""
        if self._answer is not None:
            return False
        if "wrong-crc" not in faults or packet[2:4] == _TABLE:
            answer = self.inside.handle(packet)
            if answer is not None and "lost-answer" not in faults:
                self._answer = answer[:_HEADER] if "short" in faults else answer
        return True

    def poll_in(self) -> bytes | None:
        """Return the pending reply, None if there is no reply."""
        answer, self._answer = self._answer, None
        return answer

    def reset(self, supply: bool) -> None:
        """Discard the pending reply."""
        self._answer = None


class TextPipe:
    """Endpoints of the serial port, which always accepts data.

    The first reply is put into a packet at once. Later replies wait, and are put into the next packet when the first
    one was read. Two defects of firmware 0.5.6 are emulated. If 64 bytes or more are waiting at that time, they do not
    fit into a packet, and nothing is sent until the supply is switched off. Waiting text survives a reset of the port
    and is sent before the next reply.

    Parameters
    ----------
    inside : Firmware
        The drive.
    """

    def __init__(self, inside: Firmware) -> None:
        self._protocol = TextProtocol(inside)
        self._waiting = b""
        self._under_way = 0

    def out(self, packet: bytes, faults: Set[str]) -> bool:
        """Process a packet, or several at once; return True: data are always accepted."""
        for answer in self._protocol.handle_packet(packet):
            if "lost-answer" not in faults:
                whole = b"\r\n" if "short" in faults else answer
                self._waiting += whole[: WAITING - len(self._waiting)]
                self._send()
        return True

    def poll_in(self) -> bytes | None:
        """Return the packet being sent, None if there is no packet."""
        if not self._under_way:
            return None
        packet, self._waiting = self._waiting[: self._under_way], self._waiting[self._under_way :]
        self._under_way = 0
        self._send()
        return packet

    def _send(self) -> None:
        """Make a packet of all waiting text, unless a packet is being sent or the text is too long."""
        if not self._under_way and len(self._waiting) < PACKET:
            self._under_way = len(self._waiting)

    def reset(self, supply: bool) -> None:
        """Discard an incomplete line and the state of the packet being sent; with the `supply`, all text."""
        self._protocol = TextProtocol(self._protocol.inside)
        self._under_way = 0
        if supply:
            self._waiting = b""


class _UsbFirmware(bus.UsbFirmware):
    """Descriptors of the drive: a serial port (0, 1) and the native interface (2)."""

    device_descriptor = struct.pack(
        bus.DEVICE_FORM, 18, bus.DEVICE, 0x0200, 0xEF, 2, 1, 64, VENDOR, PRODUCT, 0x0300, 1, 2, 3, 1
    )
    _interfaces = bytes.fromhex(
        "08 0b 00 02 02 02 01 00"  # 0 and 1 belong together
        "09 04 00 00 01 02 02 01 00  05 24 00 10 01  05 24 01 00 01  04 24 02 02  05 24 06 00 01  07 05 82 03 08 00 10"
        "09 04 01 00 02 0a 00 00 00  07 05 01 02 40 00 00  07 05 81 02 40 00 00"
        "09 04 02 00 02 00 01 00 00  07 05 03 02 40 00 00  07 05 83 02 40 00 00"
    )
    configuration_descriptor = (
        struct.pack(bus.CONFIGURATION_FORM, 9, bus.CONFIGURATION, 9 + len(_interfaces), 3, 1, 0, 0xC0, 50) + _interfaces
    )

    def __init__(self, board: EmulatedOdrive, serial: int) -> None:
        self.strings = "ODrive Robotics", "ODrive 3.6 Native Interface", f"{serial:012X}"
        self._board = board

    def power_on(self) -> None:
        """Discard pending replies, as after a set configuration."""
        self._board.flush()

    def control(self, request_type: int, request: int, value: int, index: int, data_or_length: bytes | int) -> bytes:
        """Reply to a request on endpoint 0: the strings."""
        if (request_type, request, value >> 8) != (bus.IN, bus.GET_DESCRIPTOR, bus.STRING):
            raise bus.Stall
        return self.string(value & 0xFF)[: data_or_length if isinstance(data_or_length, int) else len(data_or_length)]


class EmulatedOdrive(bus.UsbDevice):
    """Drive that can be plugged and unplugged; its two motors turn `plant`.

    Parameters
    ----------
    plant : Plant, optional
        Load of the motors; by default two flywheels.
    serial : int
        Serial number.
    time : WallTime, optional
        Clock; by default real time.
    faults : iterable of str
        Faults with their times from now, ``NAME@SECONDS+DURATION`` (`devices.emulators.wire_faults.ODRIVE_FAULTS`).

    Attributes
    ----------
    inside : Firmware
        Firmware of the drive.
    plant : Plant
        Load of the motors.
    changed : threading.Condition
        Notified after every packet; it shares the lock of the device.
    loose_at : float
        Time at which the last motor was disarmed, on the time scale of the faults [s]; nan while one is armed.
    """

    def __init__(
        self,
        plant: Plant | None = None,
        *,
        serial: int = 0x2065339F304B,
        time: bus.WallTime | None = None,
        faults: Iterable[str] = (),
    ) -> None:
        self.plant: Plant = plant if plant is not None else Flywheels()
        self.inside = Firmware(self.plant, serial)
        self.firmware = _UsbFirmware(self, serial)
        super().__init__(WireFaults(ODRIVE_FAULTS, faults), time)
        self.changed = threading.Condition(self.lock)
        self.loose_at = 0.0
        self._pipes: dict[int, NativePipe | TextPipe] = {}
        for pipe, ends in (
            (NativePipe(self.inside), (ENDPOINT_OUT, ENDPOINT_IN)),
            (TextPipe(self.inside), (TEXT_OUT, TEXT_IN)),
        ):
            self._pipes |= dict.fromkeys(ends, pipe)
        self._iterations = 0
        self._last: frozenset[str] = frozenset()
        self.plug()

    def catch_up(self) -> frozenset[str]:
        """Execute the pending control iterations; return the names of the active faults."""
        with self.lock:
            now = self.now
            due = math.floor(now / STEP + bus.ROUNDING)
            if due > self._iterations:
                self.inside.iterate(due - self._iterations)
                self._iterations = due
                if any(axis.driven for axis in self.inside.axes):
                    self.loose_at = math.nan
                elif math.isnan(self.loose_at):
                    self.loose_at = now - self.faults.origin
            faults = self.faults.at(now)
            begun, ended, self._last = faults - self._last, self._last - faults, faults
            if "unplug" in begun:
                self.unplug()
            if "unplug" in ended:
                self.plug()
            if "motor-fault" in begun:
                self.inside.axes[0].fail(MOTOR_FAILED, "motor", DRIVER_FAULT)
            if "encoder-jump" in begun:
                self.inside.axes[0].jump(JUMP)
            return faults

    # --- bus ---------------------------------------------------------------------------------------------------------

    def plug(self) -> None:
        """Plug the drive in under a new address; its encoders start at zero."""
        with self.lock:
            if not self.plugged:
                self.inside.switch_on()
                self.flush(supply=True)
                self.plugged = True
            self.reconnect()

    def unplug(self) -> None:
        """Unplug the drive and switch its power off."""
        with self.lock:
            self.plugged = False
            self.inside.switch_on()
            self.flush(supply=True)

    def reconnect(self) -> None:
        """Reappear on the bus under another address; all open handles become invalid."""
        with self.lock:
            self.move()
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

    def flush(self, supply: bool = False) -> None:
        """Reset the endpoints and discard pending replies of the native protocol; with the `supply`, also text."""
        with self.changed:
            for pipe in self._pipes.values():
                pipe.reset(supply)
            self.changed.notify_all()

    def pipe(self, endpoint: int) -> NativePipe | TextPipe:
        """Return the pair of endpoints to which an endpoint belongs; raise `ENOENT` if it does not exist."""
        pipe = self._pipes.get(endpoint)
        return pipe if pipe is not None else bus.fail(errno.ENOENT)


class EmulatedOdriveBackend(bus.BulkBackend):
    """Backend for pyusb with emulated drives, of class `EmulatedOdrive`."""

    units: tuple[EmulatedOdrive, ...]

    def reset_device(self, dev_handle: bus.Handle) -> None:
        """Reset the port and discard pending replies; firmware and motors keep running."""
        board = dev_handle.unit
        with board.lock:
            faults = self.advance(dev_handle)
            board.halted.clear()
            board.flush()
            if "reset-comes-anew" in faults:
                board.reconnect()
                bus.fail(errno.ENODEV)
