"""The ticks of a running session as plain numbers, ready to be sent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from apps.front_ends.messages import SessionStarted
from haptics.recording.flat import flatten
from haptics.records import COLUMNS, ROW_UNITS, Rows
from haptics.trace import Reader, Ring


class Ticks:
    """Follows the trace of a run.

    Parameters
    ----------
    started : SessionStarted
        What is known of the run.

    Attributes
    ----------
    columns : list of str
        Names of the numbers of a tick, with their units (`haptics.recording.flat`); ``timestamp`` is first: when the
        tick was due, in seconds since 1970 in UTC.

    Raises
    ------
    ConfigurationError
        If there is no such trace.
    """

    def __init__(self, started: SessionStarted) -> None:
        self._reader = Reader(Ring.attach(Path(started.trace)))
        self._causality = started.causality
        self.columns = ["timestamp", *self._flat(np.zeros(0, COLUMNS))]

    @property
    def lost(self) -> int:
        """Ticks that were overwritten before they could be read."""
        return self._reader.lost

    def read(self) -> list[tuple[float | int | None, ...]]:
        """Return the ticks since the last call: a number for each column, None for what is not a number."""
        rows = self._reader.read()
        origin = self._reader.origin[1] * 1e-9
        flat = self._flat(rows)
        stamps = (origin + flat["time_s"]).tolist()
        return list(zip(stamps, *(_plain(values) for values in flat.values()), strict=True))

    def _flat(self, rows: Rows) -> dict[str, Any]:
        return flatten(rows, ROW_UNITS, self._causality)


def _plain(values: Any) -> list[Any]:
    cells = values.tolist()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return [cell if math.isfinite(cell) else None for cell in cells]
    return list(cells)


def as_json(value: Any) -> str:
    """Return JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
