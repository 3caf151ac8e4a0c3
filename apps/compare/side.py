"""Data of one side of a side-by-side view.

Independent of Qt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from haptics.recording.recording import Recording
from haptics.recording.tick_file import Table
from haptics.records import Rows

OPEN_LOOP = "LOOP OPEN: answers to the samples of A; no hand has felt them"
"""Label of a side whose forces did not act on the hand that is shown."""


@dataclass(frozen=True)
class Side:
    """Run shown on one side of the view.

    Attributes
    ----------
    title : str
        Title of the side.
    source : Recording, table or structured array
        Ticks of the run.
    metadata : mapping
        As for `apps.view.replay.run`.
    open_loop : bool
        True if the rows were computed from the samples of the other run.
    """

    title: str
    source: Recording | Table | Rows
    metadata: Mapping[str, Any]
    open_loop: bool = False
