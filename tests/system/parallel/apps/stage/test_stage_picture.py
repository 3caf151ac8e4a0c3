"""What the stage shows, pixel by pixel, on a virtual screen: colours at places that are known beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from apps.front_ends.messages import SceneInForce, SessionEnded
from apps.shared.theme import DARK, LIGHT
from apps.stage.legend import lines
from apps.stage.motion import Stretch
from apps.stage.scenery import LONGEST_LINK
from haptics.scenes import find_scene, read_scene
from tests.apps.screen import WHY_NOT, Screen
from tests.apps.stage.driving import FORCE, STIFFNESS, Stage, is_there, layout, near, opened, plane, rows

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

AT, STRETCH = (0.01, -0.008), (0.0005, 0.0)


@pytest.fixture(scope="module")
def stage(screen: Screen, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with opened(screen, tmp_path_factory.mktemp("stage")) as it:
        yield it


def places() -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where contact and end effector are on the window: the link is drawn longer by a round factor."""
    stretch = Stretch()
    room = LONGEST_LINK * layout().unit / plane().scale
    stretch.expect(FORCE / STIFFNESS, room)
    x, y = plane().to_window(AT[0] - STRETCH[0], AT[1] - STRETCH[1])
    return (x, y), (x + stretch.factor * STRETCH[0] * plane().scale, y)


def test_a_contact_that_sticks_is_a_filled_square_and_one_that_slips_an_open_ring(stage: Stage) -> None:
    contact, hand = places()
    stage.begin()
    stage.publish(rows(AT, STRETCH, sticking=True))
    sticks = stage.shot()
    assert is_there(DARK.stick, near(sticks, contact, 0))
    assert is_there(DARK.text, near(sticks, hand))
    assert not is_there(DARK.text, near(sticks, plane().to_window(*AT), 0)), "the link is drawn longer than it is"
    stage.publish(rows(AT, STRETCH, sticking=False, first=60))
    slips = stage.shot()
    assert not is_there(DARK.stick, near(slips, contact, 0))
    assert is_there(DARK.motion, near(slips, (contact[0] - 1.1 * layout().unit, contact[1])))
    state = lines(layout())
    words = (slice(None), slice(round(state.left), round(state.right)))
    band = slice(720 - round(state.state + 3 * layout().unit), 720 - round(state.state - 3 * layout().unit))
    assert is_there(DARK.stick, sticks[band][words].reshape(-1, 3))
    assert is_there(DARK.motion, slips[band][words].reshape(-1, 3))


def test_the_link_and_the_force_are_drawn_where_they_act(stage: Stage) -> None:
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


def test_materials_are_drawn_where_they_are_and_told_by_name(stage: Stage) -> None:
    stage.begin()
    bare = stage.shot()
    stage.begin(scene=read_scene(find_scene("ice-wood-rubber")))
    there = rows((-0.05, 0.0))
    there["region"] = 1
    stage.publish(there)
    picture = stage.shot()
    ice, wood, rubber = (near(picture, plane().to_window(x, 0.03), 12).mean(axis=0) for x in (-0.05, 0.0, 0.05))
    assert ice[2] > ice[0] + 10, "bluish"
    assert wood[0] > wood[2] + 40, "brown"
    assert np.ptp(rubber) < 15, "grey"
    assert rubber.mean() < 0.75 * ice.mean()
    at = lines(layout())
    name = slice(720 - round(at.region + 9), 720 - round(at.region - 9))
    assert is_there(DARK.text, picture[name, round(at.left) : round(at.right)].reshape(-1, 3))
    assert not is_there(DARK.text, bare[name, round(at.left) : round(at.right)].reshape(-1, 3))


