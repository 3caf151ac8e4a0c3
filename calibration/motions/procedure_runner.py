"""State of a running procedure: present motion, its recorded rows, and the next motion."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import numpy as np

from haptics.errors import DeviceFault
from haptics.recording.recorder import Recorder
from haptics.records import Permission, Rows
from haptics.rendering.envelope import UNUSABLE
from haptics.rendering.motion import Motion
from haptics.rendering.programs import save_motion

Procedure = Generator[Motion, Rows, None]
"""Generator that yields motions and receives, for each of them, the rows recorded during it, in order."""


PATIENCE = 10.0
"""Time after which an unfinished motion raises an error, beyond its duration [s].

Only time with the dead-man's switch held counts.
"""


class ProcedureRunner:
    """Executor of a procedure that writes each motion to the recording before it becomes active.

    Parameters
    ----------
    procedure : Procedure
        Generator that has not been started.

    Attributes
    ----------
    motion : Motion
        Present motion, active or about to be.
    number : int
        Index of the motion in the run, which equals the version of the settings, because nothing else changes them.
    """

    def __init__(self, procedure: Procedure) -> None:
        self._procedure = procedure
        self.motion = next(procedure)
        self.number = 0
        self._watched, self._begun = -1, 0

    def save_motion(self, recorder: Recorder) -> dict[str, Any]:
        """Write the motion to a recording; return its journal entry."""
        entry = save_motion(recorder.folder, self.motion, self.number)
        recorder.journal_settings(self.number, entry)
        return {"version": self.number, **entry}

    def advance(self, rows: Rows) -> bool:
        """Send all recorded rows to the procedure; return True if it yields another motion."""
        try:
            self.motion = self._procedure.send(own_rows(rows, self.number))
        except StopIteration:
            return False
        self.number += 1
        return True

    def require_progress(self, tick: int, permission: int) -> None:
        """Raise `DeviceFault` if the present motion should have finished long before `tick`."""
        if self._watched != self.number or permission & Permission.RELEASED:
            self._watched, self._begun = self.number, tick
        if (tick - self._begun) * self.motion.period > self.motion.duration + PATIENCE:
            raise DeviceFault(
                f"the motion {self.motion.label!r} did not finish by tick {tick}, because samples were rejected again "
                "and again: make sure that nothing is in its way and nobody pulls at it."
            )

    def close(self) -> None:
        """Close the procedure, unless a thread is still executing it."""
        with contextlib.suppress(ValueError):
            self._procedure.close()


def own_rows(rows: Rows, number: int) -> Rows:
    """Return the rows that were recorded while the motion `number` was active."""
    versions = rows["settings_version"]
    return np.array(rows[np.searchsorted(versions, number) : np.searchsorted(versions, number, side="right")])


def usable_rows(rows: Rows) -> Rows:
    """Return the rows with valid samples; others may hold arbitrary values including nan."""
    usable: Rows = rows[(rows["status"] & UNUSABLE) == 0]
    return usable


def known_rows(rows: Rows) -> Rows:
    """Return `usable_rows`.

    Raises
    ------
    DeviceFault
        If there are no valid rows.
    """
    known = usable_rows(rows)
    if not len(known):
        raise DeviceFault(
            f"none of {len(rows)} samples could be used, so that nobody knows where the handle is: look at the flags "
            "of the recording, and at the device's cable."
        )
    return known
