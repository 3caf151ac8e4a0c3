"""Real-time session with a participant at the screens and the device."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from apps.experiment.design import Design
from apps.experiment.engine.live.screens import Screens
from apps.experiment.engine.live.stage import LiveStage
from apps.experiment.engine.presenting import Respondent
from apps.experiment.engine.sequence import Participant, TrialSequence
from apps.experiment.engine.session import ExperimentSession
from apps.experiment.journal import Journal
from apps.experiment.procedures import procedure_settings
from apps.experiment.screens import Cannot, open_experimenter, open_participant
from apps.experiment.screens.display import ScreenDisplay
from apps.front_ends.front_end import FrontEnd
from apps.front_ends.several import FrontEnds
from apps.session.application import MOUSE, WINDOW_PATIENCE
from apps.session.mouse import Mouse
from apps.settings.config import SessionConfig
from haptics.errors import ConfigurationError


def require_display() -> None:
    """Raise if no window can be opened.

    Raises
    ------
    ConfigurationError
        If there is no screen. The message contains the reason.
    """
    from apps.view.launch import window_obstacle

    obstacle = window_obstacle()
    if obstacle is not None:
        raise ConfigurationError(
            f"a session with a person needs a screen, but there is none: {obstacle}. For a rehearsal without one say "
            "--observer simulated."
        )


def run_with_screens(
    design: Design,
    journal: Journal,
    who: Participant,
    streams: Sequence[FrontEnd] = (),
    observer: Callable[[TrialSequence], Respondent] | None = None,
) -> tuple[ExperimentSession, str]:
    """Run a session with a participant and streams.

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
        display = ScreenDisplay(
            design,
            participant,
            experimenter,
            code=who.code,
            session=who.session,
            blocks=math.ceil((trials or design.trials.block) / design.trials.block),
            trials=trials,
        )
        screens = Screens(design, display, participant, experimenter, mouse, streams, rehearsal=observer is not None)
        stack.callback(screens.fronts.close)
        require_screen(screens.fronts, participant)
        experiment_session = ExperimentSession(
            design,
            who,
            journal,
            respondent=observer or (lambda sequence: screens.person),
            stage=_stage(screens, mouse),
            display=display,
            again=False,
            before=screens.before,
            hands=screens,
        )
        reason = experiment_session.run()
        screens.finish()
        return experiment_session, reason


def require_screen(fronts: FrontEnds, participant: FrontEnd) -> None:
    """Wait for the participant's screen.

    Raise with its error message if it does not open.
    """
    why: list[str] = []

    def hear(message: Any) -> None:
        if isinstance(message, Cannot) and message.what == "window":
            why.append(message.words)

    if not fronts.await_key(WINDOW_PATIENCE, lambda: not participant.open, hear):
        raise ConfigurationError(
            why[0] if why else "the participant's screen could not be opened; 'haptics doctor' names the remedy."
        )


def _stage(screens: Screens, mouse: Mouse | None) -> Callable[[SessionConfig, Path, Callable[..., Any]], LiveStage]:
    """Return the factory of the stage of a block."""

    def make(config: SessionConfig, folder: Path, journal: Callable[..., Any]) -> LiveStage:
        if mouse is not None:
            hand = {**config.device_settings["hand"], "target": mouse.path}
            config = dataclasses.replace(config, device_settings={**config.device_settings, "hand": hand})
        return LiveStage(config, folder, journal, screens)

    return make


def expected_trials(design: Design) -> int | None:
    """Return the number of trials without practice, or None if it depends on the answers."""
    total = 0
    for condition in design.conditions:
        procedure: Any = procedure_settings(design.procedure_of(condition))
        values = getattr(procedure, "levels", getattr(procedure, "starts", None))
        if hasattr(procedure, "reversals"):
            return None
        total += condition.tracks * (len(values) * procedure.repeats if values else procedure.trials)
    share = design.catch.null + design.catch.easy if design.task.responses else 0.0
    return round(total / (1.0 - share))
