"""Firmware of a stick (descriptors, requests, reports), and its moving handle: motors and converters of its position.

The firmware is independent of the transport: the same firmware serves every transport.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from typing import Any

import numpy as np

from devices.emulators import usb_bus as bus
from devices.emulators.handle import SimulatedHandle
from devices.emulators.pid.machine import Machine
from devices.emulators.pid.profiles import Handle, Pair, Profile
from devices.virtual.hands.registry import HandTable
from haptics.device import DEAD_MAN_BUTTON, Vector

# --- handle -----------------------------------------------------------------------------------------------------------

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
            bus.FRAME,
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


# --- firmware ---------------------------------------------------------------------------------------------------------

INPUT, OUTPUT, FEATURE = 1, 2, 3
"""Types of reports in class requests."""

_LOG_LENGTH = 20_000

_ASSOCIATION = 0x0B
_BULK, _INTERRUPT = 0x02, 0x03
_SERIAL_CONTROL, _SERIAL_DATA, _HID_CLASS, _MIXED = 0x02, 0x0A, 0x03, 0xEF

_TO_INTERFACE, _CLASS = 0x01, 0x20
_GET_CONFIGURATION, _SET_CONFIGURATION = 0x08, 0x09
_GET_REPORT, _GET_IDLE, _SET_REPORT, _SET_IDLE = 0x01, 0x02, 0x09, 0x0A


class Firmware(bus.UsbFirmware):
    """Firmware of a stick of the PID class, with its handle.

    Parameters
    ----------
    profile : Profile
        Kind of stick.
    plant : StickPlant
        The handle.
    serial : str
        Serial number; empty for a stick without one.

    Attributes
    ----------
    machine : Machine
        State machine of the effects.
    level : (float, float)
        Present motor levels of X and Y as fractions of full scale.
    log : deque of (int, str, dict)
        Reports received: frame, kind and fields.
    report_descriptor : bytes
        Report descriptor.
    """

    def __init__(self, profile: Profile, plant: StickPlant, serial: str) -> None:
        self.profile, self._plant = profile, plant
        self.report_descriptor = profile.report_descriptor
        kind = (_MIXED, 2, 1) if profile.interface else (0, 0, 0)
        numbers = profile.vendor_id, profile.product_id, profile.release
        fields = (profile.usb, *kind, profile.control_size, *numbers, 1, 2, 3 if serial else 0, 1)
        self.device_descriptor = struct.pack(bus.DEVICE_FORM, 18, bus.DEVICE, *fields)
        self.configuration_descriptor = _configuration_descriptor(profile)
        self.strings = (profile.manufacturer, profile.product, *((serial,) if serial else ()))
        self.log: deque[tuple[int, str, dict[str, int]]] = deque(maxlen=_LOG_LENGTH)
        self.machine = Machine(profile)
        self.power_on()

    @property
    def frame(self) -> int:
        """Number of frames of 1 ms since creation."""
        return self.machine.frame

    def power_on(self, powered: bool = True) -> None:
        """Reset: after plugging in, a reset of the bus, or a suspend that switches the power off.

        Unless it is `powered` afterwards, the motors are without force; the handle keeps moving.
        """
        self._powered = powered
        self.machine.power_on()
        self.level: Pair = (0.0, 0.0)
        self._idle = 0
        self._sent, self._sent_at = b"", self.frame
        self._ready = b""

    def step(self) -> None:
        """Simulate one frame of 1 ms: motor forces, motion of the handle, next report."""
        level = self.machine.push(self._plant.place)
        self.level = level if self._powered else (0.0, 0.0)
        self._plant.advance(self.level)
        if not self._ready and self.machine.states:
            self._ready = self.machine.states.popleft()
        elif not self._ready:
            report = self.profile.input(*self._plant.counts, self._plant.buttons)
            again = self.profile.repeat or self._idle
            if report != self._sent or (again and self.frame - self._sent_at >= again):
                self._ready, self._sent, self._sent_at = report, report, self.frame

    # --- interrupt endpoints -----------------------------------------------------------------------------------------

    def poll_in(self, endpoint: int) -> bytes | None:
        """Return the pending report of an IN endpoint, or None.

        A report is kept until it is read, regardless of its age.
        """
        if endpoint != self.profile.in_endpoint or not self._ready:
            return None
        ready, self._ready = self._ready, b""
        return ready

    def out(self, endpoint: int, data: bytes) -> None:
        """Process a packet from an OUT endpoint."""
        if endpoint == self.profile.out_endpoint and data:
            self._process_report(data)

    def _process_report(self, data: bytes) -> None:
        """Process an output report; short or unknown ones are dropped, as in real firmware."""
        layout = self.profile.outputs.get(data[0])
        if layout is None or len(data) < 1 + layout.form.size:
            self.log.append((self.frame, "dropped", {"number": data[0], "length": len(data)}))
            return
        fields = layout.unpack(data)
        self.log.append((self.frame, layout.kind, fields))
        self.machine.handle_report(layout.kind, fields)

    # --- control requests --------------------------------------------------------------------------------------------

    def control(self, request_type: int, request: int, value: int, index: int, data_or_length: bytes | int) -> bytes:
        """Serve a request on endpoint 0; see `UsbFirmware.control`."""
        high, low, ours = value >> 8, value & 0xFF, index & 0xFF == self.profile.interface
        if request_type & bus.IN:
            answer = self._answer(request_type & ~bus.IN, request, high, low, ours)
            return answer[: data_or_length if isinstance(data_or_length, int) else 0]
        if request_type == 0 and request == _SET_CONFIGURATION and value in {0, 1}:
            self.power_on()
        elif request_type == _CLASS | _TO_INTERFACE and ours and request == _SET_IDLE:
            self._idle = 4 * high
        elif request_type == _CLASS | _TO_INTERFACE and ours and request == _SET_REPORT:
            data = data_or_length if isinstance(data_or_length, bytes) else b""
            if high == FEATURE and low == self.profile.create and len(data) >= 2:
                self.log.append((self.frame, "create", {"type": data[1]}))
                self.machine.create(data[1])
            elif high != OUTPUT or not data:
                raise bus.Stall
            elif self.profile.control_pipe == "works":
                self._process_report(data)
            elif self.profile.control_pipe == "shifted":  # it interprets the first byte of the fields as the id
                self._process_report(bytes([low]) + data[2:])
        else:
            raise bus.Stall
        return b""

    def _answer(self, recipient: int, request: int, kind: int, number: int, ours: bool) -> bytes:
        """Return the reply to a request; `kind` and `number` are the bytes of its value."""
        profile, machine, report = self.profile, self.machine, _TO_INTERFACE | _CLASS
        if recipient & _TO_INTERFACE and not ours:
            raise bus.Stall
        if (recipient, request) == (0, _GET_CONFIGURATION):
            return b"\x01"
        if (recipient, request, kind) == (0, bus.GET_DESCRIPTOR, bus.STRING):
            return self.string(number)
        if (recipient, request) == (report, _GET_IDLE):
            return bytes([self._idle // 4])
        if (recipient, request, kind, number) == (report, _GET_REPORT, FEATURE, profile.load):
            return machine.load_report()
        answers = {
            (0, bus.GET_DESCRIPTOR, bus.DEVICE, number): self.device_descriptor,
            (0, bus.GET_DESCRIPTOR, bus.CONFIGURATION, 0): self.configuration_descriptor,
            (_TO_INTERFACE, bus.GET_DESCRIPTOR, bus.REPORT, number): self.report_descriptor,
            (_TO_INTERFACE, bus.GET_DESCRIPTOR, bus.HID, number): _hid_descriptor(profile),
            (report, _GET_REPORT, FEATURE, profile.pool): machine.pool_report(),
            (report, _GET_REPORT, INPUT, 1): profile.input(*self._plant.counts, self._plant.buttons),
            (report, _GET_REPORT, INPUT, 2): machine.state_report(0),
        }
        answer = answers.get((recipient, request, kind, number))
        if answer is None:
            raise bus.Stall
        return answer


# --- descriptors -----------------------------------------------------------------------------------------------------


def _hid_descriptor(profile: Profile) -> bytes:
    return struct.pack("<BBHBBBH", 9, bus.HID, 0x0111, 0, 1, bus.REPORT, len(profile.report_descriptor))


def _interface(number: int, endpoints: int, kind: int, subclass: int = 0) -> bytes:
    return struct.pack("<9B", 9, bus.INTERFACE, number, 0, endpoints, kind, subclass, 0, 0)


def _endpoint(address: int, kind: int, size: int, interval: int) -> bytes:
    return struct.pack("<BBBBHB", 7, bus.ENDPOINT, address, kind, size, interval)


def _configuration_descriptor(profile: Profile) -> bytes:
    """Return the configuration descriptor with all interfaces.

    Interfaces 0 and 1 are a serial port of the communications class, if present, on free endpoints of the stick.
    """
    body = b""
    if profile.interface:
        taken = {profile.in_endpoint & 0x0F, profile.out_endpoint & 0x0F}
        notify, data = [number for number in range(1, 8) if number not in taken][:2]
        body += struct.pack("<8B", 8, _ASSOCIATION, 0, 2, _SERIAL_CONTROL, 2, 0, 0)
        body += _interface(0, 1, _SERIAL_CONTROL, 2)
        body += bytes.fromhex("05 24 00 20 01  05 24 01 00 01  04 24 02 02  05 24 06 00 01")
        body += _endpoint(bus.IN | notify, _INTERRUPT, 8, 16) + _interface(1, 2, _SERIAL_DATA)
        body += _endpoint(data, _BULK, 64, 0) + _endpoint(bus.IN | data, _BULK, 64, 0)
    body += _interface(profile.interface, 1 + bool(profile.out_endpoint), _HID_CLASS) + _hid_descriptor(profile)
    body += _endpoint(profile.in_endpoint, _INTERRUPT, 64, profile.in_interval)
    if profile.out_endpoint:
        body += _endpoint(profile.out_endpoint, _INTERRUPT, profile.out_size, profile.out_interval)
    count = profile.interface + 1
    return struct.pack(bus.CONFIGURATION_FORM, 9, bus.CONFIGURATION, 9 + len(body), count, 1, 0, 0x80, 250) + body
