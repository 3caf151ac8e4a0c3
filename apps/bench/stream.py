"""Benchmark ``stream``: wake-up latency of the servo with and without streaming its ticks.

Slices of several seconds alternate between a session (virtual joystick, model C) without a stream and the same session
with a stream to a client, which receives and parses every message in a separate process. Because the load of a machine
changes from minute to minute, the slices of a round are compared, and the result is the median of these ratios. Ticks
that the client did not receive are counted.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from apps.bench import servo
from apps.bench.outcome import CannotMeasure, Progress, Stop, child_process, table
from apps.session.service import Service
from apps.shared.command import Answer
from apps.stream import UDP, WEBSOCKET, StreamAddress, open_stream
from haptics.settings import build, choice, documented

OFF = "off"

_KINDS = {UDP: (UDP,), WEBSOCKET: (WEBSOCKET,), "both": (UDP, WEBSOCKET)}


@documented
@dataclass(frozen=True)
class Settings(servo.Turns):
    """Settings of the benchmark."""

    where: ClassVar[str] = "bench stream"

    stream: str = choice("both", tuple(_KINDS), doc="what is streamed in turns with nothing")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Candidates in a round."""
        return (OFF, *_KINDS[self.stream])

    @property
    def turns(self) -> int:
        """Number of slices in a round."""
        return len(self.kinds)


def run(progress: Progress, **options: Any) -> Answer:
    """Run the benchmark.

    The first candidate changes from round to round.
    """
    settings = build(Settings, options, Settings.where)
    if WEBSOCKET in settings.kinds:
        try:
            import websockets.sync.client  # noqa: F401
        except ImportError as error:
            raise CannotMeasure(
                "bench stream: needs the package websockets: pip install 'haptics[stream]', or take --stream udp."
            ) from error
    slices: dict[str, list[Streamed]] = {kind: [] for kind in settings.kinds}
    with Stop() as stop, tempfile.TemporaryDirectory(prefix="haptics-bench-") as folder:
        progress(0.0, "a warm-up session")
        candidates = servo.Candidates(Path(folder), settings, stop)
        trial = candidates.trial()
        total, done = settings.turns * settings.rounds, 0
        for number in range(settings.rounds):
            first = number % settings.turns
            for kind in (*settings.kinds[first:], *settings.kinds[:first]):
                progress(done / total, f"stream {kind}, slice {done + 1} of {total}")
                slices[kind].append(_slice(candidates, kind, stop))
                done += 1
    return report(slices, trial, settings.length)


def _slice(candidates: servo.Candidates, kind: str, stop: Stop) -> Streamed:
    """Run a session with a stream, or without one."""
    service = Service(lambda line: None)
    if kind == OFF:
        return Streamed(candidates.servo(None, service))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == UDP else socket.SOCK_STREAM) as line:
        line.bind((_HERE, 0))  # the system chooses a free port
        address = StreamAddress(kind, _HERE, int(line.getsockname()[1]))
    with child_process(receive, address, name="stream client") as (client, _):
        try:
            service.streams.add(open_stream(address))
            # a WebSocket client can connect only when the stream exists
            if _await_message(client, stop, _PATIENCE) != READY:
                raise CannotMeasure(f"bench stream: the client of {address} could not begin.")
            own = candidates.servo(None, service)
        finally:
            service.streams.close()
        with contextlib.suppress(OSError):
            client.send(None)
        received = _await_message(client, stop, _LAST_WORDS)
        if not isinstance(received, np.ndarray):
            raise CannotMeasure(f"bench stream: the client of {address} ended without an answer.")
    return Streamed(own, len(received), *missing(own.numbers, received))


# --- report --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Streamed:
    """Slice of the servo and the ticks received by its client.

    Without a stream there is no client.

    Attributes
    ----------
    own : ServoSlice
        Measurement of the servo.
    received, missing, gaps : int or None
        Number of received ticks, of missing ticks, and of the gaps that they form.
    """

    own: servo.ServoSlice
    received: int | None = None
    missing: int | None = None
    gaps: int | None = None


_HEADING = ("", "median us", "99 % us", "99.9 % us", "late of 1000", "tick us", "ticks", "missing", "gaps")


