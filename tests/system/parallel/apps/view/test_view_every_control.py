"""Every control is pressed, turned and dragged; and a monkey plays with all of them."""

from __future__ import annotations

import os
import random
import time

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtTest, QtWidgets

from apps.front_ends.messages import SessionEnded, SetParameter, Start, Stop
from apps.shared.theme import DARK
from apps.view.replay import ReplayWindow
from tests.apps.view import view_rows
from tests.apps.view.driving import charts_of, controls_of, drag, frames, publish, turn_wheel, use
from tests.apps.view.summaries import SUMMARY

KEYS = [QtCore.Qt.Key(QtCore.Qt.Key.Key_F1 + k) for k in range(6)] + [QtCore.Qt.Key.Key_Left, QtCore.Qt.Key.Key_Space]


def test_every_control_of_the_live_window_can_be_used(live, rows) -> None:
    live.begin(laws=("coulomb", "stribeck"), law="coulomb")
    publish(live.trace, rows[:3000])
    frames(live)
    used = 0
    for control in controls_of(live.window):
        if control.isVisible() and control.isEnabled():  # one may hide another
            use(control)
            frames(live, 1)
            if isinstance(control, QtWidgets.QToolButton) and control.isChecked():
                use(control)  # and back: a plot that is alone hides the others
            used += 1
    assert used > 25
    sent = live.sent()
    for kind in (Start, Stop, SetParameter):
        assert any(isinstance(message, kind) for message in sent), kind


@pytest.mark.parametrize("title", ["Force, speed", "Spectrum", "Position, velocity, force, command"])
def test_every_chart_zooms_moves_and_comes_back(live, rows, title: str) -> None:
    live.begin(mouse=False)
    publish(live.trace, rows[:6000])
    frames(live)
    places = live.window.dashboard.places
    if places.shown[1].title != title:
        places.choose(places.shown[1], title)
    frames(live)
    for chart in places.plot(title).charts:
        box = chart.getViewBox()
        home = box.viewRange()
        turn_wheel(chart, 3)
        zoomed = box.viewRange()
        assert box.zoomed
        assert zoomed[0][1] - zoomed[0][0] < 0.9 * (home[0][1] - home[0][0])
        frames(live)
        assert box.viewRange() == zoomed, "what is drawn leaves the zoom alone"
        turn_wheel(chart, -8)
        live.window.dashboard.transport.home.click()
        assert box.viewRange()[0] == pytest.approx(home[0])
        assert not box.zoomed


def test_the_plane_is_not_moved_by_the_mouse_that_is_the_hand(live, rows) -> None:
    live.begin(mouse=True)
    publish(live.trace, rows[:500])
    frames(live)
    box = live.window.dashboard.plane.chart.getViewBox()
    home = box.viewRange()
    drag(live.window.dashboard.plane.chart, (0.3, 0.3), (0.7, 0.6))
    turn_wheel(live.window.dashboard.plane.chart, 3)
    assert box.viewRange() == home


def play(window, chance: random.Random, step) -> None:
    """Do something at random with a window, then let it draw."""
    what = chance.random()
    if what < 0.6:
        controls = controls_of(window)
        use(chance.choice(controls), chance.random())
    elif what < 0.85 and charts_of(window):
        chart = chance.choice(charts_of(window))
        places = [(chance.random(), chance.random()) for _ in range(2)]
        if chance.random() < 0.5:
            drag(chart, *places)
        else:
            turn_wheel(chart, chance.randint(-6, 6), places[0])
    elif what < 0.95:
        QtTest.QTest.keyClick(window, chance.choice(KEYS))
    else:
        window.resize(chance.randint(1260, 1800), chance.randint(600, 1100))
    step()


def monkey_on_a_session(live, rows, seconds: float, least: int) -> None:
    """Let a monkey play for so many seconds of computing, or for `least` actions if these take longer."""
    chance, start, done, written = random.Random(7), time.process_time(), 0, 0
    run = {"laws": ("coulomb", "stribeck", "elliptic"), "law": "coulomb", "mouse": False}
    live.begin(**run)

    def step() -> None:
        nonlocal written
        publish(live.trace, rows[written : written + 120])
        written += 120
        live.window.frame()
        QtWidgets.QApplication.processEvents()

    while done < least or time.process_time() - start < seconds:
        play(live.window, chance, step)
        done += 1
        live.sent()
        if done % 60 == 59:  # the run ends and another one begins
            live.session.send(SessionEnded("stopped", SUMMARY))
            step()
            live.begin(**run)
            written = 0
        if not live.window.isVisible():
            pytest.fail("the window has closed")


@pytest.mark.timeout(900)
def test_a_monkey_cannot_break_a_session(live, rows) -> None:
    """MONKEY_SECONDS=180 makes minutes of it."""
    monkey_on_a_session(live, rows, seconds=float(os.environ.get("MONKEY_SECONDS", "0")), least=100)


def test_a_monkey_cannot_break_a_replay(qtbot, rows, tmp_path) -> None:
    metadata = {**view_rows.METADATA, "recording": str(tmp_path / "run")}
    window = ReplayWindow(rows, metadata, DARK)
    qtbot.addWidget(window)
    window.show()
    chance = random.Random(3)
    for _ in range(50):
        play(window, chance, QtWidgets.QApplication.processEvents)
    assert window.isVisible()
    window.close()
