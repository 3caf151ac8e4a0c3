"""The DAQ unit at a pseudo-terminal."""

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
"""How often to look what has come [s]: of a port that nobody has open a system says that it can be read, always."""


class OptoForceUnit:
    """An emulated DAQ unit. Use it in a ``with`` statement: then a thread serves it; or let a loop do so (`within`).

    Parameters
    ----------
    wrench : callable
        Returns what acts on the sensor now, 6 numbers [N], [N m].
    per_unit : sequence of float
        Counts to a newton or newton metre, for 3 or 6 axes.
    standing : callable, optional
        Returns the names of the faults that are there now (`devices.emulators.optoforce.faults`); by default they are
        switched by hand, in ``program.faults``.

    Attributes
    ----------
    port : str
        The serial port for the driver.
    program : Program
        The unit, its settings and its faults.
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
        os.set_blocking(self._master, False)  # what nobody reads is lost, as on the bus
        self.port = os.ttyname(slave)
        os.close(slave)
        self._ends = contextlib.ExitStack()
        self._plugged = True
        self._lock = threading.Lock()

    def unplug(self) -> None:
        """Pull the cable out: the port goes away."""
        with self._lock:
            if self._plugged:
                self._plugged = False
                os.close(self._master)

    def __enter__(self) -> Self:
        """Start to serve."""
        loop = Loop()
        self._ends.enter_context(self.within(loop))
        self._ends.enter_context(loop.in_thread("emulated OptoForce unit"))
        return self

    def __exit__(self, *_: object) -> None:
        """Unplug it and end."""
        self._ends.close()

    @contextlib.contextmanager
    def within(self, loop: Loop) -> Iterator[None]:
        """Have an event loop serve it."""
        loop.sources.append(self)
        try:
            yield
        finally:
            self.unplug()

    def pause(self, now: float) -> float:
        """Return how long nothing will leave, or it is not looked what has come [s]."""
        return min(self.program.pause(now), _LOOK)

    def serve(self, now: float) -> None:
        """Take what has come, and send what is due."""
        standing = self._standing()
        if "unplug" in standing:
            self.unplug()
        self.program.spoil(standing)
        with self._lock, contextlib.suppress(OSError):
            if self._plugged:
                self._exchange()

    def _exchange(self) -> None:
        with contextlib.suppress(OSError):  # nothing has come, or nobody is there
            self.program.receive(os.read(self._master, 4096), time.monotonic())
        data = self.program.due(time.monotonic())
        if data:
            os.write(self._master, data)
