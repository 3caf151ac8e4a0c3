"""The participant's screen as a process on a virtual screen: keys, hand, ends, and layout of its texts."""

import itertools
import os
import signal
import subprocess
import time

import numpy as np
import pytest

from apps.experiment.screens.drawing import Layout
from apps.experiment.screens.messages import Cannot, Choice, Command, FormItem, Picked, Placed, Show, Typed
from apps.front_ends.messages import Close, HandButtons, HandTarget, HoldKey, Key, SessionEnded
from apps.opengl.plane import Area, Plane
from apps.shared.theme import DARK, LIGHT
from haptics.records import ROW
from haptics.trace import Trace
from tests.apps.experiment.screens.driving import WORKSPACE, opened, started
from tests.apps.experiment.screens.shows import INSTRUCTIONS, shows
from tests.apps.screen import WHY_NOT, Screen, virtual_screen
from tests.processes import until

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


NAMES = ("2", "left", "enter", "return", "3", "period", "period", "f")


@pytest.fixture(scope="module")
def participant(screen):
    with opened(screen) as it:
        it.until_shown()
        it.focus("haptics: participant")
        yield it


@pytest.fixture
def trace(tmp_path):
    trace = Trace.create(tmp_path / "trace", capacity=64)
    trace.append(np.zeros(1, ROW)[0])
    return trace


def test_keys_are_sent_once_with_the_instant_of_the_press(participant):
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


def test_key_released_after_shift_is_released_and_can_be_pressed_again(participant):
    for _ in range(2):
        participant.screen.xdotool("keydown", "shift", "keydown", "1", "keyup", "shift", "keyup", "1", "key", "f")
        said = participant.until(lambda said: Key("f", False) in said)
        names = [(key.name, key.down) for key in said]
        assert names[:4] == [("shift", True), ("exclam", True), ("shift", False), ("exclam", False)]


def test_key_keeps_its_instant_while_the_window_is_busy(participant):
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


def test_dark_screen_shows_nothing(participant):
    window = participant.screen.window("haptics: participant")
    for name in ("unseen", "dark"):
        participant.front.send(shows()[name])
        participant.until_shown()
        until(lambda dark=name == "dark": participant.screen.shot(window).any() != dark, f"it is not {name}", 10.0)


def test_esc_asks_for_a_pause(participant):
    participant.screen.xdotool("key", "Escape")
    assert participant.until(lambda said: Command("pause") in said) == [Command("pause")]
    participant.screen.xdotool("key", "a")
    participant.until(lambda said: Key("a", False) in said)
    assert participant.front.open


def test_mouse_over_the_workspace_is_the_hand(participant, trace):
    participant.front.send(started(trace.path, mouse=True))
    participant.front.send(shows()["first"])
    plane = Plane(Layout(1000, 700).field, WORKSPACE)
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


def test_held_dead_mans_key_is_sent_repeatedly(participant, trace):
    participant.front.send(started(trace.path, dead_man="key"))
    participant.front.send(shows()["park"])
    time.sleep(0.3)
    participant.screen.xdotool("keydown", "space", "sleep", "0.5", "keyup", "space")
    said = participant.until(lambda said: HoldKey(False) in said)
    assert said[:-1] == [HoldKey(True)] * (len(said) - 1)
    assert 3 <= len(said) - 1 <= 15
    participant.front.send(SessionEnded("completed"))


def test_long_text_and_missing_trace_are_reported(participant, tmp_path):
    participant.front.send(Show("instructions", "Long", 12 * INSTRUCTIONS))
    (said,) = participant.until(bool)
    assert isinstance(said, Cannot) and "'instructions' is too long" in said.words
    participant.front.send(started(tmp_path / "none"))
    (said,) = participant.until(bool)
    assert isinstance(said, Cannot) and said.what == "trace"


def test_display_without_opengl_is_reported():
    read_end, write_end = os.pipe()
    command = ["Xvfb", "-displayfd", str(write_end), "-extension", "GLX", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL) as server:
        os.close(write_end)
        with os.fdopen(read_end) as answer:
            screen = Screen(f":{answer.readline().strip()}")
        try:
            with opened(screen) as one:
                (said,) = one.until(bool)
                assert isinstance(said, Cannot) and said.what == "window" and "OpenGL" in said.words
                one.until(lambda said: not one.front.open)
        finally:
            server.terminate()


def test_missing_display_is_reported():
    with opened(Screen(":4242")) as one:
        (said,) = one.until(bool)
        assert isinstance(said, Cannot) and "display" in said.words
        one.until(lambda said: not one.front.open)


