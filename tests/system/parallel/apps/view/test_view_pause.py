"""Pause and scrubbing while the run goes on."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtTest

from apps.front_ends.messages import Stop
from apps.view.history import Column, History
from haptics.records import Status
from tests.apps.view.driving import frames, publish
from tests.apps.view.view_rows import numbered


def newest_x(live) -> float:
    """Return where the picture has the end effector [mm]."""
    return float(live.window.dashboard.plane._effector.getData()[0][0])


def test_a_held_window_stands_still_while_rows_are_added_until_they_are_gone() -> None:
    history = History(20, kept=100)
    history.append(numbered(0, 60))
    history.hold(50)
    for first in range(60, 110, 7):
        history.append(numbered(first, 7))
        assert history.column(Column.X) == pytest.approx(np.arange(30, 50))
    history.append(numbered(116, 60))
    assert (history.oldest, history.stop, len(history)) == (76, 77, 1)
    assert history.newest(Column.X) == pytest.approx(76)
    history.hold(None)
    assert history.column(Column.X) == pytest.approx(np.arange(156, 176))


def test_pause_holds_the_picture_and_the_run_goes_on(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:2000])
    frames(live)
    transport = live.window.dashboard.transport
    transport.button.click()
    publish(live.trace, rows[2000:4000])
    frames(live)
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][1999, 0])
    assert "PAUSED" in transport.place.text()
    assert "2.0 s ago" in transport.place.text()
    assert "4\u2009000 ticks" in live.window.dashboard.numbers.text(), "numbers are those of the run"
    assert live.sent() == []
    assert transport.button.text() == "Go on"
    transport.button.click()
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][3999, 0])
    assert "live" in transport.place.text()


def test_lamps_stay_live_while_the_picture_is_held(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:1000])
    frames(live)
    live.window.dashboard.transport.button.click()
    late = rows[1000:1010].copy()
    late["status"] = Status.ENERGY
    publish(live.trace, late)
    frames(live)
    assert live.window.dashboard.safety.lamps.state(Status.ENERGY) == (True, True)


@pytest.mark.parametrize("stop", [1, 700, 2500, 3999])
def test_the_slider_goes_back_to_any_moment(live, rows, stop: int) -> None:
    live.begin()
    publish(live.trace, rows[:4000])
    frames(live)
    slider = live.window.dashboard.transport.slider
    assert (slider.minimum(), slider.maximum()) == (1, 4000)
    slider.setValue(stop)
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][stop - 1, 0])
    publish(live.trace, rows[4000:4100])
    frames(live)
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][stop - 1, 0])
    slider.setValue(slider.maximum())
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][4099, 0])


def test_the_span_can_be_chosen(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:6500])
    frames(live)
    live.window.dashboard.transport.span.setCurrentText("1 s")
    series = live.window.dashboard.places.shown[1]
    assert series.speeds.chart.getViewBox().viewRange()[0] == pytest.approx([-1.0, 0.0])
    assert series.speeds.curves[0].getData()[0][0] == pytest.approx(-1.0, abs=0.01)


def test_after_the_end_of_a_run_its_last_minutes_can_still_be_scrubbed(live, rows) -> None:
    from apps.front_ends.messages import SessionEnded

    live.begin()
    publish(live.trace, rows[:3000])
    live.session.send(SessionEnded("stopped"))
    frames(live)
    live.window.dashboard.transport.slider.setValue(800)
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][799, 0])


def test_function_keys_mean_the_same_everywhere_and_are_not_told_to_the_session(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:500])
    frames(live)
    dashboard, keys = live.window.dashboard, QtCore.Qt.Key
    spin = live.window.controls.sliders[0].spin
    for key in (keys.Key_F1, keys.Key_F2, keys.Key_F3):
        QtTest.QTest.keyClick(spin, key)
    assert dashboard._help.isVisible()
    assert live.window._feed.history.held
    assert dashboard.places.shown[1].cursors.on
    for key in (keys.Key_F1, keys.Key_F2, keys.Key_F3):
        QtTest.QTest.keyClick(spin, key)
    assert not dashboard._help.isVisible()
    assert not live.window._feed.history.held
    assert not dashboard.places.shown[1].cursors.on
    assert live.sent() == []


def test_the_stop_key_works_while_help_is_open_and_the_picture_is_held(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:500])
    frames(live)
    live.window.dashboard.transport.help.click()
    live.window.dashboard.transport.button.click()
    QtTest.QTest.keyClick(live.window.dashboard._help, QtCore.Qt.Key.Key_Space)
    assert live.sent() == [Stop()]
