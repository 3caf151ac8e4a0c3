"""The stage as a process on a virtual screen: keys, the mouse as the hand, the dead-man's key, ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.front_ends.messages import (
    Close,
    HandButtons,
    HandTarget,
    HoldKey,
    Key,
    SessionEnded,
    Start,
    Stop,
)
from apps.shared.theme import DARK
from tests.apps.screen import WHY_NOT, Screen, virtual_screen
from tests.apps.stage.driving import SIZE, Stage, is_there, near, opened, plane, rows
from tests.processes import until

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(scope="module")
def stage(screen: Screen, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with opened(screen, tmp_path_factory.mktemp("stage")) as it:
        yield it


def test_the_space_bar_stops_and_keys_without_a_meaning_are_passed_on(stage: Stage) -> None:
    stage.begin()
    before = time.monotonic()
    stage.shown.screen.xdotool("key", "f", "space")
    said = stage.shown.until(lambda said: Stop() in said)
    assert said == [Key("f", True), Key("f", False), Stop()]
    assert before - 0.001 <= said[0].at <= said[1].at <= time.monotonic()


def test_a_run_that_ended_is_started_again_by_enter(stage: Stage) -> None:
    stage.begin()
    stage.shown.screen.xdotool("key", "Return")
    said = stage.shown.until(lambda said: Key("return", False) in said)
    assert said == [Key("return", True), Key("return", False)], "while it runs it is a key as any other"
    stage.shown.front.send(SessionEnded("completed"))
    stage.shown.until_shown()
    stage.shown.screen.xdotool("key", "Return")
    assert stage.shown.until(bool) == [Start("virtual-joystick", "C", "mouse")]
    stage.press("f")
    stage.shown.front.messages()


def test_the_mouse_is_the_hand_where_the_workspace_is(stage: Stage) -> None:
    stage.begin(mouse=True)
    x, y = (round(part) for part in plane().to_window(0.03, 0.02))
    move = ("mousemove", "--window", stage.window)
    stage.shown.screen.xdotool(*move, str(x), str(SIZE[1] - y), "mousedown", "3", "mouseup", "3")
    said = stage.shown.until(lambda said: HandButtons(0) in said)
    target = next(message for message in reversed(said) if isinstance(message, HandTarget))
    assert (target.x, target.y) == pytest.approx((0.03, 0.02), abs=2 / plane().scale)
    assert [message for message in said if isinstance(message, HandButtons)] == [HandButtons(4), HandButtons(0)]
    stage.begin(mouse=False)
    stage.shown.screen.xdotool(*move, "300", "300", "key", "f")
    assert stage.shown.until(lambda said: Key("f", False) in said) == [Key("f", True), Key("f", False)]


def test_the_dead_mans_key_is_held_and_esc_stops(stage: Stage) -> None:
    stage.begin(dead_man="key")
    stage.shown.screen.xdotool("keydown", "space", "sleep", "0.4", "keyup", "space")
    said = stage.shown.until(lambda said: HoldKey(False) in said)
    assert said[:-1] == [HoldKey(True)] * (len(said) - 1)
    assert 3 <= len(said) - 1 <= 12
    stage.shown.screen.xdotool("key", "Escape")
    assert stage.shown.until(bool) == [Stop()]


def test_a_key_that_is_down_when_a_run_begins_must_be_pressed_anew(stage: Stage) -> None:
    stage.begin()
    stage.shown.screen.xdotool("keydown", "space")
    stage.shown.until(lambda said: Stop() in said)
    stage.begin(dead_man="key")
    time.sleep(0.3)
    assert stage.shown.front.messages() == []
    stage.shown.screen.xdotool("keyup", "space", "keydown", "space", "keyup", "space")
    assert HoldKey(True) in stage.shown.until(lambda said: said[-1:] == [HoldKey(False)] and HoldKey(True) in said)


def test_f11_fills_the_screen_and_esc_leaves_it(stage: Stage) -> None:
    stage.begin()
    stage.publish(rows((0.0, 0.0)))
    screen = stage.shown.screen
    for key, size in (("F11", (1280, 900)), ("Escape", SIZE)):
        screen.xdotool("key", key)
        stage.shown.until_shown()
        until(lambda size=size: stage.reach() == size, f"{key} does not lead to {size}")  # type: ignore[misc]
        picture = stage.shot()
        assert picture.shape[:2] == size[::-1]
        assert is_there(DARK.text, near(picture, plane(size).to_window(0.0, 0.0)))
    assert stage.shown.front.messages() == []


def test_a_trace_that_is_not_there_and_a_damaged_row_do_no_harm(stage: Stage, tmp_path: Path) -> None:
    stage.begin(trace=tmp_path / "none")
    stage.begin()
    damaged = rows((float("nan"), float("inf")), (float("nan"), 0.0))
    damaged["velocity"] = float("nan")
    stage.publish(damaged)
    stage.shown.until_shown()
    assert stage.shown.front.open


def test_closing_the_window_is_told(stage: Stage) -> None:
    """The last of this file: there is no other window for those before."""
    stage.shown.front.messages()
    stage.shown.screen.close(stage.window)
    assert stage.shown.until(lambda said: not stage.shown.front.open) == [Close()]


def test_a_death_is_missed(tmp_path: Path) -> None:
    with virtual_screen() as screen, opened(screen, tmp_path) as one:
        os.kill(one.shown.pid, signal.SIGKILL)
        one.shown.until(lambda said: not one.shown.front.open)
