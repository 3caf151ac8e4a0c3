"""The sensor at its sockets: one for the stream, and a web server for its pages."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Set
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from devices.emulators.loop import Loop
from devices.emulators.rdt.program import Program

_LOOK = 0.05
"""Between two looks at whether to end, where nothing else happens [s]."""

_SHORTEST = 5e-4
"""What is due leaves in bundles this far apart [s], as fast as a thread can serve it."""

ADDRESS = "127.0.0.1"


class RdtBox:
    """An emulated sensor. Use it in a ``with`` statement: then threads serve it; or let a loop do so (`within`).

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
        self._web = ThreadingHTTPServer((ADDRESS, 0), _pages_of(self.program))
        self._ending = threading.Event()
        self._ends = contextlib.ExitStack()
        self._host: tuple[str, int] | None = None

    @property
    def address(self) -> dict[str, Any]:
        """Settings with which the driver finds the stream."""
        return {"address": ADDRESS, "port": self._socket.getsockname()[1]}

    @property
    def web_address(self) -> dict[str, Any]:
        """Settings with which the driver finds the stream and the pages."""
        return {**self.address, "web_port": self._web.server_address[1]}

    def __enter__(self) -> Self:
        """Start to serve."""
        self._stream = threading.Thread(target=self._run, name="emulated force sensor", daemon=True)
        self._stream.start()
        self._ends.enter_context(self._pages())
        return self

    def __exit__(self, *_: object) -> None:
        """Switch it off."""
        self._ending.set()
        self._stream.join()
        self._ends.close()

    @contextlib.contextmanager
    def within(self, loop: Loop) -> Iterator[None]:
        """Have an event loop serve the stream; a thread has the pages, which are not read while it streams."""
        loop.watch(self._socket, self._listen)
        loop.sources.append(self)
        with self._pages():
            yield

    @contextlib.contextmanager
    def _pages(self) -> Iterator[None]:
        thread = threading.Thread(target=self._web.serve_forever, args=(_LOOK,), name="its web pages", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._web.shutdown()
            thread.join()
            self._web.server_close()
            self._socket.close()

    def _run(self) -> None:
        while not self._ending.is_set():
            if select.select([self._socket], [], [], self.pause(time.monotonic()))[0]:
                self._listen()
            self.serve(time.monotonic())

    def pause(self, now: float) -> float:
        """Return how long nothing will leave [s]."""
        return max(min(self.program.pause(now), _LOOK), _SHORTEST)

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


def _pages_of(program: Program) -> type[BaseHTTPRequestHandler]:
    class Pages(BaseHTTPRequestHandler):
        """Serves the pages of one sensor."""

        def do_GET(self) -> None:
            """Answer: a page, a redirection for a setting that was taken, or that there is no such page."""
            page = program.page(self.path)
            body = (page or "").encode()
            self.send_response(404 if page is None else 200 if page else 302)
            if page == "":
                self.send_header("Location", "/")
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Pages
