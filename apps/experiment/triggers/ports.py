"""Table ``triggers`` of an experiment, and the outputs to which the codes are written.

Linux offers a parallel port to programs as ``/dev/parportN`` (ppdev; request numbers of ``linux/ppdev.h``).
"""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.settings import bounded, check, choice, documented, string, unknown_name

NONE, SERIAL, PARALLEL, SOCKET, LSL, LOOPBACK = "none", "serial", "parallel", "socket", "lsl", "loopback"
DEVICE = "device"
PORTS = (NONE, SERIAL, PARALLEL, SOCKET, LSL, DEVICE, LOOPBACK)

EVENTS: dict[str, Any] = {
    "block": 1,
    "trial": 2,
    "interval_begin": [11, 12],
    "interval_end": [21, 22],
    "stimulus": [31, 32],
    "answer": 4,
}
"""Default code of each event, in a list by interval. ``stimulus`` is the tick at which the gate opens."""

SPEEDS = (1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400)
"""Speeds of a serial line [baud] that every system has."""

LARGEST_CODE = 255

STREAM = "haptics triggers"
"""Name of the LSL stream."""

_PATIENCE = 1.0
"""Time for which an output may be busy [s]."""

_CLAIM, _RELEASE, _WRITE = 0x708B, 0x708C, 0x40017086
"""Requests PPCLAIM, PPRELEASE and PPWDATA."""


@documented
@dataclass(frozen=True)
class TriggerSettings:
    """Table ``triggers``: codes that are sent to other recorders at the events of a session in real time."""

    port: str = choice(NONE, PORTS, doc="output; loopback: for rehearsals without hardware")
    address: str = string("", allowed="a device file or HOST:PORT", doc="such as /dev/ttyUSB0 or /dev/parport0")
    speed: int = bounded(115200, minimum=1200, maximum=230400, unit="baud", doc="speed of a serial line")
    reset: float = bounded(
        0.0,
        minimum=0.0,
        maximum=1.0,
        unit="s",
        doc="time after which the code 0 is written, and least time until the next code; 0: never",
    )
    codes: Any = field(
        default_factory=dict,
        metadata={
            "words": "a table of codes, 1 to 255, by event",
            "doc": "codes that differ from the defaults; interval_begin, interval_end and stimulus: a code, or a list "
            "by interval; answer: a code, or a table by answer; 0: not sent",
        },
    )

    def __post_init__(self) -> None:
        check(self, "triggers")
        if self.speed not in SPEEDS:
            raise ConfigurationError(
                f"triggers.speed = {self.speed}: must be one of {', '.join(map(str, SPEEDS))} baud."
            )
        addressed = self.port in (SERIAL, PARALLEL, SOCKET)
        if addressed != bool(self.address):
            wanted = "HOST:PORT" if self.port == SOCKET else "a device file such as /dev/ttyUSB0 or /dev/parport0"
            remedy = f"must be {wanted}" if addressed else f"port = {self.port!r} has no address; leave it out"
            raise ConfigurationError(f"triggers.address = {self.address!r}: {remedy}.")
        if self.port == SOCKET:
            host_and_port(self.address)
        if self.reset and self.port == LSL:
            raise ConfigurationError(f"triggers.reset = {self.reset:g} s: an LSL stream has no level; leave it out.")
        if not isinstance(self.codes, Mapping):
            raise ConfigurationError(f"triggers.codes = {self.codes!r}: must be a table of codes by event.")
        for event, value in self.codes.items():
            if event not in EVENTS:
                raise unknown_name("event", f"triggers.codes.{event}", [f"triggers.codes.{name}" for name in EVENTS])
            values = [value]
            if isinstance(value, list | tuple) and isinstance(EVENTS[event], list):
                values = list(value)
            elif isinstance(value, Mapping) and event == "answer":
                values = list(value.values())
            if not 1 <= len(values) <= 20 or not all(type(one) is int and 0 <= one <= LARGEST_CODE for one in values):
                forms = ", a list by interval" if isinstance(EVENTS[event], list) else ""
                forms = ", a table by answer" if event == "answer" else forms
                raise ConfigurationError(
                    f"triggers.codes.{event} = {value!r}: must be a code from 1 to {LARGEST_CODE}{forms}, "
                    "or 0 for none."
                )

    def code(self, event: str, interval: int = 1, answer: Any = None) -> int:
        """Return the code of an event in an interval, from 1, or of an answer; 0 if it is not sent."""
        value = self.codes.get(event, EVENTS[event])
        if isinstance(value, Mapping):
            return int(value.get(str(answer), 0))
        if isinstance(value, list | tuple):
            return int(value[interval - 1]) if interval <= len(value) else 0
        return int(value)


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of HOST:PORT.

    Raises
    ------
    ConfigurationError
        If its form is invalid.
    """
    host, _, number = address.rpartition(":")
    if not host or not number.isascii() or not number.isdigit() or not 1 <= int(number) <= 65535:
        raise ConfigurationError(f"triggers.address = {address!r}: must be HOST:PORT, such as 127.0.0.1:5000.")
    return host.strip("[]"), int(number)


class Port(Protocol):
    """Open output."""

    def write(self, code: int, due: int) -> None:
        """Write a code, for an event at the monotonic time `due` [ns]. Raise `DeviceFault` if that fails."""

    def close(self) -> None:
        """Close the output."""


def open_port(settings: TriggerSettings, shared: Path | None = None) -> Port:
    """Open the output of the settings.

    Parameters
    ----------
    settings : TriggerSettings
        Output.
    shared : Path, optional
        Empty shared file, from which the driver takes codes for the digital output of the device.

    Raises
    ------
    HapticError
        With the remedy, if it cannot be opened.
    """
    match settings.port:
        case "serial":
            import termios

            from devices.common.bus import open_port as open_serial

            speed = getattr(termios, f"B{settings.speed}")
            return _BytePort(open_serial(settings.address, "triggers.address", speed), settings.address)
        case "parallel":
            return _ParallelPort(settings.address)
        case "socket":
            try:
                line = socket.create_connection(host_and_port(settings.address), _PATIENCE)
            except OSError as error:
                raise DeviceOpenError(
                    f"triggers.address = {settings.address!r}: cannot be reached ({error.strerror or error}); start "
                    "its receiver, or change the address."
                ) from error
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.setblocking(False)
            return _BytePort(line.detach(), settings.address)
        case "lsl":
            return _LslPort()
        case "device" if shared is not None:
            return _DevicePort(shared)
        case "loopback":
            return _Loopback()
    raise ValueError(f"{settings.port} is no output")


class _BytePort:
    """Terminal or connected socket, which receives a byte for each code."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor, self._name = descriptor, name

    def write(self, code: int, due: int) -> None:
        """Write a byte. The kernel has accepted it when this returns."""
        try:
            try:
                os.write(self._descriptor, bytes((code,)))
            except BlockingIOError:
                select.select([], [self._descriptor], [], _PATIENCE)
                os.write(self._descriptor, bytes((code,)))
        except OSError as error:
            busy = isinstance(error, BlockingIOError)
            words = "its receiver does not read" if busy else error.strerror or str(error)
            raise DeviceFault(
                f"triggers: {self._name} did not accept code {code} ({words}); check the cable and the receiver."
            ) from error

    def close(self) -> None:
        os.close(self._descriptor)


