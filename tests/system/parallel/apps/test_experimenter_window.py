"""The experimenter's window: its contents, blind mode, buttons, and sizes."""

from __future__ import annotations

import itertools
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

import pyqtgraph as pg
from PySide6 import QtCore, QtWidgets

from apps.experiment.screens.experimenter import ExperimenterWindow
from apps.experiment.screens.messages import (
    Certificate,
    Command,
    Figure,
    Note,
    Notice,
    Outcome,
    Progress,
    SessionOutline,
)
from apps.experiment.screens.panels import reversals
from apps.front_ends.front_end import Link
from apps.front_ends.messages import Close
from apps.shared.theme import DARK, LIGHT
from apps.view.qt import application, grow
from haptics.records import ROW
from haptics.trace import Trace
from tests.apps.experiment.screens.driving import started

PLAN = SessionOutline("weber-friction", "P07", 1, 4, 80, "law.force", "N")
BLIND = SessionOutline("weber-friction", "P07", 1, 4, 80, "law.force", "N", blind=True)


class Desk:
    """A window, the other end of its pipe, and the trace of a block."""

    def __init__(self, folder):
        self.app = application()
        self.far: Connection[Any, Any]
        self.far, near = Pipe()
        self.window = ExperimenterWindow(Link(near), DARK)
        self.window.setAttribute(QtCore.Qt.WidgetAttribute.WA_DontShowOnScreen)
        self.window.resize(1264, 672)
        self.window.show()
        self.trace = Trace.create(folder / "trace", capacity=4096)

    def notify(self, *messages):
        """Send messages to the window and draw it."""
        for message in messages:
            self.far.send(message)
        self.window.frame()
        self.app.processEvents()

    def said(self):
        """Return the messages of the window."""
        found = []
        while self.far.poll():
            found.append(self.far.recv())
        return found

    def move(self, force):
        """Record a second of motion against a friction force."""
        rows, phase = np.zeros(1000, ROW), 0.006 * np.arange(1000)
        rows["tick"], rows["time"] = np.arange(1000), 1e-3 * np.arange(1000)
        rows["position"] = np.column_stack((0.05 * np.sin(phase), np.full(1000, 0.01)))
        rows["velocity"][:, 0] = 0.3 * np.cos(phase)
        rows["proxy"] = rows["position"] - (1e-3 * force, 0.0)
        rows["command"] = rows["friction_force"] = rows["force"] = (-force, 0.0)
        rows["sticking"] = force > 2
        for row in rows:
            self.trace.append(row)

    def seen(self):
        """Return all texts and plotted data, visible or not."""
        window = self.window
        texts = [window.windowTitle()]
        for kind in (QtWidgets.QLabel, QtWidgets.QAbstractButton):
            texts += [part for each in window.findChildren(kind) for part in (each.text(), each.toolTip())]
        bar = window.head.bar
        series = []
        for plot in window.findChildren(pg.PlotWidget):
            for item in plot.scene().items():
                if isinstance(item, pg.PlotCurveItem | pg.ScatterPlotItem):
                    series.append([None if part is None else np.asarray(part).tolist() for part in item.getData()])
                if isinstance(item, pg.InfiniteLine):
                    series.append([item.value()])
            texts += [axis.labelText for axis in (plot.getAxis("left"), plot.getAxis("bottom"))]
            series.append(plot.getViewBox().viewRange())
        return {"texts": texts, "series": series, "bar": (bar.value(), bar.maximum())}


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.window.close()
    desk.window.deleteLater()
    desk.app.processEvents()


def outcomes(levels, correct, condition="A"):
    """Return trials of two tracks in turn."""
    found = []
    for trial, level in enumerate(levels, 1):
        kind, track = "catch-easy" if trial == 3 else "test", f"{condition}/{2 - trial % 2 if correct else 1}"
        found.append(Outcome(trial, "ok", (), kind, condition, track, level, "1", correct, 0.5))
    return found


def test_window_shows_a_session(desk):
    desk.move(3.0)
    desk.notify(PLAN, started(desk.trace.path), *outcomes((0.8, 0.8, 2.5, 0.4, 0.6), correct=True))
    desk.notify(Progress("waiting for the answer", 6, 80, 2, "test", "A", "A/2", 0.3125, 780.0))
    desk.notify(Certificate((Figure("late ticks", "0.02 %", "good"), Figure("felt", "1.98 N"))))
    desk.notify(Outcome(6, "repeat", ("too fast",), "test", "A", "A/2", 0.3125, "2"), Notice("Trial 6 is repeated."))
    texts = desk.seen()["texts"]
    assert {"weber-friction   ·   P07   ·   session 1", "waiting for the answer", "about 13 min left"} <= set(texts)
    assert {"block 2 of 4   ·   trial 6 of 80", "test   A/2   level 0.3125 N"} <= set(texts)
    assert {"✓", "late ticks", "0.02 %", "felt", "1.98 N", "repeat: too fast", "Trial 6 is repeated."} <= set(texts)
    tracks = desk.window.track.tracks
    expected = {"A/1": ([1, 5], [0.8, 0.6]), "A/2": ([2, 4], [0.8, 0.4])}
    assert {name: (track.trials, track.levels) for name, track in tracks.items()} == expected
    assert [[1, 5], [0.8, 0.6]] in desk.seen()["series"]
    assert max(desk.window.motion.forces.curves[0].getData()[1]) == pytest.approx(3.0)


