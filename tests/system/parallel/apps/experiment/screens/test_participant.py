"""The participant's screen as a process on a virtual screen: keys, hand, ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from apps.experiment.screens import Cannot, Pause, Show
from apps.experiment.screens.participant.layout import arrange
from apps.front_ends.messages import Close, HandButtons, HandTarget, HoldKey, Key, SessionEnded
from apps.opengl.plane import Plane
from haptics.records import ROW
from haptics.trace import Trace
from tests.apps.experiment.screens.driving import WORKSPACE, opened, started
from tests.apps.experiment.screens.shows import INSTRUCTIONS, shows
from tests.apps.screen import WHY_NOT, Screen, virtual_screen
from tests.apps.shown import OnScreen
from tests.processes import until

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


NAMES = ("2", "left", "enter", "return", "3", "period", "period", "f")


@pytest.fixture(scope="module")
def participant(screen: Screen) -> Iterator[OnScreen]:
    with opened(screen) as it:
        it.until_shown()
        it.focus("haptics: participant")
        yield it


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    trace = Trace.create(tmp_path / "trace", capacity=64)
    trace.append(np.zeros(1, ROW)[0])
    return trace


def test_keys_come_once_with_the_instant_at_which_they_went_down(participant: OnScreen) -> None:
    participant.front.send(shows()["response"])
    before = time.monotonic()
    pressed = ("Left", "KP_Enter", "Return", "KP_3", "period", "KP_Decimal", "f")
    participant.screen.xdotool("keydown", "2", "sleep", "0.8", "keyup", "2", "key", *pressed)
    after = time.monotonic()
    heard = participant.until(lambda said: Key("f", False) in said)
    said = [key for key in heard if key.name != "numlock"]  # xdotool presses it for the keys of the number pad
    assert said == [Key(name, down) for name in NAMES for down in (True, False)]
    instants = [key.at for key in said]
    assert instants == sorted(instants)
    assert before - 0.001 <= instants[0]
    assert instants[-1] <= after
    assert instants[1] - instants[0] == pytest.approx(0.8, abs=0.15)


def test_a_key_that_comes_up_after_shift_does_is_told_and_can_be_pressed_again(participant: OnScreen) -> None:
    for _ in range(2):
        participant.screen.xdotool("keydown", "shift", "keydown", "1", "keyup", "shift", "keyup", "1", "key", "f")
        said = participant.until(lambda said: Key("f", False) in said)
        names = [(key.name, key.down) for key in said]
        assert names[:4] == [("shift", True), ("exclam", True), ("shift", False), ("exclam", False)]


def test_a_key_keeps_its_instant_while_the_window_is_busy(participant: OnScreen) -> None:
    os.kill(participant.pid, signal.SIGSTOP)
    try:
        before = time.monotonic()
        participant.screen.xdotool("key", "1")
        after = time.monotonic()
        time.sleep(0.2)
    finally:
        os.kill(participant.pid, signal.SIGCONT)
    down, _ = participant.until(lambda said: Key("1", False) in said)
    assert before - 0.001 <= down.at <= after + 0.001


def test_in_the_dark_nothing_is_shown(participant: OnScreen) -> None:
    window = participant.screen.window("haptics: participant")
    for name in ("unseen", "dark"):
        participant.front.send(shows()[name])
        participant.until_shown()
        until(lambda dark=name == "dark": participant.screen.shot(window).any() != dark, f"it is not {name}", 10.0)


def test_esc_asks_for_a_pause_and_ends_nothing(participant: OnScreen) -> None:
    participant.screen.xdotool("key", "Escape")
    assert participant.until(lambda said: Pause() in said) == [Pause()]
    participant.screen.xdotool("key", "a")
    participant.until(lambda said: Key("a", False) in said)
    assert participant.front.open


def test_the_mouse_is_the_hand_in_the_place_where_the_workspace_is(participant: OnScreen, trace: Trace) -> None:
    participant.front.send(started(trace.path, mouse=True))
    participant.front.send(shows()["first"])
    plane = Plane(arrange(1000, 700).field, WORKSPACE)
    time.sleep(0.5)
    x, y = (round(part) for part in plane.to_window(0.03, 0.02))
    participant.screen.xdotool("mousemove", str(x), str(700 - y), "mousedown", "1", "mouseup", "1")
    said = participant.until(lambda said: HandButtons(0) in said)
    target = next(message for message in reversed(said) if isinstance(message, HandTarget))
    assert (target.x, target.y) == pytest.approx((0.03, 0.02), abs=2 / plane.scale)
    assert [message for message in said if isinstance(message, HandButtons)] == [HandButtons(2), HandButtons(0)]
    participant.front.send(SessionEnded("completed"))
    time.sleep(0.3)
    participant.screen.xdotool("mousemove", "500", "300", "key", "a")
    assert participant.until(lambda said: Key("a", False) in said) == [Key("a", True), Key("a", False)]


def test_the_dead_mans_key_is_told_again_and_again_while_it_is_held(participant: OnScreen, trace: Trace) -> None:
    participant.front.send(started(trace.path, dead_man="key"))
    participant.front.send(shows()["park"])
    time.sleep(0.3)
    participant.screen.xdotool("keydown", "space", "sleep", "0.5", "keyup", "space")
    said = participant.until(lambda said: HoldKey(False) in said)
    assert said[:-1] == [HoldKey(True)] * (len(said) - 1)
    assert 3 <= len(said) - 1 <= 15
    participant.front.send(SessionEnded("completed"))


def test_what_is_too_long_or_cannot_be_heard_is_told(participant: OnScreen) -> None:
    participant.front.send(Show("instructions", "Long", 12 * INSTRUCTIONS))
    (said,) = participant.until(bool)
    assert isinstance(said, Cannot)
    assert "'instructions' is too long to be read" in said.words


def test_a_trace_that_is_not_there_is_told(participant: OnScreen, tmp_path: Path) -> None:
    participant.front.send(started(tmp_path / "none"))
    (said,) = participant.until(bool)
    assert isinstance(said, Cannot)
    assert said.what == "trace"


def test_one_that_dies_is_missed(screen: Screen) -> None:
    with opened(screen) as one:
        one.until_shown()
        os.kill(one.pid, signal.SIGKILL)
        one.until(lambda said: not one.front.open)
        assert one.front.messages() == []


def test_without_opengl_it_says_so_in_words() -> None:
    read_end, write_end = os.pipe()
    command = ["Xvfb", "-displayfd", str(write_end), "-extension", "GLX", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL) as server:
        os.close(write_end)
        with os.fdopen(read_end) as answer:
            screen = Screen(f":{answer.readline().strip()}")
        try:
            with opened(screen) as one:
                (said,) = one.until(bool)
                assert isinstance(said, Cannot)
                assert said.what == "window"
                assert "OpenGL" in said.words
                one.until(lambda said: not one.front.open)
        finally:
            server.terminate()


def test_without_a_display_it_says_so_in_words() -> None:
    with opened(Screen(":4242")) as one:
        (said,) = one.until(bool)
        assert isinstance(said, Cannot)
        assert "display" in said.words
        one.until(lambda said: not one.front.open)


def test_closing_the_window_is_told() -> None:
    with virtual_screen() as screen, opened(screen) as one:
        one.until_shown()
        screen.close(screen.window("haptics: participant"))
        assert one.until(lambda said: not one.front.open) == [Close()]
