"""Client of a stream in a separate process, which returns the received tick numbers."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import signal
import socket
import time
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from apps.bench.outcome import CannotMeasure
from apps.bench.stop import Stop
from apps.stream import UDP, StreamAddress
from haptics.servo.standby import without_signals

Ticks = NDArray[np.int64]
"""Numbers of ticks, (n,)."""

READY = "ready"

_HERE = "127.0.0.1"
_PATIENCE, _LAST_WORDS = 60.0, 20.0
_QUIET = 0.3
"""Time without a datagram after which a closed stream has ended [s]."""

_ROOM = 1 << 22
"""Requested size of the receive buffer of a socket [bytes]."""


class Receiver:
    """Client process, which runs while the context is active.

    Parameters
    ----------
    kind : str
        ``udp`` or ``websocket``.
    stop : Stop
        Polled while the client starts.

    Attributes
    ----------
    address : StreamAddress
        Destination of the stream.
    """

    def __init__(self, kind: str, stop: Stop) -> None:
        self.address = StreamAddress(kind, _HERE, _free_port(kind))
        self._stop = stop

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        self._connection, far_end = context.Pipe()
        self._process = context.Process(target=receive, args=(far_end, self.address), name="stream client", daemon=True)
        with without_signals():
            self._process.start()
        far_end.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()

    def await_ready(self) -> None:
        """Wait until the client is ready.

        A WebSocket client can connect only when the stream exists.

        Raises
        ------
        CannotMeasure
            If the client does not become ready.
        """
        until = time.monotonic() + _PATIENCE
        while not self._connection.poll(0.02):
            self._stop.check()
            if not self._process.is_alive() or time.monotonic() > until:
                break
        if self._heard() != READY:
            raise CannotMeasure(f"bench stream: the client of {self.address} could not begin.")

    def finish(self) -> Ticks:
        """Return the received ticks in the order of arrival, after the stream has been closed.

        Raises
        ------
        CannotMeasure
            If the client does not answer.
        """
        with contextlib.suppress(OSError):
            self._connection.send(None)
        heard = self._heard() if self._connection.poll(_LAST_WORDS) else None
        if not isinstance(heard, np.ndarray):
            raise CannotMeasure(f"bench stream: the client of {self.address} ended without an answer.")
        return heard

    def _heard(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            return None


def missing(executed: Ticks, received: Ticks) -> tuple[int, int]:
    """Return the number of `executed` ticks that were not `received`, and the number of gaps."""
    away = ~np.isin(executed, received)
    return int(away.sum()), int((np.diff(away.astype(np.int8), prepend=0) == 1).sum())


def _free_port(kind: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == UDP else socket.SOCK_STREAM) as line:
        line.bind((_HERE, 0))
        return int(line.getsockname()[1])


# --- process of the client -----------------------------------------------------------------------------------------


def receive(connection: Connection[Any, Any], stream: StreamAddress) -> None:
    """Receive until the stream is closed, and send the tick numbers.

    This is the target of the process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ticks = _datagrams(connection, stream) if stream.kind == UDP else _messages(connection, stream)
    connection.send(np.array(ticks, np.int64))


def _datagrams(connection: Connection[Any, Any], stream: StreamAddress) -> list[int]:
    ticks: list[int] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        line.bind((stream.host, stream.port))
        line.settimeout(_QUIET)
        connection.send(READY)
        while True:
            try:
                ticks.append(json.loads(line.recv(65536))["tick"])
            except TimeoutError:
                if connection.poll():  # the stream has been closed
                    return ticks


def _messages(connection: Connection[Any, Any], stream: StreamAddress) -> list[int]:
    from websockets.exceptions import ConnectionClosed

    ticks: list[int] = []
    with _connected(stream) as line, contextlib.suppress(ConnectionClosed):
        connection.send(READY)
        for text in line:  # until the server closes the connection
            message = json.loads(text)
            if message["kind"] == "start":
                place = message["columns"].index("tick")
            elif message["kind"] == "ticks":
                ticks += [tick[place] for tick in message["ticks"]]
    return ticks


def _connected(stream: StreamAddress) -> Any:
    """Connect as soon as the server is available."""
    from websockets.sync.client import connect

    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return connect(f"ws://{stream.host}:{stream.port}", compression=None)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
