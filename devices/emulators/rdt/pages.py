"""Web pages of the sensor, within an event loop: one request per connection, in one piece."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from devices.emulators.loop import Loop
from devices.emulators.rdt.program import Program

LONGEST = 8192
"""Maximum length of a request [byte]."""

_PATIENCE = 1.0
"""Timeout for a client that does not accept its reply [s]."""


class Pages:
    """Web server.

    Parameters
    ----------
    address : str
        Address at which it listens, with a free port.
    program : Program
        Firmware of the sensor, which provides the pages.

    Attributes
    ----------
    port : int
        Port at which it listens.
    """

    def __init__(self, address: str, program: Program) -> None:
        self._program = program
        self._listener = socket.create_server((address, 0))
        self.port: int = self._listener.getsockname()[1]

    @contextlib.contextmanager
    def within(self, loop: Loop) -> Iterator[None]:
        """Serve the pages in an event loop within the block."""
        loop.welcome(self._listener, lambda wire: self._begin(loop, wire))
        with self._listener:
            yield

    def _begin(self, loop: Loop, wire: socket.socket) -> bool:
        wire.settimeout(_PATIENCE)
        loop.watch(wire, lambda: self._serve(loop, wire))
        return True

    def _serve(self, loop: Loop, wire: socket.socket) -> None:
        loop.remove(wire)
        with wire, contextlib.suppress(OSError):  # the client may have disconnected
            method, path, *_ = (*wire.recv(LONGEST).decode("latin-1").split(), "", "")
            page = self._program.page(path) if method == "GET" else None
            status = "404 Not Found" if page is None else "200 OK" if page else "302 Found\r\nLocation: /"
            body = (page or "").encode()
            head = f"HTTP/1.0 {status}\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
            wire.sendall(head.encode() + body)
