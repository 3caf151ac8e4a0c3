"""The stage on a virtual screen: its picture, texts, keys, mouse, ends, and random use."""

import itertools
import os
import random
import time
from dataclasses import replace

import numpy as np
import pytest

from apps.front_ends.messages import (
    Close,
    HandButtons,
    HandTarget,
    HoldKey,
    Key,
    LawInForce,
    Parameter,
    Preparing,
    SceneInForce,
    SessionEnded,
    Start,
    Stop,
    ValuesInForce,
)
from apps.opengl.plane import Area
from apps.shared.theme import DARK, LIGHT
from apps.stage import launch
from apps.stage.layout import LONGEST_LINK
from apps.stage.motion import Stretch
from haptics.scenes import find_scene, read_scene
from tests.apps.screen import WHY_NOT, virtual_screen
from tests.apps.stage.driving import FORCE, SIZE, STIFFNESS, is_there, layout, near, opened, plane, rows
from tests.processes import until

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


AT, STRETCH = (0.01, -0.008), (0.0005, 0.0)


@pytest.fixture(scope="module")
def stage(screen, tmp_path_factory):
    with opened(screen, tmp_path_factory.mktemp("stage")) as it:
        yield it


def drawn(stage, found, **changes):
    """Begin a run with some rows; return the picture."""
    stage.begin(**changes)
    stage.publish(found)
    return stage.shot()


def places():
    """Return contact and end effector in the window; the link is enlarged by a round factor."""
    stretch = Stretch()
    room = LONGEST_LINK * layout().unit / plane().scale
    stretch.expect(FORCE / STIFFNESS, room)
    x, y = plane().to_window(AT[0] - STRETCH[0], AT[1] - STRETCH[1])
    return (x, y), (x + stretch.factor * STRETCH[0] * plane().scale, y)


def test_sticking_contact_is_a_filled_square_and_sliding_one_an_open_ring(stage):
    contact, hand = places()
    sticks = drawn(stage, rows(AT, STRETCH, sticking=True))
    assert is_there(DARK.stick, near(sticks, contact, 0))
    assert is_there(DARK.text, near(sticks, hand))
    assert not is_there(DARK.text, near(sticks, plane().to_window(*AT), 0)), "the link is enlarged"
    stage.publish(rows(AT, STRETCH, sticking=False, first=60))
    slips = stage.shot()
    assert not is_there(DARK.stick, near(slips, contact, 0))
    assert is_there(DARK.motion, near(slips, (contact[0] - 1.1 * layout().unit, contact[1])))
    state = layout()
    words = (slice(None), slice(round(state.left), round(state.right)))
    band = slice(720 - round(state.state + 3 * layout().unit), 720 - round(state.state - 3 * layout().unit))
    assert is_there(DARK.stick, sticks[band][words].reshape(-1, 3))
    assert is_there(DARK.motion, slips[band][words].reshape(-1, 3))


def test_link_and_force_are_drawn_at_their_places(stage):
    contact, hand = places()
    stage.begin()
    empty = stage.shot()
    stage.publish(rows(AT, STRETCH, sticking=True))
    picture = stage.shot()
    middle = 0.5 * (contact[0] + hand[0]), contact[1]
    assert is_there(DARK.friction, near(picture, middle, 6), 40)
    assert not is_there(DARK.friction, near(empty, middle, 6), 40)
    # The force on the hand, 3 N to the left, comes from the right: its tip is at the hand.
    beyond = hand[0] + 6.5 * layout().unit, hand[1]
    assert is_there(DARK.force, near(picture, beyond))
    assert not is_there(DARK.force, near(picture, (contact[0] - 4.5 * layout().unit, contact[1])))


