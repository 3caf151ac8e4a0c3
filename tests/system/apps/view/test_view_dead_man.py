"""The dead-man's banner and key in the window; real keys through Qt."""

from __future__ import annotations

import itertools
import time

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtGui, QtTest, QtWidgets

from apps.front_ends.messages import HOLD_EVERY, Close, HandButtons, HandTarget, HoldKey, Key, SessionEnded, Stop
from apps.view.panels.dead_man import SURE_AFTER_MS
from apps.view.window import LEAST
from haptics.records import Status
from tests.apps.view.driving import frames, publish
from tests.apps.view.summaries import SUMMARY

SPACE = QtCore.Qt.Key.Key_Space


def press(widget) -> None:
    """Press the key in a widget."""
    QtTest.QTest.keyPress(widget, SPACE)


def wait(duration: int) -> None:
    """Let at least `duration` [ms] go by, and whatever was due in it happen."""
    for least in (duration, 5):  # a stall may have been the end of the waiting, and what was due then begins something
        QtTest.QTest.qWait(least)
        QtWidgets.QApplication.processEvents()


def changes(sent: list[object]) -> list[object]:
    """Return what was said without its repetitions, of which a slow machine makes more."""
    return [said for said, _ in itertools.groupby(sent)]


def let_go(widget) -> None:
    """Let the key go and wait until that is certain."""
    QtTest.QTest.keyRelease(widget, SPACE)
    wait(3 * SURE_AFTER_MS)


def repeat(widget) -> None:
    """Do what a held key does on X11: it seems to be let go and pressed over and over."""
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


def test_without_a_dead_man_there_is_no_banner(live, rows) -> None:
    live.begin()
    assert not live.window.dashboard.dead_man.isVisible()


@pytest.mark.parametrize(
    ("kind", "loud", "quiet"),
    [
        ("key", "HOLD THE SPACE BAR", "The space bar is held"),
        ("button", "HOLD THE DEVICE'S BUTTON", "The device's button is held"),
    ],
)
def test_the_banner_says_what_to_hold_while_it_is_released(live, rows, kind: str, loud: str, quiet: str) -> None:
    live.begin(dead_man=kind)
    banner = live.window.dashboard.dead_man
    assert banner.isVisible()
    assert banner.order.text() == loud
    held, released = rows[:100].copy(), rows[100:200].copy()
    held["status"], released["status"] = 0, int(Status.RELEASED | Status.FADE)
    alarmed, places = banner.styleSheet(), []
    for part, words in ((held, quiet), (released, loud)):
        publish(live.trace, part)
        frames(live)
        assert banner.order.text() == words
        assert (banner.styleSheet() == alarmed) == (words == loud)
        places.append(live.window.dashboard.plane.geometry())
    assert places[0] == places[1], "what is under the mouse must not move when the key is pressed"
    assert live.window.theme.notice in banner.styleSheet()
    live.session.send(SessionEnded("stopped", SUMMARY))
    frames(live)
    assert not banner.isVisible()


def test_the_banner_of_a_device_that_moves_the_hand_speaks_of_motion(live) -> None:
    live.begin(dead_man="button", causality="admittance", device="virtual-arm", model="A")
    assert "holds its position" in live.window.dashboard.dead_man.reason.text()


@pytest.mark.parametrize("kind", ["key", "button"])
def test_nothing_is_cut_in_the_least_window(live, rows, kind: str) -> None:
    live.begin(dead_man=kind)
    live.window.resize(*LEAST)
    publish(live.trace, rows[:500])
    frames(live)
    assert live.window.size() == QtCore.QSize(*LEAST)
    texts = [w for w in live.window.findChildren(QtWidgets.QLabel) if w.isVisible() and w.text() and not w.wordWrap()]
    texts.remove(live.window.dashboard.path)
    assert [w.text() for w in texts if w.width() < w.minimumSizeHint().width()] == []
    assert live.window.dashboard.places.shown[0].chart.height() > 60


def test_a_held_key_is_said_at_once_again_and_again_and_its_end_too(key, qtbot) -> None:
    start = time.monotonic()
    press(key.window)
    assert key.sent() == [HoldKey(True)]
    said: list[object] = []

    def repeated() -> bool:
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


def test_repeats_of_the_keyboard_say_nothing(key) -> None:
    press(key.window)
    for _ in range(5):
        repeat(key.window)
    assert key.window._dead_man.held
    assert HoldKey(False) not in key.sent()


