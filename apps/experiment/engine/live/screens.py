"""Service of the screens in a session with a participant: requests, instructions and breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any

from apps.experiment.design import Design
from apps.experiment.engine.display import Display
from apps.experiment.engine.live.onlookers import Onlookers
from apps.experiment.engine.live.person import Person
from apps.experiment.engine.sequence import TrialSpec
from apps.experiment.engine.session import Ended, ExperimentSession
from apps.experiment.screens import Abort, Cannot, GoOn, Note, Pause, Redo
from apps.front_ends import messages as say
from apps.front_ends.front_end import FrontEnd
from apps.session.events import KeyEvent
from apps.session.mouse import Mouse
from haptics.errors import DeviceFault

GO_ON = ("space", "return")
"""Keys that turn a page or end a break."""

LINGER = 4.0
"""Display time of the last page [s]."""

PAGE = 1.0
"""Display time of a page in a rehearsal [s]."""

_LOOK_EVERY = 0.02


class MeasurementStopped(DeviceFault):
    """The friction measurement was stopped by the participant or the experimenter."""


class Screens(Onlookers):
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
        self._shown = self._lost = False
        self._seconds = self._done = 0.0
        for front in (participant, experimenter):
            if front is not None:
                self.fronts.add(front)

    # --- during a block ---

    def run_periodic_tasks(self) -> None:
        """Handle pending requests.

        Raises
        ------
        DeviceFault
            If the participant's screen has closed. Raised at every call, because the servo needs several calls to stop.
        """
        super().run_periodic_tasks()
        if not self._participant.open:
            if not self._lost:
                self._lost = True
                self._write(lambda experiment_session: experiment_session.event("screen-lost"))
            raise DeviceFault(
                "the participant's screen ended: the session was stopped, nothing that was answered is lost."
            )

    def key(self, event: KeyEvent) -> None:
        """Handle a key press with its tick."""
        if event.down and event.name == self._design.response.redo and self._design.task.responses:
            self._display.redo = True
        else:
            self.person.key(event)

    def _do(self, front: FrontEnd, message: Any) -> None:
        match message:
            case Pause():
                self._display.paused = not self._display.paused
            case GoOn():
                self._display.paused = False
            case Redo():
                self._display.redo = True
            case Abort():
                self._display.aborted = True
            case Note(text):
                self._write(lambda experiment_session: experiment_session.add_note(text))
            case Cannot(what, words):
                self._display.notice(words)
                self._write(
                    lambda experiment_session: experiment_session.event("screen-cannot", what=what, words=words)
                )
            case say.Key(name, True) if self.session is None:
                self._down.add(name)
            case _:
                super()._do(front, message)

    def _handle_lost_screen(self) -> None:
        """Continue without the experimenter's screen.

        `run_periodic_tasks` raises if the participant's screen is lost.
        """
        if self._participant.open:
            self._tell("the experimenter's screen ended unexpectedly; the session goes on without it.")

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
        self.experiment_session = experiment_session
        if not self._shown:
            self._shown = True
            self._instruct(experiment_session)
        else:
            self._rest(experiment_session, plan)
        if plan.kind == "practice" and self._design.texts.practice:
            self._display.practice(self._design.texts.practice)
            self._await(self._turned)

    def _instruct(self, experiment_session: ExperimentSession) -> None:
        pages = self._design.texts.instructions
        for number, text in enumerate(pages, 1):
            self._display.page(number, len(pages), text)
            self._await(self._turned)
        experiment_session.event("instructions", pages=len(pages))

    def _rest(self, experiment_session: ExperimentSession, plan: TrialSpec) -> None:
        experiment_session.event("break", before_block=plan.block)
        until = time.monotonic() + self._design.trials.rest
        self._display.rest(until, self._design.texts.rest)
        self._await(lambda: time.monotonic() >= until)
        self._await(self._turned)

    # --- friction measurement (`apps.experiment.friction.session.Hands`) ---

    def free(self, seconds: float) -> None:
        """Ask the participant to release the handle, and wait for the confirmation.

        Raises
        ------
        Ended
            If the session is aborted.
        """
        self._seconds = seconds
        self._display.announce_motion(seconds)
        self._await(self._turned)

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
            raise MeasurementStopped("the measurement of the device's own friction was stopped by a person.")
        done = round(seconds / max(self._seconds, 1e-3), 2)
        if done != self._done:
            self._done = done
            self._display.measures(min(done, 1.0))

    def report_result(self, words: str) -> None:
        """Announce the end of the measurement and its result, and wait until the participant continues."""
        self._display.measured(words)
        self._tell(words)
        self._await(self._turned)

    def finish(self) -> None:
        """Show the last page for a few seconds."""
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
            if self._display.aborted:
                raise Ended
            self._down.clear()
            wait(self.connections(), _LOOK_EVERY)
            self.run_periodic_tasks()
        self._down.clear()