def test_blind_window_is_independent_of_level_track_outcome_and_force(tmp_path):
    seen = []
    for number, (levels, correct, force) in enumerate((((0.8, 0.4, 2.5), True, 3.0), ((0.1, 0.2, 0.3), False, 1.25))):
        folder = tmp_path / str(number)
        folder.mkdir()
        desk = Desk(folder)
        desk.move(force)
        desk.notify(BLIND, started(desk.trace.path), *outcomes(levels, correct, f"{force} N"))
        kind = "test" if correct else "catch-null"
        desk.notify(Progress("interval 1 of 2", 4, 80, 2, kind, f"{force} N", f"A/{int(correct)}", levels[0], 1, 780.0))
        desk.notify(Certificate((Figure("late ticks", "0.02 %"),)))
        seen.append(desk.seen())
        assert desk.window.track.tracks == {}
        desk.window.close()
    assert seen[0] == seen[1]
    assert "interval 1 of 2" in seen[0]["texts"]
    assert "late ticks" in seen[0]["texts"]
    speed = np.array(desk.window.motion.speeds.curves[0].getData()[1])
    assert speed.max() == pytest.approx(300, rel=0.01)


def test_buttons_send_their_requests_and_abort_asks_for_confirmation(desk):
    buttons = desk.window.buttons
    buttons.pause.click()
    assert desk.said() == []  # there is no session yet
    desk.notify(PLAN, Progress("interval 1 of 2", 1))
    buttons.pause.click()
    assert desk.said() == [Command("pause")]
    desk.notify(Progress("paused", 1, paused=True))
    assert buttons.pause.text() == "Go on"
    buttons.pause.click()
    buttons.redo.click()
    assert desk.said() == [Command("go on"), Command("redo")]
    buttons.abort.click()
    assert desk.said() == []
    buttons.no.click()
    assert desk.said() == []
    assert buttons.pause.isVisible()
    buttons.abort.click()
    assert not buttons.abort.isVisible()
    buttons.sure.click()
    assert desk.said() == [Command("abort")]
    buttons.redo.click()
    assert desk.said() == []


def test_notes_are_sent_and_typing_presses_no_button(desk, qtbot):
    desk.notify(PLAN, Progress("interval 1 of 2", 1))
    line = desk.window.notes.line
    qtbot.keyClicks(line, "  rested a minute ")
    qtbot.keyClick(line, QtCore.Qt.Key.Key_Return)
    qtbot.keyClick(line, QtCore.Qt.Key.Key_Return)
    for key in (QtCore.Qt.Key.Key_Space, QtCore.Qt.Key.Key_Return, QtCore.Qt.Key.Key_Escape):
        qtbot.keyClick(desk.window, key)
    assert desk.said() == [Note("rested a minute")]
    assert "rested a minute" in desk.seen()["texts"]
    assert desk.window.isVisible()


def test_closed_window_sends_close(desk):
    desk.notify(PLAN)
    desk.window.close()
    assert desk.said() == [Close()]


def test_window_closes_when_the_experiment_has_ended(desk):
    desk.notify(PLAN)
    desk.far.close()
    desk.window.frame()
    assert not desk.window.isVisible()


@pytest.fixture(params=[(1280, 720), (1366, 768), (2560, 1440)])
def room(request):
    """Return the room of a screen without the frame of a window, and scale the texts."""
    width, height = request.param
    application()
    grow(width, height)
    yield width - 16, height - 48
    grow(1280, 720)


@pytest.mark.parametrize(("plan", "theme"), [(PLAN, DARK), (BLIND, LIGHT)])
def test_window_fits_small_and_large_screens(room, desk, plan, theme):
    desk.window.apply(theme)
    desk.window.resize(*room)
    desk.move(2.5)
    desk.notify(plan, started(desk.trace.path), *outcomes(tuple(0.1 * k + 0.1 for k in range(20)), correct=False))
    about_trial = ("catch-easy", "reference 2 N", "reference 2 N/1", 0.3125, 3, 780.0)
    desk.notify(Progress("paused by the experimenter", 79, 80, 2, *about_trial))
    desk.notify(Certificate(tuple(Figure(f"a figure, number {k}", "100 % of 12 345", "good") for k in range(3))))
    desk.notify(Outcome(6, "repeat", ("speed outside 25-160 mm/s",), "test", "A", "A/2", 0.3125, "2"))
    desk.notify(Notice("Trial 6 is repeated: the speed was outside 25-160 mm/s."))
    for _ in range(3):
        desk.notify()
    least = desk.window.minimumSizeHint()
    assert (least.width() <= room[0], least.height() <= room[1]) == (True, True), least
    assert (desk.window.width(), desk.window.height()) == room
    for label in desk.window.findChildren(QtWidgets.QLabel):
        if label.isVisible() and not label.wordWrap():
            needed = label.sizeHint()
            assert needed.width() <= label.width() + 1, label.text()
            assert needed.height() <= label.height() + 1, label.text()


@example([8, 6, 4, 4, 5, 6, 6, 5, 4])
@given(st.lists(st.integers(1, 6), max_size=30))
def test_reversals_are_the_turns_of_the_track(steps):
    levels = [float(step) for step in steps]
    moves = [(index, new - old) for index, (old, new) in enumerate(itertools.pairwise(levels)) if new != old]
    expected = [index for (_, one), (index, two) in itertools.pairwise(moves) if one * two < 0]
    assert reversals(levels) == expected
