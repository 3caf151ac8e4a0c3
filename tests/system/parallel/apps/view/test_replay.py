"""Replays, pictures of recordings, comparisons, and saved pictures and data."""

import csv
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtGui, QtTest, QtWidgets

from apps.compare.comparison import OPEN_LOOP, Side
from apps.shared.theme import DARK, LIGHT
from apps.view.comparison import PLOTS, CompareWindow
from apps.view.dashboard import shown_folder
from apps.view.replay import ReplayWindow
from apps.view.screenshot import grab
from apps.view.screenshot import main as screenshot
from haptics.errors import RecordingError
from haptics.records import ROW, Status
from tests.apps.view import view_rows
from tests.apps.view.driving import controls_of, texts_of, use
from tests.apps.view.summaries import REASONS, UNFIT
from tests.recordings import KEPT
from tests.system.parallel.commands import run_python


def replay_of(qtbot, rows, **metadata):
    """Show a replay of `rows` with additional metadata."""
    window = ReplayWindow(rows, {**view_rows.METADATA, **metadata}, DARK)
    qtbot.addWidget(window)
    window.show()
    return window


@pytest.fixture
def window(qtbot, rows):
    """A replay, paused at the first tick."""
    shown = replay_of(qtbot, rows)
    assert shown.index == len(rows) - 1
    shown.seek(0)
    yield shown
    shown.close()


def press(window, code, modifier=QtCore.Qt.KeyboardModifier.NoModifier):
    """Type a key while the speed list has the focus."""
    QtTest.QTest.keyClick(window.transport.speed, code, modifier)


def shown_tick(window):
    """Return the tick in the text of the window."""
    return int(window.transport.place.text().split("\u2002")[0].removeprefix("tick ").replace("\u2009", ""))


@pytest.mark.parametrize("index", [6499, 1234, 0, 5001])
def test_scrubbing_shows_that_tick(window, rows, index):
    window.transport.slider.setValue(6000)
    window.transport.slider.setValue(index)
    assert shown_tick(window) == index
    assert window.index == index
    x, _ = window.dashboard.plane._effector.getData()
    assert x[0] == pytest.approx(1e3 * rows["position"][index, 0])
    assert f"{index + 1:,} ticks".replace(",", "\u2009") in window.dashboard.numbers.text()


def test_keys_step_and_jump(window):
    keys = QtCore.Qt.Key
    window.seek(3000)
    for code, modifier, expected in (
        (keys.Key_Right, QtCore.Qt.KeyboardModifier.NoModifier, 3001),
        (keys.Key_Left, QtCore.Qt.KeyboardModifier.ShiftModifier, 2901),
        (keys.Key_PageDown, QtCore.Qt.KeyboardModifier.NoModifier, 3901),
        (keys.Key_PageUp, QtCore.Qt.KeyboardModifier.NoModifier, 2901),
        (keys.Key_End, QtCore.Qt.KeyboardModifier.NoModifier, 6499),
        (keys.Key_Right, QtCore.Qt.KeyboardModifier.NoModifier, 6499),
        (keys.Key_Home, QtCore.Qt.KeyboardModifier.NoModifier, 0),
        (keys.Key_Left, QtCore.Qt.KeyboardModifier.NoModifier, 0),
    ):
        press(window, code, modifier)
        assert window.index == expected


def test_space_plays_and_pauses(window):
    for state in ((True, "Pause"), (False, "Play")):
        press(window, QtCore.Qt.Key.Key_Space)
        assert (window.playing, window.transport.button.text()) == state


def test_playing_moves_by_the_wall_clock_times_the_speed(window):
    window.advance(1.0)
    assert window.index == pytest.approx(1000, abs=1)
    window.transport.speed.setCurrentText("0.01 ×")
    for _ in range(100):
        window.advance(0.033)
    assert window.index == pytest.approx(1033, abs=1)


