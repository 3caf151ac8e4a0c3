"""Process that sends a stream.

It follows the trace like a window and never accesses the servo.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from apps.front_ends.messages import Quit, SessionEnded, SessionStarted
from apps.stream.address import StreamAddress
from apps.stream.sinks import Sink, make_sink
from apps.stream.ticks import Ticks
from haptics.errors import ConfigurationError

EVERY = 0.01
"""Interval between batches of ticks [s]."""


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
        sink = make_sink(stream)
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
                ticks = _begun(message, sink)
            case SessionEnded(reason):
                sink.end(reason)
                ticks = None
            case Quit():
                return


def _begun(started: SessionStarted, sink: Sink) -> Ticks | None:
    try:
        ticks = Ticks(started)
    except ConfigurationError:  # the run ended before this process could attach its trace
        return None
    sink.begin(
        {
            "device": started.device,
            "model": started.model,
            "rate_hz": started.rate_hz,
            "recording": started.recording,
            "columns": ticks.columns,
        }
    )
    return ticks
