"""Where a stream goes: datagrams to an address, or a WebSocket server that any number of clients may join."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from typing import Any, Protocol

from apps.stream.address import LSL, UDP, StreamAddress, resolved
from apps.stream.ticks import Batch, as_json

MOST_WAITING = 500
"""So many batches may wait for a client of the WebSocket; one that is slower is sent away."""

LAST_WORDS = 1.0
"""Clients are given so long to take what waits for them at the end [s]."""


class Sink(Protocol):
    """Takes what is sent."""

    def begin(self, about: dict[str, Any]) -> None:
        """Take what is known of the run that begins."""
        ...

    def send(self, batch: Batch) -> None:
        """Take a batch of ticks."""
        ...

    def end(self, reason: str) -> None:
        """Take note that the run is over."""
        ...

    def close(self) -> None:
        """Let go of the network."""
        ...


def make_sink(stream: StreamAddress) -> Sink:
    """Return the sink that `stream` asks for; raise `OSError` if the network refuses it."""
    if stream.kind == LSL:
        from apps.stream.lsl import LslSink

        return LslSink()
    return UdpSink(stream) if stream.kind == UDP else WebSocketSink(stream)


class UdpSink:
    """A datagram for each tick: a JSON object, as PlotJuggler's UDP server reads it, sent in batches."""

    def __init__(self, stream: StreamAddress) -> None:
        family, kind, _, _, self._address = resolved(stream)
        self._socket = socket.socket(family, kind)

    def begin(self, about: dict[str, Any]) -> None:
        """Say nothing: every datagram stands for itself."""

    def send(self, batch: Batch) -> None:
        """Send a batch; what nobody takes is lost, as is the way of datagrams."""
        for tick in batch.ticks:
            self._send({name: value for name, value in zip(batch.columns, tick, strict=True) if value is not None})

    def end(self, reason: str) -> None:
        """Say nothing: no tick follows."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _send(self, fields: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # nobody is there yet, or no more
            self._socket.sendto(as_json(fields).encode(), self._address)


class _Client:
    """What waits for a client of the WebSocket; None lets it go."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self.too_slow = False

    def tell(self, message: str | None) -> None:
        """Let `message` wait, unless there is no room: what misses ticks is sent away."""
        try:
            self.waiting.put_nowait(message)
        except queue.Full:
            self.too_slow = True


class WebSocketSink:
    """A server: each client gets the columns first and then a text message for each batch of ticks."""

    def __init__(self, stream: StreamAddress) -> None:
        from websockets.sync.server import serve

        self._clients: dict[int, _Client] = {}
        self._lock = threading.Lock()
        self._about, self._closed = "", False
        self._server = serve(self._serve, stream.host, stream.port, compression=None)
        threading.Thread(target=self._server.serve_forever, name="stream server", daemon=True).start()

    def begin(self, about: dict[str, Any]) -> None:
        """Tell all clients, and those that join later, what run it is."""
        with self._lock:
            self._about = as_json({"kind": "start", **about})
            self._tell(self._about)

    def send(self, batch: Batch) -> None:
        """Send a batch to all clients."""
        if self._clients and batch.ticks:
            message = as_json({"kind": "ticks", "ticks": batch.ticks})
            with self._lock:
                self._tell(message)

    def end(self, reason: str) -> None:
        """Tell all clients that the run is over."""
        with self._lock:
            self._about = ""
            self._tell(as_json({"kind": "end", "reason": reason}))

    def close(self) -> None:
        """Send what waits, let the clients go, and end the server."""
        with self._lock:
            self._tell(None)
            self._closed = True
        latest = time.monotonic() + LAST_WORDS
        while self._clients and time.monotonic() < latest:
            time.sleep(0.01)
        self._server.shutdown()

    def _tell(self, message: str | None) -> None:
        for client in self._clients.values():
            client.tell(message)

    def _serve(self, connection: Any) -> None:
        """Serve one client, in a thread of its own."""
        from websockets.exceptions import ConnectionClosed

        client = _Client()
        with self._lock:
            if self._closed:  # nobody would tell it to go, and the server waits for all who serve
                return
            if self._about:
                client.tell(self._about)
            self._clients[id(client)] = client
        try:
            while (message := client.waiting.get()) is not None and not client.too_slow:
                connection.send(message)
            if client.too_slow:
                connection.close(1008, "too slow: ticks would have been missed")
        except (ConnectionClosed, OSError):  # it has gone
            return
        finally:
            with self._lock:
                del self._clients[id(client)]
