"""The DAQ unit at a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
import tty
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Self

from devices.emulators.loop import Loop
from devices.emulators.optoforce.program import Program

_LOOK = 0.05
"""Between two looks at whether to end, where nothing else happens [s]."""

_NOBODY = 2e-3
"""How often to look for a host while there is none [s]."""


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
        self._ending = threading.Event()
        self._plugged = True
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="emulated OptoForce unit", daemon=True)

    def unplug(self) -> None:
        """Pull the cable out: the port goes away."""
        with self._lock:
            if self._plugged:
                self._plugged = False
                os.close(self._master)

    def __enter__(self) -> Self:
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Unplug it and end."""
        self._ending.set()
        self._thread.join()
        self.unplug()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._master, select.POLLIN)
        while not self._ending.is_set() and self._plugged:
            pause = min(self.program.pause(time.monotonic()), _LOOK)
            events = dict(poll.poll(1e3 * pause))
            if events.get(self._master, 0) & ~select.POLLIN and not events[self._master] & select.POLLIN:
                time.sleep(_NOBODY)  # nobody has the port open
            self.serve(time.monotonic())

    @contextlib.contextmanager
    def within(self, loop: Loop) -> Iterator[None]:
        """Have an event loop serve it."""
        loop.sources.append(self)
        yield
        self.unplug()

    def pause(self, now: float) -> float:
        """Return how long nothing will leave, or it is not looked what has come [s]."""
        return min(self.program.pause(now), _NOBODY)

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
