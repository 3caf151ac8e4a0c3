"""Pictures and data of what is shown."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtGui, QtTest, QtWidgets

from apps.view.instrument.saving import shown_folder
from tests.apps.view.driving import frames, publish


@pytest.fixture
def dashboard(live, rows):
    """The dashboard of a live window with six seconds of a run."""
    live.begin()
    publish(live.trace, rows[:6000])
    frames(live)
    return live.window.dashboard


def saved(dashboard, kind: str) -> Path:
    """Return the one file of a kind that has been saved."""
    (path,) = shown_folder(dashboard._info.recording).glob(f"*.{kind}")
    assert str(path) in dashboard.notice.words.text()
    return path


def act(plot, words: str) -> None:
    """Choose an entry of a plot's menu."""
    next(action for action in plot.menu_button.menu().actions() if action.text() == words).trigger()


def test_the_data_that_is_shown_is_saved_with_units(dashboard, rows) -> None:
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


def test_a_picture_is_saved_and_no_file_is_written_over(dashboard) -> None:
    plot = dashboard.places.shown[0]
    size = plot.size()
    act(plot, "Save picture (PNG)")
    first = saved(dashboard, "png")
    act(plot, "Save picture (PNG)")
    names = sorted(path.name for path in first.parent.glob("*.png"))
    assert names == [first.name.replace(".png", "-2.png"), first.name]
    assert QtGui.QImage(str(first)).size() == size


def test_a_drawing_has_lines_and_not_pixels(dashboard) -> None:
    act(dashboard.places.shown[1], "Save drawing (SVG)")
    root = ElementTree.parse(saved(dashboard, "svg")).getroot()
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert tags.count("path") + tags.count("polyline") > 20
    assert tags.count("image") < 8, "buttons and the like only"


def test_a_picture_goes_to_the_clipboard(dashboard) -> None:
    QtWidgets.QApplication.clipboard().clear()
    size = dashboard.plane.size()
    act(dashboard.plane, "Copy picture")
    assert QtWidgets.QApplication.clipboard().image().size() == size
    QtTest.QTest.keyClick(dashboard.window(), QtCore.Qt.Key.Key_F5)
    assert QtWidgets.QApplication.clipboard().image().size() == dashboard.window().size()


def test_the_window_is_saved_by_a_key(dashboard) -> None:
    QtTest.QTest.keyClick(dashboard.window(), QtCore.Qt.Key.Key_F6)
    assert saved(dashboard, "png").name == "window_5.999s.png"


def test_what_cannot_be_written_is_told(dashboard) -> None:
    folder = shown_folder(dashboard._info.recording)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    act(dashboard.plane, "Save picture (PNG)")
    assert "Nothing was saved" in dashboard.notice.words.text()
