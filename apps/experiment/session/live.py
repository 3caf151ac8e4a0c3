"""Real-time sessions with a participant: screens, requests, instructions and breaks."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from apps.experiment.design import Design
from apps.experiment.forms.dialog import FormDialog
from apps.experiment.forms.forms import Form, ItemSettings, Value
from apps.experiment.journal.journal import Journal
from apps.experiment.procedures.settings import StaircaseSettings, procedure_settings, trial_counts
from apps.experiment.screens.display import Display
from apps.experiment.screens.launch import open_experimenter, open_participant
from apps.experiment.screens.messages import Cannot, Command, Note, Picked, Placed, Typed
from apps.experiment.sequence import Participant, TrialSequence, TrialSpec
from apps.experiment.session.presentation import Person, Respondent
from apps.experiment.session.session import Ended, ExperimentSession
from apps.experiment.session.stages import Followers, LiveStage
from apps.experiment.triggers.session import Triggers
from apps.front_ends import messages as say
from apps.front_ends.front_end import FrontEnd, FrontEnds
from apps.session.application import MOUSE, WINDOW_TIMEOUT
from apps.session.record import KeyEvent
from apps.session.run import Session
from apps.session.service import Mouse
from apps.settings.config import SessionConfig
from haptics.errors import ConfigurationError, DeviceFault

GO_ON = ("space", "return")
"""Keys that turn a page or end a break."""

LINGER = 4.0
"""Display time of the last page [s]."""

PAGE = 1.0
"""Display time of a page in a rehearsal [s]."""

_LOOK_EVERY = 0.02


class MeasurementStopped(DeviceFault):
    """The friction measurement was stopped by the participant or the experimenter."""


class Screens(Followers):
    """Serves the screens of an experiment, during blocks and between them.

    Parameters
    ----------
    design : Design
        Design of the experiment.
    display : Display
        Sends the events of the session to the screens.
    participant : FrontEnd
        Screen of the participant. The session stops without it.
    experimenter : FrontEnd or None
        Screen of the experimenter.
    mouse : Mouse or None
        Target of the mouse positions, if the mouse is the hand.
    streams : sequence of FrontEnd
        Front ends that only receive messages.
    rehearsal : bool
        Whether pages turn automatically after `PAGE`.
    """

    def __init__(
        self,
        design: Design,
        display: Display,
        participant: FrontEnd,
        experimenter: FrontEnd | None,
        mouse: Mouse | None = None,
        streams: Sequence[FrontEnd] = (),
        rehearsal: bool = False,
    ) -> None:
        super().__init__(*streams)
        self._design, self._display, self._participant = design, display, participant
        self.mouse = mouse
        self._rehearsal, self._since = rehearsal, 0.0
        self.person = Person(design, display)
        self.experiment_session: ExperimentSession | None = None
        self._down: set[str] = set()
        self._shown = self._lost = self._over = self._resting = False
        self._dialog: FormDialog | None = None
        self._seconds = self._done = 0.0
        for front in (participant, experimenter):
            if front is not None:
                self.fronts.add(front)

    # --- during a block ---

    def begin(self, session: Session) -> None:
        """Announce the run of a block to the screens, and serve it."""
        super().begin(session)
        self.person.begin_block()

    def run_periodic_tasks(self) -> None:
        """Handle pending requests.

        Raises
        ------
        DeviceFault
            If the participant's screen has closed. Raised at every call, because the servo needs several calls to stop.
        """
        super().run_periodic_tasks()
        if not self._participant.open and not self._over:
            if not self._lost:
                self._lost = True
                self._write(lambda experiment_session: experiment_session.event("screen-lost"))
            raise DeviceFault(
                "the participant's screen has closed: the session was stopped. All answers are in the journal."
            )

    def key(self, event: KeyEvent) -> None:
        """Handle a key press with its tick."""
        if event.down and event.name == self._design.response.redo and self._design.task.responses:
            self._display.redo = True
        else:
            self.person.key(event)

    def execute(self, front: FrontEnd, message: Any) -> None:
        """Execute a request of a screen."""
        match message:
            case Command("pause"):
                self._display.request_pause(not self._display.paused)
            case Command("go on"):
                self._display.request_pause(False)
            case Command("redo"):
                self._display.redo = True
            case Command("abort"):
                self._display.aborted = True
            case Note(text):
                self._write(lambda experiment_session: experiment_session.add_note(text))
            case Cannot(what, words):
                self._display.notice(words)
                if not self._over:
                    self._write(
                        lambda experiment_session: experiment_session.event("screen-cannot", what=what, words=words)
                    )
            case say.Key() | Picked() | Placed() | Typed() if self._dialog is not None:
                self._answer(self._dialog, message)
            case say.Key(name, True) if self.session is None:
                self._down.add(name)
                if self._resting and name == self._design.response.redo and self._design.task.responses:
                    self._display.redo = True
            case _:
                super().execute(front, message)

    def handle_loss(self) -> None:
        """Continue without the experimenter's screen.

        `run_periodic_tasks` raises if the participant's screen is lost.
        """
        if self._participant.open:
            self._notify("the experimenter's screen has closed; the session continues without it.")

    def _write(self, write: Callable[[ExperimentSession], None]) -> None:
        """Write to the journal, in a separate thread during a block so that the servo's watchdog is served."""
        experiment_session = self.experiment_session
        if experiment_session is not None and self.session is not None:
            self.session.run_with_heartbeats(lambda: write(experiment_session))
        elif experiment_session is not None:
            write(experiment_session)

    # --- between blocks ---

    def before(self, experiment_session: ExperimentSession, plan: TrialSpec) -> None:
        """Show the instructions before the first block of this run, and a break before later ones.

        Raises
        ------
        Ended
            If the session is aborted.
        """
        texts = self._design.texts
        if not self._shown:
            self._shown = True
            pages = (*texts.instructions, *texts.groups.get(self._design.group, ()))
            for number, text in enumerate(pages, 1):
                self._display.page(number, len(pages), text)
                self._await(self._turned)
            experiment_session.event("instructions", pages=len(pages))
        else:
            experiment_session.event("break", before_block=plan.block)
            until = time.monotonic() + self._design.trials.rest
            self._display.rest(until, texts.rest)
            self._resting = True
            self._await(lambda: time.monotonic() >= until)
            self._await(self._turned)
            self._resting = False
        if plan.kind == "practice" and texts.practice:
            self._display.practice(texts.practice)
            self._await(self._turned)

    def fill(
        self,
        form: Form,
        items: Sequence[ItemSettings],
        answers: dict[str, Value],
        keep: Callable[[str, Value], None],
    ) -> dict[str, Value]:
        """Show a form until it is completed, and return the answers.

        Parameters
        ----------
        form : Form
            The form.
        items : sequence of ItemSettings
            Its items in the order of display.
        answers : dict
            Answers before an interruption, or answers of a simulated observer.
        keep : callable
            Function that writes a confirmed answer to the journal.

        Raises
        ------
        Ended
            If the session is aborted.
        """
        asked = [item.name for item in items if item.kind != "page"]
        given = [name in answers for name in asked]
        interrupted = not self._rehearsal and any(given) and not all(given)
        first = next((place for place, item in enumerate(items) if item.name in asked and item.name not in answers), 0)
        dialog = FormDialog(form, items, self._design.texts, answers, first if interrupted else 0)
        self._dialog = dialog
        try:
            while not dialog.done:
                shown = dialog.contents()
                self._display.form(form.name, shown)

                def changed(shown: dict[str, Any] = shown) -> bool:
                    """Return True if the item must be drawn again."""
                    dialog.repeat(time.monotonic())
                    if self._rehearsal and time.monotonic() - self._since > PAGE:
                        dialog.press("return", time.monotonic())
                    return dialog.done or bool(dialog.confirmed) or dialog.contents() != shown

                self._await(changed)
                for name in dialog.take_confirmed():
                    keep(name, dialog.answers.get(name))
        finally:
            self._dialog = None
        return dict(dialog.answers)

    def _answer(self, dialog: FormDialog, message: Any) -> None:
        """Handle an input to a form."""
        match message:
            case say.Key(name, True):
                dialog.press(name, time.monotonic())
            case say.Key(name, False):
                dialog.release(name)
            case Picked(option):
                dialog.pick(option)
            case Placed(share):
                dialog.place_at(share)
            case Typed(text):
                dialog.type(text)

    def free(self, seconds: float) -> None:
        """Ask the participant to release the handle for a measurement, and wait for the confirmation.

        Raises
        ------
        Ended
            If the session is aborted.
        """
        self._seconds = seconds
        self._display.announce_motion(seconds)
        self._await(self._turned)
        self._display.paused = False  # a pause that was requested before would stop the measurement at once

    def progress(self, seconds: float) -> None:
        """Show the progress of the measurement.

        The participant (Esc) or the experimenter can stop it.

        Raises
        ------
        MeasurementStopped
            If the measurement is stopped. The session can be resumed.
        """
        self.run_periodic_tasks()
        if self._display.paused or self._display.aborted:
            raise MeasurementStopped(
                "the measurement of the device's own friction was stopped by the participant or the experimenter."
            )
        done = round(seconds / max(self._seconds, 1e-3), 2)
        if done != self._done:
            self._done = done
            self._display.measures(min(done, 1.0))

    def report_result(self, words: str) -> None:
        """Announce the end of the measurement and its result, and wait until the participant continues."""
        self._display.measured(words)
        self._notify(words)
        self._await(self._turned)

    def finish(self) -> None:
        """Show the last page for a few seconds. The journal has ended: a later event would open the session again."""
        self._over = True
        self._display.finish(self._design.texts.end)
        until = time.monotonic() + LINGER
        self._await(lambda: time.monotonic() >= until or self._turned() or not self._participant.open)

    def _turned(self) -> bool:
        """Return True if a key that continues was pressed since the last poll, or after `PAGE` in a rehearsal."""
        by_itself = self._rehearsal and time.monotonic() - self._since > PAGE
        return by_itself or not self._down.isdisjoint(GO_ON)

    def _await(self, over: Callable[[], bool]) -> None:
        """Serve the screens until `over` returns True."""
        self._down.clear()
        self._since = time.monotonic()
        while not over():
            if self._display.aborted and not self._over:
                raise Ended
            self._down.clear()
            wait(self.connections(), _LOOK_EVERY)
            self.run_periodic_tasks()
        self._down.clear()


