"""``haptics experiment run --lsl``: the ticks and the records of a session as streams of the Lab Streaming Layer.

A process of its own follows the trace and the journal, as a reader of files: it can neither delay a tick nor a record.
In a blind session its markers say nothing that would tell the stimulus.
"""

from __future__ import annotations

import contextlib
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from apps.experiment.journal.reading import LONGEST_LINE, parsed
from apps.experiment.journal.schema import Record, checked
from apps.front_ends.front_end import ProcessFrontEnd
from apps.stream.address import require_lsl

_TOLD = {
    "trial_start": ("trial", "attempt", "block", "kind", "condition", "track", "reference", "level", "axis"),
    "response": ("trial", "attempt", "response", "correct", "reaction_time_s", "tick"),
    "trial_end": ("trial", "attempt", "outcome"),
    "block_start": ("block", "attempt"),
    "event": ("name",),
    "end": ("reason",),
}
"""Fields of a record that its marker has."""

_BLIND = ("kind", "condition", "track", "reference", "level", "correct")
"""Those of them that a blind session does not tell."""


def start_outlet(journal: Path, causality: str, rate: float) -> ProcessFrontEnd:
    """Start the process that streams a session; it is added to those that only listen (`Service.streams`).

    Parameters
    ----------
    journal : Path
        The journal of the session; what is in it already is not sent.
    causality : str
        Of the device: it decides the names of the columns.
    rate : float
        Rate of the servo [Hz].

    Raises
    ------
    ConfigurationError
        If the Lab Streaming Layer is not there.
    """
    require_lsl()
    return ProcessFrontEnd(main, (journal, causality, rate), name="haptics lsl", holds_key=False)


def main(connection: Connection[Any, Any], journal: Path, causality: str, rate: float) -> None:
    """Stream the ticks of every block and the records of the journal until the session says `Quit` or is gone."""
    from apps.stream.lsl import LslSink
    from apps.stream.process import follow
    from apps.stream.ticks import columns_of

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session decides what Ctrl-C means, and says Quit
    tail = JournalTail(journal)
    with contextlib.closing(LslSink(columns_of(causality), rate)) as sink:

        def tell() -> None:
            for record in tail.read():
                if record["record"] in _TOLD:
                    at = sink.tick_time(record["tick"]) if record.get("tick") is not None else None
                    sink.mark(marker_of(record, blind=tail.blind), record["monotonic_ns"] * 1e-9 if at is None else at)

        follow(connection, sink, tell)
        tell()


def marker_of(record: Record, *, blind: bool) -> dict[str, Any]:
    """Return what a marker says of a record."""
    names = [name for name in _TOLD[record["record"]] if not (blind and name in _BLIND)]
    return {"event": record["record"], **{name: record[name] for name in names}}


class JournalTail:
    """Reads what is appended to a journal from now on.

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
        """Return the records that have come since the last call."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [checked(parsed(line)) for line in lines]