def test_playing_stops_at_the_end_and_restarts(window):
    window.toggle()
    window.advance(100.0)
    assert (window.index, window.playing) == (6499, False)
    window.toggle()
    assert (window.index, window.playing) == (0, True)


def test_playing_takes_the_time_of_gaps(qtbot, rows):
    holed = np.concatenate((rows[:1000], rows[2000:3000]))
    window = replay_of(qtbot, holed)
    window.seek(0)
    window.advance(1.5)
    assert window.index == 999
    window.advance(1.0)
    assert window.index == pytest.approx(1500, abs=1)
    assert "1\u2009000 skipped" in window.dashboard.numbers.text()


def test_replay_shows_certificate_and_error(qtbot, rows):
    error = "virtual-joystick failed at tick 512: unplugged"
    window = replay_of(qtbot, rows, certificate={**UNFIT, "scheduling": "fifo"}, reason="fault", error=error)
    card = window.dashboard.end
    assert card.isVisible()
    for part in ("UNFIT", "Run ended: fault", error, *REASONS, "p99.9", "410"):
        assert part in texts_of(card)


def test_replay_shows_flags_energy_and_dead_man_of_every_tick(qtbot, rows):
    rows = rows[:3000].copy()
    rows["status"][:1000] = Status.RELEASED
    rows["injected_energy"][1500] = 4e-3
    window = replay_of(qtbot, rows, limits={"max_energy": 0.02, "dead_man": "key"})
    dashboard = window.dashboard
    banner, energy = dashboard.dead_man, dashboard.safety
    for index, released, mark in ((999, True, 0.0), (1400, False, 0.0), (1500, False, 0.2), (2900, False, 0.2)):
        window.seek(index)
        assert banner.property("released") == released
        assert banner.order.text() == ("THE SPACE BAR WAS NOT HELD" if released else "The space bar was held")
        assert energy.bar.marked == pytest.approx(mark)
        assert dashboard.safety.lamps.shown[Status.RELEASED] == (True, index < 2000)
    window.seek(1500)
    assert energy.bar.filled == pytest.approx(0.2)
    assert energy.number.text() == "energy 4.00 of 20\u00a0mJ"


def test_recording_without_ticks_is_refused():
    with pytest.raises(RecordingError, match="no ticks"):
        ReplayWindow(np.zeros(0, ROW), {}, DARK)
    with pytest.raises(RecordingError, match="no ticks"):
        grab(np.zeros(0, ROW), {}, Path("never.png"))


_CLOSED_SOON = """
import sys
from PySide6 import QtCore
from apps.view import replay
from apps.view.qt import application
from haptics.recording.recording import Recording

app, timer, recording = application(), QtCore.QTimer(), Recording(sys.argv[1])
timer.timeout.connect(app.closeAllWindows)
timer.start(200)
replay.run(recording, recording.metadata, "light")
print(len(app.topLevelWidgets()), [widget for widget in app.topLevelWidgets() if widget.isVisible()])
"""


def test_run_returns_when_the_window_is_closed():
    shown, visible = run_python("-c", _CLOSED_SOON, KEPT[0]).stdout.split(" ", 1)
    assert int(shown) > 0 and visible == "[]\n"


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_picture_has_path_sticking_vectors_lamps_and_energy(qapp, rows, tmp_path, theme):
    rows, path = rows[:2000].copy(), tmp_path / "picture.png"
    rows["status"][1500:] |= np.uint32(Status.ENERGY | Status.PASSIVITY)
    rows["injected_energy"] = 0.03
    grab(rows, view_rows.METADATA, path, theme.name)
    picture = QtGui.QImage(str(path)).convertToFormat(QtGui.QImage.Format.Format_RGB32)
    assert (picture.width(), picture.height()) == (1280, 800)
    pixels = np.frombuffer(picture.constBits(), np.uint32).reshape(800, 1280) & 0xFFFFFF
    for colour in (theme.panel, theme.ground, theme.motion, theme.force, theme.friction, theme.stop):
        assert np.count_nonzero(pixels == int(colour[1:], 16)) > 30, colour
    assert np.count_nonzero(pixels[-120:] == int(theme.alarm[1:], 16)) > 2000


