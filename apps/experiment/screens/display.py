"""Display of a session on the screens of the participant and the experimenter."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from apps.experiment.design import Design, keys_of
from apps.experiment.engine.display import Display
from apps.experiment.screens.experimenter.blind import hidden
from apps.experiment.screens.messages import (
    Choice,
    Kind,
    Notice,
    Outcome,
    Pacing,
    Progress,
    SessionOutline,
    Show,
    StartBox,
)
from apps.experiment.screens.quality import Quality

if TYPE_CHECKING:
    from apps.experiment.engine.presenting import Reply
    from apps.experiment.engine.sequence import TrialSpec as Trial
    from apps.front_ends.front_end import FrontEnd

GO_ON = "space"
"""Key that turns pages and ends a break."""

_SURE_AFTER = 3
"""Number of trials after which the remaining time is estimated."""

_USUAL_PACE = 0.1
"""Speed of the target if the experiment has no speed limits [m/s]."""


class ScreenDisplay(Display):
    """Sends contents to the participant's screen, and the progress to the experimenter's.

    Parameters
    ----------
    design : Design
        Design of the experiment.
    participant : FrontEnd
        Screen of the participant.
    experimenter : FrontEnd or None
        Screen of the experimenter.
    code : str
        Code of the participant.
    session : int
        Session number of the participant.
    blocks : int
        Expected number of blocks.
    trials : int or None
        Expected number of trials, if known.
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
        self._texts = design.texts
        staircase = design.procedure.get("kind") == "staircase"
        self._plan = SessionOutline(
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
        self._quality = Quality()
        self._first: tuple[int, float] | None = None
        self._send(self._plan)

    # --- during a trial ---

    def park(self, plan: Trial, number: int) -> None:
        """Ask the participant to move to the start box, before interval `number` (from 0)."""
        words = self._texts.park if self._design.exploration.start else ""
        self._show(self._field("park", plan, number, words), f"start of interval {number + 1}", plan)

    def interval(self, plan: Trial, number: int) -> None:
        """Show interval `number` and mark its start with a tone."""
        show = self._field("interval", plan, number, "")
        keys = self._answers() if self._design.experiment.task == "adjustment" else ()
        eyes = self._design.exploration.eyes
        show = replace(show, tone=True, pacing=self._pacing(), dark=not eyes, keys=keys)
        self._show(show, f"interval {number + 1} of {len(plan.values)}", plan)

    def gap(self, plan: Trial, number: int) -> None:
        """Show that interval `number` is over."""
        self._show(self._field("gap", plan, number, ""), f"after interval {number + 1}", plan)

    def show_interval(self, ticks: int, late: int, gap: float, reasons: tuple[str, ...]) -> None:
        """Add an interval to the certificate on the experimenter's screen."""
        self._send(self._quality.with_interval(ticks, late, gap, bool(reasons)).certificate(self._design.trials))

    def prompt(self, plan: Trial) -> None:
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
        """Report the end of a trial to the experimenter."""
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
        self._send(outcome)
        self._progress = replace(self._progress, attempt=1)

    def feedback(self, correct: bool) -> None:
        """Show whether an answer was right."""
        sign: Literal["right", "wrong"] = "right" if correct else "wrong"
        words = self._texts.right if correct else self._texts.wrong
        self._participant.send(replace(self._base, kind="feedback", text=words, feedback=sign))

    # --- between trials ---

    def page(self, number: int, of: int, text: str) -> None:
        """Show a page of the instructions."""
        show = replace(self._base, kind="instructions", text=text, page=number, pages=of, keys=self._go_on())
        self._show(show, f"instructions, page {number} of {of}")

    def practice(self, text: str) -> None:
        """Announce the practice."""
        show = replace(self._base, kind="practice", title=self._texts.practice_title, text=text, keys=self._go_on())
        self._show(show, "before the practice")

    def rest(self, until: float, text: str) -> None:
        """Show a break that lasts at least until `until` [s, monotonic]."""
        title, keys = self._texts.rest_title, self._go_on()
        self._show(replace(self._base, kind="break", title=title, text=text, until=until, keys=keys), "break")

    def pause(self, by: str) -> None:
        """Show that the session is paused."""
        show = replace(self._base, kind="pause", title=self._texts.pause_title, text=self._texts.pause)
        self._show(show, f"paused by the {by}" if by else "paused")

    def announce_motion(self, seconds: float) -> None:
        """Announce that the device will move by itself for `seconds` [s] and must be released."""
        texts = self._texts
        words = texts.let_go.replace("{seconds}", f"{seconds:.0f}")
        show = replace(self._base, kind="pause", title=texts.let_go_title, text=words, keys=self._go_on())
        self._show(show, "before the device's own friction is measured")

    def measures(self, share: float) -> None:
        """Show the progress of the measurement, from 0 to 1."""
        show = replace(self._base, kind="pause", title=self._texts.let_go_title, share=share)
        self._participant.send(show)

    def measured(self, words: str) -> None:
        """Announce the end of the measurement, and send its result to the experimenter."""
        self._send(Notice(words))
        show = replace(self._base, kind="pause", title=self._texts.measured, keys=self._go_on())
        self._show(show, "the device's own friction was measured")

    def entry(self, text: str) -> None:
        """Show the digits of a number typed by the participant."""
        self._participant.send(self._question(text))

    def finish(self, text: str) -> None:
        """Show that the session is over."""
        show = replace(self._base, kind="end", title=self._texts.end_title, text=text, noise=False)
        self._show(show, "the session is over")

    def notice(self, words: str) -> None:
        """Show a notice to the experimenter."""
        self._send(Notice(words))

    # --- helpers ---

    def _send(self, message: Any) -> None:
        """Send a message to the experimenter's screen, if any.

        In blind mode, hidden values are removed.
        """
        if self._experimenter is not None:
            self._experimenter.send(hidden(message) if self._plan.blind else message)

    def _show(self, show: Show, phase: str, plan: Trial | None = None) -> None:
        """Update the participant's screen and the progress on the experimenter's screen."""
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
        self._send(self._progress)

    def _question(self, entry: str | None) -> Show:
        """Return the display that asks for an answer; `entry` is a partly typed number."""
        design = self._design
        keys = self._answers()
        if entry is not None:
            keys = (Choice("return", self._texts.answer_label("done"), self._texts.key("return")),)
        title = self._texts.question_text(design.experiment.task)
        return replace(self._base, kind="response", title=title, keys=keys, entry=entry)

    def _answers(self) -> tuple[Choice, ...]:
        """Return the keys and buttons for the answers, with the first key of each answer."""
        found: dict[str, str] = {}
        for key, answer in keys_of(self._design).items():
            found.setdefault(answer, key)
        texts, buttons = self._texts, self._design.response.buttons.items()
        keys = [Choice(key, texts.answer_label(answer), texts.key(key)) for answer, key in found.items()]
        pushed = [(answer, number, texts.button.replace("{number}", str(number))) for answer, number in buttons]
        return (*keys, *(Choice(f"button {number}", texts.answer_label(answer), cap) for answer, number, cap in pushed))

    def _go_on(self) -> tuple[Choice, ...]:
        """Return the key that turns a page."""
        return (Choice(GO_ON, self._texts.go_on, self._texts.key(GO_ON)),)

    def _count(self, plan: Trial) -> None:
        """Update the progress bar and the estimate of the remaining time.

        Practice trials do not count.
        """
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
            hold=self._texts.hold if self._design.session.limits.dead_man == "key" else "",
            interval=number + 1,
            of=len(plan.values),
        )

    def _pacing(self) -> Pacing | None:
        """Return the pacing between the start box and its mirror image.

        The speed is the geometric mean of the speed limits.
        """
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
