"""Firmware of a stick: requests, output reports, and input reports over time.

It is independent of the transport: the same firmware serves every transport.
"""

from __future__ import annotations

from collections import deque

from devices.emulators.pid import enumeration
from devices.emulators.pid.machine import Machine
from devices.emulators.pid.plant import StickPlant
from devices.emulators.pid.profiles.profile import Pair, Profile
from haptics.device import Vector

INPUT, OUTPUT, FEATURE = 1, 2, 3
"""Types of reports in class requests."""

_LOG_LENGTH = 20_000

_IN, _STANDARD_TO_INTERFACE, _CLASS = 0x80, 0x81, 0x20
_GET_DESCRIPTOR, _GET_CONFIGURATION, _SET_CONFIGURATION = 0x06, 0x08, 0x09
_GET_REPORT, _GET_IDLE, _SET_REPORT, _SET_IDLE = 0x01, 0x02, 0x09, 0x0A


class Stall(Exception):
    """The device refuses a request."""


class Firmware:
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
    log : deque of (int, str, dict)
        Reports received: frame, kind and fields.
    report_descriptor, device_descriptor, configuration_descriptor : bytes
        Descriptors.
    strings : tuple of str
        String descriptors, from number 1 on.
    """

    def __init__(self, profile: Profile, plant: StickPlant, serial: str) -> None:
        self.profile, self._plant = profile, plant
        self.report_descriptor = profile.report_descriptor
        self.device_descriptor = enumeration.device(profile, bool(serial))
        self.configuration_descriptor = enumeration.configuration(profile)
        self.strings = (profile.manufacturer, profile.product, *((serial,) if serial else ()))
        self.log: deque[tuple[int, str, dict[str, int]]] = deque(maxlen=_LOG_LENGTH)
        self.machine = Machine(profile)
        self.power_on()

    @property
    def frame(self) -> int:
        """Number of frames of 1 ms since creation."""
        return self.machine.frame

    @property
    def force(self) -> Vector:
        """Present force of the motors on the handle, (2,) [N]."""
        return self._plant.force_of(self._level)

    def power_on(self) -> None:
        """Reset: after plugging in, a reset of the bus, or a suspend that switches the power off."""
        self._powered = True
        self.machine.power_on()
        self._level: Pair = (0.0, 0.0)
        self._idle = 0
        self._sent, self._sent_at = b"", self.frame
        self._ready = b""

    def power_off(self) -> None:
        """Switch off: the motors are without force, the handle keeps moving."""
        self.power_on()
        self._powered = False

    def suspend(self) -> None:
        """React to a suspended bus."""
        if self.profile.suspend_resets:
            self.power_on()

    def step(self) -> None:
        """Simulate one frame of 1 ms: motor forces, motion of the handle, next report."""
        level = self.machine.push(self._plant.place, self._plant.speed)
        self._level = level if self._powered else (0.0, 0.0)
        self._plant.advance(self._level)
        if not self._ready:
            self._ready = self._next_report()

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
        """Process a packet from an OUT endpoint; short or unknown packets are dropped, as in real firmware."""
        if endpoint == self.profile.out_endpoint and data:
            self._take(data)

    def _take(self, data: bytes) -> None:
        layout = self.profile.layouts.get(data[0])
        if layout is None or len(data) < layout.size:
            self.log.append((self.frame, "dropped", {"number": data[0], "length": len(data)}))
            return
        fields = layout.unpack(data)
        self.log.append((self.frame, layout.kind, fields))
        self.machine.handle_report(layout.kind, fields)

    def _next_report(self) -> bytes:
        if self.machine.states:
            return self.machine.states.popleft()
        report = self._input_report()
        again = self.profile.repeat or self._idle
        if report == self._sent and not (again and self.frame - self._sent_at >= again):
            return b""
        self._sent, self._sent_at = report, self.frame
        return report

    def _input_report(self) -> bytes:
        return self.profile.input(*self._plant.counts, self._plant.buttons)

    # --- control requests --------------------------------------------------------------------------------------------

    def control(self, request_type: int, request: int, value: int, index: int, data_or_length: bytes | int) -> bytes:
        """Serve a request on endpoint 0.

        Parameters
        ----------
        request_type, request, value, index : int
            Setup packet.
        data_or_length : bytes or int
            Data of a request to the device; maximum length of the reply for a request from the device [byte].

        Returns
        -------
        bytes
            The reply; empty for a request to the device.

        Raises
        ------
        Stall
            If the request is not supported.
        """
        if request_type & _IN:
            answer = self._answer(request_type, request, value, index)
            return answer[: data_or_length if isinstance(data_or_length, int) else 0]
        self._obey(request_type, request, value, index, data_or_length if isinstance(data_or_length, bytes) else b"")
        return b""

    def _answer(self, request_type: int, request: int, value: int, index: int) -> bytes:
        ours = index & 0xFF == self.profile.interface
        if request_type == _IN and request == _GET_CONFIGURATION:
            return b"\x01"
        if request_type == _IN and request == _GET_DESCRIPTOR:
            return self._descriptor(value >> 8, value & 0xFF)
        if request_type == _STANDARD_TO_INTERFACE and request == _GET_DESCRIPTOR and ours:
            return self._class_descriptor(value >> 8)
        if request_type == _STANDARD_TO_INTERFACE | _CLASS and ours:
            if request == _GET_REPORT:
                return self._get_report(value >> 8, value & 0xFF)
            if request == _GET_IDLE:
                return bytes([self._idle // 4])
        raise Stall

    def _obey(self, request_type: int, request: int, value: int, index: int, data: bytes) -> None:
        if request_type == 0 and request == _SET_CONFIGURATION and value in {0, 1}:
            self.power_on()
        elif request_type == _CLASS | 1 and index & 0xFF == self.profile.interface and request == _SET_IDLE:
            self._idle = 4 * (value >> 8)
        elif request_type == _CLASS | 1 and index & 0xFF == self.profile.interface and request == _SET_REPORT:
            self._set_report(value >> 8, value & 0xFF, data)
        else:
            raise Stall

    def _descriptor(self, kind: int, number: int) -> bytes:
        if kind == enumeration.DEVICE:
            return self.device_descriptor
        if kind == enumeration.CONFIGURATION and number == 0:
            return self.configuration_descriptor
        if kind == enumeration.STRING and number == 0:
            return enumeration.LANGUAGES
        if kind == enumeration.STRING and number <= len(self.strings):
            return enumeration.string(self.strings[number - 1])
        raise Stall

    def _class_descriptor(self, kind: int) -> bytes:
        if kind == enumeration.REPORT:
            return self.report_descriptor
        if kind == enumeration.HID:
            return enumeration.hid(self.profile)
        raise Stall

    def _get_report(self, kind: int, number: int) -> bytes:
        profile, machine = self.profile, self.machine
        if (kind, number) == (FEATURE, profile.load):
            return machine.pool.load_report()
        if (kind, number) == (FEATURE, profile.pool):
            return machine.pool.pool_report()
        if (kind, number) == (INPUT, 1):
            return self._input_report()
        if (kind, number) == (INPUT, 2):
            return machine.state_report(0)
        raise Stall

    def _set_report(self, kind: int, number: int, data: bytes) -> None:
        if kind == FEATURE and number == self.profile.create and len(data) >= 2:
            self.log.append((self.frame, "create", {"type": data[1]}))
            self.machine.create(data[1])
        elif kind == OUTPUT and data:
            if self.profile.control_pipe == "works":
                self._take(data)
            elif self.profile.control_pipe == "shifted":  # it interprets the first byte of the fields as the id
                self._take(bytes([number]) + data[2:])
        else:
            raise Stall
