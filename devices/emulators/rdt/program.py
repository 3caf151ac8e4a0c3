"""The sensor's program: commands in, datagrams out, pages; and what can go wrong on the way.

Layout, numbers big-endian::

    1234 command:u16 count:u32                            to the sensor
    number:u32 measurement:u32 status:u32 6 x count:i32   from the sensor, one record

Commands: 0 stop, 2 start, 3 start with several records to a datagram, 42 (hexadecimal) tare. A HEX
knows 81 (filter) and 82 (period in milliseconds) besides, and streams on when it is zeroed; to the others every command
puts an end to what went before. Where a stream's numbers begin is not known of the real ones: here at 1.
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
"""A machine that stalled is spared what the sensor would have sent before that [s]."""

HEX_COUNTS = (1e4, 1e5)
"""Counts to a newton and to a newton metre of a HEX."""

_WRAP = 1 << 32
_LIMIT = (1 << 31) - 1


@dataclass
class Faults:
    """What goes wrong on the wire from now on.

    Attributes
    ----------
    deaf : int
        So many commands do not arrive.
    lose, duplicate, truncate : int
        So many datagrams are lost, come twice, are cut short.
    swap : int
        So many datagrams come after the one behind them.
    status : int
        Status word of all records.
    stalled : bool
        Whether measurements stand still while records go on.
    mute : bool
        Whether nothing is sent.
    delays : deque of float
        How late the next datagrams are [s], and with them what is behind them.
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
    """A sensor.

    Parameters
    ----------
    wrench : callable
        Returns what acts on the sensor now, 6 numbers [N], [N m].
    per_force, per_torque : float
        Counts to the unit of force and of torque.
    force_unit, torque_unit : str
        Names of those units as the sensor writes them.
    newton, newton_metre : float
        One of those units in N and in N m.
    product : str
        What it calls itself.
    is_hex : bool
        Whether it is a HEX.

    Attributes
    ----------
    faults : Faults
        What goes wrong.
    settings : dict
        Values of its pages by name, as text.
    streaming : bool
        Whether it has been started.
    commands : list of (int, int)
        Commands that arrived, with their counts.
    number, measurement : int
        Of the last record.
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
        """Have the faults of these `names` (`devices.emulators.rdt.faults`) from now on, and none of the others."""
        if names != self._standing:
            own, self._standing = self.faults, names
            own.stalled, own.mute = "stalled" in names, "mute" in names
            own.status = SATURATED if "saturated" in names else 0

    def command(self, data: bytes, now: float) -> None:
        """Take a command that came at `now` [s]."""
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

    def due(self, now: float) -> list[bytes]:
        """Return the datagrams that leave by the time `now` [s], as the faults have them."""
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
        """Return how long nothing will leave [s]; infinite while nothing streams."""
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
        """Have the faults that stand happen to the next datagram; most of them happen to every second one."""
        own, odd = self.faults, self.number % 2
        for name in self._standing & PER_RECORD.keys():
            setattr(own, PER_RECORD[name], 1 if name in {"duplicated", "reordered"} else odd)
        if not own.delays:
            own.delays.extend(DELAYS[name] for name in self._standing & DELAYS.keys())

    def _spoilt(self, datagram: bytes) -> list[bytes]:
        """Return what the faults make of a datagram."""
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
        """Return the page at `path`: text, empty for a setting that was taken, None for there is none."""
        address = urlsplit(path)
        if address.path == "/netftapi2.xml":
            tags = "".join(f"<{name}>{value}</{name}>\n" for name, value in self.settings.items())
            return f'<?xml version="1.0" encoding="UTF-8"?>\n<netft>\n{tags}</netft>\n'
        if address.path not in {"/comm.cgi", "/setting.cgi"}:
            return None
        self.settings.update((name, value) for name, value in parse_qsl(address.query) if name in self.settings)
        return ""
