"""Who serves the screens of a session: what is asked for there is done, and what is said or lost is written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.experiment.design import read_design
from apps.experiment.engine.live.screens import Screens
from apps.experiment.screens import Abort, Cannot, GoOn, Note, Pause, Redo
from haptics.errors import DeviceFault
from tests.apps.experiment.design.designs import changed
from tests.apps.experiment.screens.test_audience import begin


class Written:
    """A sitting that keeps the events and notes it is given."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.notes: list[str] = []

    def event(self, name: str, **fields: Any) -> None:
        self.events.append(name)

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_screen_that_is_gone_is_written_down_once_however_long_the_servo_takes_to_end(tmp_path: Path) -> None:
    design = read_design(changed(tmp_path))
    audience, participant, _, _ = begin(design)
    screens = Screens(design, audience, participant, None)
    screens.sitting = written = Written()  # type: ignore[assignment]
    screens.attend()
    participant.open = False
    for _ in range(3):
        with pytest.raises(DeviceFault, match="nothing that was answered is lost"):
            screens.attend()
    assert written.events == ["screen-lost"]


def test_what_is_asked_for_on_the_screens_is_done_and_notes_are_written_down(tmp_path: Path) -> None:
    design = read_design(changed(tmp_path))
    audience, participant, _, _ = begin(design)
    screens = Screens(design, audience, participant, None)
    screens.sitting = written = Written()  # type: ignore[assignment]
    paused = []
    for message in (Pause(), GoOn(), Pause(), Pause(), Redo(), Note("said aloud"), Cannot("sound", "no device")):
        screens._do(participant, message)
        paused.append(audience.paused)
    assert paused[:4] == [True, False, True, False]
    assert audience.redo and not audience.aborted
    assert (written.notes, written.events) == (["said aloud"], ["screen-cannot"])
    screens._do(participant, Abort())
    assert audience.aborted
