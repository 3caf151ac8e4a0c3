"""What is exported: flat columns, piece by piece, and what is known about them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from haptics.recording.flat import flatten
from haptics.recording.recording import ORIGIN_UTC, Recording

Piece = dict[str, NDArray[Any]]
"""Some rows of a table: name of a column to (n,) array."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Table:
    """Columns of any length, ready to be written.

    Attributes
    ----------
    columns : dict
        Name with unit (`haptics.recording.flat.flat_columns`) to the type of the column.
    length : int
        Number of rows.
    description : str
        The recording's own description, as JSON.
    origin_ns : int
        When tick 0 was: nanoseconds since 1970 in UTC; 0 where the recording does not say it.
    pieces : callable
        Takes a number of rows and yields the rows in order, that many at a time, in memory of their own.
    """

    columns: dict[str, np.dtype[Any]]
    length: int
    description: str
    origin_ns: int
    pieces: Callable[[int], Iterator[Piece]]

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Return the table of a recording, which is read while the table is written."""
        metadata = recording.metadata
        causality = str(metadata.get("device", {}).get("causality", ""))
        known = metadata.get("columns", {})
        units = {name: known.get(name, "") for name in recording.table.dtype.names or ()}

        def pieces(rows: int) -> Iterator[Piece]:
            for chunk in recording.chunks(rows=rows):
                flat = flatten(chunk, units, causality)
                yield {name: np.array(values) for name, values in flat.items()}

        empty = flatten(np.empty(0, recording.table.dtype), units, causality)
        columns = {name: values.dtype for name, values in empty.items()}
        return cls(columns, len(recording), json.dumps(metadata), _instant(metadata), pieces)

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[Any]], description: str = "") -> Self:
        """Return a table of columns that are in memory."""
        length = len(next(iter(columns.values()), ()))

        def pieces(rows: int) -> Iterator[Piece]:
            for start in range(0, length, rows):
                yield {name: values[start : start + rows] for name, values in columns.items()}

        return cls({name: values.dtype for name, values in columns.items()}, length, description, 0, pieces)


def _instant(description: dict[str, Any]) -> int:
    """Return the instant of tick 0 [ns]; 0 if the description has none that can be read."""
    try:
        instant = datetime.datetime.fromisoformat(description[ORIGIN_UTC])
        return (instant - _EPOCH) // datetime.timedelta(microseconds=1) * 1000
    except (KeyError, TypeError, ValueError):
        return 0
