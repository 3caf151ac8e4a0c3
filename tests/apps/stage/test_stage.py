"""Parts of the stage that need no display."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyglet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.front_ends.messages import HandButtons, HandTarget
from apps.opengl.drawing import badge, cross, tick
from apps.opengl.plane import Area, Plane
from apps.stage.ground import LOOKS, grid, ground_of
from apps.stage.layout import Layout, nice_length
from apps.stage.motion import MOST_STICKS, Motion, Stretch
from apps.stage.pointing import DEAD_ZONE, Gamepad, Pen, Pointers
from apps.stage.shapes import MOST, Marks, ribbon, thinned, zigzag
from haptics import Coulomb
from haptics.device import Causality
from haptics.scenes import LOOKS as SCENE_LOOKS
from haptics.scenes import Circle, HalfPlane, ImageMap, Polygon, Region, Scene, find_scene, read_scene, shipped_scenes
from tests.apps.stage.driving import WORKSPACE, rows
from tests.apps.view import view_rows
from tests.haptics.references import region_at

# --- layout, motion and shapes ----------------------------------------------------------------------------------------

SIZES = st.tuples(st.integers(640, 4000), st.integers(480, 2400))


@given(SIZES, st.booleans())
def test_layout_areas_fit_the_window_and_text_grows_with_it(size, panel):
    layout = Layout(*size, panel)
    assert layout.window.holds(layout.plane)
    assert layout.window.holds(layout.panel)
    assert layout.plane.x + layout.plane.width <= layout.panel.x or not panel
    assert layout.window.holds(Plane(layout.plane, WORKSPACE).outline)
    assert layout.text >= 12.5
    assert Layout(2 * size[0], 2 * size[1], panel).text >= layout.text


@given(st.floats(1e-6, 1e6))
def test_scale_bar_length_is_round_and_fits(room):
    length = nice_length(room)
    assert 0.39 * room < length <= room * (1 + 1e-9)
    assert f"{length:e}"[0] in "125"


def test_motion_does_not_depend_on_the_chunk_size():
    found = view_rows.simulate(4000)
    at_once, bit_by_bit = (Motion(1000.0, Causality.IMPEDANCE) for _ in range(2))
    at_once.add_rows(found)
    for start in range(0, 4000, 17):
        bit_by_bit.add_rows(found[start : start + 17])
    assert np.array_equal(at_once.trail, bit_by_bit.trail)
    assert all(np.array_equal(*pair) for pair in zip(at_once.sticks(), bit_by_bit.sticks(), strict=True))
    assert at_once.force == pytest.approx(found["command"][-1])
    assert at_once.displacement == pytest.approx(found["displacement"][-1], abs=1e-15)
    assert at_once.largest <= np.hypot(*found["displacement"].T).max()


def test_sticking_phases_are_marked_up_to_a_maximum():
    motion = Motion(1000.0, Causality.IMPEDANCE)
    found = rows((0.01, 0.02), count=400, sticking=True)
    motion.add_rows(found)
    places, seconds = motion.sticks()
    assert places == pytest.approx(np.array([[0.01, 0.02]]))
    assert seconds == pytest.approx([0.4], abs=0.01)
    flicker = rows((0.0, 0.0), count=3000, first=400)
    flicker["sticking"] = np.arange(3000) // 40 % 2
    motion.add_rows(flicker)
    assert len(motion.sticks()[0]) == MOST_STICKS


def test_motion_keeps_its_state_at_rows_that_are_not_finite():
    motion = Motion(1000.0, Causality.ADMITTANCE)
    motion.add_rows(rows((0.01, 0.02)))
    broken = rows((float("nan"), 0.0), first=60)
    broken["force"], broken["velocity"] = float("inf"), float("nan")
    motion.add_rows(broken)
    assert motion.position == pytest.approx([0.01, 0.02])
    assert np.isfinite(motion.trail).all() and np.isfinite(motion.force).all()
    assert motion.speed == 0.0


@given(st.lists(st.floats(0, 5e-3), min_size=1, max_size=60), st.floats(1e-3, 2e-2))
def test_link_length_is_limited_to_the_room(lengths, room):
    stretch = Stretch()
    stretch.expect(5e-4, room)
    for length in lengths:
        stretch.follow(length, room)
        assert stretch.factor * length <= max(1.15 * room, length)


def test_stretch_factor_rises_after_a_delay():
    stretch = Stretch()
    stretch.expect(0.0, 0.01)
    stretch.follow(5e-3, 0.01)
    assert stretch.factor == 2
    assert next(frame for frame in range(1000) if stretch.follow(1e-4, 0.01)) > 60
    assert stretch.factor == 100


def test_number_of_shapes_is_limited():
    marks = Marks("#000000", 0.0)
    for number in range(2 * MOST):
        marks.disc((number, 0.0), 3.0, "#ffffff")
    assert (marks.count, marks.vertices.shape) == (MOST, (6 * MOST,))
    marks.clear()
    assert marks.vertices.shape == (0,)


def test_ribbon_has_its_width_and_resting_points_are_thinned():
    x = np.linspace(0.0, 100.0, 51)
    line = np.column_stack((x, np.zeros(51)))
    strip = ribbon(line, 4.0, "#ffffff", np.ones(51))
    assert np.abs(strip["place"][:, 1]).max() == 3.0  # half of it, and a pixel for the smooth edge
    assert len(zigzag(line[:4], 2.0, "#ffffff")) == 18
    still = np.repeat(line[:1], 40, axis=0)
    chosen = thinned(np.concatenate((line, still + np.array([100.0, 0.0]))), 10.0)
    assert len(chosen) <= 13 and chosen[-1] == 90
    for short in (line[:0], line[:1]):
        assert len(ribbon(short, 4.0, "#ffffff", np.ones(len(short)))) == len(zigzag(short, 4.0, "#ffffff")) == 0


@given(SIZES, st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0, 1), st.floats(0, 1))
def test_plane_coordinates_are_inverse(size, width, height, u, v):
    workspace = ((-0.3 * width, -0.6 * height), (0.7 * width, 0.4 * height))
    area = Area(11.0, 7.0, *size)
    plane = Plane(area, workspace)
    place = workspace[0][0] + u * width, workspace[0][1] + v * height
    pixel = plane.to_window(*place)
    assert plane.to_plane(*pixel) == pytest.approx(place, abs=1e-9)
    assert area.holds(plane.outline)
    outside = plane.to_plane(pixel[0] + 1e5, pixel[1] - 1e5)
    assert outside == pytest.approx((workspace[1][0], workspace[0][1]))


def test_badges_and_answer_symbols_differ_by_shape():
    size = 60
    shapes = [badge(number, size) for number in (1, 2, 3)] + [tick(size), cross(size)]
    for number, one in enumerate(shapes):
        for other in shapes[:number]:
            assert np.abs(one - other).mean() > 0.1


# --- ground -----------------------------------------------------------------------------------------------------------

SIZE = (924.0, 693.0)
ICE, RUBBER = LOOKS.index("ice") - 1, LOOKS.index("rubber") - 1

HALF = Region("rubber", HalfPlane((0.0, 0.0), (-1.0, 0.0)), Coulomb(6.0), "rubber")
TWO = Scene(Coulomb(1.0), (HALF,), border=0.004, look="ice")


def at(ground, x, y):
    """Return the numbers at the cell in which a place [m] lies."""
    rows, columns, _ = ground.looks.shape
    (left, low), (right, high) = WORKSPACE
    row, column = int(rows * (y - low) / (high - low)), int(columns * (x - left) / (right - left))
    return ground.looks[row, column], ground.others[row, column]


def test_looks_and_border_distances_follow_the_law():
    assert set(LOOKS) == set(SCENE_LOOKS)
    ground = ground_of(TWO, WORKSPACE, SIZE)
    points = grid(WORKSPACE, SIZE).reshape(-1, 2)
    share = (TWO.numbers_at(points)[:, 0] - 1.0) / 5.0
    rubber, ice = ground.looks[..., RUBBER].reshape(-1), ground.looks[..., ICE].reshape(-1)
    assert rubber / 255 == pytest.approx(share, abs=0.003)
    assert (ice.astype(int) + rubber - 255 == pytest.approx(0, abs=1)) and 0 < (rubber % 255 > 0).sum()
    distances = ground.others[100, :, 2].astype(float)
    x = grid(WORKSPACE, SIZE)[100, :, 0]
    near = np.abs(x) < 0.0035
    assert distances[near] == pytest.approx(255 * (0.5 - x[near] / 0.008), abs=1.0)
    assert (distances.min(), distances.max()) == (0, 255)


def test_later_region_covers_the_border_of_an_earlier_one():
    wood = Region("a", HalfPlane((0.0, 0.0), (-1.0, 0.0)), Coulomb(2.0), "wood")
    metal = Region("b", Circle((0.0, 0.0), 0.02), Coulomb(3.0), "metal")
    ground = ground_of(Scene(Coulomb(1.0), (wood, metal)), WORKSPACE, SIZE)
    assert at(ground, 0.0, 0.0)[1][2] == 0, "inside the circle, on the line"
    assert at(ground, 0.0, 0.03)[1][2] == pytest.approx(128, abs=12)
    assert tuple(at(ground, 0.0, 0.0)[0]) == (0, 0, 0, 255)


def test_labels_lie_in_the_visible_part_of_their_region():
    hidden = Region("hidden", Circle((0.03, 0.02), 0.01), Coulomb(2.0))
    square = Polygon([(0.01, 0.0), (0.06, 0.0), (0.06, 0.04), (0.01, 0.04)])
    left = Region("left", HalfPlane((-0.03, 0.0), (1.0, 0.0)), Coulomb(4.0))
    scene = Scene(Coulomb(1.0), (hidden, Region("over it", square, Coulomb(3.0), "glass"), left))
    labels = {label.words: label.place for label in ground_of(scene, WORKSPACE, SIZE).labels}
    assert list(labels) == ["over it  3 N", "left  4 N"]
    assert region_at(scene, list(labels.values())).tolist() == [2, 3]
    band = Region("band", HalfPlane((0.0, -0.03), (0.0, 1.0)), Coulomb(2.0))
    (label,) = ground_of(Scene(Coulomb(1.0), (band,)), WORKSPACE, SIZE).labels
    assert label.place == pytest.approx((0.0, -0.0375), abs=0.001)


def test_image_is_dark_where_friction_is_high():
    levels = np.array([[0, 255]], np.uint8)
    image = ImageMap(levels, Coulomb(1.0), Coulomb(5.0), corner=(-0.06, -0.045), size=(0.12, 0.09))
    whole = Polygon([(-0.1, -0.1), (0.1, -0.1), (0.1, 0.1), (-0.1, 0.1)])
    ground = ground_of(Scene(Coulomb(1.0), (Region("map", whole, image, "metal"),)), WORKSPACE, SIZE)
    assert at(ground, -0.05, 0.0)[1][1] < 20
    assert at(ground, 0.05, 0.0)[1][1] > 235
    assert ground.labels[0].words == "map  1 to 5 N"
    assert at(ground_of(TWO, WORKSPACE, SIZE), 0.05, 0.0)[1][1] == pytest.approx(128, abs=1), "not an image"


@pytest.mark.parametrize("name", sorted(shipped_scenes()))
def test_shipped_scene_can_be_drawn(name):
    ground = ground_of(read_scene(find_scene(name)), WORKSPACE, SIZE)
    assert ground.looks.shape == ground.others.shape == (231, 308, 4)
    shares = ground.looks.sum(axis=2).astype(int) + ground.others[..., 0]
    assert shares.max() <= 257


def test_ground_without_a_scene_is_plain():
    ground = ground_of(None, WORKSPACE, SIZE)
    assert not ground.looks.any() and not ground.labels and not ground.walls


# --- gamepad and pen --------------------------------------------------------------------------------------------------

PLANE = Plane(Area(0, 0, 1200, 900), WORKSPACE)


class Pad:
    """Emulated gamepad whose axes and buttons a test moves."""

    def __init__(self):
        base, relation = pyglet.input.base, pyglet.input.controller.Relation
        self.x, self.y = (base.AbsoluteAxis(name, 0, 255, name) for name in ("x", "y"))
        self.a = base.Button("a")
        device = type("EmulatedPad", (base.Device,), {"get_controls": lambda device: [self.x, self.y, self.a]})(
            None, "pad"
        )
        device.id_product = None
        controls = {"leftx": ("axis", 0), "lefty": ("axis", 1), "a": ("button", 0)}
        mapping = {name: relation(*place, pyglet.input.controller.Sign.DEFAULT) for name, place in controls.items()}
        self.controller = base.Controller(device, {"guid": "0", "name": "an emulated pad", **mapping})
        self.device = device


@pytest.fixture(autouse=True)
def no_shadow_window():
    """Let pyglet be imported without a display."""
    pyglet.options.shadow_window = False


@pytest.fixture
def pad():
    return Pad()


def test_gamepad_stick_covers_the_workspace_and_rests_in_its_middle(pad):
    said: list[Any] = []
    gamepad = Gamepad(pad.controller, said.append)
    assert gamepad.name == "an emulated pad"
    pad.x.value = 255
    assert said == [], "without a plane"
    gamepad.set_plane(PLANE)
    pad.x.value = 130
    assert said == [], "a small motion does not take the hand from the mouse"
    pad.x.value, pad.y.value = 255, 0
    assert said[-1] == HandTarget(*(pytest.approx(part) for part in WORKSPACE[1]))
    pad.x.value, pad.y.value = 128, 128
    assert abs(2 * 128 / 255 - 1) < DEAD_ZONE
    assert said[-1] == HandTarget(pytest.approx(0.0), pytest.approx(0.0))
    gamepad.set_plane(None)
    said.clear()
    pad.x.value = 0
    assert said == []


def test_gamepad_buttons_are_released_with_the_plane_and_an_unplugged_one_is_closed(pad):
    messages: list[Any] = []
    gamepad = Gamepad(pad.controller, messages.append)
    gamepad.set_plane(PLANE)
    pad.a.value = 1
    assert messages == [HandButtons(2)]
    gamepad.set_plane(None)
    assert messages == [HandButtons(2), HandButtons(0)]
    gamepad.poll()
    pad.device.open()
    pad.device.poll = raising(OSError(19, "No such device"))
    gamepad.poll()
    assert not pad.device.is_open


class Events(pyglet.event.EventDispatcher):
    """The events of a window."""


for _name in ("on_mouse_motion", "on_mouse_drag", "on_mouse_press", "on_mouse_release", "on_deactivate"):
    Events.register_event_type(_name)


def test_pen_pressure_sets_the_grip():
    from apps.opengl.window import Hand

    window = Events()
    said: list[Any] = []
    hand = Hand(window, said.append)
    hand.set_plane(PLANE)
    canvas = pyglet.input.base.TabletCanvas(window)
    pen = Pen(canvas, hand)  # pyglet keeps a weak reference only
    canvas.dispatch_event("on_motion", None, 600, 450, 0.3, 0.0, 0.0, 0)
    assert said[-1] == HandTarget(pytest.approx(0.0), pytest.approx(0.0), 0.3)
    window.dispatch_event("on_mouse_motion", 600, 450, 0, 0)
    assert said[-1].grip == 0.3, "the pointer of the window system is the same pen"
    canvas.dispatch_event("on_motion", None, 600, 450, 7.0, 0.0, 0.0, 0)
    assert said[-1].grip == 1.0
    canvas.dispatch_event("on_motion", None, 600, 450, 0.0, 0.0, 0.0, 0)
    canvas.dispatch_event("on_leave", None)
    window.dispatch_event("on_mouse_motion", 600, 450, 0, 0)
    assert said[-1].grip == 1.0, "a mouse grips firmly"
    del pen


def pointers_of(monkeypatch, controllers, tablets):
    """Return the pointers for these functions of pyglet."""
    from apps.opengl.window import Hand

    monkeypatch.setattr("pyglet.input.get_controllers", controllers)
    monkeypatch.setattr("pyglet.input.get_tablets", lambda display: tablets())
    window = Events()
    window.display = None
    return Pointers(window, Hand(window, [].append), [].append)


def raising(error):
    def function(*_):
        raise error

    return function


def test_missing_input_devices_are_reported_with_the_reason(monkeypatch):
    from pyglet.input.linux import evdev

    from apps.stage.picture import keys

    monkeypatch.setattr(evdev.os, "listdir", raising(FileNotFoundError(2, "No such file or directory", "/dev/input")))
    pointers = pointers_of(monkeypatch, evdev.get_controllers, raising(ImportError('Library "Xi" not found.')))
    assert pointers.names == ("no gamepad: this system has no /dev/input", 'no pen: Library "Xi" not found.')
    pointers.set_plane(PLANE)
    pointers.poll()
    assert ("", "no gamepad: this system has no /dev/input") in keys(False, True, pointers.names)
    no_mouse = keys(False, False, pointers.names)
    assert not any("gamepad" in words for _, words in no_mouse), "only where the mouse is the hand"


def test_inaccessible_gamepad_is_named_and_another_one_is_used(pad, monkeypatch):
    other = Pad()
    other.device.open = raising(PermissionError(13, "Permission denied", "/dev/input/event7"))
    pointers = pointers_of(monkeypatch, lambda: [other.controller, pad.controller], list)
    assert pointers.names == (
        "an emulated pad: its left stick is your hand",
        "an emulated pad: cannot be opened (Permission denied)",
    )
    assert pad.device.is_open
