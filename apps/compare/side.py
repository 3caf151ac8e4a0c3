"""One of two runs that are shown side by side. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from haptics.recording.recording import Recording
from haptics.recording.tick_file import Table
from haptics.records import Rows

OPEN_LOOP = "LOOP OPEN: answers to the samples of A; no hand has felt them"
"""What is said of a side whose forces did not act on the hand that is shown."""


@dataclass(frozen=True)
class Side:
    """One of the two runs.

    Attributes
    ----------
    title : str
        What it is.
    source : Recording, table or structured array
        Its ticks.
    metadata : mapping
        As for `apps.view.replay.run`.
    open_loop : bool
        Whether it was worked out from the samples of the other one.
    """

    title: str
    source: Recording | Table | Rows
    metadata: Mapping[str, Any]
    open_loop: bool = False
