"""Interface of the procedures, which select the level of the next trial from the previous answers."""

from __future__ import annotations

from typing import Any, Protocol


class Procedure(Protocol):
    """Selects the levels of a track.

    A procedure has no clock and no input except the answers, so that the same answers give the same levels.
    """

    @property
    def finished(self) -> bool:
        """Whether the procedure needs no further trials."""

    def level(self) -> float:
        """Return the level of the next trial, in units of the axis.

        It is the same until `take` is called.
        """

    def add_outcome(self, level: float, correct: bool) -> None:
        """Add the outcome of a trial.

        Parameters
        ----------
        level : float
            Presented level, which may differ from the requested level, or the adjusted value in an adjustment.
        correct : bool
            Whether the answer was correct. Ignored if answers are neither right nor wrong.
        """

    def report(self) -> dict[str, Any]:
        """Return the current results as JSON, including the estimate and its percentage correct."""