def test_closed_screen_sends_close():
    with virtual_screen() as screen, opened(screen) as one:
        one.until_shown()
        screen.close(screen.window("haptics: participant"))
        assert one.until(lambda said: not one.front.open) == [Close()]


@pytest.fixture(scope="module")
def measured(screen):
    return dict(screen.answer("tests.apps.experiment.screens.measure_scenes"))


@pytest.fixture(scope="module")
def laid_out(measured):
    return measured["layouts"]


def test_texts_are_neither_cut_nor_overlapping(laid_out):
    assert len(laid_out) == 5 * (len(shows()) + 1)
    for entry in laid_out:
        window = Area(0, 0, *entry["size"])
        boxes = [Area(*box) for box in entry["boxes"]]
        assert all(window.holds(box) for box in boxes), entry
        for one, other in itertools.combinations(boxes, 2):
            apart_x = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            apart_y = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert min(apart_x, apart_y) < 3, entry  # pixels; boxes have air above and below the letters


def test_texts_of_a_show_are_displayed_and_only_the_long_one_is_too_small(laid_out):
    by_name = {entry["show"]: entry for entry in laid_out}
    assert by_name["dark"]["words"] == []
    assert by_name["instructions"]["words"] == ["How it goes", INSTRUCTIONS, "2 / 4", "←", "back", "→", "go on"]
    assert by_name["response"]["words"] == ["Which one resisted more?", "1", "2", "1", "first", "2", "second"]
    assert "12.5" in by_name["number"]["words"]
    assert by_name["break"]["words"][2] != "0:00"
    assert {entry["show"] for entry in laid_out if entry["small"]} == {"too long"}


@pytest.mark.parametrize("name", ["labelled likert", "choice"])
def test_answers_have_letters_of_the_same_height(laid_out, name):
    """A label in larger letters would attract answers."""
    answers = shows()[name].item.labels
    for entry in (one for one in laid_out if one["show"] == name):
        pairs = zip(entry["words"], entry["letters"], strict=True)
        letters = [size for words, size in pairs if any(words.endswith(answer) for answer in answers)]
        assert len(letters) == len(answers) and len(set(letters)) == 1, entry


def contrast(one, other):
    """Return the contrast of two colours (WCAG 2)."""

    def luminance(colour):
        parts = [part / 255 for part in bytes.fromhex(colour[1:])]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return light / dark


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_texts_of_forms_are_readable_in_both_themes(measured, theme):
    """An alert is on the colour of notices, and the number of a chosen point on that of motion."""
    forms = {name: own for name, own in measured["colours"].items() if name.endswith(theme.name)}
    assert len(forms) == 8
    for name, texts in forms.items():
        for words, colour in texts:
            ground = theme.motion if colour == theme.panel else theme.ground
            assert contrast(colour, theme.notice if words.startswith("Please") else ground) >= 4.5, (name, words)


def test_form_is_answered_by_typing_and_clicking(participant):
    def show(**item):
        shown = FormItem(text="A question", **item)
        participant.front.send(Show("form", "Form", item=shown, keys=(Choice("return", "go on"),)))
        participant.until_shown()

    show(kind="text")
    # a keyboard with ö: xdotool maps a missing letter for a moment, which a busy window reads too late
    subprocess.run(["setxkbmap", "de"], env=participant.screen.environment, check=True)
    participant.screen.xdotool("type", "--delay", "40", "größer, x")
    said = participant.until(lambda said: Key("x", False) in said)
    assert "".join(one.text for one in said if isinstance(one, Typed)) == "größer, x"
    show(kind="likert", points=5)
    answer = Layout(1000, 700).answer
    x, y = answer.x + 0.9 * answer.width, 700 - answer.y - 0.7 * answer.height
    participant.screen.xdotool("mousemove", str(round(x)), str(round(y)), "click", "1")
    assert participant.until(bool) == [Picked(4)]
    keys = Layout(1000, 700).keys
    y = 700 - keys.y - keys.height + 35
    participant.screen.xdotool("mousemove", str(round(keys.middle[0])), str(round(y)), "click", "1")
    assert participant.until(lambda said: len(said) > 1) == [Key("return", True), Key("return", False)]
    show(kind="analogue")
    x, y = round(answer.middle[0]), round(700 - answer.y - answer.height + 63)
    moves = ("mousemove", str(x), str(y), "mousedown", "1", "mousemove", "990", str(y), "mouseup", "1")
    participant.screen.xdotool(*moves)
    said = participant.until(lambda said: Placed(1.0) in said)
    assert said[0].share == pytest.approx(0.5, abs=0.01)
    participant.front.send(shows()["response"])
