"""``haptics run --stream``: send every tick of a run to other programs, from a separate process.

The process follows the trace like a window and never accesses the servo.
"""

from __future__ import annotations

import contextlib
import json
import platform
import queue
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from apps.front_ends.front_end import ProcessFrontEnd
from apps.front_ends.messages import Quit, SessionEnded, SessionStarted
from haptics.errors import ConfigurationError
from haptics.records import COLUMNS, ROW_UNITS, cells_of, flatten
from haptics.trace import Reader, Ring

UDP, WEBSOCKET, LSL = "udp", "websocket", "lsl"

DEFAULTS = {UDP: 9870, WEBSOCKET: 8765}
"""Default port of each kind of stream: PlotJuggler's port, and a customary WebSocket port."""

EVERY = 0.01
"""Interval between batches of ticks [s]."""

MOST_WAITING = 500
"""Maximum number of queued batches per WebSocket client. Slower clients are disconnected."""

_LAST_MESSAGES = {WEBSOCKET: 1.0, LSL: 0.5}
"""Time for receivers to read pending messages at the end [s]."""

TICKS, MARKERS = "haptics ticks", "haptics markers"
"""Names of the two LSL streams."""

_SAME_CLOCK = 1e-3
"""Difference below which two clocks are considered equal [s]. The remainder is the time to read them."""

_HERE = "127.0.0.1"
_FORM = re.compile(r"(?P<kind>[a-z]+)(=((?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]=]+):)?(?P<port>[0-9]{1,5}))?")
_ALLOWED = "udp, websocket, lsl, udp=HOST:PORT or websocket=HOST:PORT, such as websocket=127.0.0.1:8765"


@dataclass(frozen=True)
class StreamAddress:
    """Kind and address of a stream.

    Attributes
    ----------
    kind : str
        ``udp``: datagrams to the address; ``websocket``: a server at the address; ``lsl``: outlets of the Lab Streaming
        Layer, whose receivers are discovered automatically.
    host : str
        Host name or address; empty for ``lsl``.
    port : int
        1 to 65535; 0 for ``lsl``.
    origins : tuple of str
        Origins of web pages that may read a ``websocket`` stream. Programs, which send no origin, always may.
    """

    kind: str
    host: str = ""
    port: int = 0
    origins: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == LSL:
            return LSL
        return f"{self.kind}={f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_stream(text: str, origins: tuple[str, ...] = ()) -> StreamAddress:
    """Parse an argument of ``--stream``, for web pages of the `origins` given by ``--allow-origin``.

    Raises
    ------
    ConfigurationError
        If its form is invalid.
    """
    if text == LSL:
        return StreamAddress(LSL)
    found = _FORM.fullmatch(text)
    if found is None or found["kind"] not in DEFAULTS:
        raise ConfigurationError(f"--stream {text!r}: must be {_ALLOWED}.")
    port = int(found["port"] or DEFAULTS[found["kind"]])
    if not 1 <= port <= 65535:
        raise ConfigurationError(f"--stream {text!r}: the port must be from 1 to 65535.")
    return StreamAddress(found["kind"], (found["host"] or _HERE).strip("[]"), port, origins)


def require_usable(stream: StreamAddress) -> None:
    """Check that a stream can be started, before the device moves.

    Raises
    ------
    ConfigurationError
        If its address is unknown or in use, or a package is missing.
    """
    if stream.kind == LSL:
        require_lsl()
        return
    is_server = stream.kind == WEBSOCKET
    if is_server:
        try:
            import websockets.sync.server  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(
                "--stream websocket needs the package websockets: pip install 'haptics[stream]', or take --stream udp."
            ) from error
    try:
        family, kind, _, _, address = resolved(stream)
        with socket.socket(family, kind) as line:
            if is_server:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                line.bind(address)
    except OSError as error:
        remedy = "choose another port" if is_server else "choose a machine that is known here"
        raise ConfigurationError(
            f"--stream {stream}: cannot be used ({error.strerror or error}); {remedy}, or leave it out."
        ) from error


def resolved(stream: StreamAddress) -> tuple[int, int, int, str, tuple[object, ...]]:
    """Return family, kind and address of a socket for `stream`, as returned by `socket.getaddrinfo`."""
    kind = socket.SOCK_DGRAM if stream.kind == UDP else socket.SOCK_STREAM
    return socket.getaddrinfo(stream.host, stream.port, type=kind)[0]


def require_lsl() -> None:
    """Check that the Lab Streaming Layer is available.

    Raises
    ------
    ConfigurationError
        If it is not available. The message contains the remedy.
    """
    try:
        import pylsl  # noqa: F401
    except (ImportError, RuntimeError, OSError) as error:  # RuntimeError: the shared library is missing
        raise ConfigurationError(
            "the Lab Streaming Layer needs the package pylsl: pip install 'haptics[lsl]' (on Linux with glibc 2.35 or "
            "newer it brings its library)."
        ) from error