class _ParallelPort:
    """Data lines of a parallel port by ppdev. The code stays on the lines until the next one."""

    def __init__(self, path: str) -> None:
        import fcntl

        self._ioctl, self._name = fcntl.ioctl, path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None)
            kind = DeviceNotFoundError if number in (errno.ENOENT, errno.ENXIO, errno.ENODEV) else DeviceOpenError
            remedy = "load the driver with 'sudo modprobe ppdev', and join the group lp: sudo usermod -aG lp $USER"
            words = os.strerror(number) if number else str(error)
            raise kind(f"triggers.address = {path!r}: cannot be opened ({words}); {remedy}.") from error
        try:
            self._ioctl(self._descriptor, _CLAIM)
        except OSError as error:
            os.close(self._descriptor)
            words = "is no parallel port" if error.errno == errno.ENOTTY else "is used by another driver, perhaps lp"
            raise DeviceOpenError(
                f"triggers.address = {path!r}: {words}; name another, or 'sudo modprobe -r lp'."
            ) from error

    def write(self, code: int, due: int) -> None:
        """Set the data lines."""
        try:
            self._ioctl(self._descriptor, _WRITE, bytes((code,)))
        except OSError as error:
            raise DeviceFault(f"triggers: {self._name} did not accept code {code} ({error.strerror}).") from error

    def close(self) -> None:
        try:
            self._ioctl(self._descriptor, _RELEASE)
        finally:
            os.close(self._descriptor)


class _LslPort:
    """Stream of the Lab Streaming Layer, in which every code has the time of its event."""

    def __init__(self) -> None:
        from apps.stream import clock_shift, require_lsl

        require_lsl()
        import pylsl

        self._shift = clock_shift(pylsl.local_clock)
        info = pylsl.StreamInfo(STREAM, "Markers", 1, 0.0, pylsl.cf_int32, f"haptics-triggers-{socket.gethostname()}")
        self._outlet: Any = pylsl.StreamOutlet(info)

    def write(self, code: int, due: int) -> None:
        """Push a code with the time of the event."""
        self._outlet.push_sample([code], due * 1e-9 + self._shift)

    def close(self) -> None:
        self._outlet = None


class _DevicePort:
    """Digital output of the device, which its driver sets. A code counts as sent when the device has confirmed it."""

    def __init__(self, shared: Path) -> None:
        from devices.common.output import OutputRequests

        self._requests = OutputRequests(shared, _PATIENCE)

    def write(self, code: int, due: int) -> None:
        """Set the output."""
        self._requests.set(code)

    def close(self) -> None:
        """Do nothing: the driver sets the output to 0 at the end of every run."""


class _Loopback(_BytePort):
    """Pseudo terminal whose other end is read back, so that a code counts as sent when it has been received."""

    def __init__(self) -> None:
        import tty

        self._far, near = os.openpty()
        tty.setraw(near)
        super().__init__(near, LOOPBACK)

    def write(self, code: int, due: int) -> None:
        """Write a byte and read it back."""
        super().write(code, due)
        received = os.read(self._far, 16)
        if received != bytes((code,)):
            raise DeviceFault(f"triggers: the loopback returned {received!r} for code {code}.")

    def close(self) -> None:
        super().close()
        os.close(self._far)
