"""What the engine does, as the two screens show it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from apps.experiment.design import Design, keys_of
from apps.experiment.engine.audience import Audience
from apps.experiment.screens.experimenter.blind import hidden
from apps.experiment.screens.messages import (
    Choice,
    Kind,
    Notice,
    Outcome,
    Pacing,
    Plan,
    Progress,
    Show,
    StartBox,
)

if TYPE_CHECKING:
    from apps.experiment.engine.course import Plan as Trial
    from apps.experiment.engine.presenting import Reply
    from apps.front_ends.front_end import FrontEnd

GO_ON = "space"
"""The key with which a participant turns pages and ends a break."""

_SURE_AFTER = 3
"""After so many trials their pace says how long the rest will take."""

_USUAL_PACE = 0.1
"""Speed of the target where no band of speeds is asked for [m/s]."""

QUESTIONS = {
    "discrimination": "Which one resisted more?",
    "detection-2ifc": "Which one resisted?",
    "detection": "Did it resist?",
    "same-different": "Were the two the same?",
    "estimation": "How strongly did it resist?",
    "adjustment": "Adjust until both feel the same",
}
"""Asked where the design says nothing, by task."""


MEANINGS = {"1": "first", "2": "second"}
"""What answers mean, where the answer itself does not say it."""


class ScreenAudience(Audience):
    """Tells the participant's screen what to show, and the experimenter's where the session is.

    Parameters
    ----------
    design : Design
        The experiment.
    participant : FrontEnd
        The participant's screen.
    experimenter : FrontEnd or None
        The experimenter's.
    code : str
        The participant's code.
    session : int
        Which of their sessions.
    blocks : int
        How many blocks there will be.
    trials : int or None
        How many trials, where that is known.
    """

    present = True

    def __init__(
        self,
        design: Design,
        participant: FrontEnd,
        experimenter: FrontEnd | None,
        *,
        code: str,
        session: int,
        blocks: int,
        trials: int | None = None,
    ) -> None:
        super().__init__()
        self._design, self._participant, self._experimenter = design, participant, experimenter
        staircase = design.procedure.get("kind") == "staircase"
        self._plan = Plan(
            design.experiment.title or design.experiment.name,
            code,
            session,
            blocks,
            trials,
            design.axis,
            "N" if design.axis.endswith("force") else "",
            design.experiment.blind,
            staircase,
        )
        self._progress = Progress("before the first trial", of=trials)
        self._base = Show("pause", noise=design.screen.noise_level > 0)
        self._practised: set[int] = set()
        self._first: tuple[int, float] | None = None
        self._tell(self._plan)

    # --- what the engine says of a trial

    def park(self, plan: Trial, number: int) -> None:
        """Ask for the hand to come to the start box, before interval `number` (from 0)."""
        words = "Move to the square and wait" if self._design.exploration.start else ""
        self._show(self._field("park", plan, number, words), f"start of interval {number + 1}", plan)

    def interval(self, plan: Trial, number: int) -> None:
        """Say that interval `number` has begun."""
        show = self._field("interval", plan, number, "")
        keys = self._answers() if self._design.experiment.task == "adjustment" else ()
        eyes = self._design.exploration.eyes
        show = replace(show, tone=True, pacing=self._pacing(), dark=not eyes, keys=keys)
        self._show(show, f"interval {number + 1} of {len(plan.values)}", plan)

    def gap(self, plan: Trial, number: int) -> None:
        """Say that interval `number` is over."""
        self._show(self._field("gap", plan, number, ""), f"after interval {number + 1}", plan)

    def ask(self, plan: Trial) -> None:
        """Ask for the answer."""
        show = replace(self._question(None if self._design.task.responses else ""), of=len(plan.values))
        self._show(show, "waiting for the answer", plan)

    def ended(
        self,
        plan: Trial,
        attempt: int,
        correct: bool | None,
        reasons: tuple[str, ...],
        reply: Reply | None = None,
    ) -> None:
        """Say how a trial ended."""
        outcome = Outcome(
            plan.trial,
            "repeat" if reasons else "ok",
            reasons,
            plan.kind,
            plan.condition.name,
            plan.label,
            plan.level,
            "" if reply is None else str(reply.response),
            correct,
            None if reply is None else reply.reaction_time,
            attempt,
        )
        self._tell(outcome)
        self._progress = replace(self._progress, attempt=1)

    def feedback(self, correct: bool) -> None:
        """Say whether an answer was right."""
        sign: Literal["right", "wrong"] = "right" if correct else "wrong"
        self._participant.send(replace(self._base, kind="feedback", text=sign.capitalize(), feedback=sign))

    # --- what it says between trials

    def page(self, number: int, of: int, text: str) -> None:
        """Show a page of the instructions."""
        keys = (Choice(GO_ON, "go on"),)
        show = replace(self._base, kind="instructions", text=text, page=number, pages=of, keys=keys)
        self._show(show, f"instructions, page {number} of {of}")

    def practice(self, text: str) -> None:
        """Announce the practice."""
        show = replace(self._base, kind="practice", title="Practice", text=text, keys=(Choice(GO_ON, "go on"),))
        self._show(show, "before the practice")

    def rest(self, until: float, text: str) -> None:
        """Show a break that lasts until then at least [s, monotonic]."""
        keys = (Choice(GO_ON, "go on"),)
        self._show(replace(self._base, kind="break", title="A break", text=text, until=until, keys=keys), "break")

    def pause(self, by: str) -> None:
        """Show that the session waits."""
        show = replace(self._base, kind="pause", title="Pause", text="Press Esc to go on.")
        self._show(show, f"paused by the {by}" if by else "paused")

    def entry(self, text: str) -> None:
        """Show what has been typed of a number so far."""
        self._participant.send(self._question(text))

    def finish(self, text: str) -> None:
        """Say that the session is over."""
        self._show(replace(self._base, kind="end", title="Thank you", text=text, noise=False), "the session is over")

    def notice(self, words: str) -> None:
        """Tell the experimenter something."""
        self._tell(Notice(words))

    # --- how

    def _tell(self, message: Any) -> None:
        """Tell the experimenter's screen, if there is one; in blind mode without what must not be seen."""
        if self._experimenter is not None:
            self._experimenter.send(hidden(message) if self._plan.blind else message)

    def _show(self, show: Show, phase: str, plan: Trial | None = None) -> None:
        """Show the participant something, and the experimenter what is going on."""
        if plan is not None:
            self._count(plan)
        self._participant.send(replace(show, share=self._base.share))
        self._progress = replace(self._progress, phase=phase, paused=show.kind == "pause")
        if plan is not None:
            self._progress = replace(
                self._progress,
                trial=plan.trial,
                block=plan.block,
                kind=plan.kind,
                condition=plan.condition.name,
                track=plan.label,
                level=plan.level,
            )
        self._tell(self._progress)

    def _question(self, entry: str | None) -> Show:
        """Return what asks for an answer; `entry` is what has been typed of a number."""
        design = self._design
        keys = self._answers()
        if entry is not None:
            keys = (Choice("return", "done"),)
        title = design.texts.question or QUESTIONS[design.experiment.task]
        return replace(self._base, kind="response", title=title, keys=keys, entry=entry)

    def _answers(self) -> tuple[Choice, ...]:
        """Return the keys and buttons that answer; of several keys for an answer, the first."""
        found: dict[str, str] = {}
        for key, answer in keys_of(self._design).items():
            found.setdefault(answer, key)
        keys = [Choice(key, MEANINGS.get(answer, answer)) for answer, key in found.items()]
        buttons = self._design.response.buttons.items()
        return (*keys, *(Choice(f"button {number}", MEANINGS.get(answer, answer)) for answer, number in buttons))

    def _count(self, plan: Trial) -> None:
        """Find out how much is done, and from the pace so far how long the rest will take; practice does not count."""
        self._practised |= {plan.trial} if plan.kind == "practice" else set()
        if plan.kind == "practice" or self._plan.trials is None:
            return
        now, done = time.monotonic(), plan.trial - 1 - len(self._practised)
        first, begun = self._first = self._first or (done, now)
        left = max(self._plan.trials - done, 0)
        pace = (now - begun) / (done - first) if done - first >= _SURE_AFTER else None
        remaining = None if pace is None else left * pace
        of = self._plan.trials + len(self._practised)
        self._progress = replace(self._progress, of=of, remaining=remaining)
        self._base = replace(self._base, share=min(done / self._plan.trials, 1.0))

    def _field(self, kind: Kind, plan: Trial, number: int, words: str) -> Show:
        exploration = self._design.exploration
        return replace(
            self._base,
            kind=kind,
            text=words,
            field=True,
            cursor=exploration.cursor or kind == "park",
            start=StartBox(exploration.start, exploration.reach) if exploration.start else None,
            hold="Hold the space bar" if self._design.session.limits.dead_man == "key" else "",
            interval=number + 1,
            of=len(plan.values),
        )

    def _pacing(self) -> Pacing | None:
        """Return what sets the pace: from the start box to its mirror image, at the middle of the band of speeds."""
        exploration = self._design.exploration
        if exploration.pacing == "none":
            return None
        (left, low), (right, high) = self._design.session.spec.workspace_min, self._design.session.spec.workspace_max
        start = exploration.start or (0.7 * left + 0.3 * right, 0.5 * (low + high))
        end = (left + right - start[0], start[1])
        slow, fast = exploration.least_speed, exploration.greatest_speed
        pace = (slow * fast) ** 0.5 if 0 < slow and fast < 10 else _USUAL_PACE
        shown, heard = exploration.pacing in ("target", "both"), exploration.pacing in ("tone", "both")
        return Pacing((start, end), max(abs(end[0] - start[0]) / pace, 0.1), time.monotonic(), shown, heard)
