"""Display of an experiment and requests of its users.

By default nothing is shown or requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apps.experiment.engine.presenting import Reply
    from apps.experiment.engine.sequence import TrialSpec


class Display:
    """Display that shows nothing.

    Attributes
    ----------
    present : bool
        Whether there is a viewer, for whom the session takes time.
    paused, aborted, redo : bool
        Requests to pause, to abort the session, and to repeat the last trial.
    """

    present = False

    def __init__(self) -> None:
        self.paused = self.aborted = self.redo = False

    def waits(self) -> bool:
        """Return True if the session should wait."""
        return self.paused and not self.aborted

    # --- during a trial ---

    def park(self, plan: TrialSpec, number: int) -> None:
        """Ask the participant to move to the start box, before interval `number` (from 0)."""

    def interval(self, plan: TrialSpec, number: int) -> None:
        """Announce the start of interval `number`."""

    def gap(self, plan: TrialSpec, number: int) -> None:
        """Announce the end of interval `number`."""

    def show_interval(self, ticks: int, late: int, gap: float, reasons: tuple[str, ...]) -> None:
        """Report the rendering of an interval.

        Parameters
        ----------
        ticks, late : int
            Number of ticks, and number of late ticks.
        gap : float
            Longest time between two ticks [s].
        reasons : tuple of str
            Reasons for a repetition, empty if the interval counts.
        """

    def prompt(self, plan: TrialSpec) -> None:
        """Ask for the answer."""

    def entry(self, text: str) -> None:
        """Show the digits of a number typed by the participant."""

    def ended(
        self,
        plan: TrialSpec,
        attempt: int,
        correct: bool | None,
        reasons: tuple[str, ...],
        reply: Reply | None = None,
    ) -> None:
        """Report the end of a trial."""

    def feedback(self, correct: bool) -> None:
        """Show whether the answer was right."""

    # --- between trials ---

    def page(self, number: int, of: int, text: str) -> None:
        """Show a page of the instructions, `number` from 1."""

    def practice(self, text: str) -> None:
        """Announce the practice."""

    def rest(self, until: float, text: str) -> None:
        """Show a break that lasts at least until `until` [s, monotonic]."""

    def pause(self, by: str) -> None:
        """Show that the session is paused."""

    def finish(self, text: str) -> None:
        """Show that the session is over."""

    def announce_motion(self, seconds: float) -> None:
        """Announce that the device will move by itself for `seconds` [s] and must be released."""

    def measures(self, share: float) -> None:
        """Show the progress of the device's measurement, from 0 to 1."""

    def measured(self, words: str) -> None:
        """Announce the end of the measurement, with its result for the experimenter."""

    def notice(self, words: str) -> None:
        """Show a notice to the experimenter."""