def run_with_screens(
    design: Design,
    journal: Journal,
    who: Participant,
    streams: Sequence[FrontEnd] = (),
    observer: Callable[[TrialSequence], Respondent] | None = None,
    triggers: Triggers | None = None,
) -> tuple[ExperimentSession, str]:
    """Run a session with a participant, streams and triggers.

    Return the session and the reason for its end. With an `observer` it is a rehearsal: the observer answers, and pages
    turn automatically.

    Raises
    ------
    ConfigurationError
        If the participant's screen does not open.
    HapticError
        The error that stopped the session, which can be resumed.
    """
    with ExitStack() as stack:
        mouse = stack.enter_context(Mouse()) if design.session.hand == MOUSE else None
        participant, experimenter = open_participant(design.screen), open_experimenter()
        trials = expected_trials(design)
        blocks = math.ceil((trials or design.trials.block) / design.trials.block)
        display = Display(
            design,
            participant,
            experimenter,
            code=who.code,
            session=who.session,
            blocks=blocks,
            trials=trials,
            practised={one["trial"] for one in journal.records if one.get("kind") == "practice"},
        )
        screens = Screens(design, display, participant, experimenter, mouse, streams, rehearsal=observer is not None)
        stack.callback(screens.fronts.close)
        require_screen(screens.fronts, participant)

        def stage(config: SessionConfig, folder: Path, journal: Callable[..., Any]) -> LiveStage:
            if mouse is not None:
                hand = {**config.device_settings["hand"], "target": mouse.path}
                config = dataclasses.replace(config, device_settings={**config.device_settings, "hand": hand})
            return LiveStage(config, folder, journal, screens)

        experiment_session = ExperimentSession(
            design,
            who,
            journal,
            respondent=observer or (lambda sequence: screens.person),
            stage=stage,
            display=display,
            again=False,
            before=screens.before,
            hands=screens,
            questioner=screens,
            triggers=triggers,
        )
        screens.experiment_session = experiment_session  # notes are written from the consent page on
        reason = experiment_session.run()
        screens.finish()
        return experiment_session, reason


