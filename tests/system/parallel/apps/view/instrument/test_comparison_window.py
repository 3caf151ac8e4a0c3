"""Two runs side by side in a window."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtTest, QtWidgets

from apps.compare.side import OPEN_LOOP, Side
from apps.shared.theme import DARK, LIGHT
from apps.view.instrument.comparison import PLOTS, CompareWindow
from tests.apps.view import view_rows
from tests.apps.view.driving import controls_of, use


@pytest.fixture
def window(qtbot, rows):
    """A run beside one with forces that are half as large."""
    half = rows.copy()
    half["friction_force"] *= 0.5
    sides = Side("as it was", rows, view_rows.METADATA), Side("half", half[:6000], view_rows.METADATA, open_loop=True)
    shown = CompareWindow(sides, "A and B", DARK)
    qtbot.addWidget(shown)
    shown.show()
    yield shown
    shown.close()


def test_the_open_loop_is_named_on_its_side_only(window) -> None:
    a, b = window.columns
    assert not a.warning.isVisible()
    assert b.warning.isVisible()
    assert b.warning.text() == OPEN_LOOP
    assert OPEN_LOOP.startswith("LOOP OPEN")


def test_both_sides_have_the_same_axes_whatever_they_show(window) -> None:
    for kind in PLOTS:
        window._choose(0, kind.title)
        a, b = (column.plots[0] for column in window.columns)
        assert type(a) is type(b) is kind
        for one, other in zip(a.charts, b.charts, strict=True):
            for first, second in zip(one.getViewBox().viewRange(), other.getViewBox().viewRange(), strict=True):
                assert first == pytest.approx(second)


def test_one_slider_moves_both_and_the_shorter_one_stops_at_its_end(window, rows) -> None:
    window.transport.slider.setValue(3000)
    assert [column.feed.index for column in window.columns] == [3000, 3000]
    window.transport.slider.setValue(6400)
    assert [column.feed.index for column in window.columns] == [6400, 5999]
    QtTest.QTest.keyClick(window, QtCore.Qt.Key.Key_Left)
    assert window.transport.slider.value() == 6399


def test_the_forces_are_those_of_each_side(window) -> None:
    window._choose(0, "Force, speed")
    window.seek(5000)
    a, b = (column.plots[0].forces.curves[0].getData()[1].max() for column in window.columns)
    assert b == pytest.approx(0.5 * a)


def test_every_control_can_be_used(window) -> None:
    for control in controls_of(window):
        if control.isVisible():
            use(control)
            QtWidgets.QApplication.processEvents()
    window.apply(LIGHT)
    assert window.isVisible()
