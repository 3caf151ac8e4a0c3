"""Display of a session on the screens of the participant and the experimenter."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

from apps.experiment.design import Design, keys_of
from apps.experiment.screens.messages import (
    Certificate,
    Choice,
    Figure,
    Kind,
    Notice,
    Outcome,
    Pacing,
    Progress,
    SessionOutline,
    Show,
    StartBox,
    hidden,
)
from apps.experiment.sequence import TrialSpec
from apps.experiment.settings import QUESTIONS
from apps.experiment.trial import Answer
from apps.front_ends.front_end import FrontEnd
from apps.shared.display import grouped

GO_ON = "space"
"""Key that turns pages and ends a break."""

_SURE_AFTER = 3
"""Number of trials after which the remaining time is estimated."""

_USUAL_PACE = 0.1
"""Speed of the target if the experiment has no speed limits [m/s]."""


class Display:
    """Sends contents to the participant's screen, and the progress to the experimenter's.

    Parameters
    ----------
    design : Design
        Design of the experiment.
    participant : FrontEnd or None
        Screen of the participant. A session without a clock has no screens.
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
    practised : collection of int
        Trials that were practice before the session was resumed.

    Attributes
    ----------
    present : bool
        Whether there is a viewer, for whom the session takes time.
    paused, aborted, redo : bool
        Requests to pause, to abort the session, and to repeat the last trial.
    """

    def __init__(
        self,
        design: Design,
        participant: FrontEnd | None = None,
        experimenter: FrontEnd | None = None,
        *,
        code: str = "",
        session: int = 1,
        blocks: int = 1,
        trials: int | None = None,
        practised: Collection[int] = (),
    ) -> None:
        self.present = participant is not None
        self.paused = self.aborted = self.redo = False
        self._design, self._participant, self._experimenter = design, participant, experimenter
        self._texts, self._expected = design.texts, trials
        self._progress = Progress("before the first trial", of=trials)
        self._base = Show("pause", noise=design.screen.noise_level > 0)
        self._practised = set(practised)
        self._intervals = self._disturbed = self._ticks = self._late = 0
        self._gap = 0.0
        self._first: tuple[int, float] | None = None
        outline = SessionOutline(
            design.experiment.title or design.experiment.name,
            code,
            session,
            blocks,
            trials,
            design.axis,
            "N" if design.axis.endswith("force") else "",
            design.experiment.blind,
            staircase=design.procedure.get("kind") == "staircase",
        )
        self._inform(outline)

    # --- during a trial ---

    def park(self, plan: TrialSpec, number: int) -> None:
        """Ask the participant to move to the start box, before interval `number` (from 0)."""
        words = self._texts.park if self._design.exploration.start else ""
        self._show(f"start of interval {number + 1}", plan, **self._field("park", plan, number), text=words)

    def interval(self, plan: TrialSpec, number: int) -> None:
        """Show interval `number` and mark its start with a tone."""
        contents = self._field("interval", plan, number)
        contents |= {"tone": True, "pacing": self._pacing(), "dark": not self._design.exploration.eyes}
        contents["keys"] = self._answers() if self._design.experiment.task == "adjustment" else ()
        self._show(f"interval {number + 1} of {len(plan.values)}", plan, **contents)

    def gap(self, plan: TrialSpec, number: int) -> None:
        """Show that interval `number` is over."""
        self._show(f"after interval {number + 1}", plan, **self._field("gap", plan, number))

    def show_interval(self, ticks: int, late: int, gap: float, reasons: tuple[str, ...]) -> None:
        """Add an interval to the certificate on the experimenter's screen.

        Parameters
        ----------
        ticks, late : int
            Number of ticks, and number of late ticks.
        gap : float
            Longest time between two ticks [s].
        reasons : tuple of str
            Reasons for a repetition, empty if the interval counts.
        """
        self._intervals, self._disturbed = self._intervals + 1, self._disturbed + bool(reasons)
        self._ticks, self._late, self._gap = self._ticks + ticks, self._late + late, max(self._gap, gap)
        allowed = self._design.trials
        disturbed, late_share = self._disturbed / self._intervals, self._late / max(self._ticks, 1)
        measured = (
            ("repeated", f"{100 * disturbed:.2g} %", disturbed <= allowed.most_repeated),
            ("late ticks in intervals", f"{100 * late_share:.2g} %", late_share <= allowed.late_ticks),
            ("longest gap", f"{1e3 * self._gap:.2g} ms", self._gap <= allowed.longest_gap),
        )
        figures = [Figure(name, value, "good" if good else "doubtful") for name, value, good in measured]
        self._inform(Certificate((Figure("intervals", grouped(self._intervals)), *figures)))

    def prompt(self, plan: TrialSpec) -> None:
        """Ask for the answer."""
        question = self._question(None if self._design.task.responses else "")
        self._show("waiting for the answer", plan, **question, of=len(plan.values))

    def entry(self, text: str) -> None:
        """Show the digits of a number typed by the participant."""
        self._send(**self._question(text))

    def ended(
        self,
        plan: TrialSpec,
        attempt: int,
        correct: bool | None,
        reasons: tuple[str, ...],
        answer: Answer | None = None,
    ) -> None:
        """Report the end of a trial to the experimenter."""
        response, time_of_reaction = ("", None) if answer is None else (str(answer.response), answer.reaction_time)
        about = plan.kind, plan.condition.name, plan.label, plan.level
        result: Literal["ok", "repeat"] = "repeat" if reasons else "ok"
        self._inform(Outcome(plan.trial, result, reasons, *about, response, correct, time_of_reaction, attempt))

    def feedback(self, correct: bool) -> None:
        """Show whether an answer was right."""
        words = self._texts.right if correct else self._texts.wrong
        self._send(kind="feedback", text=words, feedback="right" if correct else "wrong")

    # --- between trials ---

    def page(self, number: int, of: int, text: str) -> None:
        """Show a page of the instructions, `number` from 1."""
        contents: dict[str, Any] = {"text": text, "page": number, "pages": of, "keys": self._go_on()}
        self._show(f"instructions, page {number} of {of}", kind="instructions", **contents)

    def practice(self, text: str) -> None:
        """Announce the practice."""
        title, keys = self._texts.practice_title, self._go_on()
        self._show("before the practice", kind="practice", title=title, text=text, keys=keys)

    def form(self, name: str, contents: dict[str, Any]) -> None:
        """Show an item of a form (`FormDialog.contents`). The answers are not sent to the experimenter."""
        phase = f"{name}, page {contents['page']} of {contents['pages']}"
        self._show(phase, **contents)

    def rest(self, until: float, text: str) -> None:
        """Show a break that lasts at least until `until` [s, monotonic]."""
        title, keys = self._texts.rest_title, self._go_on()
        self._show("break", kind="break", title=title, text=text, until=until, keys=keys)

    def request_pause(self, paused: bool) -> None:
        """Request a pause, or its end, and report it to the experimenter. On a page it begins with the next block."""
        self.paused = paused
        self._progress = replace(self._progress, paused=paused)
        self._inform(self._progress)

    def pause(self) -> None:
        """Show that the session is paused."""
        self._show("paused", kind="pause", title=self._texts.pause_title, text=self._texts.pause)

    def announce_motion(self, seconds: float) -> None:
        """Announce that the device will move by itself for `seconds` [s] and must be released."""
        title, words = self._texts.let_go_title, self._texts.let_go.replace("{seconds}", f"{seconds:.0f}")
        phase = "before the friction of the device is measured"
        self._show(phase, kind="pause", title=title, text=words, keys=self._go_on())

    def measures(self, share: float) -> None:
        """Show the progress of the measurement, from 0 to 1."""
        self._send(kind="pause", title=self._texts.let_go_title, share=share)

    def measured(self, words: str) -> None:
        """Announce the end of the measurement, and send its result to the experimenter."""
        self.notice(words)
        phase = "the device's own friction was measured"
        self._show(phase, kind="pause", title=self._texts.measured, keys=self._go_on())

    def finish(self, text: str) -> None:
        """Show that the session is over."""
        self._show("the session is over", kind="end", title=self._texts.end_title, text=text, noise=False)

    def notice(self, words: str) -> None:
        """Show a notice to the experimenter."""
        self._inform(Notice(words))

    # --- helpers ---

    def _send(self, **contents: Any) -> None:
        """Update the participant's screen, if any."""
        if self._participant is not None:
            self._participant.send(replace(self._base, **contents))

    def _inform(self, message: Any) -> None:
        """Send a message to the experimenter's screen, if any.

        In blind mode, hidden values are removed.
        """
        if self._experimenter is not None:
            self._experimenter.send(hidden(message) if self._design.experiment.blind else message)

    def _show(self, phase: str, plan: TrialSpec | None = None, **contents: Any) -> None:
        """Update the participant's screen and the progress on the experimenter's screen."""
        progress = replace(self._progress, phase=phase, paused=self.paused)
        if plan is not None:
            if plan.kind == "practice":
                self._practised.add(plan.trial)
            elif self._expected is not None:
                # update the progress bar and the estimate of the remaining time
                now, done = time.monotonic(), plan.trial - 1 - len(self._practised)
                first, begun = self._first = self._first or (done, now)
                pace = (now - begun) / (done - first) if done - first >= _SURE_AFTER else None
                remaining = None if pace is None else max(self._expected - done, 0) * pace
                progress = replace(progress, of=self._expected + len(self._practised), remaining=remaining)
                self._base = replace(self._base, share=min(done / self._expected, 1.0))
            about = {name: getattr(plan, name) for name in ("trial", "block", "kind", "level")}
            progress = replace(progress, **about, condition=plan.condition.name, track=plan.label)
        self._progress = progress
        self._send(**contents)
        self._inform(progress)

    def _question(self, entry: str | None) -> dict[str, Any]:
        """Return the contents that ask for an answer; `entry` is a partly typed number."""
        keys = self._answers()
        if entry is not None:
            keys = (Choice("return", self._texts.answer_label("done"), self._texts.key("return")),)
        title = self._texts.question or QUESTIONS[self._design.experiment.task]
        return {"kind": "response", "title": title, "keys": keys, "entry": entry}

    def _answers(self) -> tuple[Choice, ...]:
        """Return the keys and buttons for the answers, with the first key of each answer."""
        first: dict[str, str] = {}
        for key, answer in keys_of(self._design).items():
            first.setdefault(answer, key)
        texts = self._texts
        keys = [Choice(key, texts.answer_label(answer), texts.key(key)) for answer, key in first.items()]
        for answer, number in self._design.response.buttons.items():
            cap = texts.button.replace("{number}", str(number))
            keys.append(Choice(f"button {number}", texts.answer_label(answer), cap))
        return tuple(keys)

    def _go_on(self) -> tuple[Choice, ...]:
        """Return the key that turns a page."""
        return (Choice(GO_ON, self._texts.go_on, self._texts.key(GO_ON)),)

    def _field(self, kind: Kind, plan: TrialSpec, number: int) -> dict[str, Any]:
        """Return the contents of the workspace before, during or after interval `number` (from 0)."""
        exploration = self._design.exploration
        return {
            "kind": kind,
            "field": True,
            "cursor": exploration.cursor or kind == "park",
            "start": StartBox(exploration.start, exploration.reach) if exploration.start else None,
            "hold": self._texts.hold if self._design.session.limits.dead_man == "key" else "",
            "interval": number + 1,
            "of": len(plan.values),
        }

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