def require_display() -> None:
    """Raise `ConfigurationError` with the reason if no window can be opened."""
    from apps.view.launch import window_obstacle

    obstacle = window_obstacle()
    if obstacle is not None:
        raise ConfigurationError(
            f"a session with a participant needs a screen, which is not available: {obstacle}. For a rehearsal without "
            "a screen use --observer simulated."
        )


def require_screen(fronts: FrontEnds, participant: FrontEnd) -> None:
    """Wait for the participant's screen.

    Raise with its error message if it does not open.
    """
    why: list[str] = []

    def receive(message: Any) -> None:
        if isinstance(message, Cannot) and message.what == "window":
            why.append(message.words)

    if not fronts.await_key(WINDOW_TIMEOUT, lambda: not participant.open, receive):
        raise ConfigurationError(
            why[0] if why else "the participant's screen could not be opened; 'haptics doctor' names the remedy."
        )


def expected_trials(design: Design) -> int | None:
    """Return the number of trials without practice, or None if it depends on the answers."""
    procedures = [(one.tracks, procedure_settings(design.procedure_of(one))) for one in design.conditions]
    if any(isinstance(procedure, StaircaseSettings) for _, procedure in procedures):
        return None
    total = sum(tracks * trial_counts(procedure)[1] for tracks, procedure in procedures)
    share = design.catch.null + design.catch.easy if design.task.responses else 0.0
    return round(total / (1.0 - share))
