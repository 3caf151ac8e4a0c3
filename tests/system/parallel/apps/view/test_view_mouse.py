"""The mouse over the plane of the live window, which is the hand of a session."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtGui, QtWidgets

from apps.front_ends.messages import HandButtons, HandTarget, SessionEnded, Stop
from apps.view.throttle import Throttle
from tests.apps.view.driving import frames

BUTTON = QtCore.Qt.MouseButton


def click(plane, kind: QtCore.QEvent.Type, button: BUTTON, held: BUTTON) -> None:
    """Press or let go a button in the middle of the plane, after which those that are `held` are."""
    at = QtCore.QPointF(plane.chart.viewport().rect().center())
    there = plane.chart.viewport().mapToGlobal(at)
    event = QtGui.QMouseEvent(kind, at, there, button, held, QtCore.Qt.KeyboardModifier.NoModifier)
    QtWidgets.QApplication.sendEvent(plane.chart.viewport(), event)


def press_three(plane) -> None:
    """Press left, right, and middle, then let left go."""
    down, up = QtCore.QEvent.Type.MouseButtonPress, QtCore.QEvent.Type.MouseButtonRelease
    left, right, middle = BUTTON.LeftButton, BUTTON.RightButton, BUTTON.MiddleButton
    click(plane, down, left, left)
    click(plane, down, right, left | right)
    click(plane, down, middle, left | right | middle)
    click(plane, up, left, right | middle)


def move_mouse(plane, x: float, y: float) -> tuple[float, float]:
    """Move the mouse to the pixel nearest to (x, y) [mm]; return where that is [m]."""
    view = plane.chart.getViewBox()
    pixel = plane.chart.mapFromScene(view.mapViewToScene(QtCore.QPointF(x, y)))
    there = view.mapSceneToView(plane.chart.mapToScene(pixel))
    at = QtCore.QPointF(pixel)
    event = QtGui.QMouseEvent(
        QtCore.QEvent.Type.MouseMove,
        at,
        plane.chart.viewport().mapToGlobal(at),
        QtCore.Qt.MouseButton.NoButton,
        QtCore.Qt.MouseButton.NoButton,
        QtCore.Qt.KeyboardModifier.NoModifier,
    )
    QtWidgets.QApplication.sendEvent(plane.chart.viewport(), event)
    return 1e-3 * there.x(), 1e-3 * there.y()


def test_the_mouse_over_the_plane_is_the_hand_in_metres(live) -> None:
    live.begin()
    frames(live)
    plane = live.window.dashboard.plane
    x, y = move_mouse(plane, 25.0, -10.0)
    (target,) = live.sent()
    assert target == HandTarget(pytest.approx(x), pytest.approx(y))
    assert (target.x, target.y) == pytest.approx((0.025, -0.010), abs=5e-4)
    assert plane.hint.isVisible()
    assert "your hand" in plane.hint.text()


def test_the_hand_stays_in_the_workspace(live) -> None:
    live.begin()
    frames(live)
    move_mouse(live.window.dashboard.plane, 62.0, 47.0)
    assert live.sent() == [HandTarget(0.06, 0.045)]


def test_the_mouse_is_no_hand_unless_the_session_says_so(live) -> None:
    live.begin(mouse=False)
    frames(live)
    move_mouse(live.window.dashboard.plane, 25.0, -10.0)
    assert live.sent() == []
    assert not live.window.dashboard.plane.hint.isVisible()


def test_the_mouse_is_no_hand_after_the_end(live) -> None:
    live.begin()
    live.session.send(SessionEnded("stopped", {}))
    frames(live)
    move_mouse(live.window.dashboard.plane, 25.0, -10.0)
    assert live.sent() == []


def test_the_buttons_of_the_mouse_are_those_of_the_device_and_none_is_left_held(live) -> None:
    live.begin()
    frames(live)
    press_three(live.window.dashboard.plane)
    assert live.sent() == [HandButtons(0b10), HandButtons(0b110), HandButtons(0b1110), HandButtons(0b1100)]
    live.session.send(SessionEnded("stopped", {}))
    frames(live)
    assert live.sent() == [HandButtons(0)]
    press_three(live.window.dashboard.plane)
    assert live.sent() == []


def test_the_buttons_mean_nothing_where_the_mouse_is_no_hand(live) -> None:
    live.begin(mouse=False)
    frames(live)
    press_three(live.window.dashboard.plane)
    assert live.sent() == []


def test_many_moves_become_few_messages_and_the_last_one_counts(qtbot) -> None:
    passed: list[tuple[float, float]] = []
    throttle = Throttle(lambda x, y: passed.append((x, y)), 8)
    for k in range(50):
        throttle.offer(float(k), 0.0)
    assert passed == [(0.0, 0.0)]
    qtbot.waitUntil(lambda: len(passed) == 2)
    assert passed[-1] == (49.0, 0.0)


def test_hand_targets_are_left_out_when_nobody_reads(live) -> None:
    live.begin()
    for _ in range(20000):
        live.window._send_hand(0.01, 0.02)  # would wait for ever if it insisted
    assert len(live.sent()) < 20000
    live.window.controls.stop_asked.emit()
    assert live.sent() == [Stop()]
