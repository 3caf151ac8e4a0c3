"""Emulated sensor at its sockets: one for the stream, and a web server for its pages."""

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
"""Minimum interval between bundles of datagrams [s], limited by the speed of a thread."""

ADDRESS = "127.0.0.1"


class RdtBox:
    """Emulated sensor, served by a thread in a ``with`` statement, or by an event loop (`within`).

    Parameters
    ----------
    wrench : callable
        Returns the present wrench on the sensor, 6 numbers [N], [N m].
    standing : callable, optional
        Returns the names of the active faults (`devices.emulators.rdt.faults`); by default they are switched manually,
        in ``program.faults``.
    arguments
        As for `Program`.

    Attributes
    ----------
    program : Program
        Firmware of the sensor with its settings and its faults.
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
        """Settings of the driver for the address of the stream."""
        return {"address": ADDRESS, "port": self._socket.getsockname()[1]}

    @property
    def web_address(self) -> dict[str, Any]:
        """Settings of the driver for the addresses of stream and pages."""
        return {**self.address, "web_port": self._pages.port}

    def __enter__(self) -> Self:
        """Start the thread."""
        loop = Loop()
        self._ends.enter_context(self.within(loop))
        self._ends.enter_context(loop.in_thread("emulated force sensor"))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread."""
        self._ends.close()

    @contextlib.contextmanager
    def within(self, loop: Loop) -> Iterator[None]:
        """Serve the sensor in an event loop within the block."""
        loop.watch(self._socket, self._listen)
        loop.sources.append(self)
        with self._socket, self._pages.within(loop):
            yield

    def pause(self, now: float) -> float:
        """Return the time until the next transmission [s]."""
        return max(self.program.pause(now), _SHORTEST)

    def serve(self, now: float) -> None:
        """Send due datagrams."""
        self.program.spoil(self._standing())
        for datagram in self.program.due_datagrams(now):
            if self._host is not None:
                with contextlib.suppress(OSError):  # the host may have closed its socket
                    self._socket.sendto(datagram, self._host)

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # the host may have closed its socket since the last datagram
            data, self._host = self._socket.recvfrom(64)
            self.program.command(data, time.monotonic())
