"""The sensor at its sockets: one for the stream, and a web server for its pages."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Self

from devices.emulators.loop import Loop
from devices.emulators.rdt.pages import Pages
from devices.emulators.rdt.program import Program

_SHORTEST = 5e-4
"""What is due leaves in bundles this far apart [s], as fast as a thread can serve it."""

ADDRESS = "127.0.0.1"


class RdtBox:
    """An emulated sensor. Use it in a ``with`` statement: then a thread serves it; or let a loop do so (`within`).

    Parameters
    ----------
    wrench : callable
        Returns what acts on the sensor now, 6 numbers [N], [N m].
    standing : callable, optional
        Returns the names of the faults that are there now (`devices.emulators.rdt.faults`); by default they are
        switched by hand, in ``program.faults``.
    arguments
        As for `Program`.

    Attributes
    ----------
    program : Program
        The sensor, its settings and its faults.
    """

    def __init__(
        self,
        wrench: Callable[[], Sequence[float]],
        standing: Callable[[], Set[str]] = frozenset,
        **arguments: Any,
    ) -> None:
        self.program = Program(wrench, **arguments)
        self._standing = standing
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((ADDRESS, 0))
        self._pages = Pages(ADDRESS, self.program)
        self._ends = contextlib.ExitStack()
        self._host: tuple[str, int] | None = None

    @property
    def address(self) -> dict[str, Any]:
        """Settings with which the driver finds the stream."""
        return {"address": ADDRESS, "port": self._socket.getsockname()[1]}

    @property
    def web_address(self) -> dict[str, Any]:
        """Settings with which the driver finds the stream and the pages."""
        return {**self.address, "web_port": self._pages.port}

    def __enter__(self) -> Self:
        """Start to serve."""
        loop = Loop()
        self._ends.enter_context(self.within(loop))
        self._ends.enter_context(loop.in_thread("emulated force sensor"))
        return self

    def __exit__(self, *_: object) -> None:
        """Switch it off."""
        self._ends.close()

    @contextlib.contextmanager
    def within(self, loop: Loop) -> Iterator[None]:
        """Have an event loop serve it."""
        loop.watch(self._socket, self._listen)
        loop.sources.append(self)
        with self._socket, self._pages.within(loop):
            yield

    def pause(self, now: float) -> float:
        """Return how long nothing will leave [s]."""
        return max(self.program.pause(now), _SHORTEST)

    def serve(self, now: float) -> None:
        """Send what is due."""
        self.program.spoil(self._standing())
        for datagram in self.program.due(now):
            if self._host is not None:
                with contextlib.suppress(OSError):  # nobody listens any more
                    self._socket.sendto(datagram, self._host)

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # the host has gone since the last datagram
            data, self._host = self._socket.recvfrom(64)
            self.program.command(data, time.monotonic())