def test_materials_are_drawn_at_their_places_and_named(stage):
    stage.begin()
    bare = stage.shot()
    there, scene = rows((-0.05, 0.0)), read_scene(find_scene("ice-wood-rubber"))
    there["region"] = 1
    picture = drawn(stage, there, scene=scene)
    ice, wood, rubber = (near(picture, plane().to_window(x, 0.03), 12).mean(axis=0) for x in (-0.05, 0.0, 0.05))
    assert ice[2] > ice[0] + 10, "bluish"
    assert wood[0] > wood[2] + 40, "brown"
    assert np.ptp(rubber) < 15, "grey"
    assert rubber.mean() < 0.75 * ice.mean()
    at = layout()
    name = slice(720 - round(at.region + 9), 720 - round(at.region - 9)), slice(round(at.left), round(at.right))
    assert is_there(DARK.text, picture[name].reshape(-1, 3))
    assert not is_there(DARK.text, bare[name].reshape(-1, 3))
    named = [replace(region, name=f"a name too long for a material {k}") for k, region in enumerate(scene.regions)]
    long = drawn(stage, there, scene=replace(scene, regions=named))
    assert is_there(DARK.text, long[name].reshape(-1, 3))
    assert not is_there(DARK.text, long[name[0], round(at.right) + 3 :].reshape(-1, 3)), "it ends with the column"


def test_model_and_level_of_another_law_are_shown(stage):
    before = drawn(stage, rows(AT, STRETCH))
    force = Parameter("law.force", 2 * FORCE, 0.0, 10.0, "N")
    stage.shown.front.send(LawInForce("B", "coulomb", {"force": 2 * FORCE}, (force,)))
    stage.publish(rows(AT, STRETCH, first=60))
    after = stage.shot()
    at = layout()
    for line in (at.run, at.law):
        band = slice(720 - round(line + 9), 720 - round(line - 9)), slice(round(at.left), round(at.right))
        assert is_there(DARK.text, after[band].reshape(-1, 3)) or is_there(DARK.faint, after[band].reshape(-1, 3))
        assert (before[band] != after[band]).any()


def test_changed_scene_is_drawn_from_its_first_tick(stage):
    def at(picture, x):
        return near(picture, plane().to_window(x, 0.03), 12)

    stage.begin()
    bare = stage.shot()
    wood = drawn(stage, rows((-0.05, 0.0)), scene=read_scene(find_scene("ice-wood-rubber")))
    stage.shown.front.send(SceneInForce(read_scene(find_scene("border")), 3))
    stage.shown.front.send(SceneInForce(None, 5))
    pictures = []
    for number, version in enumerate((2, 4, 5), 1):
        found = rows((-0.05, 0.0), first=60 * number)
        found["settings_version"], found["region"] = version, 0 if version < 5 else -1
        stage.publish(found)
        pictures.append(stage.shot())
    before, border, nothing = pictures
    assert (at(before, 0.02) == at(wood, 0.02)).all(), "the servo does not have it yet"
    brown = [picture[:, 0].mean() - picture[:, 2].mean() for picture in (at(before, 0.01), at(border, 0.01))]
    assert brown[0] > 40.0 and abs(brown[1]) < 15.0, "wood, and then rubber"
    assert (at(border, -0.04) != at(wood, -0.04)).any(), "no ice any more"
    assert (at(nothing, 0.01) == at(bare, 0.01)).all()


def test_trail_follows_the_contact(stage):
    x = np.linspace(-0.03, 0.03, 800)
    found = rows((0.0, 0.0), count=800)
    found["position"][:, 0], found["proxy"][:, 0] = x, x
    picture = drawn(stage, found)
    assert is_there(DARK.motion, near(picture, plane().to_window(0.02, 0.0)), 40)
    assert not is_there(DARK.motion, near(picture, plane().to_window(0.02, 0.01)), 40)


