"""Network force sensor, at a real UDP socket and a real local web server.

It is written only from the layout of commands, records and pages and shares no code with the driver, so that a mistake
there does not cancel out here. Like the real sensors it streams to the client that started it until it gets another
command, and its default rate is 7000 records per second.

Layout, numbers big-endian::

    1234 command:u16 count:u32                            to the sensor
    number:u32 measurement:u32 status:u32 6 x count:i32   from the sensor, one record

Commands: 0 stop, 2 start, 3 start with several records per datagram, 42 (hexadecimal) tare. A HEX also accepts 81
(filter) and 82 (period in milliseconds), and continues its stream when it is zeroed. For the other sensors every
command ends the previous stream. The first record number of the real sensors is unknown; here it is 1.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from devices.emulators.loop import Loop, ServedDevice
from devices.emulators.sensor import SensorProgram

INTERNAL_RATE = 7000
"""Measurements per second."""

HEX_COUNTS = (1e4, 1e5)
"""Counts per newton and per newton metre of a HEX."""

SATURATED = 0x80020000
"""Status word of a record with a saturated transducer."""

_LONGEST_REQUEST = 8192
"""Maximum length of a request [byte]."""

_PATIENCE = 1.0
"""Timeout for a client that does not accept its reply [s]."""

_SHORTEST = 5e-4
"""Minimum interval between bundles of datagrams [s], limited by the speed of a thread."""

ADDRESS = "127.0.0.1"

_WRAP = 1 << 32


class Program(SensorProgram):
    """Firmware of a sensor.

    Parameters
    ----------
    wrench : callable
        Returns the present wrench on the sensor, 6 numbers [N], [N m].
    per_force, per_torque : float
        Counts per unit of force and of torque.
    force_unit, torque_unit : str
        Names of these units on the web pages.
    newton, newton_metre : float
        One unit of force in N and of torque in N m.
    product : str
        Product name.
    is_hex : bool
        Whether it is a HEX.
    active : callable, optional
        Returns the names of the active faults (`devices.emulators.wire_faults.RDT_FAULTS`); by default they are set
        manually, in ``faults``.

    Attributes
    ----------
    faults : Faults
        Communication faults.
    settings : dict
        Values of its pages by name, as text.
    streaming : bool
        Whether it has been started.
    commands : list of (int, int)
        Commands received, with their counts.
    number, measurement : int
        Numbers of the last record and of its measurement.
    """

    OVERLOAD = "saturated", SATURATED
    TRUNCATED = 5
    EVERY = frozenset(("duplicated", "reordered"))
    LIMIT = (1 << 31) - 1

    def __init__(
        self,
        wrench: Callable[[], Sequence[float]],
        *,
        per_force: float = 1e6,
        per_torque: float = 1e6,
        force_unit: str = "N",
        torque_unit: str = "N-m",
        newton: float = 1.0,
        newton_metre: float = 1.0,
        product: str = "Net F/T Transducer",
        is_hex: bool = False,
        active: Callable[[], Set[str]] = frozenset,
    ) -> None:
        self.settings = {
            "prodname": product,
            "setuserfilter": "0",
            "setbias": "0;0;0;0;0;0",
            "comrdtrate": str(INTERNAL_RATE),
            "comrdtbsiz": "5",
            "runrate": str(INTERNAL_RATE),
            "cfgcpf": f"{per_force:.0f}",
            "cfgcpt": f"{per_torque:.0f}",
            "scfgfu": force_unit,
            "scfgtu": torque_unit,
        }
        if is_hex:
            per_force, per_torque = HEX_COUNTS
            self.settings["comrdtrate"] = "100"
        super().__init__(wrench, (per_force / newton,) * 3 + (per_torque / newton_metre,) * 3, active)
        self._is_hex = is_hex
        self._shown = [0] * 6
        self._at_once = 1
        self.commands: list[tuple[int, int]] = []
        self.measurement = 0

    def command(self, data: bytes, now: float) -> None:
        """Process a command received at `now` [s]."""
        if self.faults.deaf:
            self.faults.deaf -= 1
            return
        if len(data) != 8 or data[:2] != b"\x12\x34":
            return
        command, count = struct.unpack(">HI", data[2:])
        self.commands.append((command, count))
        if command == 0x42:
            self._zero = tuple(self._wrench()) if count > 0 or not self._is_hex else (0.0,) * 6
            counts = (round(bias * per_unit) for bias, per_unit in zip(self._zero, self._per_unit, strict=True))
            self.settings["setbias"] = ";".join(map(str, counts))
        elif self._is_hex and command == 0x81:
            self.settings["setuserfilter"] = str(count)
        elif self._is_hex and command == 0x82:
            self.settings["comrdtrate"] = str(1000 // max(count, 1))
        if self._is_hex and command in {0x42, 0x81, 0x82}:
            return
        self.streaming = command in {2, 3}
        if self.streaming:
            self._at_once = int(self.settings["comrdtbsiz"]) if command == 3 else 1
            self._next = now
            self.number = self._sent = 0
            self._late.clear()

    def _message(self) -> tuple[bytes, float]:
        records, rate = b"", INTERNAL_RATE if "flood" in self._active else int(self.settings["comrdtrate"])
        for _ in range(self._at_once):
            self.number = (self.number + 1) % _WRAP
            if not self.faults.stalled:
                self.measurement = (self.measurement + max(INTERNAL_RATE // rate, 1)) % _WRAP
                self._shown = self._counts()
            records += struct.pack(">3I6i", self.number, self.measurement, self.faults.status, *self._shown)
        return records, self._at_once / rate

    # --- pages -------------------------------------------------------------------------------------------------------

    def page(self, path: str) -> str | None:
        """Return the page at `path`: text, empty for an accepted setting, None for an unknown path."""
        address = urlsplit(path)
        if address.path == "/netftapi2.xml":
            tags = "".join(f"<{name}>{value}</{name}>\n" for name, value in self.settings.items())
            return f'<?xml version="1.0" encoding="UTF-8"?>\n<netft>\n{tags}</netft>\n'
        if address.path not in {"/comm.cgi", "/setting.cgi"}:
            return None
        self.settings.update((name, value) for name, value in parse_qsl(address.query) if name in self.settings)
        return ""


class RdtBox(ServedDevice):
    """Emulated sensor at its sockets: one for the stream, and a web server for its pages.

    Parameters
    ----------
    wrench : callable
        Returns the present wrench on the sensor, 6 numbers [N], [N m].
    arguments
        As for `Program`.

    Attributes
    ----------
    program : Program
        Firmware of the sensor with its settings and its faults.
    address, web_address : dict
        Settings of the driver for the address of the stream, and for the addresses of stream and pages.
    """

    def __init__(self, wrench: Callable[[], Sequence[float]], **arguments: Any) -> None:
        self.program = Program(wrench, **arguments)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((ADDRESS, 0))
        self._listener = socket.create_server((ADDRESS, 0))
        self.address: dict[str, Any] = {"address": ADDRESS, "port": self._socket.getsockname()[1]}
        self.web_address = {**self.address, "web_port": self._listener.getsockname()[1]}
        self._host: tuple[str, int] | None = None

    @contextlib.contextmanager
    def within(self, loop: Loop) -> Iterator[None]:
        """Serve the sensor in an event loop within the block."""

        def accept(wire: socket.socket) -> bool:
            wire.settimeout(_PATIENCE)
            loop.files[wire] = lambda: self._serve_page(loop, wire)
            return True

        loop.files[self._socket] = self._listen
        loop.sources.append((lambda now: max(self.program.pause(now), _SHORTEST), self._serve))
        loop.accept(self._listener, accept)
        with self._socket, self._listener:
            yield

    def _serve(self, now: float) -> None:
        """Send due datagrams."""
        for datagram in self.program.due(now):
            if self._host is not None:
                with contextlib.suppress(OSError):  # the host may have closed its socket
                    self._socket.sendto(datagram, self._host)

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # the host may have closed its socket since the last datagram
            data, self._host = self._socket.recvfrom(64)
            self.program.command(data, time.monotonic())

    def _serve_page(self, loop: Loop, wire: socket.socket) -> None:
        """Serve one web page per connection; the request arrives in one piece."""
        del loop.files[wire]
        with wire, contextlib.suppress(OSError):  # the client may have disconnected
            method, path, *_ = (*wire.recv(_LONGEST_REQUEST).decode("latin-1").split(), "", "")
            page = self.program.page(path) if method == "GET" else None
            status = "404 Not Found" if page is None else "200 OK" if page else "302 Found\r\nLocation: /"
            body = (page or "").encode()
            head = f"HTTP/1.0 {status}\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
            wire.sendall(head.encode() + body)