@dataclass(frozen=True)
class Batch:
    """Ticks that are sent together.

    Attributes
    ----------
    columns : list of str
        Names of the values of a tick.
    ticks : list of tuple
        Values of each tick, None for values that are not finite.
    origin : float
        Time of tick 0 on the monotonic clock [s].
    lost : int
        Number of preceding ticks that were overwritten before they could be read.
    """

    columns: list[str]
    ticks: list[tuple[float | int | None, ...]]
    origin: float = 0.0
    lost: int = 0


def columns_of(causality: str) -> list[str]:
    """Return the names of the values of a tick for a device causality."""
    return ["timestamp", *flatten(np.zeros(0, COLUMNS), ROW_UNITS, causality)]


class Ticks:
    """Reads the trace of a run incrementally.

    Parameters
    ----------
    started : SessionStarted
        Description of the run.

    Attributes
    ----------
    columns : list of str
        Names of the values of a tick, with their units (`haptics.records`). The first is ``timestamp``, the
        deadline of the tick in seconds since 1970 (UTC).

    Raises
    ------
    ConfigurationError
        If the trace does not exist.
    """

    def __init__(self, started: SessionStarted) -> None:
        self._reader = Reader(Ring.attach(Path(started.trace)))
        self._causality = started.causality
        self.columns = columns_of(started.causality)

    def read(self) -> Batch:
        """Return the ticks since the last call."""
        lost = self._reader.lost
        rows = self._reader.read()
        monotonic, utc = self._reader.origin
        flat = flatten(rows, ROW_UNITS, self._causality)
        stamps = (utc * 1e-9 + flat["time_s"]).tolist()
        ticks = list(zip(stamps, *(cells_of(values) for values in flat.values()), strict=True))
        return Batch(self.columns, ticks, monotonic * 1e-9, self._reader.lost - lost)


