"""A short session as seen by its screen: a program presses keys and moves the mouse, from instructions to the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.experiment.screens import Choice, Show, StartBox
from apps.experiment.screens.participant.layout import arrange
from apps.front_ends.messages import HandTarget, Key, SessionEnded
from apps.opengl.plane import Plane
from haptics.records import ROW
from haptics.trace import Trace
from tests.apps.experiment.screens.driving import WORKSPACE, opened, started
from tests.apps.screen import WHY_NOT, Screen
from tests.apps.shown import OnScreen

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

START = (-0.06, 0.0)
TWO = (Choice("1", "first"), Choice("2", "second"))


@pytest.fixture
def participant(screen: Screen) -> Iterator[OnScreen]:
    with opened(screen) as it:
        it.until_shown()
        it.focus("haptics: participant")
        yield it


class Hand:
    """Moves the pointer over the window, and what the screen says of it into the trace."""

    def __init__(self, participant: OnScreen, trace: Trace) -> None:
        self._participant, self._trace = participant, trace
        self._plane = Plane(arrange(1000, 700).field, WORKSPACE)
        self.path: list[tuple[float, float]] = []

    def move(self, *places: tuple[float, float]) -> None:
        """Move to these places of the plane, and wait until the session has heard of the last."""
        for place in places:
            x, y = self._plane.to_window(*place)
            self._participant.screen.xdotool("mousemove", str(round(x)), str(round(700 - y)))

        def near(said: list[Any]) -> bool:
            last = [message for message in said if isinstance(message, HandTarget)][-1:]
            return bool(last) and np.hypot(last[0].x - places[-1][0], last[0].y - places[-1][1]) < 1e-3

        for message in self._participant.until(near):
            if isinstance(message, HandTarget):
                self.path.append((message.x, message.y))
                row = np.zeros(1, ROW)[0]
                row["position"] = message.x, message.y
                self._trace.append(row)


def press(participant: OnScreen, key: str, name: str) -> Key:
    """Press a key and return what is heard of it."""
    participant.screen.xdotool("key", key)
    said = participant.until(lambda said: Key(name, False) in said)
    return next(message for message in said if isinstance(message, Key))


def test_from_the_instructions_to_the_end(participant: OnScreen, tmp_path: Path) -> None:
    tell = participant.front.send
    trace = Trace.create(tmp_path / "trace", capacity=4096)
    begun = time.monotonic()
    for page in (1, 2):
        keys = (Choice("space", "go on"),)
        tell(Show("instructions", "How it goes", "Feel, and say which.", page=page, pages=2, keys=keys))
        assert press(participant, "space", "space").down
    tell(started(trace.path, mouse=True))
    hand = Hand(participant, trace)
    answers = []
    for trial, answer in enumerate(("1", "2", "2")):
        field = Show("park", of=2, field=True, start=StartBox(START, 0.008), share=trial / 3)
        for interval in (1, 2):
            tell(replace(field, text="Move to the square"))
            hand.move(START)
            tell(replace(field, kind="interval", interval=interval, tone=True))
            hand.move((0.06, 0.02), (-0.05, 0.0))
        tell(Show("response", "Which one resisted more?", of=2, keys=TWO, share=trial / 3))
        answers.append(press(participant, answer, answer))
        tell(Show("feedback", text="Right", feedback="right"))
    tell(SessionEnded("completed"))
    tell(Show("end", "Thank you", share=1.0))
    assert press(participant, "Return", "return").down
    assert [key.name for key in answers] == ["1", "2", "2"]
    instants = [key.at for key in answers]
    assert begun < instants[0] < instants[1] < instants[2] < time.monotonic()
    assert np.ptp(np.array(hand.path)[:, 0]) == pytest.approx(0.12, abs=2e-3)
    participant.front.close()
    assert not participant.front.open