@pytest.mark.wall_clock  # a release that lasts is one
def test_repeats_that_look_like_real_ones_say_nothing(key) -> None:
    press(key.window)
    for _ in range(5):
        QtTest.QTest.keyRelease(key.window, SPACE)
        QtTest.QTest.qWait(2)
        press(key.window)
        QtTest.QTest.qWait(2)
    assert key.window._dead_man.held
    QtTest.QTest.qWait(3 * SURE_AFTER_MS)
    assert set(key.sent()) == {HoldKey(True)}


def test_a_press_that_a_busy_window_finds_late_is_a_repeat(key) -> None:
    press(key.window)
    QtTest.QTest.keyRelease(key.window, SPACE)
    found = QtCore.QTimer(key.window, singleShot=True, timerType=QtCore.Qt.TimerType.PreciseTimer)
    found.timeout.connect(lambda: press(key.window))
    found.start(SURE_AFTER_MS + 3)
    time.sleep(3e-3 * SURE_AFTER_MS)  # the window draws, and then all is due at once
    wait(3 * SURE_AFTER_MS)
    assert key.window._dead_man.held
    assert set(key.sent()) == {HoldKey(True)}
    let_go(key.window)
    assert changes(key.sent())[-1] == HoldKey(False)


def test_a_key_that_was_down_before_the_run_must_be_pressed_anew(key) -> None:
    press(key.window)
    key.begin(dead_man="key")
    assert key.sent() == [HoldKey(True), HoldKey(False)]
    repeat(key.window)
    press(key.window)
    assert key.sent() == []
    let_go(key.window)
    press(key.window)
    assert key.sent() == [HoldKey(True)]


@pytest.mark.parametrize("place", ["stop", "start", "spin", "slider", "combo"])
def test_the_key_does_nothing_else_wherever_the_focus_is(key, place: str) -> None:
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
    press(widget)
    repeat(widget)
    let_go(widget)
    assert changes(key.sent()) == [HoldKey(True), HoldKey(False)]
    assert not controls.session.device.view().isVisible()
    assert slider.value == 4.0


def test_the_key_typed_at_the_window_system_is_said_once(key, qtbot) -> None:
    spin = key.window.controls.sliders[0].spin
    spin.setFocus()
    qtbot.waitUntil(spin.hasFocus)
    QtTest.QTest.keyPress(key.window.windowHandle(), SPACE)
    QtTest.QTest.keyRelease(key.window.windowHandle(), SPACE)
    wait(3 * SURE_AFTER_MS)
    assert changes(key.sent()) == [HoldKey(True), HoldKey(False)]


def test_another_window_in_front_lets_go(key, qtbot) -> None:
    press(key.window)
    other = QtWidgets.QWidget()
    qtbot.addWidget(other)
    other.show()
    other.activateWindow()
    qtbot.waitUntil(lambda: not key.window.isActiveWindow())
    assert key.sent()[-1] == HoldKey(False)
    assert not key.window._dead_man.held


def test_closing_the_window_lets_go_first(key) -> None:
    press(key.window)
    key.window.close()
    assert key.sent() == [HoldKey(True), HoldKey(False), Close()]


def test_the_end_of_the_run_lets_go_and_the_key_stays_harmless(key) -> None:
    press(key.window)
    key.session.send(SessionEnded("stopped", SUMMARY))
    key.window.frame()
    assert key.sent() == [HoldKey(True), HoldKey(False)]
    key.window.controls.start.setFocus()
    let_go(key.window.controls.start)
    press(key.window.controls.start)
    let_go(key.window.controls.start)
    assert key.sent() == [], "who holds the key early must not stop or start anything"


def test_with_a_key_to_be_held_another_one_stops(key) -> None:
    assert key.window.controls.stop_key.text() == "or Esc, anywhere in the window"
    QtTest.QTest.keyClick(key.window.controls.sliders[0].spin, QtCore.Qt.Key.Key_Escape)
    assert key.sent() == [Stop()]
    key.begin(dead_man="none")
    assert key.window.controls.stop_key.text() == "or space bar, anywhere in the window"
    QtTest.QTest.keyClick(key.window, SPACE)
    assert key.sent() == [Stop()]


def test_a_device_with_a_button_leaves_the_space_bar_alone(live) -> None:
    live.begin(dead_man="button")
    QtTest.QTest.keyClick(live.window, SPACE)
    assert live.sent() == [Stop()]


def test_only_what_is_repeated_is_left_out_while_nobody_reads(monkeypatch, live) -> None:
    monkeypatch.setattr("apps.front_ends.link.has_room", lambda connection: False)
    for message in (HandTarget(0.0, 0.0), HoldKey(True), HandButtons(2), Key("f", True), HoldKey(False), Stop()):
        live.window._link.send(message)
    assert live.sent() == [HandButtons(2), Key("f", True), HoldKey(False), Stop()]