def test_picture_is_drawn_by_the_command_or_refused(qapp, rows, capsys, tmp_path):
    shutil.copytree(KEPT[0], tmp_path / "recording")
    picture = tmp_path / "out.png"
    assert screenshot([str(tmp_path / "recording"), str(picture), "--theme", "light"]) == 0
    assert not QtGui.QImage(str(picture)).isNull()
    assert screenshot([str(tmp_path), str(picture)]) == 2
    assert "is not a readable recording" in capsys.readouterr().err
    with pytest.raises(RecordingError, match="could not be written"):
        grab(rows[:100], view_rows.METADATA, tmp_path / "no" / "such" / "folder.png")


@pytest.fixture
def marked(qtbot, rows):
    """A replay with three markers and a stretch of stale samples, shown over one second."""
    rows = rows.copy()
    rows["marker"][2000:], rows["marker"][4000:] = 1, 2
    rows["status"][5000:5050] |= int(Status.STALE)
    shown = replay_of(qtbot, rows)
    shown.transport.span.setCurrentText("1 s")
    qtbot.waitUntil(lambda: shown._scan.over and not shown._growing.isActive())
    yield shown
    shown.close()


def test_keys_move_from_mark_to_mark(marked):
    keys = QtCore.Qt.Key
    marked.seek(0)
    for code, row in ((keys.Key_N, 2000), (keys.Key_N, 4000), (keys.Key_N, 5000), (keys.Key_P, 4000)):
        press(marked, code)
        assert marked.index == row + 500  # in the middle of the shown span
    marked.transport.previous.click()
    assert marked.index == 2500
    marked.transport.next.click()
    assert marked.index == 4500


