"""Firmware of the sensor: commands in, datagrams out, web pages, and communication faults.

Layout, numbers big-endian::

    1234 command:u16 count:u32                            to the sensor
    number:u32 measurement:u32 status:u32 6 x count:i32   from the sensor, one record

Commands: 0 stop, 2 start, 3 start with several records per datagram, 42 (hexadecimal) tare. A HEX also accepts 81
(filter) and 82 (period in milliseconds), and continues its stream when it is zeroed. For the other sensors every
command ends the previous stream. The first record number of the real sensors is unknown; here it is 1.
"""

from __future__ import annotations

import itertools
import struct
from collections import deque
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from devices.emulators.rdt.faults import PER_RECORD, SATURATED
from devices.emulators.wire_faults import DELAYS

INTERNAL_RATE = 7000
"""Measurements per second."""

LONGEST_BACKLOG = 0.1
"""Maximum backlog of records that are sent after a pause of the emulator [s]."""

HEX_COUNTS = (1e4, 1e5)
"""Counts per newton and per newton metre of a HEX."""

_WRAP = 1 << 32
_LIMIT = (1 << 31) - 1


@dataclass
class Faults:
    """Communication faults from now on.

    Attributes
    ----------
    deaf : int
        Number of commands that are lost.
    lose, duplicate, truncate : int
        Number of datagrams that are lost, sent twice, truncated.
    swap : int
        Number of datagrams that are sent after the following one.
    status : int
        Status word of all records.
    stalled : bool
        Whether new records repeat the same measurement.
    mute : bool
        Whether nothing is sent.
    delays : deque of float
        Delays of the next datagrams and of all datagrams behind them [s].
    """

    deaf: int = 0
    lose: int = 0
    duplicate: int = 0
    truncate: int = 0
    swap: int = 0
    status: int = 0
    stalled: bool = False
    mute: bool = False
    delays: deque[float] = field(default_factory=deque)


class Program:
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
    ) -> None:
        self.faults = Faults()
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
        self._wrench = wrench
        self._per_unit = (per_force / newton,) * 3 + (per_torque / newton_metre,) * 3
        self._is_hex = is_hex
        self._bias: tuple[float, ...] = (0.0,) * 6
        self._shown = [0] * 6
        self._at_once = 1
        self._next = 0.0
        self._held: bytes | None = None
        self._late: deque[tuple[float, bytes]] = deque()
        self._standing: Set[str] = frozenset()
        self.streaming = False
        self.commands: list[tuple[int, int]] = []
        self.number = self.measurement = 0

    @property
    def rate(self) -> int:
        """Records per second."""
        return INTERNAL_RATE if "flood" in self._standing else int(self.settings["comrdtrate"])

    def spoil(self, names: Set[str]) -> None:
        """Activate the faults with these `names` (`devices.emulators.rdt.faults`), and deactivate all others."""
        if names != self._standing:
            own, self._standing = self.faults, names
            own.stalled, own.mute = "stalled" in names, "mute" in names
            own.status = SATURATED if "saturated" in names else 0

    def command(self, data: bytes, now: float) -> None:
        """Process a command received at `now` [s]."""
        if self.faults.deaf:
            self.faults.deaf -= 1
            return
        if len(data) != 8 or data[:2] != b"\x12\x34":
            return
        command, count = struct.unpack(">HI", data[2:])
        self.commands.append((command, count))
        if self._is_hex and command in {0x42, 0x81, 0x82}:
            self._set_hex(command, count)
            return
        if command == 0x42:
            self._zero()
        self.streaming = command in {2, 3}
        if self.streaming:
            self._at_once = int(self.settings["comrdtbsiz"]) if command == 3 else 1
            self._next = now
            self.number = 0
            self._late.clear()

    def _set_hex(self, command: int, count: int) -> None:
        if command == 0x42:
            self._zero(on=count > 0)
        elif command == 0x81:
            self.settings["setuserfilter"] = str(count)
        else:
            self.settings["comrdtrate"] = str(1000 // max(count, 1))

    def _zero(self, on: bool = True) -> None:
        self._bias = tuple(self._wrench()) if on else (0.0,) * 6
        counts = (round(bias * per_unit) for bias, per_unit in zip(self._bias, self._per_unit, strict=True))
        self.settings["setbias"] = ";".join(map(str, counts))

    def due_datagrams(self, now: float) -> list[bytes]:
        """Return the datagrams that are due at the time `now` [s], as modified by the faults."""
        self._next = max(self._next, now - LONGEST_BACKLOG)
        while self.streaming and self._next <= now:
            datagram = b"".join(self._record() for _ in range(self._at_once))
            self._next += self._at_once / self.rate
            self._renew()
            self._late.extend((now, spoilt) for spoilt in self._spoilt(datagram))
            if self.faults.delays and self._late:
                when, last = self._late.pop()
                self._late.append((when + self.faults.delays.popleft(), last))
        out = []
        while self._late and self._late[0][0] <= now:
            out.append(self._late.popleft()[1])
        return out

    def pause(self, now: float) -> float:
        """Return the time until the next transmission [s]; infinite while nothing is sent."""
        waiting = [when for when, _ in itertools.islice(self._late, 1)] + [self._next] * self.streaming
        return max(min(waiting, default=float("inf")) - now, 0.0)

    def _record(self) -> bytes:
        self.number = (self.number + 1) % _WRAP
        if not self.faults.stalled:
            self.measurement = (self.measurement + max(INTERNAL_RATE // self.rate, 1)) % _WRAP
            self._shown = [
                max(min(round((now - bias) * per_unit), _LIMIT), -_LIMIT)
                for now, bias, per_unit in zip(self._wrench(), self._bias, self._per_unit, strict=True)
            ]
        return struct.pack(">3I6i", self.number, self.measurement, self.faults.status, *self._shown)

    def _renew(self) -> None:
        """Apply the active faults to the next datagram; most of them affect every second datagram."""
        own, odd = self.faults, self.number % 2
        for name in self._standing & PER_RECORD.keys():
            setattr(own, PER_RECORD[name], 1 if name in {"duplicated", "reordered"} else odd)
        if not own.delays:
            own.delays.extend(DELAYS[name] for name in self._standing & DELAYS.keys())

    def _spoilt(self, datagram: bytes) -> list[bytes]:
        """Return the datagrams that result from a datagram with the faults."""
        own = self.faults
        if own.mute:
            return []
        if own.lose:
            own.lose -= 1
            return []
        if own.truncate:
            own.truncate -= 1
            return [datagram[:-5]]
        if self._held is not None:
            before, self._held = self._held, None
            return [datagram, before]
        if own.swap:
            own.swap -= 1
            self._held = datagram
            return []
        if own.duplicate:
            own.duplicate -= 1
            return [datagram, datagram]
        return [datagram]

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
