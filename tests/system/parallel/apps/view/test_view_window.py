"""The picture in the live window, offscreen, with a session at the other end of a real pipe."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtOpenGLWidgets, QtWidgets

from apps.shared.theme import DARK, LIGHT
from apps.view.plots.plane import raster_step
from apps.view.window import LEAST
from tests.apps.view.driving import frames, publish


def test_a_run_appears(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:3000])
    frames(live)
    dashboard = live.window.dashboard
    assert live.window.windowTitle() == "haptics: model C on virtual-joystick"
    assert "3\u2009000 ticks" in dashboard.numbers.text()
    assert "0:03.0 of 0:10.0" in dashboard.numbers.text()
    assert dashboard.plane._effector.getData()[0][0] == pytest.approx(1e3 * rows["position"][2999, 0])
    times, values = dashboard.places.shown[1].speeds.curves[0].getData()
    assert times[-1] == pytest.approx(0.0, abs=0.011)
    assert values.max() == pytest.approx(1e3 * np.hypot(*rows["velocity"][:3000].T).max())
    assert dashboard.places.shown[0].quantiles.text().startswith("p50 22 µs")
    edges, ticks = dashboard.places.shown[0]._work.getData()
    assert edges[ticks.argmax()] == pytest.approx(np.log10(np.median(rows["tick_time"][:3000] * 1e6)), abs=0.2)


def test_rows_that_come_later_are_added(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:100])
    frames(live)
    publish(live.trace, rows[100:250])
    frames(live)
    assert "250 ticks" in live.window.dashboard.numbers.text()


def test_before_the_first_row_there_is_an_empty_picture(live) -> None:
    live.begin()
    frames(live)
    assert not live.window.grab().isNull()


def test_stick_and_slip_differ_in_shape_and_words(live, rows) -> None:
    live.begin()
    plane = live.window.dashboard.plane
    sticking = np.flatnonzero(rows["sticking"] != 0)
    slipping = np.flatnonzero((rows["sticking"] == 0) & (rows["tick"] > sticking[500]))[0]
    publish(live.trace, rows[: sticking[500] + 1])
    frames(live)
    assert "STICK" in plane.state.text()
    assert plane._effector.opts["symbol"] == "s"
    assert len(plane._dots.data) >= 1
    publish(live.trace, rows[sticking[500] + 1 : slipping + 1])
    frames(live)
    assert "SLIP" in plane.state.text()
    assert plane._effector.opts["symbol"] == "o"


def test_vectors_start_on_the_path_every_20_ms(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:1001])
    frames(live)
    plane = live.window.dashboard.plane
    x, y = plane._vectors.getData()
    assert len(x) == 2 * 51
    at = rows[:1001:20]
    assert x[::2] == pytest.approx(1e3 * at["position"][:, 0])
    assert x[1::2] - x[::2] == pytest.approx(plane._millimetres_per_newton * at["command"][:, 0])
    assert y[1::2] - y[::2] == pytest.approx(plane._millimetres_per_newton * at["command"][:, 1])


def test_raster_is_twenty_millimetres_unless_the_workspace_is_large(live) -> None:
    assert (raster_step(120.0), raster_step(900.0)) == (20.0, 100.0)
    live.begin()
    path = live.window.dashboard.plane._raster.path()
    starts = [path.elementAt(k) for k in range(0, path.elementCount(), 2)]
    assert sorted({e.x for e in starts if e.y == pytest.approx(-45)}) == pytest.approx(range(-60, 61, 20))


def test_the_laws_level_follows_its_slider(live) -> None:
    live.begin()
    (line,) = live.window.dashboard.places.shown[1]._level_lines
    assert line.value() == 4.0
    live.window.controls.sliders[0].spin.setValue(6.0)
    assert line.value() == 6.0
    assert live.window.dashboard.places.shown[1]._dashes.style() == QtCore.Qt.PenStyle.DashLine


def test_a_trace_that_cannot_be_read_is_told(live) -> None:
    live.begin(trace="/nowhere/at/all")
    assert "cannot be shown" in live.window.dashboard.notice.words.text()


def test_the_theme_can_be_changed_while_it_runs(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:1000])
    frames(live)
    button = live.window.controls.theme_button
    assert (live.window.theme, button.text()) == (DARK, "Light")
    button.click()
    assert (live.window.theme, button.text()) == (LIGHT, "Dark")
    picture = live.window.grab().toImage()
    corner = live.window.dashboard.plane.chart.mapTo(live.window, QtCore.QPoint(2, 2))
    assert picture.pixelColor(corner).name() == LIGHT.panel
    button.click()
    assert live.window.theme is DARK


def test_no_grid_and_no_opengl(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:1000])
    frames(live)
    dashboard = live.window.dashboard
    series = dashboard.places.shown[1]
    for chart in (dashboard.plane.chart, series.forces.chart, series.speeds.chart, dashboard.places.shown[0].chart):
        assert not isinstance(chart.viewport(), QtOpenGLWidgets.QOpenGLWidget)
        assert not any(chart.plotItem.getAxis(side).grid for side in ("left", "bottom"))
        assert not any(chart.getViewBox().autoRangeEnabled())


def test_thick_lines_are_drawn_in_segments(live) -> None:
    live.begin()
    dashboard = live.window.dashboard
    series = dashboard.places.shown[1]
    thick = [*dashboard.plane._tail, dashboard.plane._held, dashboard.plane._arrow, series.forces.curves[0]]
    for item in thick:
        assert item.opts["pen"].widthF() > 1
        assert item.opts["segmentedLineMode"] == "on"


def test_the_window_fits_its_least_size_without_cutting_texts(live, rows) -> None:
    live.begin()
    live.window.resize(*LEAST)
    publish(live.trace, rows[:3000])
    frames(live)
    assert (live.window.width(), live.window.height()) == LEAST
    assert LEAST[0] <= 1280 - 16
    assert LEAST[1] <= 720 - 48 - 40, "a panel and a title bar"
    stop = live.window.controls.stop
    assert live.window.rect().contains(QtCore.QRect(stop.mapTo(live.window, QtCore.QPoint(0, 0)), stop.size()))
    assert stop.visibleRegion().boundingRect().size() == stop.size()
    texts = [w for w in live.window.findChildren(QtWidgets.QLabel) if w.isVisible() and w.text() and not w.wordWrap()]
    texts.remove(live.window.dashboard.path)  # gives up its middle on purpose
    cut = [w.text() for w in texts if w.width() < w.minimumSizeHint().width()]
    assert len(texts) > 20
    assert cut == []


def test_all_text_is_at_least_ten_points(live) -> None:
    live.begin()
    for widget in live.window.findChildren(QtWidgets.QLabel):
        assert widget.font().pointSizeF() >= 10
