"""Option ``haptics experiment run --lsl``: stream a session by the Lab Streaming Layer.

A separate process reads the trace and the journal as files, so that it cannot delay ticks or records. In a blind
session the markers do not reveal the stimulus.
"""

from __future__ import annotations

import contextlib
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from apps.experiment.journal.journal import LONGEST_LINE, parsed
from apps.experiment.journal.schema import Record, checked
from apps.front_ends.front_end import ProcessFrontEnd
from apps.stream import require_lsl

_FIELDS = {
    "trial_start": ("trial", "attempt", "block", "kind", "condition", "track", "reference", "level", "axis"),
    "response": ("trial", "attempt", "response", "correct", "reaction_time_s", "tick"),
    "trial_end": ("trial", "attempt", "outcome"),
    "block_start": ("block", "attempt"),
    "event": ("name",),
    "end": ("reason",),
}
"""Fields of the marker of each kind of record."""

_BLIND = ("kind", "condition", "track", "reference", "level", "correct")
"""Fields that a blind session omits."""


def start_outlet(journal: Path, causality: str, rate: float) -> ProcessFrontEnd:
    """Start the process that streams a session, as a read-only front end (`Service.streams`).

    Parameters
    ----------
    journal : Path
        Journal of the session. Existing records are not sent.
    causality : str
        Causality of the device, which determines the names of the columns.
    rate : float
        Rate of the servo [Hz].

    Raises
    ------
    ConfigurationError
        If the Lab Streaming Layer is not installed.
    """
    require_lsl()
    return ProcessFrontEnd(main, (journal, causality, rate), name="haptics lsl", holds_key=False)


def main(connection: Connection[Any, Any], journal: Path, causality: str, rate: float) -> None:
    """Stream ticks and journal records until the session sends `Quit` or disconnects."""
    from apps.stream import LslSink, columns_of, follow

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session handles Ctrl-C and sends Quit
    tail = JournalTail(journal)
    with contextlib.closing(LslSink(columns_of(causality), rate)) as sink:

        def send_markers() -> None:
            for record in tail.read():
                if record["record"] in _FIELDS:
                    at = sink.tick_time(record["tick"]) if record.get("tick") is not None else None
                    names = [name for name in _FIELDS[record["record"]] if not (tail.blind and name in _BLIND)]
                    marker = {"event": record["record"], **{name: record[name] for name in names}}
                    sink.mark(marker, record["monotonic_ns"] * 1e-9 if at is None else at)

        follow(connection, sink, send_markers)
        send_markers()


class JournalTail:
    """Reader of the records that are appended to a journal from now on.

    Attributes
    ----------
    blind : bool
        Whether the session is blind.
    """

    def __init__(self, path: Path) -> None:
        self._file = open(path, "rb")
        self._rest = b""
        self.blind = checked(parsed(self._file.readline(LONGEST_LINE)))["blind"] is not None
        self._file.seek(0, os.SEEK_END)

    def read(self) -> list[Record]:
        """Return the records added since the last call."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [checked(parsed(line)) for line in lines]