def test_click_on_the_strip_seeks(marked):
    strip = marked.strip
    width, y = strip.width(), strip.height() // 2
    QtTest.QTest.mouseClick(strip, QtCore.Qt.MouseButton.LeftButton, pos=QtCore.QPoint(width // 2, y))
    assert marked.index == pytest.approx(3250, abs=10)
    QtTest.QTest.mousePress(strip, QtCore.Qt.MouseButton.LeftButton, pos=QtCore.QPoint(width - 1, y))
    assert marked.index == 6499
    assert marked.transport.slider.value() == 6499


def test_strip_draws_extremes_marks_and_place(marked):
    def colours():
        picture = marked.strip.grab().toImage()
        return {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(picture.height())}

    marked.seek(100)
    found = colours()
    assert {DARK.force, DARK.motion, DARK.stop, DARK.text} <= found
    assert all(word in marked.transport.legend.text() for word in ("unusable", "trial"))
    marked.apply(LIGHT)
    assert {LIGHT.force, LIGHT.motion} <= colours()


@pytest.fixture
def dashboard(live, rows):
    """The dashboard of a live window with six seconds of a run."""
    live.run(rows[:6000])
    return live.window.dashboard


def saved(dashboard, kind):
    """Return the one file of a kind that has been saved."""
    (path,) = shown_folder(dashboard._info.recording).glob(f"*.{kind}")
    assert str(path) in dashboard.notice.words.text()
    return path


def act(plot, words):
    """Choose an entry of a plot's menu."""
    next(action for action in plot.menu_button.menu().actions() if action.text() == words).trigger()


def test_shown_data_are_saved_with_units(dashboard, rows):
    dashboard.transport.slider.setValue(4000)
    act(dashboard.places.shown[1], "Save shown data (CSV)")
    path = saved(dashboard, "csv")
    assert path.name == "force_and_speed_3.999s.csv"
    with path.open(newline="") as file:
        head, *lines = csv.reader(file)
    assert head == ["time_s", "friction_n", "force_n", "speed_mm_per_s", "sticking"]
    values = np.array(lines, float)
    assert values[:, 0] == pytest.approx(rows["time"][:4000])
    assert values[:, 1] == pytest.approx(np.hypot(*rows["friction_force"][:4000].T))


def test_picture_is_saved_and_no_file_is_overwritten(dashboard):
    plot = dashboard.places.shown[0]
    size = plot.size()
    act(plot, "Save picture (PNG)")
    first = saved(dashboard, "png")
    act(plot, "Save picture (PNG)")
    names = sorted(path.name for path in first.parent.glob("*.png"))
    assert names == [first.name.replace(".png", "-2.png"), first.name]
    assert QtGui.QImage(str(first)).size() == size


def test_drawing_has_lines_and_no_pixels(dashboard):
    act(dashboard.places.shown[1], "Save drawing (SVG)")
    root = ElementTree.parse(saved(dashboard, "svg")).getroot()
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert tags.count("path") + tags.count("polyline") > 20
    assert tags.count("image") < 8, "buttons and the like only"


def test_picture_is_copied_to_the_clipboard_and_the_window_saved_by_a_key(dashboard):
    QtWidgets.QApplication.clipboard().clear()
    size = dashboard.plane.size()
    act(dashboard.plane, "Copy picture")
    assert QtWidgets.QApplication.clipboard().image().size() == size
    QtTest.QTest.keyClick(dashboard.window(), QtCore.Qt.Key.Key_F5)
    assert QtWidgets.QApplication.clipboard().image().size() == dashboard.window().size()
    QtTest.QTest.keyClick(dashboard.window(), QtCore.Qt.Key.Key_F6)
    assert saved(dashboard, "png").name == "window_5.999s.png"


def test_saving_that_fails_is_reported(dashboard):
    folder = shown_folder(dashboard._info.recording)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    act(dashboard.plane, "Save picture (PNG)")
    assert "Nothing was saved" in dashboard.notice.words.text()


@pytest.fixture
def comparison(qtbot, rows):
    """A run, and one with forces half as large."""
    half = rows.copy()
    half["friction_force"] *= 0.5
    sides = Side("as it was", rows, view_rows.METADATA), Side("half", half[:6000], view_rows.METADATA, open_loop=True)
    shown = CompareWindow(sides, "A and B", DARK)
    qtbot.addWidget(shown)
    shown.show()
    yield shown
    shown.close()


def test_open_loop_is_named_on_its_side_only(comparison):
    a, b = comparison.columns
    assert not a.warning.isVisible()
    assert b.warning.isVisible()
    assert b.warning.text() == OPEN_LOOP
    assert OPEN_LOOP.startswith("LOOP OPEN")


def test_both_sides_have_the_same_axes(comparison):
    for kind in PLOTS:
        comparison._choose(0, kind.title)
        a, b = (column.plots[0] for column in comparison.columns)
        assert type(a) is type(b) is kind
        for one, other in zip(a.charts, b.charts, strict=True):
            for first, second in zip(one.getViewBox().viewRange(), other.getViewBox().viewRange(), strict=True):
                assert first == pytest.approx(second)


def test_slider_moves_both_sides_and_the_shorter_one_stops_at_its_end(comparison, rows):
    comparison.transport.slider.setValue(3000)
    assert [column.feed.index for column in comparison.columns] == [3000, 3000]
    comparison.transport.slider.setValue(6400)
    assert [column.feed.index for column in comparison.columns] == [6400, 5999]
    QtTest.QTest.keyClick(comparison, QtCore.Qt.Key.Key_Left)
    assert comparison.transport.slider.value() == 6399


def test_each_side_has_its_forces(comparison):
    comparison._choose(0, "Force, speed")
    comparison.seek(5000)
    a, b = (column.plots[0].forces.curves[0].getData()[1].max() for column in comparison.columns)
    assert b == pytest.approx(0.5 * a)


def test_every_control_of_the_comparison_can_be_used(comparison):
    for control in controls_of(comparison):
        if control.isVisible():
            use(control)
            QtWidgets.QApplication.processEvents()
    comparison.apply(LIGHT)
    assert comparison.isVisible()
