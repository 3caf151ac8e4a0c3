"""Ticks of a running session as plain numbers, ready to be sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apps.front_ends.messages import SessionStarted
from haptics.recording.columns import cells_of, flatten
from haptics.records import COLUMNS, ROW_UNITS, Rows
from haptics.trace import Reader, Ring


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
    return ["timestamp", *_flat(np.zeros(0, COLUMNS), causality)]


class Ticks:
    """Reads the trace of a run incrementally.

    Parameters
    ----------
    started : SessionStarted
        Description of the run.

    Attributes
    ----------
    columns : list of str
        Names of the values of a tick, with their units (`haptics.recording.columns`). The first is ``timestamp``, the
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
        flat = _flat(rows, self._causality)
        stamps = (utc * 1e-9 + flat["time_s"]).tolist()
        ticks = list(zip(stamps, *(cells_of(values) for values in flat.values()), strict=True))
        return Batch(self.columns, ticks, monotonic * 1e-9, self._reader.lost - lost)


def _flat(rows: Rows, causality: str) -> dict[str, Any]:
    return flatten(rows, ROW_UNITS, causality)


def as_json(value: Any) -> str:
    """Return compact JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
