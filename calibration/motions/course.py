"""A procedure under way: the program in force, what was recorded of it, and what comes next."""

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
from haptics.rendering.programs import keep_motion

Procedure = Generator[Motion, Rows, None]
"""Gives motions; gets for each of them the rows that were recorded while it was in force, in order."""


PATIENCE = 10.0
"""A motion that has had to wait for so long in all, with the dead-man held, will not come to its end [s]."""


class Course:
    """Takes a procedure from one motion to the next, and writes each down before it comes into force.

    Parameters
    ----------
    procedure : Procedure
        Not yet begun.

    Attributes
    ----------
    motion : Motion
        The one in force, or on its way there.
    number : int
        Its number in the run, which is the version of the settings, too: nothing else changes in such a run.
    """

    def __init__(self, procedure: Procedure) -> None:
        self._procedure = procedure
        self.motion = next(procedure)
        self.number = 0
        self._watched, self._begun = -1, 0

    def note(self, recorder: Recorder) -> dict[str, Any]:
        """Write the motion into a recording; return its line of the journal."""
        entry = keep_motion(recorder.folder, self.motion, self.number)
        recorder.journal_settings(self.number, entry)
        return {"version": self.number, **entry}

    def go_on(self, rows: Rows) -> bool:
        """Ask the procedure for the next motion, given all rows that were recorded; tell whether there is one."""
        try:
            self.motion = self._procedure.send(own_rows(rows, self.number))
        except StopIteration:
            return False
        self.number += 1
        return True

    def require_progress(self, tick: int, permission: int) -> None:
        """Raise `DeviceFault` if the motion in force should have come to its end long ago by `tick`."""
        if self._watched != self.number or permission & Permission.RELEASED:
            self._watched, self._begun = self.number, tick
        if (tick - self._begun) * self.motion.period > self.motion.duration + PATIENCE:
            raise DeviceFault(
                f"the motion {self.motion.label!r} did not finish by tick {tick}, because samples were rejected again "
                "and again: make sure that nothing is in its way and nobody pulls at it."
            )

    def close(self) -> None:
        """Let the procedure go, unless a thread of its own is still in it."""
        with contextlib.suppress(ValueError):
            self._procedure.close()


def own_rows(rows: Rows, number: int) -> Rows:
    """Return the rows that were recorded while the program `number` was in force."""
    versions = rows["settings_version"]
    return np.array(rows[np.searchsorted(versions, number) : np.searchsorted(versions, number, side="right")])


def usable_rows(rows: Rows) -> Rows:
    """Return the rows whose samples the envelope could use: the others may hold anything, also what is no number."""
    usable: Rows = rows[(rows["status"] & UNUSABLE) == 0]
    return usable


def known_rows(rows: Rows) -> Rows:
    """Return `usable_rows`.

    Raises
    ------
    DeviceFault
        If there is none.
    """
    known = usable_rows(rows)
    if not len(known):
        raise DeviceFault(
            f"none of {len(rows)} samples could be used, so that nobody knows where the handle is: look at the flags "
            "of the recording, and at the device's cable."
        )
    return known
