"""Keys that mean nothing to the window, through Qt: what the session hears of them, and when they happened."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtGui, QtTest, QtWidgets

from apps.front_ends.messages import Key, Stop
from apps.view.panels.dead_man import SURE_AFTER_MS
from apps.view.panels.keys import HeldKeys, name_of

KEYS = QtCore.Qt.Key
DOWN, UP = QtCore.QEvent.Type.KeyPress, QtCore.QEvent.Type.KeyRelease


def send(widget, kind: QtCore.QEvent.Type, key: QtCore.Qt.Key, repeat: bool = False, stamp: int = 0) -> None:
    """Let a key reach a widget, as the display says it, stamped with its milliseconds."""
    event = QtGui.QKeyEvent(kind, key, QtCore.Qt.KeyboardModifier.NoModifier, "", repeat)
    event.setTimestamp(stamp)
    QtWidgets.QApplication.sendEvent(widget, event)


def settle() -> None:
    """Wait until it is certain which keys are up."""
    QtTest.QTest.qWait(3 * SURE_AFTER_MS)
    QtWidgets.QApplication.processEvents()


def test_a_key_is_told_once_down_and_once_up_whatever_is_repeated(live) -> None:
    live.begin()
    window = live.window
    began = time.monotonic()
    send(window, DOWN, KEYS.Key_F)
    for _ in range(5):  # what a held key looks like on X11; Qt misses that the last is a repeat
        send(window, UP, KEYS.Key_F, repeat=True)
        send(window, DOWN, KEYS.Key_F, repeat=True)
    send(window, UP, KEYS.Key_F)
    send(window, DOWN, KEYS.Key_F)
    settle()
    (down,) = live.sent()
    assert down == Key("f", True)
    assert began <= down.at <= time.monotonic()
    send(window, UP, KEYS.Key_F)
    let_go = time.monotonic()
    settle()
    (up,) = live.sent()
    assert up == Key("f", False)
    assert up.at <= let_go, "it is told late, but with the instant at which it was let go"


def test_keys_at_once_do_not_disturb_each_other(live) -> None:
    live.begin()
    for kind, key in ((DOWN, KEYS.Key_Left), (DOWN, KEYS.Key_J), (UP, KEYS.Key_Left), (UP, KEYS.Key_J)):
        send(live.window, kind, key)
    settle()
    assert live.sent() == [Key("left", True), Key("j", True), Key("left", False), Key("j", False)]


def test_keys_of_the_window_are_not_told(live) -> None:
    live.begin()
    QtTest.QTest.keyClick(live.window, KEYS.Key_Space)
    settle()
    assert live.sent() == [Stop()]
    live.begin(dead_man="key")
    QtTest.QTest.keyClick(live.window, KEYS.Key_Space)
    QtTest.QTest.keyClick(live.window, KEYS.Key_Escape)
    settle()
    assert not [said for said in live.sent() if isinstance(said, Key)]


def test_a_key_is_let_go_when_the_window_closes(live) -> None:
    live.begin()
    send(live.window, DOWN, KEYS.Key_1)
    live.window.close()
    assert live.sent()[:2] == [Key("1", True), Key("1", False)]


@pytest.mark.parametrize(
    ("waited", "counts"), [(0, True), (40, True), (450, True), (-5, False), (600, False), (10**7, False)]
)
def test_the_stamp_of_the_display_counts_where_it_is_of_the_same_clock(live, waited: int, counts: bool) -> None:
    """An event may have waited while the window was drawn; the clock of a display far away says nothing."""
    live.begin()
    now = time.monotonic()
    send(live.window, DOWN, KEYS.Key_F, stamp=(int(now * 1e3) - waited) % 2**32)
    (down,) = live.sent()
    if counts:
        assert abs(down.at - (now - 1e-3 * waited)) < 2e-3
    else:
        assert down.at >= now


def test_names() -> None:
    keys = (KEYS.Key_F, KEYS.Key_Left, KEYS.Key_Return, KEYS.Key_2, KEYS.Key_Shift, QtCore.Qt.Key(0x0416))
    assert [name_of(key) for key in keys] == ["f", "left", "return", "2", "shift", "ж"]


def test_a_key_that_nobody_can_see_any_more_is_up(qtbot) -> None:
    said: list[tuple[str, bool, float]] = []
    keys = HeldKeys(lambda *what: said.append(what))
    keys.press(KEYS.Key_A, 1.0)
    keys.let_go(KEYS.Key_A, 2.0)
    keys.release(3.0)
    settle()
    assert said == [("a", True, 1.0), ("a", False, 3.0)]