def test_theme_and_plane_alone_are_toggled_by_keys(stage):
    column = layout().panel.middle[0], 0.3 * layout().panel.height
    assert is_there(DARK.panel, near(drawn(stage, rows((0.0, 0.0))), column, 0), 4)
    stage.press("F7")
    light = stage.shot()
    assert is_there(LIGHT.panel, near(light, column, 0), 4)
    assert is_there(LIGHT.ground, near(light, (3.0, 3.0), 0), 4)
    stage.press("F8")
    assert is_there(LIGHT.ground, near(stage.shot(), (1277.0, 360.0), 0), 4)
    stage.press("F8", "F7")
    assert is_there(DARK.panel, near(stage.shot(), column, 0), 4)


def test_help_covers_the_picture_and_disappears(stage):
    stage.begin()
    before = stage.shot()
    stage.press("F1")
    assert is_there(DARK.motion, stage.shot()[200:520, 400:700].reshape(-1, 3))
    stage.press("F1")
    assert (stage.shot() == before).all()


def test_frozen_picture_is_marked_and_resumes_with_the_run(stage):
    drawn(stage, rows((-0.03, 0.0)))
    stage.press("F2")
    stage.publish(rows((0.03, 0.0), first=60))
    frozen = stage.shot()
    assert is_there(DARK.text, near(frozen, plane().to_window(-0.03, 0.0)))
    assert is_there(DARK.notice, frozen[:150].reshape(-1, 3), 12)
    stage.press("F2")
    stage.publish(rows((0.03, 0.0), first=120))
    assert is_there(DARK.text, near(stage.shot(), plane().to_window(0.03, 0.0)))


def test_end_of_a_run_is_shown_and_a_run_without_ticks_is_empty(stage):
    stage.begin()
    nothing = stage.shot()
    centre = plane().to_window(0.0, 0.0)
    assert not is_there(DARK.text, near(nothing, centre, 1))
    stage.publish(rows((0.0, 0.0)))
    stage.shot()
    stage.shown.front.send(SessionEnded("stopped"))
    ended = stage.shot()
    assert (ended[:150, :900] != nothing[:150, :900]).any(), "a banner"
    assert is_there(DARK.text, near(ended, centre)), "the last picture stays"


def test_missing_display_is_reported(screen):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DISPLAY", raising=False)
        assert "DISPLAY is not set" in (launch.stage_obstacle() or "")
        patch.setenv("DISPLAY", ":4242")
        assert "It needs a display (DISPLAY) with OpenGL 3.3" in (launch.stage_obstacle() or "")
        patch.setenv("DISPLAY", screen.environment["DISPLAY"])
        assert launch.stage_obstacle() is None


def test_space_bar_stops_and_other_keys_are_passed_on(stage):
    stage.begin()
    before = time.monotonic()
    stage.shown.screen.xdotool("key", "f", "space")
    said = stage.shown.until(lambda said: Stop() in said)
    assert said == [Key("f", True), Key("f", False), Stop()]
    assert before - 0.001 <= said[0].at <= said[1].at <= time.monotonic()


def test_enter_starts_an_ended_run_again(stage):
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


def test_mouse_over_the_workspace_is_the_hand(stage):
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


def test_dead_mans_key_is_repeated_and_esc_stops(stage):
    stage.begin(dead_man="key")
    stage.shown.screen.xdotool("keydown", "space", "sleep", "0.4", "keyup", "space")
    said = stage.shown.until(lambda said: HoldKey(False) in said)
    assert said[:-1] == [HoldKey(True)] * (len(said) - 1)
    assert 3 <= len(said) - 1 <= 12
    stage.shown.screen.xdotool("key", "Escape")
    assert stage.shown.until(bool) == [Stop()]


def test_key_pressed_before_the_run_must_be_pressed_again(stage):
    stage.begin()
    stage.shown.screen.xdotool("keydown", "space")
    stage.shown.until(lambda said: Stop() in said)
    stage.begin(dead_man="key")
    time.sleep(0.3)
    assert stage.shown.front.messages() == []
    stage.shown.screen.xdotool("keyup", "space", "keydown", "space", "keyup", "space")
    assert HoldKey(True) in stage.shown.until(lambda said: said[-1:] == [HoldKey(False)] and HoldKey(True) in said)


