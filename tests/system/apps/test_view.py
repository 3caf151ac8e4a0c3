"""The view's own process, the dead-man's key and banner in its window, and the end of either process."""

from __future__ import annotations

import itertools
import multiprocessing
import time

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtGui, QtTest, QtWidgets

from apps.front_ends.messages import HOLD_EVERY, Close, HandButtons, HandTarget, HoldKey, Key, Quit, SessionEnded, Stop
from apps.view.window import DEBOUNCE_MS, LEAST
from haptics.records import Status
from tests.apps.view.driving import colour_of, cut_texts, frames, publish
from tests.apps.view.summaries import SUMMARY

SPACE = QtCore.Qt.Key.Key_Space


def wait(duration):
    """Process events for at least `duration` [ms]."""
    for least in (duration, 5):  # events due after a stall may start others
        QtTest.QTest.qWait(least)
        QtWidgets.QApplication.processEvents()


def changes(sent):
    """Return the messages without repetitions, of which a slow machine makes more."""
    return [said for said, _ in itertools.groupby(sent)]


def let_go(widget):
    """Release the key and wait until that is certain."""
    QtTest.QTest.keyRelease(widget, SPACE)
    wait(3 * DEBOUNCE_MS)


def repeat(widget):
    """Send the events of a held key on X11: repeated releases and presses."""
    for kind in (QtCore.QEvent.Type.KeyRelease, QtCore.QEvent.Type.KeyPress):
        event = QtGui.QKeyEvent(kind, SPACE, QtCore.Qt.KeyboardModifier.NoModifier, " ", True)
        QtWidgets.QApplication.sendEvent(widget, event)


@pytest.fixture
def key(live, qtbot):
    """A live window whose run has a key to be held."""
    live.begin(dead_man="key")
    with qtbot.waitActive(live.window):  # until the windows of other tests have gone
        live.window.activateWindow()
    QtWidgets.QApplication.processEvents()
    return live


@pytest.mark.parametrize(
    ("kind", "loud", "quiet"),
    [
        ("key", "HOLD THE SPACE BAR", "The space bar is held"),
        ("button", "HOLD THE DEVICE'S BUTTON", "The device's button is held"),
    ],
)
def test_banner_names_the_key_or_button_to_hold_and_fits_the_least_window(live, rows, kind, loud, quiet):
    live.begin(dead_man=kind)
    banner = live.window.dashboard.dead_man
    assert banner.isVisible()
    assert banner.order.text() == loud
    held, released = rows[:100].copy(), rows[100:200].copy()
    held["status"], released["status"] = 0, int(Status.RELEASED | Status.FADE)
    places = []
    for part, words in ((held, quiet), (released, loud)):
        live.publish(part)
        assert banner.order.text() == words
        assert colour_of(banner) == (live.window.theme.notice if words == loud else live.window.theme.panel)
        places.append(live.window.dashboard.plane.geometry())
    assert places[0] == places[1], "the plane must not move under the mouse when the key is pressed"
    live.window.resize(*LEAST)
    live.publish(rows[200:500])
    assert live.window.size() == QtCore.QSize(*LEAST)
    assert cut_texts(live.window) == []
    assert live.window.dashboard.places.shown[0].chart.height() > 60
    live.receive(SessionEnded("stopped", SUMMARY))
    assert not banner.isVisible()


def test_held_key_is_sent_repeatedly_and_its_release_once(key, qtbot):
    start = time.monotonic()
    QtTest.QTest.keyPress(key.window, SPACE)
    assert key.sent() == [HoldKey(True)]
    said: list[object] = []

    def repeated():
        said.extend(key.sent())
        return len(said) >= 4

    qtbot.waitUntil(repeated)
    assert time.monotonic() - start >= 3 * HOLD_EVERY
    assert set(said) == {HoldKey(True)}
    let_go(key.window)
    assert key.sent()[-1] == HoldKey(False)
    assert not key.window._dead_man.held
    qtbot.wait(round(2500 * HOLD_EVERY))
    assert key.sent() == []


@pytest.mark.wall_clock  # a release that lasts is one
def test_repeats_without_their_flag_are_ignored(key):
    QtTest.QTest.keyPress(key.window, SPACE)
    for _ in range(5):
        QtTest.QTest.keyRelease(key.window, SPACE)
        QtTest.QTest.qWait(2)
        QtTest.QTest.keyPress(key.window, SPACE)
        QtTest.QTest.qWait(2)
    assert key.window._dead_man.held
    QtTest.QTest.qWait(3 * DEBOUNCE_MS)
    assert set(key.sent()) == {HoldKey(True)}


def test_late_press_in_a_busy_window_is_a_repeat(key):
    QtTest.QTest.keyPress(key.window, SPACE)
    QtTest.QTest.keyRelease(key.window, SPACE)
    found = QtCore.QTimer(key.window, singleShot=True, timerType=QtCore.Qt.TimerType.PreciseTimer)
    found.timeout.connect(lambda: QtTest.QTest.keyPress(key.window, SPACE))
    found.start(DEBOUNCE_MS + 3)
    time.sleep(3e-3 * DEBOUNCE_MS)  # the window draws, and then all is due at once
    wait(3 * DEBOUNCE_MS)
    assert key.window._dead_man.held
    assert set(key.sent()) == {HoldKey(True)}
    let_go(key.window)
    assert changes(key.sent())[-1] == HoldKey(False)


