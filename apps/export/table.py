"""Flat columns of a recording for export, read in chunks."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from haptics.recording.recording import ORIGIN_UTC, Recording
from haptics.records import flatten

Piece = dict[str, NDArray[Any]]
"""Chunk of rows: column name to (n,) array."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Table:
    """Flat columns of a recording or of data in memory.

    Attributes
    ----------
    columns : dict
        Column name with unit (`haptics.recording.recording.flat_columns`) to dtype.
    length : int
        Number of rows.
    description : str
        Content of ``recording.json``.
    origin_ns : int
        UTC time of tick 0 in nanoseconds since 1970; 0 if unknown.
    pieces : callable
        Takes the number of rows per chunk and yields the chunks in order. Each chunk owns its memory.
    """

    columns: dict[str, np.dtype[Any]]
    length: int
    description: str
    origin_ns: int
    pieces: Callable[[int], Iterator[Piece]]

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Return the table of a recording.

        The ticks are read while the chunks are consumed.
        """
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
        """Return a table of columns in memory."""
        length = len(next(iter(columns.values()), ()))

        def pieces(rows: int) -> Iterator[Piece]:
            for start in range(0, length, rows):
                yield {name: values[start : start + rows] for name, values in columns.items()}

        return cls({name: values.dtype for name, values in columns.items()}, length, description, 0, pieces)


def _instant(description: dict[str, Any]) -> int:
    """Return the UTC time of tick 0 [ns since 1970], or 0 if it is missing or invalid."""
    try:
        instant = datetime.datetime.fromisoformat(description[ORIGIN_UTC])
        return (instant - _EPOCH) // datetime.timedelta(microseconds=1) * 1000
    except (KeyError, TypeError, ValueError):
        return 0
