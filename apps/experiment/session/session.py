"""Session of a participant: blocks of trials, each in one servo session, recorded in the journal.

The journal is authoritative. An interrupted session is resumed by replaying its answers into a new trial sequence.
Without a clock, the interrupted block is run again from its beginning and must produce the same answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from apps.experiment.design import Design
from apps.experiment.forms.forms import (
    AGREED,
    CONSENT,
    FORM_ANSWER,
    FORM_COMPLETED,
    Form,
    ItemSettings,
    Value,
    due_forms,
    simulated_answers,
    text_sha256,
)
from apps.experiment.journal.journal import Journal, apply_record, replay
from apps.experiment.journal.schema import BLOCK_REPEATED, OWN_FRICTION, THRESHOLDS
from apps.experiment.procedures.methods import child
from apps.experiment.screens.display import Display
from apps.experiment.sequence import Participant, TrialSequence, TrialSpec
from apps.experiment.session.presentation import Presenter, Respondent, Result, Script
from apps.settings.config import SessionConfig
from haptics.errors import ConfigurationError, DeviceFault, RecordingError
from haptics.files import sha256_of

if TYPE_CHECKING:
    from apps.experiment.session.presentation import Stage
    from apps.experiment.triggers.session import Triggers

LEAST_REPEATED = 5
"""Number of repeated trials below which their share is not checked."""

FEEDBACK = 0.7
"""Display time of the feedback [s]."""

_FORMS = 50_000
"""Seed number of the first form, used in place of a trial number for its order of items and simulated answers."""

_ARRANGED, _ANSWERED = 1, 2
"""Purposes of the random numbers of a form."""

_WAITING = 20
"""Polling interval of a pause [ticks]."""

ENDED_BY_A_PERSON = "ended by a person"
"""Reason of the end of a session that can be resumed."""

PAUSED, REDONE, ABORTED = "pause", "redo", "session ended"
"""Reasons for the interruption of a trial by a user."""


class TooManyRepeated(DeviceFault):
    """More trials were repeated than the experiment allows."""


class Ended(Exception):
    """The session was ended by a user."""


class ConsentRefused(Ended):
    """The participant did not consent."""


class Hands(Protocol):
    """User interface of the friction measurement (`apps.experiment.session.live.Screens`)."""

    def free(self, seconds: float) -> None:
        """Ask the participant to release the handle for `seconds` [s], and wait for the confirmation."""

    def progress(self, seconds: float) -> None:
        """Report the elapsed time [s]. Raise to stop the measurement."""

    def report_result(self, words: str) -> None:
        """Report the result."""


class Questioner(Protocol):
    """User interface of forms (`apps.experiment.session.live.Screens`)."""

    def fill(
        self,
        form: Form,
        items: Sequence[ItemSettings],
        answers: dict[str, Value],
        keep: Callable[[str, Value], None],
    ) -> dict[str, Value]:
        """Show a form with earlier answers until it is completed, and return the answers."""


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
        Factory of the stage of a block, given settings, recording folder and journal writer.
    display : Display
        Display of the session.
    again : bool
        Whether an interrupted block is repeated from its beginning, which requires a stage without a clock.
    before : callable, optional
        Function called before every block with this object and the first trial, for instructions and breaks.
    hands : Hands, optional
        Interface that asks the participant to release the handle for the friction measurement. A simulated observer
        needs none.
    questioner : Questioner, optional
        Interface that shows the forms. A simulated observer without screens needs none.
    triggers : Triggers, optional
        Codes for other recorders.
    """

    def __init__(
        self,
        design: Design,
        who: Participant,
        journal: Journal,
        *,
        respondent: Callable[[TrialSequence], Respondent],
        stage: Callable[[SessionConfig, Path, Callable[..., Any]], Stage],
        display: Display,
        again: bool,
        before: Callable[[ExperimentSession, TrialSpec], None] = lambda session, plan: None,
        hands: Hands | None = None,
        questioner: Questioner | None = None,
        triggers: Triggers | None = None,
    ) -> None:
        self.design, self.journal, self.display = design, journal, display
        self._triggers = triggers
        self.state = replay(journal.records)
        self._earlier = len(self.state.attempts)
        self._who, self._stage, self._again, self._before, self._hands = who, stage, again, before, hands
        self._questioner = questioner
        self._expected: deque[dict[str, Any]] = deque()
        # Complete an interrupted trial that was answered. Its disturbances were checked before its answer.
        cut = self.state.interrupted
        if cut is not None and cut.response is not None:
            self._append("trial_end", trial=cut.trial, attempt=cut.number, outcome="ok", reasons=[])
        block = max(self.state.blocks, default=0)
        if block and not self._is_over(block) and (design.resume.policy == "block" or not again):
            following = self._replayed(again=False).next()
            if following is not None and following.block <= block:
                if design.resume.policy == "block":
                    for trial, one in self.state.counted_attempts.items():
                        if one.start["block"] == block:
                            self.event("redo", trial=trial, why=BLOCK_REPEATED)
            elif not again:  # interrupted after its last answer
                self.event("block-end", block=block)
        self.sequence = self._replayed(again)
        self._respondent = respondent(self.sequence)

    def _replayed(self, again: bool) -> TrialSequence:
        """Return a new sequence after the recorded answers.

        If the interrupted block is run `again`, it begins with this block, and the records that must be reproduced are
        queued.
        """
        sequence, answered = TrialSequence(self.design, self._who), self.state.counted_attempts
        last = self.state.attempts[-1].start["block"] if self.state.attempts else 0
        while (plan := sequence.next()) is not None and plan.trial in answered:
            if again and plan.block == last and not self._is_over(last):
                break
            start, response = answered[plan.trial].start, answered[plan.trial].response or {}
            now = plan.condition.name, plan.level, list(plan.values), plan.kind
            if now != (start["condition"], start["level"], start["values"], start["kind"]):
                raise RecordingError(
                    f"trial {plan.trial} of the journal was {start['kind']} at {start['level']} in "
                    f"{start['condition']!r}, and would now be {plan.kind} at {plan.level} in {plan.condition.name!r}: "
                    "the file of the experiment or the program has changed."
                )
            sequence.add_answer(plan, response.get("response", 0.0), response.get("correct"))
        if plan is not None and again:
            for attempt in self.state.attempts:
                if attempt.start["block"] == plan.block and attempt.end is not None and not attempt.redone:
                    self._expected += [one for one in (attempt.start, attempt.response, attempt.end) if one]
        return sequence

    def _is_over(self, block: int) -> bool:
        """Return True if an event records the end of a block, and no trial was withdrawn and run again since then."""
        ended = [one["number"] for one in self.state.events if one["name"] == "block-end" and one.get("block") == block]
        begun = [one.start["number"] for one in self.state.attempts if one.start["block"] == block]
        return bool(ended) and max(ended) > max(begun, default=0)

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
                self._ask_consent()
                self._ask("before")
                self._compensate_friction()
            while (plan := self.sequence.next()) is not None:
                self._ask("between")
                self._before(self, plan)
                if self.display.redo:  # during the pages before the block
                    self._withdraw_last(self.event)
                    continue
                self._block(plan)
            reason = "practice not passed" if self.sequence.failed else "completed"
            if not self.sequence.failed:
                self._ask("after")
        except ConsentRefused:
            reason = "consent refused"
        except Ended:
            reason = ENDED_BY_A_PERSON
        if self._triggers is not None:
            self._triggers.finish(self.event)
        if self.design.schedule.carry_over:
            self.event(THRESHOLDS, tracks=self.sequence.thresholds())
        self.journal.append("end", reason=reason, trials=self.state.test_trials, repeated=self.state.repeated)
        return reason

    def _compensate_friction(self) -> None:
        """Compensate the friction that is measured now, if the experiment requires it.

        A resumed session continues with its original friction.

        Raises
        ------
        HapticError
            If the friction cannot be measured, or the measured file is missing or changed.
        """
        design, place, hands = self.design, self.journal.place, self._hands
        if not design.friction.measure_each_session:
            return
        from apps.experiment.friction import duration, facts_of, measure

        config, motions = design.session, design.friction.motions
        measured = next((one for one in reversed(self.state.events) if one["name"] == OWN_FRICTION), None)
        if measured is None:
            seconds = duration(config, motions)
            if hands is not None:
                hands.free(seconds)
            recording, number = place.folder / "friction", 1
            while recording.exists():  # of an interrupted measurement
                number += 1
                recording = place.folder / f"friction_{number}"
            progress = hands.progress if hands is not None else lambda seconds: None
            file = measure(config, motions, recording, place.friction, live=not self._again, progress=progress)
            facts = facts_of(config, file, place.friction, recording.name)
            self.event(OWN_FRICTION, **facts)
            if hands is not None:
                hands.report_result(str(facts["words"]))
        elif not place.friction.is_file() or sha256_of(place.friction) != measured["sha256"]:
            raise RecordingError(
                f"{place.friction} is not the friction that was measured for this session; it was changed."
            )
        self.design = design.with_friction_file(place.friction)

    # --- forms ---

    def _ask_consent(self) -> None:
        """Show the consent page, unless the participant has consented before an interruption.

        Raises
        ------
        ConsentRefused
            If the participant does not consent.
        """
        form, consent = self.design.consent_form, self.design.consent
        given = next((one for one in reversed(self.state.events) if one["name"] == CONSENT), None)
        if form is None or given is not None:
            if given is not None and given.get("agreed") is not True:
                raise ConsentRefused
            return
        answers = self._fill(form, 0)
        agreed = answers[AGREED] == "yes"
        facts: dict[str, Any] = {"version": consent.version, "date": consent.date, "agreed": agreed}
        if consent.sharing:
            facts["sharing"] = answers.get("sharing") == "yes"
        language = self.design.experiment.language
        self.event(CONSENT, **facts, language=language, text_sha256=text_sha256(form))
        if not agreed:
            raise ConsentRefused

    def _ask(self, when: str) -> None:
        """Show the forms that are due and have not been completed before an interruption."""
        tested = {one.start["block"] for one in self.state.counted_attempts.values() if one.start["kind"] != "practice"}
        blocks = len([block for block in tested if self._is_over(block)])
        if when == "between" and (not blocks or not self._is_over(max(self.state.blocks, default=0))):
            return
        last = 0 if when == "before" else blocks
        for form in due_forms(self.design.forms, when, blocks):
            found = [one for one in self.state.events if one["name"] == FORM_COMPLETED and one.get("form") == form.name]
            if any(one.get("after_blocks") == last for one in found):
                continue
            answers = self._fill(form, last)
            given = {item.name: answers.get(item.name) for item in form.asked}
            self.event(FORM_COMPLETED, form=form.name, after_blocks=last, answers=given, scores=form.score(given))

    def _fill(self, form: Form, blocks: int) -> dict[str, Value]:
        """Return the answers to a form; confirmed ones are written to the journal at once."""
        number = self.design.forms.index(form) if form in self.design.forms else len(self.design.forms)
        seed = self._who.seed_of(blocks, _FORMS + number)
        if self.journal.records[0]["observer"] is not None:
            answers = simulated_answers(form, child(seed, _ANSWERED))
            if self._questioner is None:
                return answers
        else:
            answers = {
                str(one.get("item")): one.get("value")
                for one in self.state.events
                if one["name"] == FORM_ANSWER and (one.get("form"), one.get("after_blocks")) == (form.name, blocks)
            }
        if self._questioner is None:
            raise ConfigurationError(f"forms.name = {form.name!r}: a form needs the participant's screen.")
        items = form.arranged(child(seed, _ARRANGED))
        return self._questioner.fill(
            form,
            items,
            answers,
            lambda item, value: self.event(FORM_ANSWER, form=form.name, after_blocks=blocks, item=item, value=value),
        )

    def event(self, name: str, **fields: Any) -> None:
        """Write an event to the journal."""
        self._append("event", name=name, **fields)

    def add_note(self, text: str) -> None:
        """Write a note of the experimenter to the journal."""
        self._append("note", text=text, by="experimenter")

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
            self.event("block-end", block=plan.block)

    def _trials(self, stage: Stage, block: int) -> Script[None]:
        presenter = Presenter(self.design, stage, self.display)
        yield from self._handle_requests(stage)  # of the pages before the block
        while (plan := self.sequence.next()) is not None and plan.block == block and not self.display.aborted:
            yield from self._trial(presenter, stage, plan)
            yield from self._handle_requests(stage)

    def _trial(self, presenter: Presenter, stage: Stage, plan: TrialSpec) -> Script[None]:
        attempt = int(self._expected[0]["attempt"]) if self._expected else self.state.attempts_at(plan.trial) + 1
        markers, triggers, trace = plan.markers(attempt), self._triggers, stage.trace
        between = markers[0] - markers[0] % 10
        if triggers is not None:
            triggers.send("trial", int(trace.slots["tick"][(trace.count - 1) % len(trace.slots)]), between)
        stage.write_record(
            "trial_start",
            attempt=attempt,
            trial=plan.trial,
            block=plan.block,
            kind=plan.kind,
            condition=plan.condition.name,
            track=plan.label,
            reference=plan.condition.reference,
            level=plan.level,
            comparison_interval=plan.comparison,
            values=list(plan.values),
            axis=self.design.axis,
            markers=list(markers),
        )
        answer, reasons = yield from self._run_script(
            presenter.present(plan, attempt, self._respondent), stage, between
        )
        correct = None if answer is None else answer.correct(plan.view(self.design))
        if answer is not None:
            if triggers is not None and answer.tick is not None:
                triggers.send("answer", answer.tick, between, answer.response)
            stage.write_record(
                "response",
                trial=plan.trial,
                attempt=attempt,
                response=answer.response,
                correct=correct,
                reaction_time_s=answer.reaction_time,
                tick=answer.tick,
                source=answer.source,
                key=answer.key,
            )
        result = "aborted" if ABORTED in reasons else "repeat" if reasons else "ok"
        stage.write_record("trial_end", trial=plan.trial, attempt=attempt, outcome=result, reasons=list(reasons))
        if triggers is not None:
            triggers.collect(self.event)
        self.display.ended(plan, attempt, correct, reasons, answer)
        if answer is None or reasons:
            self._require_few_repeated()
            return
        self.sequence.add_answer(plan, answer.response, correct)
        wanted = self.design.practice.feedback if plan.kind == "practice" else self.design.trials.feedback
        if wanted and correct is not None and self.display.present:
            self.display.feedback(correct)
            yield round(FEEDBACK / stage.period)

    def _run_script(self, script: Script[Result], stage: Stage, between: int) -> Script[Result]:
        """Run the script of a trial until it ends or a user interrupts it; the following rows are marked `between`."""
        display = self.display
        while True:
            try:
                yield next(script)
            except StopIteration as end:
                result: Result = end.value
                return result
            if display.paused or display.aborted or display.redo:
                script.close()
                stage.mark(between)
                stage.gate(True)
                return None, (ABORTED if display.aborted else REDONE if display.redo else PAUSED,)

    def _handle_requests(self, stage: Stage) -> Script[None]:
        """Wait during a pause, and rebuild the trial sequence if the last answered trial should be repeated."""
        display = self.display
        waiting = display.paused and not display.aborted
        if waiting:
            stage.write_record("event", name="pause")
            display.pause()
            while display.paused and not display.aborted:
                yield _WAITING
            stage.write_record("event", name="go on")
        if display.redo:
            self._withdraw_last(lambda name, **fields: stage.write_record("event", name=name, **fields))

    def _withdraw_last(self, event: Callable[..., None]) -> None:
        """Withdraw the last answer, so that its trial is the next one."""
        self.display.redo = False
        answered = self.state.counted_attempts
        if answered:
            event("redo", trial=max(answered))
            self.sequence = self._replayed(self._again)

    def _require_few_repeated(self) -> None:
        """Raise if too many trials were repeated, because of the computer, the hand or the design.

        Trials before a resumption do not count, as their cause may have been removed.
        """
        attempts = self.state.attempts[self._earlier :]
        ended = [one.end["reasons"] for one in attempts if one.end and one.end["outcome"] == "repeat"]
        begun, repeated = len(attempts), sum(not {PAUSED, REDONE} & set(reasons) for reasons in ended)
        if repeated > max(self.design.trials.most_repeated * begun, LEAST_REPEATED):
            reasons = sorted({word for one in ended for word in one})
            raise TooManyRepeated(
                f"{repeated} of {begun} trials had to be repeated ({', '.join(reasons)}), more than "
                f"trials.most_repeated = {self.design.trials.most_repeated:g}: the session was stopped. Check the "
                "machine with 'haptics doctor', then continue with: haptics experiment resume "
                f"{self.journal.place.folder}"
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
                f"is not reproduced ({', '.join(different) or kind}): the file of the experiment, the program or "
                "the journal has changed. Nothing was written."
            )

    def _append(self, kind: str, /, **fields: Any) -> None:
        apply_record(self.state, self.journal.append(kind, **fields))
