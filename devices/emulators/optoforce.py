"""OptoForce sensor with its DAQ unit at a pseudo-terminal: the far end of the driver's communication.

It is written only from the byte layout and shares no code with the driver.

Layout, numbers big-endian, sum of all bytes before in 16 bits::

    AA 00 32 03 speed filter zero sum                      to the unit
    AA 00 50 01 00 sum                                     reply of the unit
    AA 07 08 0A number status Fx Fy Fz sum                 a frame, three axes
    AA 07 08 10 number status Fx Fy Fz Tx Ty Tz sum        a frame, six axes

The speed is the period in milliseconds, 0 for none.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import threading
import time
import tty
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from devices.emulators.loop import Loop, ServedDevice
from devices.emulators.wire_faults import DELAYS

SENSITIVITY = ((7925, 300), (8641, 300), (6049, 2000))
"""Sensitivity of the sensor of an emulated arm: counts at full load, and that load [N], for each axis."""

OVERLOADED = 0x0200
"""Status of a frame if the sensor is overloaded in Fx."""

PER_FRAME = {
    "lost": "lose",
    "duplicated": "duplicate",
    "truncated": "truncate",
    "inserted": "insert",
    "damaged": "damage",
}
"""Faults of single frames, with the counting attribute of `Faults`."""

INSERT = b"\x27\x0a\x62\x27"
"""Four bytes that were found in the middle of frames of a real recording."""

LONGEST_BACKLOG = 0.1
"""Maximum backlog of frames that are sent after a pause of the emulator [s]."""

_POLL = 2e-3
"""Polling interval for received data [s]; the system reports a port that no program has open as always readable."""

_LIMIT = (1 << 15) - 1


@dataclass
class Faults:
    """Communication faults from now on.

    Attributes
    ----------
    deaf : int
        Number of configurations without a reply.
    lose, truncate, insert, damage, duplicate : int
        Number of frames that are lost, lose their last bytes, get additional bytes in their middle, have one wrong bit,
        are sent twice.
    status : int
        Status of all frames.
    mute : bool
        Whether nothing is sent.
    delays : deque of float
        Delays of the next frames and of all frames behind them, which are then sent at once [s].
    raw : tuple of int, optional
        Counts to send instead of the wrench on the sensor.
    """

    deaf: int = 0
    lose: int = 0
    truncate: int = 0
    insert: int = 0
    damage: int = 0
    duplicate: int = 0
    status: int = 0
    mute: bool = False
    delays: deque[float] = field(default_factory=deque)
    raw: tuple[int, ...] | None = None


class Program:
    """Firmware of a DAQ unit with a sensor.

    Parameters
    ----------
    wrench : callable
        Returns the present wrench on the sensor, 6 numbers [N], [N m].
    per_unit : sequence of float
        Counts per newton or newton metre, for 3 or 6 axes.

    Attributes
    ----------
    faults : Faults
        Communication faults.
    number : int
        Number of the last frame.
    period, cutoff : int
        Numbers of speed and filter in the last configuration.
    """

    def __init__(self, wrench: Callable[[], Sequence[float]], per_unit: Sequence[float]) -> None:
        self.faults = Faults()
        self.number = 0
        self.period = 10
        self.cutoff = 4
        self._wrench = wrench
        self._per_unit = tuple(per_unit)
        self._zero = (0.0,) * len(self._per_unit)
        self._active: Set[str] = frozenset()
        self._frames = 0
        self._input = b""
        self._next = 0.0
        self._late: deque[tuple[float, bytes]] = deque()

    @property
    def streaming(self) -> bool:
        """Whether it sends frames."""
        return self.period > 0

    def set_faults(self, names: Set[str]) -> None:
        """Activate the faults with these `names` (`OPTOFORCE_FAULTS`), and deactivate all others."""
        if names != self._active:
            self._active = names
            self.faults.mute = "mute" in names
            self.faults.status = OVERLOADED if "overloaded" in names else 0

    def receive(self, data: bytes, now: float) -> None:
        """Process bytes received at `now` [s]."""
        self._input += data
        while len(self._input) >= 9:
            message = self._input[:9]
            if message[:4] != b"\xaa\x00\x32\x03" or _sum(message[:7]) != message[7:]:
                self._input = self._input[1:]
                continue
            self._input = self._input[9:]
            if self.faults.deaf:
                self.faults.deaf -= 1
                continue
            self.period, self.cutoff, zero = message[4:7]
            self._next = now + 1e-3 * self.period
            self._zero = tuple(self._wrench())[: len(self._per_unit)] if zero else (0.0,) * len(self._per_unit)
            answer = b"\xaa\x00\x50\x01\x00"
            self._late.append((now, answer + _sum(answer)))

    def due_bytes(self, now: float) -> bytes:
        """Return the bytes that are due at the time `now` [s], as modified by the faults."""
        self._next = max(self._next, now - LONGEST_BACKLOG)
        while self.streaming and self._next <= now:
            self._next += 1e-3 * self.period
            self._frames += 1
            for name in self._active & PER_FRAME.keys():  # every second frame
                setattr(self.faults, PER_FRAME[name], self._frames % 2)
            if not self.faults.delays:
                self.faults.delays.extend(DELAYS[name] for name in self._active & DELAYS.keys())
            late = self.faults.delays.popleft() if self.faults.delays else 0.0
            self._late.append((now + late, self._spoilt(self._frame())))
        out = b""
        while self._late and self._late[0][0] <= now:
            out += self._late.popleft()[1]
        return out

    def pause(self, now: float) -> float:
        """Return the time until the next transmission [s]; infinite while nothing is sent."""
        waiting = [when for when, _ in itertools.islice(self._late, 1)] + [self._next] * self.streaming
        return max(min(waiting, default=float("inf")) - now, 0.0)

    def _frame(self) -> bytes:
        if "stalled" not in self._active:
            self.number = (self.number + 1) & 0xFFFF
        counts = self.faults.raw or [
            max(min(round((now - zero) * per_unit), _LIMIT), -_LIMIT)
            for now, zero, per_unit in zip(self._wrench(), self._zero, self._per_unit, strict=False)
        ]
        start = b"\xaa\x07\x08" + bytes((4 + 2 * len(counts),))
        frame = start + struct.pack(f">HH{len(counts)}h", self.number, self.faults.status, *counts)
        return frame + _sum(frame)

    def _spoilt(self, frame: bytes) -> bytes:
        """Return a frame as modified by the faults."""
        own, middle = self.faults, len(frame) // 2
        if own.mute:
            return b""
        if own.lose:
            own.lose -= 1
            return b""
        if own.truncate:
            own.truncate -= 1
            return frame[:-3]
        if own.insert:
            own.insert -= 1
            return frame[:middle] + INSERT + frame[middle:]
        if own.damage:
            own.damage -= 1
            return frame[:middle] + bytes((frame[middle] ^ 0x10,)) + frame[middle + 1 :]
        if own.duplicate:
            own.duplicate -= 1
            return frame + frame
        return frame


def _sum(data: bytes) -> bytes:
    return (sum(data) & 0xFFFF).to_bytes(2, "big")


class OptoForceUnit(ServedDevice):
    """Emulated DAQ unit at a pseudo-terminal.

    Parameters
    ----------
    wrench : callable
        Returns the present wrench on the sensor, 6 numbers [N], [N m].
    per_unit : sequence of float
        Counts per newton or newton metre, for 3 or 6 axes.
    active : callable, optional
        Returns the names of the active faults (`devices.emulators.wire_faults.OPTOFORCE_FAULTS`); by default they are
        switched manually, in ``program.faults``.

    Attributes
    ----------
    port : str
        Serial port for the driver.
    program : Program
        Firmware of the unit with its settings and its faults.
    """

    def __init__(
        self,
        wrench: Callable[[], Sequence[float]],
        per_unit: Sequence[float],
        active: Callable[[], Set[str]] = frozenset,
    ) -> None:
        self.program = Program(wrench, per_unit)
        self._active = active
        self._master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(self._master, False)  # unread data are lost, as on the bus
        self.port = os.ttyname(slave)
        os.close(slave)
        self._plugged = True
        self._lock = threading.Lock()

    def unplug(self) -> None:
        """Unplug the cable: the port disappears."""
        with self._lock:
            if self._plugged:
                self._plugged = False
                os.close(self._master)

    @contextlib.contextmanager
    def within(self, loop: Loop) -> Iterator[None]:
        """Serve the unit in an event loop within the block."""
        loop.sources.append(self)
        try:
            yield
        finally:
            self.unplug()

    def pause(self, now: float) -> float:
        """Return the time until the next transmission or poll [s]."""
        return min(self.program.pause(now), _POLL)

    def serve(self, now: float) -> None:
        """Process received data, and send due data."""
        active = self._active()
        if "unplug" in active:
            self.unplug()
        self.program.set_faults(active)
        with self._lock, contextlib.suppress(OSError):
            if not self._plugged:
                return
            with contextlib.suppress(OSError):  # no data, or the port is not open
                self.program.receive(os.read(self._master, 4096), time.monotonic())
            data = self.program.due_bytes(time.monotonic())
            if data:
                os.write(self._master, data)