def report(slices: Mapping[str, Sequence[Streamed]], trial: servo.Trial, length: float) -> Answer:
    """Compute the result.

    Missing datagrams are permitted, because UDP may lose them if the client reads too slowly.

    Parameters
    ----------
    slices : mapping
        Kind of stream to its slices, round by round. The first, without a stream, is the reference.
    trial : Trial
        Warm-up session.
    length : float
        Length of a slice [s].
    """
    (off, reference), *streams = slices.items()
    found = []
    for kind, own in streams:
        rounds = []
        for one, other in zip((each.own for each in own), (each.own for each in reference), strict=True):
            count = min(len(one.lateness), len(other.lateness))
            tick = float(np.median(one.tick_time)) / max(float(np.median(other.tick_time)), 1e-9)
            found_ratios = servo.ratios(servo.figures(one.lateness), servo.figures(other.lateness), count)
            rounds.append({**found_ratios, "ratio_tick": round(tick, 6)})
        found.append(
            {
                "stream": kind,
                **servo.medians(rounds),
                "ratio_tick": round(float(np.median([each["ratio_tick"] for each in rounds])), 6),
                **_figures(own),
                **{name: sum(getattr(each, name) or 0 for each in own) for name in ("received", "missing", "gaps")},
                "slices": [
                    {**ratio, "missing": each.missing, "gaps": each.gaps}
                    for ratio, each in zip(rounds, own, strict=True)
                ],
            }
        )
    result = {
        "device": servo.DEVICE,
        "model": servo.MODEL,
        "rate_hz": reference[0].own.summary["rate_hz"],
        **trial.real_time,
        "slice_s": length,
        "rounds": len(reference),
        "settling_s": servo.SETTLING,
        "without": _figures(reference),
        "streams": found,
    }
    doubts = []
    for name, figures_of in (("without a stream", result["without"]), *((each["stream"], each) for each in found)):
        if figures_of["lost_ticks"]:
            doubts.append(f"{figures_of['lost_ticks']} ticks ({name}) are missing in the recordings.")
    for stream in found:
        if not stream["received"] or (stream["stream"] == WEBSOCKET and stream["missing"]):
            doubts.append(
                f"the client of {stream['stream']} missed {stream['missing']} ticks in {stream['gaps']} gaps."
            )
    return Answer(result, _text(result, off), error=" ".join(doubts))


def _figures(slices: Sequence[Streamed]) -> dict[str, Any]:
    return servo.servo_figures([one.own for one in slices], ("ticks", "skipped", "lost_ticks"))


def _text(result: dict[str, Any], off: str) -> str:
    rows: list[tuple[Any, ...]] = [_HEADING]
    keys = ("p50", "p99", "p999")
    for name, one in ((off, result["without"]), *((one["stream"], one) for one in result["streams"])):
        times = (one["period_error_us"][key] for key in keys)
        ticks = one["ticks"], one.get("missing"), one.get("gaps")
        rows.append((name, *times, 1e3 * one["late_share"], one["tick_us"]["p50"], *ticks))
        if "stream" in one:
            times = (one[f"ratio_{key}"] for key in keys)
            rows.append(("ratio", *times, one["ratio_late_share"], one["ratio_tick"], *3 * (None,)))
    return "\n".join(
        [
            servo.circumstances_text(result),
            f"slices of {result['slice_s']:g} s, {result['rounds']} of each kind, the first {servo.SETTLING:g} s of "
            "each left out; ratio: median over rounds; late: by more than 1 ms; missing: executed, but not received",
            "",
            table(rows),
        ]
    )


# --- client --------------------------------------------------------------------------------------------------------

Ticks = NDArray[np.int64]
"""Numbers of ticks, (n,)."""

READY = "ready"

_HERE = "127.0.0.1"
_PATIENCE, _LAST_WORDS = 60.0, 20.0
_QUIET = 0.3
"""Time without a datagram after which a closed stream has ended [s]."""

_ROOM = 1 << 22
"""Requested size of the receive buffer of a socket [bytes]."""


def _await_message(connection: Connection[Any, Any], stop: Stop, patience: float) -> Any:
    """Return the next message of a client, None if it has ended or does not answer within `patience` [s]."""
    until = time.monotonic() + patience
    try:
        while not connection.poll(0.02):
            stop.check()
            if time.monotonic() > until:
                return None
        return connection.recv()
    except (EOFError, OSError):
        return None


def missing(executed: Ticks, received: Ticks) -> tuple[int, int]:
    """Return the number of `executed` ticks that were not `received`, and the number of gaps."""
    away = ~np.isin(executed, received)
    return int(away.sum()), int((np.diff(away.astype(np.int8), prepend=0) == 1).sum())


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
    from websockets.sync.client import connect

    ticks: list[int] = []
    until = time.monotonic() + _PATIENCE
    while True:  # connect as soon as the server is available
        try:
            line = connect(f"ws://{stream.host}:{stream.port}", compression=None)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
    with line, contextlib.suppress(ConnectionClosed):
        connection.send(READY)
        for text in line:  # until the server closes the connection
            message = json.loads(text)
            if message["kind"] == "start":
                place = message["columns"].index("tick")
            elif message["kind"] == "ticks":
                ticks += [tick[place] for tick in message["ticks"]]
    return ticks
