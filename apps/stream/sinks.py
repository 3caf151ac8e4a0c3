"""Destinations of a stream: UDP datagrams, or a WebSocket server for any number of clients."""

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
"""Maximum number of queued batches per WebSocket client. Slower clients are disconnected."""

LAST_WORDS = 1.0
"""Time for clients to read queued messages at the end [s]."""


class Sink(Protocol):
    """Destination of a stream."""

    def begin(self, about: dict[str, Any]) -> None:
        """Begin a run with the given description."""
        ...

    def send(self, batch: Batch) -> None:
        """Send a batch of ticks."""
        ...

    def end(self, reason: str) -> None:
        """Mark the end of the run."""
        ...

    def close(self) -> None:
        """Release the network resources."""
        ...


def make_sink(stream: StreamAddress) -> Sink:
    """Return the sink for `stream`; raise `OSError` if the network is not available."""
    if stream.kind == LSL:
        from apps.stream.lsl import LslSink

        return LslSink()
    return UdpSink(stream) if stream.kind == UDP else WebSocketSink(stream)


class UdpSink:
    """Sends a datagram per tick: a JSON object, as read by PlotJuggler's UDP server, in batches."""

    def __init__(self, stream: StreamAddress) -> None:
        family, kind, _, _, self._address = resolved(stream)
        self._socket = socket.socket(family, kind)

    def begin(self, about: dict[str, Any]) -> None:
        """Do nothing, because every datagram is self-contained."""

    def send(self, batch: Batch) -> None:
        """Send a batch.

        Datagrams without a receiver are lost.
        """
        for tick in batch.ticks:
            self._send({name: value for name, value in zip(batch.columns, tick, strict=True) if value is not None})

    def end(self, reason: str) -> None:
        """Do nothing, because datagrams have no end of stream."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _send(self, fields: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # there is no receiver
            self._socket.sendto(as_json(fields).encode(), self._address)


class _Client:
    """Message queue of a WebSocket client.

    None ends the connection.
    """

    def __init__(self) -> None:
        self.waiting: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self.too_slow = False

    def queue(self, message: str | None) -> None:
        """Queue `message`.

        If the queue is full, the client is marked as too slow and will be disconnected.
        """
        try:
            self.waiting.put_nowait(message)
        except queue.Full:
            self.too_slow = True


class WebSocketSink:
    """WebSocket server, which sends a text message per batch of ticks to each client.

    A client receives the columns first.
    """

    def __init__(self, stream: StreamAddress) -> None:
        from websockets.sync.server import serve

        self._clients: dict[int, _Client] = {}
        self._lock = threading.Lock()
        self._about, self._closed = "", False
        self._server = serve(self._serve, stream.host, stream.port, compression=None)
        threading.Thread(target=self._server.serve_forever, name="stream server", daemon=True).start()

    def begin(self, about: dict[str, Any]) -> None:
        """Send the description of the run to all clients, also to clients that connect later."""
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
        """Send the end of the run to all clients."""
        with self._lock:
            self._about = ""
            self._tell(as_json({"kind": "end", "reason": reason}))

    def close(self) -> None:
        """Send queued messages, disconnect the clients, and stop the server."""
        with self._lock:
            self._tell(None)
            self._closed = True
        latest = time.monotonic() + LAST_WORDS
        while self._clients and time.monotonic() < latest:
            time.sleep(0.01)
        self._server.shutdown()

    def _tell(self, message: str | None) -> None:
        for client in self._clients.values():
            client.queue(message)

    def _serve(self, connection: Any) -> None:
        """Serve one client, in a separate thread."""
        from websockets.exceptions import ConnectionClosed

        client = _Client()
        with self._lock:
            if self._closed:  # this client would never be disconnected, and the shutdown would wait for it
                return
            if self._about:
                client.queue(self._about)
            self._clients[id(client)] = client
        try:
            while (message := client.waiting.get()) is not None and not client.too_slow:
                connection.send(message)
            if client.too_slow:
                connection.close(1008, "too slow: ticks would have been missed")
        except (ConnectionClosed, OSError):  # the client has disconnected
            return
        finally:
            with self._lock:
                del self._clients[id(client)]
