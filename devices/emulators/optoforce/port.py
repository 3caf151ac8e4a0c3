"""Emulated DAQ unit at a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import tty
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Self

from devices.emulators.loop import Loop
from devices.emulators.optoforce.program import Program

_LOOK = 2e-3
"""Polling interval for received data [s]; the system reports a port that no program has open as always readable."""


class OptoForceUnit:
    """Emulated DAQ unit, served by a thread in a ``with`` statement, or by an event loop (`within`).

    Parameters
    ----------
    wrench : callable
        Returns the present wrench on the sensor, 6 numbers [N], [N m].
    per_unit : sequence of float
        Counts per newton or newton metre, for 3 or 6 axes.
    standing : callable, optional
        Returns the names of the active faults (`devices.emulators.optoforce.faults`); by default they are switched
        manually, in ``program.faults``.

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
        standing: Callable[[], Set[str]] = frozenset,
    ) -> None:
        self.program = Program(wrench, per_unit)
        self._standing = standing
        self._master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(self._master, False)  # unread data are lost, as on the bus
        self.port = os.ttyname(slave)
        os.close(slave)
        self._ends = contextlib.ExitStack()
        self._plugged = True
        self._lock = threading.Lock()

    def unplug(self) -> None:
        """Unplug the cable: the port disappears."""
        with self._lock:
            if self._plugged:
                self._plugged = False
                os.close(self._master)

    def __enter__(self) -> Self:
        """Start the thread."""
        loop = Loop()
        self._ends.enter_context(self.within(loop))
        self._ends.enter_context(loop.in_thread("emulated OptoForce unit"))
        return self

    def __exit__(self, *_: object) -> None:
        """Unplug the unit and stop the thread."""
        self._ends.close()

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
        return min(self.program.pause(now), _LOOK)

    def serve(self, now: float) -> None:
        """Process received data, and send due data."""
        standing = self._standing()
        if "unplug" in standing:
            self.unplug()
        self.program.spoil(standing)
        with self._lock, contextlib.suppress(OSError):
            if self._plugged:
                self._exchange()

    def _exchange(self) -> None:
        with contextlib.suppress(OSError):  # no data, or the port is not open
            self.program.receive(os.read(self._master, 4096), time.monotonic())
        data = self.program.due_bytes(time.monotonic())
        if data:
            os.write(self._master, data)
