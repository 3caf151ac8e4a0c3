"""Parts of the stage that need no display: where things lie, what of the rows is shown, shapes and lines."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.opengl.plane import Plane
from apps.stage.layout import arrange, nice_length
from apps.stage.legend import lines
from apps.stage.marks import MOST, VERTEX, Marks
from apps.stage.motion import MOST_STICKS, Motion, Stretch
from apps.stage.ribbons import ribbon, spring, thinned, zigzag
from haptics.device import Causality
from tests.apps.stage.driving import WORKSPACE, rows
from tests.apps.view import view_rows

SIZES = st.tuples(st.integers(640, 3840), st.integers(480, 2160))


@given(SIZES, st.booleans())
def test_areas_lie_in_the_window_and_apart_and_text_grows(size: tuple[int, int], panel: bool) -> None:
    layout = arrange(*size, panel)
    assert layout.window.holds(layout.plane)
    assert layout.window.holds(layout.panel)
    assert layout.plane.x + layout.plane.width <= layout.panel.x or not panel
    assert layout.window.holds(Plane(layout.plane, WORKSPACE).outline)
    assert layout.text >= 12.5
    assert arrange(2 * size[0], 2 * size[1], panel).text >= layout.text


@pytest.mark.parametrize("size", [(1280, 720), (1366, 768), (2560, 1440), (640, 480)])
def test_the_lines_of_the_column_do_not_lie_over_each_other(size: tuple[int, int]) -> None:
    layout = arrange(*size)
    at = lines(layout)
    heights = [at.run, at.hand, at.state, at.region, at.law, *at.values, at.legend]
    heights += [at.legend - row * at.step for row in range(1, 8)]
    assert (np.diff(heights) < -1.2 * layout.text).all()
    assert heights[-1] > at.keys + layout.text or size == (640, 480)


@given(st.floats(1e-6, 1e6))
def test_a_nice_length_is_round_and_fits(room: float) -> None:
    length = nice_length(room)
    assert 0.39 * room < length <= room * (1 + 1e-9)
    assert f"{length:e}"[0] in "125"


def test_what_is_shown_does_not_depend_on_how_the_rows_come() -> None:
    found = view_rows.simulate(4000)
    at_once, bit_by_bit = (Motion(1000.0, Causality.IMPEDANCE) for _ in range(2))
    at_once.take(found)
    for start in range(0, 4000, 17):
        bit_by_bit.take(found[start : start + 17])
    assert np.array_equal(at_once.trail, bit_by_bit.trail)
    assert all(np.array_equal(*pair) for pair in zip(at_once.sticks(), bit_by_bit.sticks(), strict=True))
    assert at_once.force == pytest.approx(found["command"][-1])
    assert at_once.displacement == pytest.approx(found["displacement"][-1], abs=1e-15)
    assert at_once.largest <= np.hypot(*found["displacement"].T).max()


def test_rests_leave_squares_and_not_too_many() -> None:
    motion = Motion(1000.0, Causality.IMPEDANCE)
    found = rows((0.01, 0.02), count=400, sticking=True)
    motion.take(found)
    places, seconds = motion.sticks()
    assert places == pytest.approx(np.array([[0.01, 0.02]]))
    assert seconds == pytest.approx([0.4], abs=0.01)
    flicker = rows((0.0, 0.0), count=3000, first=400)
    flicker["sticking"] = np.arange(3000) // 40 % 2
    motion.take(flicker)
    assert len(motion.sticks()[0]) == MOST_STICKS


def test_rows_that_are_not_finite_leave_what_was_there() -> None:
    motion = Motion(1000.0, Causality.ADMITTANCE)
    motion.take(rows((0.01, 0.02)))
    broken = rows((float("nan"), 0.0), first=60)
    broken["force"], broken["velocity"] = float("inf"), float("nan")
    motion.take(broken)
    assert motion.position == pytest.approx([0.01, 0.02])
    assert np.isfinite(motion.trail).all()
    assert np.isfinite(motion.force).all()
    assert motion.speed == 0.0


@given(st.lists(st.floats(0, 5e-3), min_size=1, max_size=60), st.floats(1e-3, 2e-2))
def test_the_link_is_never_drawn_much_longer_than_there_is_room(lengths: list[float], room: float) -> None:
    stretch = Stretch()
    stretch.expect(5e-4, room)
    for length in lengths:
        stretch.follow(length, room)
        assert stretch.factor * length <= max(1.15 * room, length)


def test_the_factor_rises_only_after_a_while() -> None:
    stretch = Stretch()
    stretch.expect(0.0, 0.01)
    stretch.follow(5e-3, 0.01)
    assert stretch.factor == 2
    frames = next(n for n in range(1000) if stretch.follow(1e-4, 0.01))
    assert frames > 60
    assert stretch.factor == 100


def test_there_are_never_more_shapes_than_a_hundred() -> None:
    marks = Marks("#000000", 1.5)
    for number in range(2 * MOST):
        marks.disc((number, 0.0), 3.0, "#ffffff")
    assert marks.count == MOST
    assert marks.vertices.shape == (6 * MOST,)
    marks.clear()
    assert marks.vertices.shape == (0,)


def test_a_stroke_covers_its_ends_whichever_way_it_goes() -> None:
    marks = Marks("#000000", 0.0)
    start, end = (10.0, 20.0), (40.0, 60.0)
    marks.stroke(start, end, 4.0, "#ffffff")
    places = marks.vertices["place"]
    along = np.array([0.6, 0.8])
    reach = (places - start) @ along
    assert reach.min() < -2.0
    assert reach.max() > 52.0
    assert np.abs((places - start) @ np.array([-0.8, 0.6])).max() == pytest.approx(2.0 + 1.5)
    assert VERTEX.itemsize % 4 == 0


@given(st.floats(0.5, 200), st.floats(-3.1, 3.1))
def test_a_spring_begins_and_ends_where_it_is_held_and_gets_slimmer(length: float, angle: float) -> None:
    start = np.array([3.0, 4.0])
    along = np.array([np.cos(angle), np.sin(angle)])
    points = spring(start, start + length * along, 8.0)
    assert points[0] == pytest.approx(start)
    assert points[-1] == pytest.approx(start + length * along)
    assert np.abs((points - start) @ np.array([-along[1], along[0]])).max() <= 8.0 + 1e-9
    wide, slim = (np.ptp(spring(np.zeros(2), np.array([x, 0.0]), 8.0)[:, 1]) for x in (80.0, 160.0))
    assert slim < wide


def test_ribbons_are_as_wide_as_asked_and_points_at_rest_are_left_out() -> None:
    x = np.linspace(0.0, 100.0, 51)
    line = np.column_stack((x, np.zeros(51)))
    strip = ribbon(line, 4.0, "#ffffff", np.ones(51))
    assert np.abs(strip["place"][:, 1]).max() == 3.0  # half of it, and a pixel for the smooth edge
    assert len(zigzag(line[:4], 2.0, "#ffffff")) == 18
    still = np.repeat(line[:1], 40, axis=0)
    chosen = thinned(np.concatenate((line, still + np.array([100.0, 0.0]))), 10.0)
    assert len(chosen) <= 13
    assert chosen[-1] == 90
    for short in (line[:0], line[:1]):
        assert len(ribbon(short, 4.0, "#ffffff", np.ones(len(short)))) == len(zigzag(short, 4.0, "#ffffff")) == 0


def test_the_command_line_knows_the_stage_without_loading_pyglet() -> None:
    code = f"import sys; sys.path[:0] = {sys.path!r}; import apps.cli, apps.stage.launch, apps.stage.process"
    code += "; sys.exit('pyglet' in sys.modules or 'PySide6' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
