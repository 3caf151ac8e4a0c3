"""The protocol of a procedure: it chooses the level of the next trial from the answers to those before."""

from __future__ import annotations

from typing import Any, Protocol


class Procedure(Protocol):
    """Chooses levels, one track of them. It has no clock and reads nothing: the same answers make the same levels."""

    @property
    def finished(self) -> bool:
        """Whether it wants no more trials."""

    def level(self) -> float:
        """Return the level of the next trial, in units of the axis; the same until `take` is called."""

    def take(self, level: float, correct: bool) -> None:
        """Take the outcome of a trial.

        Parameters
        ----------
        level : float
            What was presented, which need not be what was asked for; in an adjustment the value that was set.
        correct : bool
            Whether the answer was correct; of no importance where answers are neither right nor wrong.
        """

    def report(self) -> dict[str, Any]:
        """Return what it found so far, in plain JSON: its estimate with the percentage correct that it stands for."""
