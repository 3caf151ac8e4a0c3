"""What is exported: the flat columns of a recording and what is known about it."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import NDArray

from haptics.recording.flat import flat_columns
from haptics.recording.recording import ORIGIN_UTC, Recording

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Table:
    """A recording, ready to be written.

    Attributes
    ----------
    columns : dict
        Name with unit to (n,) array (`haptics.recording.flat.flat_columns`).
    description : str
        The recording's own description, as JSON.
    origin_ns : int
        When tick 0 was: nanoseconds since 1970 in UTC; 0 where the recording does not say it.
    """

    columns: dict[str, NDArray[Any]]
    description: str
    origin_ns: int

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Return the table of a recording."""
        return cls(flat_columns(recording), json.dumps(recording.metadata), _instant(recording.metadata))

    @property
    def length(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))


def _instant(description: dict[str, Any]) -> int:
    """Return the instant of tick 0 [ns]; 0 if the description has none that can be read."""
    try:
        instant = datetime.datetime.fromisoformat(description[ORIGIN_UTC])
        return (instant - _EPOCH) // datetime.timedelta(microseconds=1) * 1000
    except (KeyError, TypeError, ValueError):
        return 0
