"""Who is shown what happens in an experiment: nobody, by default; the screens where there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apps.experiment.engine.course import Plan


class Audience:
    """Shows nothing."""

    def park(self, plan: Plan, number: int) -> None:
        """Ask for the hand to come to the start box, before interval `number` (from 0)."""

    def interval(self, plan: Plan, number: int) -> None:
        """Say that interval `number` has begun."""

    def gap(self, plan: Plan, number: int) -> None:
        """Say that interval `number` is over."""

    def ask(self, plan: Plan) -> None:
        """Ask for the answer."""

    def ended(self, plan: Plan, attempt: int, correct: bool | None, reasons: tuple[str, ...]) -> None:
        """Say how a trial ended."""
