"""Who is shown what happens in an experiment, and what they want: nobody and nothing by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apps.experiment.engine.course import Plan
    from apps.experiment.engine.presenting import Reply


class Audience:
    """Shows nothing.

    Attributes
    ----------
    present : bool
        Whether there is somebody to be shown something, for whom time is taken.
    paused, aborted, redo : bool
        What was asked for: to wait, to end the session, to do the last trial again.
    """

    present = False

    def __init__(self) -> None:
        self.paused = self.aborted = self.redo = False

    def waits(self) -> bool:
        """Whether the session is to wait."""
        return self.paused and not self.aborted

    # --- in a trial -------------------------------------------------------------------------------------------------

    def park(self, plan: Plan, number: int) -> None:
        """Ask for the hand to come to the start box, before interval `number` (from 0)."""

    def interval(self, plan: Plan, number: int) -> None:
        """Say that interval `number` has begun."""

    def gap(self, plan: Plan, number: int) -> None:
        """Say that interval `number` is over."""

    def judged(self, ticks: int, late: int, gap: float, reasons: tuple[str, ...]) -> None:
        """Say how an interval was rendered: ticks, late ones among them, longest gap [s], and why it is repeated."""

    def ask(self, plan: Plan) -> None:
        """Ask for the answer."""

    def entry(self, text: str) -> None:
        """Show what has been typed of a number so far."""

    def ended(
        self,
        plan: Plan,
        attempt: int,
        correct: bool | None,
        reasons: tuple[str, ...],
        reply: Reply | None = None,
    ) -> None:
        """Say how a trial ended."""

    def feedback(self, correct: bool) -> None:
        """Say whether an answer was right."""

    # --- between trials ---------------------------------------------------------------------------------------------

    def page(self, number: int, of: int, text: str) -> None:
        """Show a page of the instructions, `number` from 1."""

    def practice(self, text: str) -> None:
        """Say that the practice begins."""

    def rest(self, until: float, text: str) -> None:
        """Show a break that lasts until then at least [s, monotonic]."""

    def pause(self, by: str) -> None:
        """Show that the session waits."""

    def finish(self, text: str) -> None:
        """Show that it is over."""

    def let_go(self, seconds: float) -> None:
        """Say that the device will move by itself for so long [s], and is not to be held."""

    def measures(self, share: float) -> None:
        """Say how far its measurement is, 0 to 1."""

    def measured(self, words: str) -> None:
        """Say that it is done, and the experimenter what came of it."""

    def notice(self, words: str) -> None:
        """Tell the experimenter something."""
