"""Shared part of the emulated force sensors: a stream of messages, its faults, and a pseudo-terminal."""

from __future__ import annotations

import os
import threading
import tty
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import ClassVar

from devices.emulators.wire_faults import DELAYS

LONGEST_BACKLOG = 0.1
"""Maximum backlog of messages that are sent after a pause of the emulator [s]."""

INSERT = b"\x27\x0a\x62\x27"
"""Four bytes that were found in the middle of frames of a real recording."""

COUNTED = frozenset(("lost", "truncated", "inserted", "damaged", "reordered", "duplicated"))
"""Faults of single messages: the attributes of `Faults` that count."""


@dataclass
class Faults:
    """Communication faults from now on.

    Attributes
    ----------
    deaf : int
        Number of commands that are lost.
    lost, truncated, inserted, damaged, reordered, duplicated : int
        Number of messages that are lost, lose their last bytes, get additional bytes in their middle, have one wrong
        bit, are sent after the following one, are sent twice.
    status : int
        Status of all messages.
    stalled : bool
        Whether new messages repeat the same measurement or number.
    mute : bool
        Whether nothing is sent.
    delays : deque of float
        Delays of the next messages and of all messages behind them, which are then sent at once [s].
    raw : tuple of int, optional
        Counts to send instead of the wrench on the sensor.
    """

    deaf: int = 0
    lost: int = 0
    truncated: int = 0
    inserted: int = 0
    damaged: int = 0
    reordered: int = 0
    duplicated: int = 0
    status: int = 0
    stalled: bool = False
    mute: bool = False
    delays: deque[float] = field(default_factory=deque)
    raw: tuple[int, ...] | None = None


class SensorProgram:
    """Firmware that sends the measurements of a force sensor.

    Parameters
    ----------
    wrench : callable
        Returns the present wrench on the sensor, 6 numbers [N], [N m].
    per_unit : sequence of float
        Counts per newton or newton metre of each axis.
    active : callable
        Returns the names of the active faults (`devices.emulators.wire_faults`); a change replaces the lasting faults
        that were set manually.

    Attributes
    ----------
    faults : Faults
        Communication faults, which can also be set manually.
    streaming : bool
        Whether it sends messages.
    number : int
        Number of the last message.
    """

    OVERLOAD: ClassVar[tuple[str, int]]
    """Name of the fault of an overloaded sensor, and the status that it then reports."""

    TRUNCATED: ClassVar[int]
    """Number of bytes that a truncated message lacks."""

    EVERY: ClassVar[frozenset[str]] = frozenset()
    """Faults of every message; others apply to every second one."""

    LIMIT: ClassVar[int]
    """Maximum count."""

    def __init__(
        self, wrench: Callable[[], Sequence[float]], per_unit: Sequence[float], active: Callable[[], Set[str]]
    ) -> None:
        self.faults, self.active = Faults(), active
        self.streaming = False
        self.number = 0
        self._wrench, self._per_unit = wrench, tuple(per_unit)
        self._zero = (0.0,) * len(self._per_unit)
        self._active: Set[str] = frozenset()
        self._sent = 0
        self._next = 0.0
        self._held: bytes | None = None
        self._late: deque[tuple[float, bytes]] = deque()

    @abstractmethod
    def _message(self) -> tuple[bytes, float]:
        """Return the next message, and the time until the message after it [s]."""

    def due(self, now: float) -> list[bytes]:
        """Return the messages that are due at the time `now` [s], as modified by the faults."""
        faults, names = self.faults, self.active()
        if names != self._active:
            self._active, (overloaded, status) = names, self.OVERLOAD
            faults.stalled, faults.mute = "stalled" in names, "mute" in names
            faults.status = status if overloaded in names else 0
        self._next = max(self._next, now - LONGEST_BACKLOG)
        while self.streaming and self._next <= now:
            message, interval = self._message()
            self._next += interval
            self._sent += 1
            for name in names & COUNTED:
                setattr(faults, name, 1 if name in self.EVERY else self._sent % 2)
            if not faults.delays:
                faults.delays.extend(DELAYS[name] for name in names & DELAYS.keys())
            when = now + (faults.delays.popleft() if faults.delays else 0.0)
            self._late.extend((when, spoilt) for spoilt in self._spoilt(message))
        out = []
        while self._late and self._late[0][0] <= now:
            out.append(self._late.popleft()[1])
        return out

    def pause(self, now: float) -> float:
        """Return the time until the next transmission [s]; infinite while nothing is sent."""
        waiting = ([self._late[0][0]] if self._late else []) + [self._next] * self.streaming
        return max(min(waiting, default=float("inf")) - now, 0.0)

    def _counts(self) -> list[int]:
        """Return the counts of the present measurement."""
        return [
            max(min(round((now - zero) * per_unit), self.LIMIT), -self.LIMIT)
            for now, zero, per_unit in zip(self._wrench(), self._zero, self._per_unit, strict=False)
        ]

    def _spoilt(self, message: bytes) -> list[bytes]:
        """Return the messages that result from a message with the faults."""
        own, middle = self.faults, len(message) // 2
        if own.mute:
            return []
        for name, result in (
            ("lost", []),
            ("truncated", [message[: -self.TRUNCATED]]),
            ("inserted", [message[:middle] + INSERT + message[middle:]]),
            ("damaged", [message[:middle] + bytes((message[middle] ^ 0x10,)) + message[middle + 1 :]]),
        ):
            if left := getattr(own, name):
                setattr(own, name, left - 1)
                return result
        if self._held is not None:
            before, self._held = self._held, None
            return [message, before]
        if own.reordered:
            own.reordered -= 1
            self._held = message
            return []
        if own.duplicated:
            own.duplicated -= 1
            return [message, message]
        return [message]


class PseudoTerminal:
    """Serial port of an emulated device.

    Attributes
    ----------
    port : str
        Serial port for the driver.
    """

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        tty.setraw(slave)
        self.port = os.ttyname(slave)
        os.close(slave)
        self._plugged = True
        self._lock = threading.RLock()

    def unplug(self) -> None:
        """Unplug the cable: the port disappears."""
        with self._lock:
            if self._plugged:
                self._plugged = False
                os.close(self._master)