def _as_json(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


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
            fields = {name: value for name, value in zip(batch.columns, tick, strict=True) if value is not None}
            with contextlib.suppress(OSError):  # there is no receiver
                self._socket.sendto(_as_json(fields).encode(), self._address)

    def end(self, reason: str) -> None:
        """Do nothing, because datagrams have no end of stream."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class _Client:
    """Message queue of a WebSocket client; None ends the connection.

    If the queue is full, the client is too slow and will be disconnected.
    """

    def __init__(self) -> None:
        self.waiting: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self.too_slow = False

    def queue(self, message: str | None) -> None:
        """Queue `message`."""
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
        allowed: Any = [None, *stream.origins]  # None: programs; otherwise any web page could read the stream
        self._server = serve(self._serve, stream.host, stream.port, origins=allowed, compression=None)
        threading.Thread(target=self._server.serve_forever, name="stream server", daemon=True).start()

    def begin(self, about: dict[str, Any]) -> None:
        """Send the description of the run to all clients, also to clients that connect later."""
        with self._lock:
            self._about = _as_json({"kind": "start", **about})
            self._broadcast(self._about)

    def send(self, batch: Batch) -> None:
        """Send a batch to all clients."""
        if self._clients and batch.ticks:
            message = _as_json({"kind": "ticks", "ticks": batch.ticks})
            with self._lock:
                self._broadcast(message)

    def end(self, reason: str) -> None:
        """Send the end of the run to all clients."""
        with self._lock:
            self._about = ""
            self._broadcast(_as_json({"kind": "end", "reason": reason}))

    def close(self) -> None:
        """Send queued messages, disconnect the clients, and stop the server."""
        with self._lock:
            self._broadcast(None)
            self._closed = True
        latest = time.monotonic() + _LAST_MESSAGES[WEBSOCKET]
        while self._clients and time.monotonic() < latest:
            time.sleep(0.01)
        self._server.shutdown()

    def _broadcast(self, message: str | None) -> None:
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


class LslSink:
    """LSL outlets of ticks and markers.

    The tick outlet opens with the first run, or earlier if `columns` is given.

    Parameters
    ----------
    columns : sequence of str, optional
        Names of the values of a tick, if known before the first run.
    rate : float
        Tick rate in this case [Hz].
    """

    def __init__(self, columns: Sequence[str] = (), rate: float = 0.0) -> None:
        import pylsl

        self._pylsl = pylsl
        self._shift = clock_shift(pylsl.local_clock)
        self._columns: list[str] = []
        self._rate = 0.0
        self._marker = 0
        self._ticks: Any = None
        self.origin: float | None = None
        info = pylsl.StreamInfo(MARKERS, "Markers", 1, 0.0, pylsl.cf_string, f"haptics-markers-{platform.node()}")
        self._markers = pylsl.StreamOutlet(info)
        if columns:
            self._open(list(columns), rate)

    def begin(self, about: dict[str, Any]) -> None:
        """Open the outlet of the ticks.

        It stays open between runs with the same columns and rate.
        """
        self._open(list(about["columns"]), float(about["rate_hz"]))
        self.origin = None
        self._marker = 0

    def send(self, batch: Batch) -> None:
        """Push a batch with the times of its ticks, and a marker for every change of the column ``marker``."""
        if batch.lost:
            self.mark({"event": "lost", "ticks": batch.lost}, time.monotonic())
        if not batch.ticks:
            return
        self.origin = batch.origin
        table = np.array(batch.ticks, dtype=np.float64)
        stamps = batch.origin + table[:, batch.columns.index("time_s")]
        self._ticks.push_chunk(table[:, 1:], (stamps + self._shift).tolist())  # without the UTC time in column 0
        markers = table[:, batch.columns.index("marker")].astype(int).tolist()
        for marker, stamp in zip(markers, stamps.tolist(), strict=True):
            if marker != self._marker:
                self._marker = marker
                self.mark({"event": "marker", "marker": marker}, stamp)

    def mark(self, event: dict[str, Any], at: float) -> None:
        """Push a marker, a JSON object, at a time of the monotonic clock [s]."""
        self._markers.push_sample([_as_json(event)], at + self._shift)

    def end(self, reason: str) -> None:
        """Push a marker for the end of the run."""
        self.mark({"event": "end of run", "reason": reason}, time.monotonic())

    def tick_time(self, tick: int) -> float | None:
        """Return the deadline of a tick of the current run on the monotonic clock [s].

        None before the first batch of the run.
        """
        return None if self.origin is None else self.origin + tick / self._rate

    def close(self) -> None:
        """Wait until receivers have read pending samples, and close the outlets."""
        outlets = [one for one in (self._ticks, self._markers) if one is not None]
        if any(one.have_consumers() for one in outlets):
            time.sleep(_LAST_MESSAGES[LSL])
        self._ticks = self._markers = None

    def _open(self, columns: list[str], rate: float) -> None:
        if self._ticks is not None and (columns, rate) == (self._columns, self._rate):
            return
        self._columns, self._rate = columns, rate
        lsl = self._pylsl
        source = f"haptics-ticks-{platform.node()}"
        info = lsl.StreamInfo(TICKS, "Haptics", len(columns) - 1, rate, lsl.cf_double64, source)
        channels = info.desc().append_child("channels")
        for name in columns[1:]:
            channels.append_child("channel").append_child_value("label", name)
        self._ticks = lsl.StreamOutlet(info)


Sink = UdpSink | WebSocketSink | LslSink
"""Destination of a stream: ``begin`` a run with its description, ``send`` batches, ``end`` the run, and ``close``."""


def clock_shift(local_clock: Any) -> float:
    """Return the offset from the monotonic clock to the LSL clock [s]; 0 if they are equal."""
    gaps = []
    for _ in range(20):
        before = time.monotonic()
        there = local_clock()
        gaps.append(there - 0.5 * (before + time.monotonic()))
    shift = sorted(gaps)[len(gaps) // 2]
    return 0.0 if abs(shift) < _SAME_CLOCK else float(shift)


def main(connection: Connection[Any, Any], stream: StreamAddress) -> None:
    """Send the ticks of every run until the session sends `Quit` or closes the pipe.

    Parameters
    ----------
    connection : Connection
        This end of a two-way pipe with messages of `apps.front_ends.messages`.
    stream : StreamAddress
        Destination.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session handles Ctrl-C and sends Quit
    try:
        sink: Sink
        if stream.kind == LSL:
            sink = LslSink()
        else:
            sink = UdpSink(stream) if stream.kind == UDP else WebSocketSink(stream)
    except OSError as error:
        connection.close()
        sys.exit(f"the stream {stream} cannot begin ({error.strerror or error}).")
    with contextlib.closing(sink):
        follow(connection, sink)


def follow(connection: Connection[Any, Any], sink: Sink, also: Callable[[], None] = lambda: None) -> None:
    """Send the ticks of every run to `sink` until the session sends `Quit` or closes the pipe.

    Parameters
    ----------
    connection : Connection
        This end of the pipe.
    sink : Sink
        Receives the ticks.
    also : callable
        Additional work after each batch.
    """
    ticks: Ticks | None = None
    while True:
        try:
            message = connection.recv() if connection.poll(EVERY) else None
        except (EOFError, OSError):
            return
        if ticks is not None:
            sink.send(ticks.read())
        also()
        match message:
            case SessionStarted():
                try:
                    ticks = Ticks(message)
                except ConfigurationError:  # the run ended before this process could attach its trace
                    ticks = None
                    continue
                about = {name: getattr(message, name) for name in ("device", "model", "rate_hz", "recording")}
                sink.begin({**about, "columns": ticks.columns})
            case SessionEnded(reason):
                sink.end(reason)
                ticks = None
            case Quit():
                return


def open_stream(stream: StreamAddress) -> ProcessFrontEnd:
    """Start the process that sends a stream (`apps.stream`)."""
    return ProcessFrontEnd(main, (stream,), name=f"haptics stream {stream.kind}", holds_key=False)
