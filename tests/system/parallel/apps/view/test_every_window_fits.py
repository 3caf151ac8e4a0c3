"""Every window on small and large screens, in both themes: no text is cut, and texts grow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtWidgets

from apps.compare.side import Side
from apps.shared.theme import DARK, LIGHT, Theme
from apps.view.dashboard import PLOTS
from apps.view.instrument.comparison import PLOTS as COMPARED
from apps.view.instrument.comparison import CompareWindow
from apps.view.instrument.help import HelpWindow
from apps.view.plots.plane import PlanePanel
from apps.view.plots.plot import Plot
from apps.view.qt import POINT_SIZE, application, grow
from apps.view.replay import ReplayWindow
from apps.view.window import LEAST
from tests.apps.view import view_rows
from tests.apps.view.driving import cut_texts
from tests.apps.view.summaries import UNFIT

FRAME = (16, 48)
SCREENS = ((1280, 720), (1366, 768), (2560, 1440))


def named(room: tuple[int, int, Theme]) -> str:
    return f"{room[0]}x{room[1]}-{room[2].name}"


@pytest.fixture(params=[(*LEAST, DARK), *((w - FRAME[0], h - FRAME[1], LIGHT) for w, h in SCREENS)], ids=named)
def room(request) -> Iterator[tuple[int, int, Theme]]:
    """The size of a window, and its colours."""
    width, height, theme = request.param
    application()
    grow(width + FRAME[0], height + FRAME[1])
    yield width, height, theme
    grow(1280, 720)


def settle(qtbot, window: QtWidgets.QWidget, room: tuple[int, int, Theme]) -> None:
    """Show a window in a size."""
    qtbot.addWidget(window)
    window.resize(*room[:2])
    window.show()
    for _ in range(4):
        QtWidgets.QApplication.processEvents()
    assert (window.width(), window.height()) == room[:2]


def least_text(window: QtWidgets.QWidget) -> float:
    return min(label.font().pointSizeF() for label in window.findChildren(QtWidgets.QLabel) if label.isVisible())


def check(window: QtWidgets.QWidget, room: tuple[int, int, Theme]) -> None:
    assert cut_texts(window) == []
    for plot in (plot for plot in window.findChildren(Plot) if plot.isVisible()):
        parts = [part for part in (*plot.charts, plot.cursors) if part is not None and part.isVisible()]
        for one, other in itertools.combinations(parts, 2):
            assert not one.geometry().intersects(other.geometry()), plot.title
    assert least_text(window) >= (14.0 if room[0] > 2000 else 10.0)


def test_a_replay_fits(qtbot, rows, room) -> None:
    metadata = {**view_rows.METADATA, "certificate": UNFIT, "reason": "stopped"}
    window = ReplayWindow(rows, metadata, room[2])
    settle(qtbot, window, room)
    check(window, room)
    window.dashboard.end.close()
    places = window.dashboard.places
    for kind in PLOTS:
        if places.shown[2].title != kind.title:
            places.choose(places.shown[2], kind.title)
        for _ in range(3):
            QtWidgets.QApplication.processEvents()
        assert cut_texts(window) == [], kind.title
        assert (window.width(), window.height()) == room[:2]


def test_a_comparison_fits(qtbot, rows, room) -> None:
    title = "model C, stribeck: law.name=stribeck law.static_force=5 (2026-11-22T19-00-00_virtual-joystick_C)"
    sides = Side("model C, coulomb", rows, view_rows.METADATA), Side(title, rows, view_rows.METADATA, open_loop=True)
    window = CompareWindow(sides, "mean force 2.1 N and 3.2 N; sticks 40 % and 55 % of the time; " * 2, room[2])
    settle(qtbot, window, room)
    check(window, room)
    for kind in COMPARED:
        window._choose(1, kind.title)
        for _ in range(3):
            QtWidgets.QApplication.processEvents()
        assert cut_texts(window) == [], kind.title


def test_help_fits_and_only_scrolls_downwards(qtbot, rows, room) -> None:
    parent = ReplayWindow(rows, view_rows.METADATA, room[2])
    qtbot.addWidget(parent)
    window = HelpWindow(parent, (PlanePanel, *PLOTS), past=True)
    window.show()
    QtWidgets.QApplication.processEvents()
    assert window.text.horizontalScrollBar().maximum() == 0
    assert window.text.document().defaultFont().pointSizeF() >= POINT_SIZE * (1.4 if room[0] > 2000 else 1.0)


def test_the_live_window_fits(room, live, rows) -> None:
    live.begin(laws=("coulomb", "stribeck"), law="coulomb")
    live.window.apply(room[2])
    live.window.resize(*room[:2])
    live.window._feed.take(rows[:3000])
    for _ in range(4):
        live.window.frame()
        QtWidgets.QApplication.processEvents()
    assert (live.window.width(), live.window.height()) == room[:2]
    check(live.window, room)
    live.window.controls.session.law.setCurrentText("stribeck")
    live.window.dashboard.transport.cursors.click()
    if room[:2] != LEAST:
        live.window.dashboard.notice.tell("The end effector was at the edge of the workspace. " * 4)
    for _ in range(4):
        live.window.frame()
        QtWidgets.QApplication.processEvents()
    check(live.window, room)
    assert live.window.controls.stop.visibleRegion().boundingRect().size() == live.window.controls.stop.size()
