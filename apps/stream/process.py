"""Entry of the process that sends a stream: it follows the trace, as a window does, and never touches the servo."""

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
"""Ticks are sent in batches of so long [s]."""


def main(connection: Connection[Any, Any], stream: StreamAddress) -> None:
    """Send the ticks of every run until the session says `Quit` or is gone.

    Parameters
    ----------
    connection : Connection
        This end of a two-way pipe; speaks the classes of `apps.front_ends.messages`.
    stream : StreamAddress
        Where it goes.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session decides what Ctrl-C means, and says Quit
    try:
        sink = make_sink(stream)
    except OSError as error:
        connection.close()
        sys.exit(f"the stream {stream} cannot begin ({error.strerror or error}).")
    with contextlib.closing(sink):
        follow(connection, sink)


def follow(connection: Connection[Any, Any], sink: Sink, also: Callable[[], None] = lambda: None) -> None:
    """Send the ticks of every run to `sink` until the session says `Quit` or is gone.

    Parameters
    ----------
    connection : Connection
        This end of the pipe.
    sink : Sink
        Takes them.
    also : callable
        What else is done, after each batch.
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
    except ConfigurationError:  # the run was over before this process had come to it
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