def test_key_pressed_before_the_run_must_be_pressed_again(key):
    QtTest.QTest.keyPress(key.window, SPACE)
    key.begin(dead_man="key")
    assert key.sent() == [HoldKey(True), HoldKey(False)]
    repeat(key.window)
    QtTest.QTest.keyPress(key.window, SPACE)
    assert key.sent() == []
    let_go(key.window)
    QtTest.QTest.keyPress(key.window, SPACE)
    assert key.sent() == [HoldKey(True)]


@pytest.mark.parametrize("place", ["stop", "start", "spin", "slider", "combo"])
def test_key_has_no_other_effect_wherever_the_focus_is(key, place):
    controls = key.window.controls
    slider = controls.sliders[0]
    widget = {
        "stop": controls.stop,
        "start": controls.start,
        "spin": slider.spin,
        "slider": slider.slider,
        "combo": controls.session.device,
    }[place]
    widget.setFocus()
    QtTest.QTest.keyPress(widget, SPACE)
    repeat(widget)
    let_go(widget)
    assert changes(key.sent()) == [HoldKey(True), HoldKey(False)]
    assert not controls.session.device.view().isVisible()
    assert slider.spin.value() == 4.0


def test_key_of_the_window_system_is_sent_once(key, qtbot):
    spin = key.window.controls.sliders[0].spin
    spin.setFocus()
    qtbot.waitUntil(spin.hasFocus)
    QtTest.QTest.keyPress(key.window.windowHandle(), SPACE)
    QtTest.QTest.keyRelease(key.window.windowHandle(), SPACE)
    wait(3 * DEBOUNCE_MS)
    assert changes(key.sent()) == [HoldKey(True), HoldKey(False)]


def test_other_active_window_releases_the_key(key, qtbot):
    QtTest.QTest.keyPress(key.window, SPACE)
    other = QtWidgets.QWidget()
    qtbot.addWidget(other)
    other.show()
    other.activateWindow()
    qtbot.waitUntil(lambda: not key.window.isActiveWindow())
    assert key.sent()[-1] == HoldKey(False)
    assert not key.window._dead_man.held


def test_closed_window_releases_the_key_first(key):
    QtTest.QTest.keyPress(key.window, SPACE)
    key.window.close()
    assert key.sent() == [HoldKey(True), HoldKey(False), Close()]


def test_end_of_the_run_releases_the_key_and_disables_it(key):
    QtTest.QTest.keyPress(key.window, SPACE)
    key.session.send(SessionEnded("stopped", SUMMARY))
    key.window.frame()
    assert key.sent() == [HoldKey(True), HoldKey(False)]
    key.window.controls.start.setFocus()
    let_go(key.window.controls.start)
    QtTest.QTest.keyPress(key.window.controls.start, SPACE)
    let_go(key.window.controls.start)
    assert key.sent() == [], "a key that is held early must not stop or start anything"


def test_esc_stops_while_the_space_bar_is_the_held_key(key):
    assert key.window.controls.stop_key.text() == "or Esc, anywhere in the window"
    QtTest.QTest.keyClick(key.window.controls.sliders[0].spin, QtCore.Qt.Key.Key_Escape)
    assert key.sent() == [Stop()]
    key.begin(dead_man="none")
    assert not key.window.dashboard.dead_man.isVisible()
    assert key.window.controls.stop_key.text() == "or space bar, anywhere in the window"
    QtTest.QTest.keyClick(key.window, SPACE)
    assert key.sent() == [Stop()]


def test_space_bar_stops_with_a_button_as_dead_man(live):
    live.begin(dead_man="button", causality="admittance", device="virtual-arm", model="A")
    assert "holds its position" in live.window.dashboard.dead_man.reason.text()
    QtTest.QTest.keyClick(live.window, SPACE)
    assert live.sent() == [Stop()]


def test_only_repeated_messages_are_dropped_while_the_pipe_is_full(monkeypatch, live):
    monkeypatch.setattr("apps.front_ends.front_end.has_room", lambda connection: False)
    for message in (HandTarget(0.0, 0.0), HoldKey(True), HandButtons(2), Key("f", True), HoldKey(False), Stop()):
        live.window._link.send(message)
    assert live.sent() == [HandButtons(2), Key("f", True), HoldKey(False), Stop()]


def test_quit_closes_the_window_without_an_answer(live):
    live.session.send(Quit())
    frames(live, 1)
    assert not live.window.isVisible()
    assert live.sent() == []


def test_window_reports_the_end_of_the_application_and_closes(live, qtbot, monkeypatch):
    monkeypatch.setattr("apps.view.window._FAREWELL_MS", 50)
    live.begin()
    live.session.close()
    live.window.controls.stop.pressed.emit()
    live.window.controls.stop.pressed.emit()
    assert live.window._link.gone
    live.window.frame()
    assert "application has gone" in live.window.dashboard.notice.words.text()
    assert live.window.dashboard.notice.isVisible()
    qtbot.waitUntil(lambda: not live.window.isVisible())


@pytest.mark.parametrize("quits", [True, False], ids=["on request", "with the application"])
def test_view_process_shows_a_run_and_ends(started, trace, rows, quits):
    from apps.view.launch import main

    publish(trace, rows[:500])
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=main, args=(far, "dark"))
    process.start()
    far.close()
    near.send(started)
    if quits:
        near.send(Quit())
        assert near.poll(60), "the window is not closed"
        with pytest.raises(EOFError):
            near.recv()
    near.close()
    process.join(60)
    code = process.exitcode
    process.kill()
    assert code == 0
