"""Session of a participant: blocks of trials, each in one servo session, recorded in the journal.

The journal is authoritative. An interrupted session is resumed by replaying its answers into a new trial sequence.
Without a clock, the interrupted block is run again from its beginning and must produce the same answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from apps.experiment.design import Design
from apps.experiment.engine.display import Display
from apps.experiment.engine.presenting import Outcome, Presenter, Respondent
from apps.experiment.engine.records import require_same, start_of
from apps.experiment.engine.sequence import Participant, TrialSequence, TrialSpec
from apps.experiment.engine.stage import Script, Stage
from apps.experiment.friction.session import Hands, NullHandleRelease, with_friction
from apps.experiment.journal import Journal, replay
from apps.experiment.journal.state import apply_record
from apps.experiment.trial import Answer
from apps.settings.config import SessionConfig
from haptics.errors import DeviceFault, RecordingError

LEAST_REPEATED = 5
"""Number of repeated trials below which their share is not checked."""


class TooManyRepeated(DeviceFault):
    """More trials were repeated than the experiment allows."""


FEEDBACK = 0.7
"""Display time of the feedback [s]."""

_WAITING = 20
"""Polling interval of a pause [ticks]."""

PAUSED, REDONE, ABORTED = "pause", "redo", "session ended"
"""Reasons for the interruption of a trial by a user."""


class Ended(Exception):
    """The session was ended by a user."""


class RunningStage(Stage, Protocol):
    """Stage that can run a script.

    Attributes
    ----------
    folder : Path
        Folder of the recording.
    """

    folder: Path

    def run(self, script: Script[None]) -> None:
        """Run a script to completion and close the recording."""
        ...


StageMaker = Callable[[SessionConfig, Any, Callable[..., Any]], RunningStage]
"""Factory of the stage of a block, given settings, recording folder and journal writer."""


class ExperimentSession:
    """Session of a participant.

    Parameters
    ----------
    design : Design
        Design of the experiment.
    who : Participant
        Participant and session number.
    journal : Journal
        Journal of the session, new or resumed.
    respondent : callable
        Factory of the respondent, from the trial sequence.
    stage : callable
        Factory of the stage of a block.
    display : Display
        Display of the session.
    again : bool
        Whether an interrupted block is repeated from its beginning, which requires a stage without a clock.
    before : callable, optional
        Function called before every block with this object and the first trial, for instructions and breaks.
    hands : Hands, optional
        Interface that asks the participant to release the handle for the friction measurement.
    """

    def __init__(
        self,
        design: Design,
        who: Participant,
        journal: Journal,
        *,
        respondent: Callable[[TrialSequence], Respondent],
        stage: StageMaker,
        display: Display,
        again: bool,
        before: Callable[[ExperimentSession, TrialSpec], None] = lambda session, plan: None,
        hands: Hands | None = None,
    ) -> None:
        self.design, self.journal, self.display = design, journal, display
        self.state = replay(journal.records)
        self._who, self._stage, self._again, self._before = who, stage, again, before
        self._expected: deque[dict[str, Any]] = deque()
        self._complete()
        self.sequence = TrialSequence(design, who)
        self._catch_up()
        self._respondent = respondent(self.sequence)
        self._hands = hands or NullHandleRelease()

    def _complete(self) -> None:
        """Complete an interrupted trial that was answered, and apply the resume policy ``block``.

        The disturbances of such a trial were checked before its answer. The policy marks the answered trials of an
        unfinished block for repetition.
        """
        cut = self.state.interrupted
        if cut is not None and cut.response is not None:
            self._append("trial_end", trial=cut.trial, attempt=cut.number, outcome="ok", reasons=[])
        block = max(self.state.blocks, default=0)
        if self.design.resume.policy == "block" and not self._is_over(block):
            for trial, one in self.state.counted_attempts.items():
                if one.start["block"] == block:
                    self._append("event", name="redo", trial=trial, why="the block begins again")

    def _catch_up(self) -> None:
        """Replay the recorded answers into the sequence.

        The records that a repeated block must reproduce are queued.
        """
        answered = self.state.counted_attempts
        last = self.state.attempts[-1].start["block"] if self.state.attempts else 0
        while (plan := self.sequence.next()) is not None and plan.trial in answered:
            if self._again and plan.block == last and not self._is_over(last):
                break
            require_same(plan, answered[plan.trial].start)
            response = answered[plan.trial].response or {}
            self.sequence.add_answer(plan, response.get("response", 0.0), response.get("correct"))
        if plan is not None and self._again:
            for attempt in self.state.attempts:
                if attempt.start["block"] == plan.block and attempt.end is not None and not attempt.redone:
                    self._expected += [one for one in (attempt.start, attempt.response, attempt.end) if one]

    def _is_over(self, block: int) -> bool:
        """Return True if an event records the end of a block."""
        return any(one["name"] == "block-end" and one.get("block") == block for one in self.state.events)

    def run(self) -> str:
        """Run the session.

        Return the reason for its end, which is also written to the journal.

        Raises
        ------
        HapticError
            The error that stopped the session, which can be resumed.
        """
        try:
            if self.sequence.next() is not None:
                self.design = with_friction(self.design, self.journal, self._hands, self.event, live=not self._again)
            while (plan := self.sequence.next()) is not None:
                self._before(self, plan)
                self._block(plan)
            reason = "practice not passed" if self.sequence.failed else "completed"
        except Ended:
            reason = "ended by a person"
        counted = sum(one.start["kind"] != "practice" for one in self.state.counted_attempts.values())
        self.journal.append("end", reason=reason, trials=counted, repeated=self.state.repeated)
        return reason

    def _block(self, plan: TrialSpec) -> None:
        attempt = self.state.blocks.get(plan.block, 0) + 1
        config = self.design.config(plan.condition, plan.condition.reference)
        stage = self._stage(config, self.journal.place.recording(plan.block, attempt), self._write)
        relative = stage.folder.relative_to(self.journal.place.folder).as_posix()
        conditions = self.sequence.conditions_of(plan)
        self._append("block_start", block=plan.block, conditions=conditions, recording=relative, attempt=attempt)
        stage.run(self._trials(stage, plan.block))
        if self.display.aborted:
            raise Ended
        following = self.sequence.next()
        if not self._is_over(plan.block) and (following is None or following.block > plan.block):
            self._append("event", name="block-end", block=plan.block)

    def event(self, name: str, **fields: Any) -> None:
        """Write an event to the journal."""
        self._append("event", name=name, **fields)

    def add_note(self, text: str) -> None:
        """Write a note of the experimenter to the journal."""
        self._append("note", text=text, by="experimenter")

    def _trials(self, stage: Stage, block: int) -> Script[None]:
        presenter = Presenter(self.design, stage, self.display)
        while (plan := self.sequence.next()) is not None and plan.block == block and not self.display.aborted:
            yield from self._trial(presenter, stage, plan)
            yield from self._wishes(stage)

    def _trial(self, presenter: Presenter, stage: Stage, plan: TrialSpec) -> Script[None]:
        attempt = self._next_attempt(plan)
        stage.write_record("trial_start", attempt=attempt, **start_of(plan, self.design, attempt))
        outcome = yield from self._run_script(presenter.present(plan, attempt, self._respondent), stage)
        correct = self._record_answer(stage, plan, attempt, outcome)
        result = "aborted" if ABORTED in outcome.reasons else "repeat" if outcome.reasons else "ok"
        stage.write_record(
            "trial_end", trial=plan.trial, attempt=attempt, outcome=result, reasons=list(outcome.reasons)
        )
        self.display.ended(plan, attempt, correct, outcome.reasons, outcome.reply)
        if outcome.reply is not None and not outcome.reasons:
            self.sequence.add_answer(plan, outcome.reply.response, correct)
            yield from self._feedback(stage, plan, correct)
        else:
            self._require_few_repeated()

    def _run_script(self, script: Script[Outcome], stage: Stage) -> Script[Outcome]:
        """Run the script of a trial until it ends or a user interrupts it."""
        while True:
            try:
                yield next(script)
            except StopIteration as end:
                found: Outcome = end.value
                return found
            display = self.display
            if display.paused or display.aborted or display.redo:
                script.close()
                stage.gate(True)
                return Outcome(None, (ABORTED if display.aborted else REDONE if display.redo else PAUSED,))

    def _wishes(self, stage: Stage) -> Script[None]:
        """Wait during a pause, and rebuild the trial sequence if the last answered trial should be repeated."""
        if self.display.waits():
            stage.write_record("event", name="pause")
            self.display.pause("")
            while self.display.waits():
                yield _WAITING
            stage.write_record("event", name="go on")
        if self.display.redo:
            self.display.redo = False
            answered = self.state.counted_attempts
            if answered:
                stage.write_record("event", name="redo", trial=max(answered))
                self.sequence = TrialSequence(self.design, self._who)
                self._catch_up()

    def _feedback(self, stage: Stage, plan: TrialSpec, correct: bool | None) -> Script[None]:
        """Show whether the answer was right, if the experiment gives feedback."""
        wanted = self.design.practice.feedback if plan.kind == "practice" else self.design.trials.feedback
        if wanted and correct is not None and self.display.present:
            self.display.feedback(correct)
            yield round(FEEDBACK / stage.period)

    def _next_attempt(self, plan: TrialSpec) -> int:
        if self._expected:
            return int(self._expected[0]["attempt"])
        return self.state.attempts_at(plan.trial) + 1

    def _record_answer(self, stage: Stage, plan: TrialSpec, attempt: int, outcome: Outcome) -> bool | None:
        """Record the answer.

        Return whether it was right.
        """
        reply = outcome.reply
        if reply is None:
            return None
        correct = Answer(reply.response, reply.reaction_time).correct(plan.view(self.design))
        stage.write_record(
            "response",
            trial=plan.trial,
            attempt=attempt,
            response=reply.response,
            correct=correct,
            reaction_time_s=reply.reaction_time,
            tick=reply.tick,
            source=reply.source,
            key=reply.key,
        )
        return correct

    def _require_few_repeated(self) -> None:
        """Raise if too many trials were repeated, because of the computer, the hand or the design."""
        ended = [one.end["reasons"] for one in self.state.attempts if one.end and one.end["outcome"] == "repeat"]
        begun, repeated = len(self.state.attempts), sum(not {PAUSED, REDONE} & set(reasons) for reasons in ended)
        if repeated > max(self.design.trials.most_repeated * begun, LEAST_REPEATED):
            reasons = sorted({word for one in ended for word in one})
            raise TooManyRepeated(
                f"{repeated} of {begun} trials had to be repeated ({', '.join(reasons)}), more than "
                f"trials.most_repeated = {self.design.trials.most_repeated:g}: the session was stopped. Check the "
                f"machine with 'haptics doctor', then go on with: haptics experiment resume {self.journal.place.folder}"
            )

    def _write(self, kind: str, /, **fields: Any) -> None:
        """Write a record of a script, or compare it with the journal if the block is being repeated."""
        if not self._expected:
            self._append(kind, **fields)
            return
        found = self._expected.popleft()
        different = [name for name, value in fields.items() if name != "tick" and found.get(name) != value]
        if found["record"] != kind or different:
            raise RecordingError(
                f"{self.journal.place.journal}: record {found['number']} ({found['record']} of trial {found['trial']}) "
                f"does not come out again ({', '.join(different) or kind}): the file of the experiment, the program or "
                "the journal is not what it was. Nothing was changed."
            )

    def _append(self, kind: str, /, **fields: Any) -> None:
        apply_record(self.state, self.journal.append(kind, **fields))
