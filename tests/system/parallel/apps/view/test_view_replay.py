"""Replay and pictures, offscreen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.apps.view import view_rows

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtGui, QtTest, QtWidgets

from apps.shared.theme import DARK, LIGHT
from apps.view import replay
from apps.view.overview import Overview
from apps.view.panels.strip import OverviewStrip
from apps.view.replay import ReplayWindow
from apps.view.screenshot import grab
from apps.view.screenshot import main as screenshot
from haptics.errors import RecordingError
from haptics.recording.recorder import Recorder
from haptics.recording.tick_file import TableInMemory
from haptics.records import ROW, Status
from haptics.trace import Reader, Trace
from tests.apps.view.summaries import REASONS, UNFIT


@pytest.fixture
def window(qtbot, rows):
    """A replay, paused at the first tick."""
    shown = ReplayWindow(rows, view_rows.METADATA, DARK)
    qtbot.addWidget(shown)
    shown.show()
    assert shown.index == len(rows) - 1  # it opens with something to see
    shown.seek(0)
    yield shown
    shown.close()


def press(window, code: QtCore.Qt.Key, modifier=QtCore.Qt.KeyboardModifier.NoModifier) -> None:
    """Type a key while the speed list has the focus, which would like to have it."""
    QtTest.QTest.keyClick(window.transport.speed, code, modifier)


def shown_tick(window) -> int:
    """Return the tick that the window names."""
    return int(window.transport.place.text().split("\u2002")[0].removeprefix("tick ").replace("\u2009", ""))


@pytest.mark.parametrize("index", [6499, 1234, 0, 5001])
def test_scrubbing_shows_that_tick(window, rows, index: int) -> None:
    window.transport.slider.setValue(6000)
    window.transport.slider.setValue(index)
    assert shown_tick(window) == index
    assert window.index == index
    x, _ = window.dashboard.plane._effector.getData()
    assert x[0] == pytest.approx(1e3 * rows["position"][index, 0])
    assert f"{index + 1:,} ticks".replace(",", "\u2009") in window.dashboard.numbers.text()


def test_keys_step_and_jump(window) -> None:
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


def test_space_plays_and_pauses(window) -> None:
    press(window, QtCore.Qt.Key.Key_Space)
    assert window.playing
    assert window.transport.button.text() == "Pause"
    press(window, QtCore.Qt.Key.Key_Space)
    assert not window.playing
    assert window.transport.button.text() == "Play"


def test_playing_moves_by_the_wall_clock_times_the_speed(window) -> None:
    window.advance(1.0)
    assert window.index == pytest.approx(1000, abs=1)
    window.transport.speed.setCurrentText("0.1 ×")
    window.advance(1.0)
    assert window.index == pytest.approx(1100, abs=1)


def test_slow_motion_does_not_stand_still(window) -> None:
    window.transport.speed.setCurrentText("0.01 ×")
    for _ in range(100):
        window.advance(0.033)
    assert window.index == pytest.approx(33, abs=1)


def test_playing_ends_at_the_end_and_begins_anew(window) -> None:
    window.toggle()
    window.advance(100.0)
    assert (window.index, window.playing) == (6499, False)
    window.toggle()
    assert (window.index, window.playing) == (0, True)


def test_time_goes_on_through_gaps(qtbot, rows) -> None:
    holed = np.concatenate((rows[:1000], rows[2000:3000]))
    window = ReplayWindow(holed, view_rows.METADATA, DARK)
    qtbot.addWidget(window)
    window.seek(0)
    window.advance(1.5)
    assert window.index == 999
    window.advance(1.0)
    assert window.index == pytest.approx(1500, abs=1)
    assert "1\u2009000 skipped" in window.dashboard.numbers.text()


def test_the_recording_is_described(window) -> None:
    texts = [widget.text() for widget in window.findChildren(QtWidgets.QLabel)]
    assert "virtual-joystick" in texts
    assert "6000 N/m" in texts
    assert window.windowTitle() == "haptics: replay of model C on virtual-joystick"


def replay_of(qtbot, rows, **metadata) -> ReplayWindow:
    """Return a window over `rows` with something more in their metadata."""
    window = ReplayWindow(rows, {**view_rows.METADATA, **metadata}, DARK)
    qtbot.addWidget(window)
    window.show()
    return window


def test_the_certificate_of_a_recording_is_shown_with_what_went_wrong(qtbot, rows) -> None:
    error = "virtual-joystick failed at tick 512: unplugged"
    window = replay_of(qtbot, rows, certificate={**UNFIT, "scheduling": "fifo"}, reason="fault", error=error)
    card = window.dashboard.end
    assert card.isVisible()
    for part in ("UNFIT", "Run ended: fault", error, *REASONS, "p99.9", "410"):
        assert part in card.text


def test_a_recording_that_was_not_closed_has_no_certificate(window) -> None:
    assert not window.dashboard.end.isVisible()


def test_a_replay_shows_flags_energy_and_dead_man_of_every_tick(qtbot, rows) -> None:
    rows = rows[:3000].copy()
    rows["status"][:1000] = Status.RELEASED
    rows["injected_energy"][1500] = 4e-3
    window = replay_of(qtbot, rows, limits={"max_energy": 0.02, "dead_man": "key"})
    dashboard = window.dashboard
    banner, energy = dashboard.dead_man, dashboard.safety.energy
    for index, released, mark in ((999, True, 0.0), (1400, False, 0.0), (1500, False, 0.2), (2900, False, 0.2)):
        window.seek(index)
        assert banner.released == released
        assert banner.order.text() == ("THE SPACE BAR WAS NOT HELD" if released else "The space bar was held")
        assert energy.bar.marked == pytest.approx(mark)
        assert dashboard.safety.lamps.state(Status.RELEASED) == (True, index < 2000)
    window.seek(1500)
    assert energy.bar.filled == pytest.approx(0.2)
    assert energy.number.text() == "energy 4.00 of 20\u00a0mJ"


def test_theme_of_a_replay(window) -> None:
    window.theme_button.click()
    assert window.theme is LIGHT


def test_a_replay_without_metadata_is_possible(qtbot, rows) -> None:
    window = ReplayWindow(rows, {}, LIGHT)
    qtbot.addWidget(window)
    window.seek(100)
    assert shown_tick(window) == 100


def test_a_recording_without_ticks_is_refused() -> None:
    with pytest.raises(RecordingError, match="no ticks"):
        ReplayWindow(np.zeros(0, ROW), {}, DARK)
    with pytest.raises(RecordingError, match="no ticks"):
        grab(np.zeros(0, ROW), {}, Path("never.png"))


def test_run_shows_until_the_window_is_closed(qapp, rows) -> None:
    QtCore.QTimer.singleShot(200, qapp.closeAllWindows)
    replay.run(rows[:100], view_rows.METADATA, "light")
    assert not any(widget.isVisible() for widget in qapp.topLevelWidgets())


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_a_picture_shows_path_sticking_and_vectors(qapp, rows, tmp_path: Path, theme) -> None:
    path = tmp_path / "picture.png"
    grab(rows, view_rows.METADATA, path, theme.name)
    picture = QtGui.QImage(str(path)).convertToFormat(QtGui.QImage.Format.Format_RGB32)
    assert (picture.width(), picture.height()) == (1280, 800)
    pixels = np.frombuffer(picture.constBits(), np.uint32).reshape(800, 1280) & 0xFFFFFF
    for colour in (theme.panel, theme.ground, theme.motion, theme.force, theme.friction, theme.stop):
        assert np.count_nonzero(pixels == int(colour[1:], 16)) > 30, colour


def test_picture_of_a_recording_from_the_command_line(qapp, rows, tmp_path: Path) -> None:
    trace = Trace.create(tmp_path / "trace")
    recorder = Recorder(tmp_path / "recording", {"model": "C", "rate_hz": 1000.0})
    recorder.follow(Reader(trace))
    for row in rows[:1000]:
        trace.append(row)
    recorder.drain()
    recorder.close({}, complete=True)
    picture = tmp_path / "out.png"
    assert screenshot([str(tmp_path / "recording"), str(picture), "--theme", "light"]) == 0
    assert not QtGui.QImage(str(picture)).isNull()


def test_no_picture_of_what_is_no_recording(capsys, tmp_path: Path) -> None:
    assert screenshot([str(tmp_path), str(tmp_path / "out.png")]) == 2
    assert "is not a readable recording" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written_is_told(qapp, rows, tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="could not be written"):
        grab(rows[:100], view_rows.METADATA, tmp_path / "no" / "such" / "folder.png")


# --- the strip of the whole recording -----------------------------------------------------------------------------


@pytest.fixture
def marked(qtbot, rows):
    """A replay with three markers and a stretch of stale samples, shown over one second."""
    rows = rows.copy()
    rows["marker"][2000:], rows["marker"][4000:] = 1, 2
    rows["status"][5000:5050] |= int(Status.STALE)
    shown = ReplayWindow(rows, view_rows.METADATA, DARK)
    qtbot.addWidget(shown)
    shown.show()
    shown.transport.span.setCurrentText("1 s")
    qtbot.waitUntil(lambda: shown._scan.over and not shown._growing.isActive())
    yield shown
    shown.close()


def test_keys_go_from_mark_to_mark(marked) -> None:
    keys = QtCore.Qt.Key
    marked.seek(0)
    for code, row in ((keys.Key_N, 2000), (keys.Key_N, 4000), (keys.Key_N, 5000), (keys.Key_P, 4000)):
        press(marked, code)
        assert marked.index == row + 500  # it is in the middle of what is shown
    marked.transport.previous.click()
    assert marked.index == 2500
    marked.transport.next.click()
    assert marked.index == 4500


def test_strip_goes_where_it_is_clicked_and_dragged(marked) -> None:
    strip = marked.strip
    width, y = strip.width(), strip.height() // 2
    QtTest.QTest.mouseClick(strip, QtCore.Qt.MouseButton.LeftButton, pos=QtCore.QPoint(width // 2, y))
    assert marked.index == pytest.approx(3250, abs=10)
    QtTest.QTest.mousePress(strip, QtCore.Qt.MouseButton.LeftButton, pos=QtCore.QPoint(width - 1, y))
    assert marked.index == 6499
    assert marked.transport.slider.value() == 6499


def test_strip_draws_extremes_marks_and_place(marked) -> None:
    def colours() -> set[str]:
        picture = marked.strip.grab().toImage()
        return {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(picture.height())}

    marked.seek(100)
    found = colours()
    assert {DARK.force, DARK.motion, DARK.stop, DARK.text} <= found
    assert "unusable" in marked.transport.legend.text()
    assert "trial" in marked.transport.legend.text()
    marked.apply(LIGHT)
    assert {LIGHT.force, LIGHT.motion} <= colours()


def test_without_marks_there_is_nothing_to_go_to(window, qtbot) -> None:
    qtbot.waitUntil(lambda: window._scan.over and not window._growing.isActive())
    assert not window.transport.next.isEnabled()
    press(window, QtCore.Qt.Key.Key_N)
    assert window.index in (0, 6499)  # the end is one


def test_place_in_a_long_recording_is_told_in_hours(qtbot, rows) -> None:
    rows = rows.copy()
    rows["time"] += 3723.4 - rows["time"][0]
    shown = ReplayWindow(rows, view_rows.METADATA, DARK)
    qtbot.addWidget(shown)
    shown.seek(0)
    assert "1:02:03.4 of 1:02:09.9" in shown.transport.place.text()


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (6.5, ["0:00", "0:01", "0:02", "0:03", "0:04", "0:05", "0:06"]),
        (3600.0, ["0:00", "10:00", "20:00", "30:00", "40:00", "50:00", "1:00:00"]),
        (4 * 3600.0, ["0:00", "30:00", "1:00:00", "1:30:00", "2:00:00", "2:30:00", "3:00:00", "3:30:00", "4:00:00"]),
    ],
)
def test_time_axis_of_the_strip_is_in_hours_minutes_and_seconds(qtbot, seconds: float, labels: list[str]) -> None:
    rows = round(1000.0 * seconds)
    strip = OverviewStrip(Overview(TableInMemory(np.zeros(1, ROW))), rows, 1000.0)
    qtbot.addWidget(strip)
    strip.resize(round(strip.devicePixelRatio() * 1000), strip.height())
    assert [words for _, words in strip.labels()] == labels
    assert strip.labels()[-1][0] <= rows