def test_a_long_name_of_a_material_ends_where_the_column_does(stage: Stage) -> None:
    scene = read_scene(find_scene("ice-wood-rubber"))
    named = [
        replace(region, name=f"a name that nobody would give to a material {k}")
        for k, region in enumerate(scene.regions)
    ]
    stage.begin(scene=replace(scene, regions=named))
    there = rows((-0.05, 0.0))
    there["region"] = 1
    stage.publish(there)
    picture, at = stage.shot(), lines(layout())
    line = picture[720 - round(at.region + 9) : 720 - round(at.region - 9)]
    left, right = round(at.left), round(at.right)
    assert is_there(DARK.text, np.asarray(line[:, left:right]).reshape(-1, 3))
    assert not is_there(DARK.text, np.asarray(line[:, right + 3 :]).reshape(-1, 3))


def test_another_scene_is_drawn_with_the_first_tick_that_is_on_it(stage: Stage) -> None:
    def at(picture: NDArray[np.uint8], x: float) -> NDArray[np.uint8]:
        return near(picture, plane().to_window(x, 0.03), 12)

    stage.begin()
    bare = stage.shot()
    stage.begin(scene=read_scene(find_scene("ice-wood-rubber")))
    stage.publish(rows((-0.05, 0.0)))
    wood = stage.shot()
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


def test_the_trail_follows_the_contact(stage: Stage) -> None:
    stage.begin()
    x = np.linspace(-0.03, 0.03, 800)
    found = rows((0.0, 0.0), count=800)
    found["position"][:, 0], found["proxy"][:, 0] = x, x
    stage.publish(found)
    picture = stage.shot()
    assert is_there(DARK.motion, near(picture, plane().to_window(0.02, 0.0)), 40)
    assert not is_there(DARK.motion, near(picture, plane().to_window(0.02, 0.01)), 40)


def test_light_is_light_and_a_plane_alone_is_wider(stage: Stage) -> None:
    stage.begin()
    stage.publish(rows((0.0, 0.0)))
    column = layout().panel.middle[0], 0.3 * layout().panel.height
    assert is_there(DARK.panel, near(stage.shot(), column, 0), 4)
    stage.press("F7")
    light = stage.shot()
    assert is_there(LIGHT.panel, near(light, column, 0), 4)
    assert is_there(LIGHT.ground, near(light, (3.0, 3.0), 0), 4)
    stage.press("F8")
    assert is_there(LIGHT.ground, near(stage.shot(), (1277.0, 360.0), 0), 4)
    stage.press("F8", "F7")
    assert is_there(DARK.panel, near(stage.shot(), column, 0), 4)


def test_the_keys_are_laid_over_everything_and_go_away(stage: Stage) -> None:
    stage.begin()
    before = stage.shot()
    stage.press("F1")
    helping = stage.shot()
    assert is_there(DARK.motion, helping[200:520, 400:700].reshape(-1, 3))
    stage.press("F1")
    assert (stage.shot() == before).all()


def test_a_frozen_picture_says_so_and_goes_on_where_the_run_is(stage: Stage) -> None:
    stage.begin()
    stage.publish(rows((-0.03, 0.0)))
    stage.shot()
    stage.press("F2")
    stage.publish(rows((0.03, 0.0), first=60))
    frozen = stage.shot()
    assert is_there(DARK.text, near(frozen, plane().to_window(-0.03, 0.0)))
    assert is_there(DARK.notice, frozen[:150].reshape(-1, 3), 12)
    stage.press("F2")
    stage.publish(rows((0.03, 0.0), first=120))
    assert is_there(DARK.text, near(stage.shot(), plane().to_window(0.03, 0.0)))


def test_the_end_is_told_and_a_run_that_never_was_shows_nothing_that_moves(stage: Stage) -> None:
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


def test_it_needs_a_display_with_opengl_and_says_so_in_words(screen: Screen, tmp_path: Path) -> None:
    from apps.stage import launch

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DISPLAY", raising=False)
        assert "DISPLAY is not set" in (launch.why_no_stage() or "")
        patch.setenv("DISPLAY", ":4242")
        assert "It needs a display (DISPLAY) with OpenGL 3.3" in (launch.why_no_stage() or "")
        patch.setenv("DISPLAY", screen.environment["DISPLAY"])
        assert launch.why_no_stage() is None