def test_f11_fills_the_screen_and_esc_leaves_it(stage):
    stage.begin()
    stage.publish(rows((0.0, 0.0)))
    screen = stage.shown.screen
    for key, size in (("F11", (1280, 900)), ("Escape", SIZE)):
        screen.xdotool("key", key)
        stage.shown.until_shown()
        until(lambda size=size: stage.reach() == size, f"{key} does not lead to {size}")
        picture = stage.shot()
        assert picture.shape[:2] == size[::-1]
        assert is_there(DARK.text, near(picture, plane(size).to_window(0.0, 0.0)))
    assert stage.shown.front.messages() == []


def test_missing_trace_and_damaged_row_are_survived(stage, tmp_path):
    stage.begin(trace=tmp_path / "none")
    stage.begin()
    damaged = rows((float("nan"), float("inf")), (float("nan"), 0.0))
    damaged["velocity"] = float("nan")
    stage.publish(damaged)
    stage.shown.until_shown()
    assert stage.shown.front.open


def test_closed_window_sends_close(stage):
    """The last test with this window."""
    stage.shown.front.messages()
    stage.shown.screen.close(stage.window)
    assert stage.shown.until(lambda said: not stage.shown.front.open) == [Close()]


KEYS = ("F1", "F2", "F7", "F8", "F11", "Escape", "Return", "space", "f", "Left", "shift+Tab", "ctrl+c", "KP_Enter")


@pytest.mark.timeout(900)
def test_random_use_does_not_break_the_stage(tmp_path):
    """MONKEY_SECONDS=180 runs it for minutes."""
    rng, seconds = random.Random(1), float(os.environ.get("MONKEY_SECONDS", "5"))
    with virtual_screen() as screen, opened(screen, tmp_path) as stage:
        end, tick = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            stage.shown.screen.xdotool(script="".join(random_act(rng, stage.window) for _ in range(12)))
            for message in (None, SessionEnded("stopped"), Preparing("x"), ValuesInForce({"law.force": rng.random()})):
                if message is not None and rng.random() < 0.2:
                    stage.shown.front.send(message)
            if rng.random() < 0.3:
                tick = 0
                stage.begin(mouse=rng.random() < 0.5, dead_man=rng.choice(("none", "key", "button")))
            place = rng.uniform(-0.06, 0.06), rng.uniform(-0.045, 0.045)
            stage.publish(rows(place, (rng.gauss(0, 1e-3), 0.0), sticking=rng.random() < 0.5, first=tick))
            tick += 60
            stage.shown.until_shown()
        assert stage.shown.front.open


def random_act(rng, window):
    match rng.randrange(4):
        case 0 | 1:
            return f"key --clearmodifiers {rng.choice(KEYS)}\n"
        case 2:
            return f"mousemove --window {window} {rng.randrange(1280)} {rng.randrange(720)}\n"
        case _:
            return f"click {rng.randrange(1, 8)}\n"


@pytest.fixture(scope="module")
def laid_out(screen):
    return list(screen.answer("tests.apps.stage.measure_texts"))


def test_texts_are_neither_cut_nor_overlapping(laid_out):
    assert len(laid_out) == 12
    for entry in laid_out:
        window, panel = Area(0, 0, *entry["size"]), Area(*entry["panel"])
        for part, found in entry["boxes"].items():
            boxes = [Area(*box) for box in found]
            room, place = panel if part == "numbers" else window, (entry["size"], entry["scene"], part, entry["words"])
            assert all(room.holds(box) for box in boxes), place
            for one, other in itertools.combinations(boxes, 2):
                apart_x = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
                apart_y = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
                # Boxes have air above and below the letters.
                assert min(apart_x, apart_y) < 0.35 * min(one.height, other.height), place
