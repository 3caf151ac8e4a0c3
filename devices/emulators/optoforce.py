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
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

from devices.emulators.loop import Loop, ServedDevice
from devices.emulators.sensor import PseudoTerminal, SensorProgram

SENSITIVITY = ((7925, 300), (8641, 300), (6049, 2000))
"""Sensitivity of the sensor of an emulated arm: counts at full load, and that load [N], for each axis."""

OVERLOADED = 0x0200
"""Status of a frame if the sensor is overloaded in Fx."""

_POLL = 2e-3
"""Polling interval for received data [s]; the system reports a port that no program has open as always readable."""


class Program(SensorProgram):
    """Firmware of a DAQ unit with a sensor.

    Parameters
    ----------
    wrench : callable
        Returns the present wrench on the sensor, 6 numbers [N], [N m].
    per_unit : sequence of float
        Counts per newton or newton metre, for 3 or 6 axes.
    active : callable, optional
        Returns the names of the active faults (`devices.emulators.wire_faults.OPTOFORCE_FAULTS`); by default they are
        set manually, in ``faults``.

    Attributes
    ----------
    faults : Faults
        Communication faults.
    number : int
        Number of the last frame.
    period, cutoff : int
        Numbers of speed and filter in the last configuration.
    """

    OVERLOAD = "overloaded", OVERLOADED
    TRUNCATED = 3
    LIMIT = (1 << 15) - 1

    def __init__(
        self,
        wrench: Callable[[], Sequence[float]],
        per_unit: Sequence[float],
        active: Callable[[], Set[str]] = frozenset,
    ) -> None:
        super().__init__(wrench, per_unit, active)
        self.streaming, self.period, self.cutoff = True, 10, 4
        self._input = b""

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
            self.streaming = self.period > 0
            self._next = now + 1e-3 * self.period
            self._zero = tuple(self._wrench())[: len(self._per_unit)] if zero else (0.0,) * len(self._per_unit)
            answer = b"\xaa\x00\x50\x01\x00"
            self._late.append((now, answer + _sum(answer)))

    def _message(self) -> tuple[bytes, float]:
        if not self.faults.stalled:
            self.number = (self.number + 1) & 0xFFFF
        counts = self.faults.raw or self._counts()
        start = b"\xaa\x07\x08" + bytes((4 + 2 * len(counts),))
        frame = start + struct.pack(f">HH{len(counts)}h", self.number, self.faults.status, *counts)
        return frame + _sum(frame), 1e-3 * self.period


def _sum(data: bytes) -> bytes:
    return (sum(data) & 0xFFFF).to_bytes(2, "big")


class OptoForceUnit(PseudoTerminal, ServedDevice):
    """Emulated DAQ unit at a pseudo-terminal.

    Parameters
    ----------
    arguments
        As for `Program`.

    Attributes
    ----------
    port : str
        Serial port for the driver.
    program : Program
        Firmware of the unit with its settings and its faults.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__()
        self.program = Program(*arguments)
        os.set_blocking(self._master, False)  # unread data are lost, as on the bus

    @contextlib.contextmanager
    def within(self, loop: Loop) -> Iterator[None]:
        """Serve the unit in an event loop within the block."""
        loop.sources.append((lambda now: min(self.program.pause(now), _POLL), self._serve))
        try:
            yield
        finally:
            self.unplug()

    def _serve(self, _: float) -> None:
        """Process received data, and send due data."""
        if "unplug" in self.program.active():
            self.unplug()
        with self._lock, contextlib.suppress(OSError):
            if not self._plugged:
                return
            with contextlib.suppress(OSError):  # no data, or the port is not open
                self.program.receive(os.read(self._master, 4096), time.monotonic())
            data = b"".join(self.program.due(time.monotonic()))
            if data:
                os.write(self._master, data)
