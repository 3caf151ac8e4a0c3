"""Controls of the live window: sliders, start and stop, choices, keys, mouse, pause, and random use."""

from __future__ import annotations

import os
import random
import time

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtGui, QtTest, QtWidgets

from apps.front_ends.messages import (
    HandButtons,
    HandTarget,
    Key,
    Refused,
    SessionEnded,
    SetParameter,
    Start,
    Stop,
    ValuesInForce,
)
from apps.shared.display import STEPS
from apps.view.history import Column, History
from apps.view.window import DEBOUNCE_MS, name_of
from haptics.records import Status
from tests.apps.view.driving import charts_of, controls_of, drag, frames, publish, turn_wheel, use
from tests.apps.view.summaries import SUMMARY
from tests.apps.view.view_rows import numbered


def test_moved_slider_and_typed_number_send_the_shown_value(live):
    linear, logarithmic = live.window.controls.sliders
    linear.slider.setValue(STEPS // 4)
    logarithmic.slider.setValue(STEPS // 2)
    assert live.sent() == [SetParameter("law.force", 2.5), SetParameter("element.stiffness", 1000.0)]
    assert logarithmic.spin.text() == "1000 N/m"
    linear.spin.setValue(7.5)
    assert linear.slider.value() == 750
    assert live.sent() == [SetParameter("law.force", 7.5)]


@pytest.mark.parametrize("place", ["window", "spin", "combo", "start", "list"])
def test_space_bar_stops_wherever_the_focus_is(live, place):
    controls = live.window.controls
    device = controls.session.device
    places = {"window": live.window, "spin": controls.sliders[0].spin, "start": controls.start}
    widget = places.get(place, device)
    widget.setFocus()
    if place == "list":
        device.showPopup()
        widget = device.view()
    QtTest.QTest.keyClick(widget, QtCore.Qt.Key.Key_Space)
    assert live.sent() == [Stop()]
    device.hidePopup()


def test_space_bar_of_the_window_system_stops_once_and_other_keys_reach_the_spin_box(live, qtbot):
    spin = live.window.controls.sliders[0].spin
    live.window.activateWindow()
    spin.setFocus()
    qtbot.waitUntil(spin.hasFocus)
    QtTest.QTest.keyClick(live.window.windowHandle(), QtCore.Qt.Key.Key_Space)
    assert live.sent() == [Stop()]
    spin.selectAll()
    QtTest.QTest.keyClicks(spin, "6")
    QtTest.QTest.keyClick(spin, QtCore.Qt.Key.Key_Return)
    assert live.sent() == [SetParameter("law.force", 6.0)]


def test_stop_acts_on_the_press(live):
    QtTest.QTest.mousePress(live.window.controls.stop, QtCore.Qt.MouseButton.LeftButton)
    assert live.sent() == [Stop()]
    assert "STOP" in live.window.controls.stop.text()


def test_start_sends_the_choices_and_models_follow_the_device(live):
    controls = live.window.controls
    assert (controls.session.device.currentText(), controls.session.model.currentText()) == ("virtual-joystick", "C")
    assert controls.session.hand.currentText() == "mouse"
    controls.session.device.setCurrentText("virtual-arm")
    assert [controls.session.model.itemText(k) for k in range(controls.session.model.count())] == ["A", "D"]
    controls.session.model.setCurrentText("D")
    controls.session.hand.setCurrentText("tracing")
    controls.start.click()
    assert live.sent() == [Start("virtual-arm", "D", "tracing")]
    assert not controls.start.isEnabled()


def test_start_is_disabled_before_the_first_session(waiting):
    assert not waiting.window.controls.start.isEnabled()


def test_refusal_is_shown_and_start_is_enabled_again(live, qtbot):
    live.window.controls.start.click()
    live.receive(Refused("law.force is 40 N: at most 10 N is allowed"))
    notice = live.window.dashboard.notice
    assert notice.isVisible()
    assert notice.words.text() == "law.force is 40 N: at most 10 N is allowed"
    assert live.window.controls.start.isEnabled()
    assert QtWidgets.QApplication.activeModalWidget() is None
    notice.show_notice("short", seconds=0.01)
    qtbot.waitUntil(notice.isHidden)


def test_refused_value_returns_to_the_one_in_force(live):
    slider = live.window.controls.sliders[0]
    before = slider.spin.value()
    slider.spin.setValue(before + 1.0)
    live.session.send(Refused("not allowed", {slider.key: before}))
    sent = len(live.sent())
    frames(live)
    assert slider.spin.value() == before
    assert len(live.sent()) == 0 and sent == 1
    live.receive(ValuesInForce({"law.force": 2.0}))
    assert slider.spin.value() == 2.0, "it follows other windows again"


def test_change_of_another_window_is_shown_and_not_sent(live):
    live.receive(ValuesInForce({"law.force": 7.0, "element.stiffness": 1000.0}))
    assert [slider.spin.value() for slider in live.window.controls.sliders] == [7.0, 1000.0]
    assert live.window.dashboard.places.shown[1].forces.levels == (7.0,)
    assert live.sent() == []


def test_moved_slider_does_not_jump_back_and_ends_at_the_value_in_force(live):
    """Another window moves the same slider between two values of this one."""
    slider = live.window.controls.sliders[0]
    slider.spin.setValue(5.0)
    slider.spin.setValue(6.0)
    for answer in (ValuesInForce({"law.force": 5.0}, yours=True), ValuesInForce({"law.force": 3.0})):
        live.receive(answer)
        assert slider.spin.value() == 6.0
    live.receive(ValuesInForce({"law.force": 6.0}, yours=True), ValuesInForce({"law.force": 2.0}))
    assert slider.spin.value() == 2.0


def test_pending_law_is_marked_until_start_sends_it(live):
    laws = ("coulomb", "stribeck")
    live.run(law="coulomb", laws=laws)
    controls, panel = live.window.controls, live.window.controls.session
    for choice, start in (("stribeck", "Start again with these"), ("coulomb", "Start again"), ("stribeck", None)):
        panel.law.setCurrentText(choice)
        assert panel.pending.isVisible() == (choice != "coulomb")
        assert start is None or controls.start.text() == start
    assert panel.pending.text().startswith("PENDING: until then law coulomb goes on")
    assert panel._names["law"].text().endswith("●")
    assert live.sent() == [], "nothing is sent before Start"
    controls.start.click()
    assert live.sent() == [Start("virtual-joystick", "C", "mouse", "stribeck")]
    live.begin(law="stribeck", laws=laws)
    assert panel.pending.isHidden() and not controls.start.property("pending")


KEYS = QtCore.Qt.Key
DOWN, UP = QtCore.QEvent.Type.KeyPress, QtCore.QEvent.Type.KeyRelease


def send(widget, kind, key, repeat=False, stamp=0):
    """Send a key event to a widget, with the time stamp of the display [ms]."""
    event = QtGui.QKeyEvent(kind, key, QtCore.Qt.KeyboardModifier.NoModifier, "", repeat)
    event.setTimestamp(stamp)
    QtWidgets.QApplication.sendEvent(widget, event)


def settle_keys():
    """Wait until it is certain which keys are up."""
    QtTest.QTest.qWait(3 * DEBOUNCE_MS)
    QtWidgets.QApplication.processEvents()


def test_repeated_key_is_sent_once_down_and_once_up(live):
    window = live.window
    began = time.monotonic()
    send(window, DOWN, KEYS.Key_F)
    for _ in range(5):  # events of a held key on X11; Qt misses that the last is a repeat
        send(window, UP, KEYS.Key_F, repeat=True)
        send(window, DOWN, KEYS.Key_F, repeat=True)
    send(window, UP, KEYS.Key_F)
    send(window, DOWN, KEYS.Key_F)
    settle_keys()
    (down,) = live.sent()
    assert down == Key("f", True)
    assert began <= down.at <= time.monotonic()
    send(window, UP, KEYS.Key_F)
    let_go = time.monotonic()
    settle_keys()
    (up,) = live.sent()
    assert up == Key("f", False)
    assert up.at <= let_go, "it is sent late, with the instant of the release"


def test_simultaneous_keys_are_sent_in_order_and_released_with_the_window(live):
    for kind, key in ((DOWN, KEYS.Key_Left), (DOWN, KEYS.Key_J), (UP, KEYS.Key_Left), (UP, KEYS.Key_J)):
        send(live.window, kind, key)
    settle_keys()
    assert live.sent() == [Key("left", True), Key("j", True), Key("left", False), Key("j", False)]
    send(live.window, DOWN, KEYS.Key_1)
    live.window.close()
    assert live.sent()[:2] == [Key("1", True), Key("1", False)]


def test_keys_of_the_window_are_not_sent(live):
    QtTest.QTest.keyClick(live.window, KEYS.Key_Space)
    settle_keys()
    assert live.sent() == [Stop()]
    live.begin(dead_man="key")
    QtTest.QTest.keyClick(live.window, KEYS.Key_Space)
    QtTest.QTest.keyClick(live.window, KEYS.Key_Escape)
    settle_keys()
    assert not [said for said in live.sent() if isinstance(said, Key)]


@pytest.mark.parametrize(
    ("waited", "counts"), [(0, True), (40, True), (450, True), (-5, False), (600, False), (10**7, False)]
)
def test_time_stamp_of_the_display_is_used_if_it_has_the_same_clock(live, waited, counts):
    """An event may have waited during drawing; a remote display has another clock."""
    now = time.monotonic()
    send(live.window, DOWN, KEYS.Key_F, stamp=(int(now * 1e3) - waited) % 2**32)
    (down,) = live.sent()
    if counts:
        assert abs(down.at - (now - 1e-3 * waited)) < 2e-3
    else:
        assert down.at >= now


def test_keys_have_names():
    keys = (KEYS.Key_F, KEYS.Key_Left, KEYS.Key_Return, KEYS.Key_2, KEYS.Key_Shift, QtCore.Qt.Key(0x0416))
    assert [name_of(key) for key in keys] == ["f", "left", "return", "2", "shift", "ж"]


BUTTON = QtCore.Qt.MouseButton


def click(plane, kind, button, held):
    """Press or release a button in the middle of the plane; `held` are the buttons after it."""
    at = QtCore.QPointF(plane.chart.viewport().rect().center())
    there = plane.chart.viewport().mapToGlobal(at)
    event = QtGui.QMouseEvent(kind, at, there, button, held, QtCore.Qt.KeyboardModifier.NoModifier)
    QtWidgets.QApplication.sendEvent(plane.chart.viewport(), event)


def press_three(plane):
    """Press left, right, and middle, then release left."""
    down, up = QtCore.QEvent.Type.MouseButtonPress, QtCore.QEvent.Type.MouseButtonRelease
    left, right, middle = BUTTON.LeftButton, BUTTON.RightButton, BUTTON.MiddleButton
    click(plane, down, left, left)
    click(plane, down, right, left | right)
    click(plane, down, middle, left | right | middle)
    click(plane, up, left, right | middle)


def move_mouse(plane, x, y):
    """Move the mouse to the pixel nearest to (x, y) [mm]; return where that is [m]."""
    view = plane.chart.getViewBox()
    pixel = plane.chart.mapFromScene(view.mapViewToScene(QtCore.QPointF(x, y)))
    there = view.mapSceneToView(plane.chart.mapToScene(pixel))
    at = QtCore.QPointF(pixel)
    screen, none = plane.chart.viewport().mapToGlobal(at), BUTTON.NoButton
    modifier = QtCore.Qt.KeyboardModifier.NoModifier
    event = QtGui.QMouseEvent(QtCore.QEvent.Type.MouseMove, at, screen, none, none, modifier)
    QtWidgets.QApplication.sendEvent(plane.chart.viewport(), event)
    return 1e-3 * there.x(), 1e-3 * there.y()


def test_mouse_over_the_plane_is_the_hand_in_metres(live, qtbot):
    live.run()
    plane = live.window.dashboard.plane
    x, y = move_mouse(plane, 25.0, -10.0)
    (target,) = live.sent()
    assert target == HandTarget(pytest.approx(x), pytest.approx(y))
    assert (target.x, target.y) == pytest.approx((0.025, -0.010), abs=5e-4)
    assert plane.hint.isVisible() and "your hand" in plane.hint.text()
    move_mouse(plane, 62.0, 47.0)
    found = []

    def received():
        found.extend(live.sent())
        return bool(found)

    qtbot.waitUntil(received)  # moves are throttled
    assert found == [HandTarget(0.06, 0.045)], "the hand stays in the workspace"


def test_mouse_is_no_hand_unless_the_session_asks(live):
    live.run(mouse=False)
    move_mouse(live.window.dashboard.plane, 25.0, -10.0)
    press_three(live.window.dashboard.plane)
    assert live.sent() == []
    assert not live.window.dashboard.plane.hint.isVisible()


def test_mouse_buttons_are_device_buttons_and_none_remains_held(live):
    live.run()
    press_three(live.window.dashboard.plane)
    assert live.sent() == [HandButtons(0b10), HandButtons(0b110), HandButtons(0b1110), HandButtons(0b1100)]
    live.receive(SessionEnded("stopped", {}))
    assert live.sent() == [HandButtons(0)]
    press_three(live.window.dashboard.plane)
    move_mouse(live.window.dashboard.plane, 25.0, -10.0)
    assert live.sent() == []


def test_hand_targets_are_dropped_when_the_pipe_is_full(live):
    for _ in range(20000):
        live.window._send(HandTarget(0.01, 0.02))  # would wait for ever if it insisted
    assert len(live.sent()) < 20000
    live.window.controls.stop.pressed.emit()
    assert live.sent() == [Stop()]


def newest_x(live):
    """Return where the picture has the end effector [mm]."""
    return float(live.window.dashboard.plane._effector.getData()[0][0])


def test_held_history_is_unchanged_until_its_rows_are_dropped():
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


def test_pause_holds_the_picture_during_the_run(live, rows):
    live.publish(rows[:2000])
    transport = live.window.dashboard.transport
    transport.button.click()
    live.publish(rows[2000:4000])
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][1999, 0])
    assert "PAUSED" in transport.place.text() and "2.0 s ago" in transport.place.text()
    assert "4\u2009000 ticks" in live.window.dashboard.numbers.text(), "numbers are those of the run"
    assert live.sent() == []
    assert transport.button.text() == "Go on"
    transport.button.click()
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][3999, 0])
    assert "live" in transport.place.text()
    transport.button.click()
    late = rows[4000:4010].copy()
    late["status"] = Status.ENERGY
    live.publish(late)
    assert live.window.dashboard.safety.lamps.shown[Status.ENERGY] == (True, True), "lamps are live during the pause"


@pytest.mark.parametrize("stop", [1, 700, 2500, 3999])
def test_time_slider_shows_any_moment(live, rows, stop):
    live.publish(rows[:4000])
    slider = live.window.dashboard.transport.slider
    assert (slider.minimum(), slider.maximum()) == (1, 4000)
    slider.setValue(stop)
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][stop - 1, 0])
    live.publish(rows[4000:4100])
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][stop - 1, 0])
    slider.setValue(slider.maximum())
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][4099, 0])
    live.receive(SessionEnded("stopped"))
    slider.setValue(stop)
    assert newest_x(live) == pytest.approx(1e3 * rows["position"][stop - 1, 0])


def test_time_span_can_be_chosen(live, rows):
    live.publish(rows[:6500])
    live.window.dashboard.transport.span.setCurrentText("1 s")
    series = live.window.dashboard.places.shown[1]
    assert series.speeds.chart.getViewBox().viewRange()[0] == pytest.approx([-1.0, 0.0])
    assert series.speeds.curves[0].getData()[0][0] == pytest.approx(-1.0, abs=0.01)


def test_function_keys_act_everywhere_and_are_not_sent(live, rows):
    live.publish(rows[:500])
    dashboard, keys = live.window.dashboard, QtCore.Qt.Key
    spin = live.window.controls.sliders[0].spin
    for on in (True, False):
        for key in (keys.Key_F1, keys.Key_F2, keys.Key_F3):
            QtTest.QTest.keyClick(spin, key)
        assert dashboard._help.isVisible() == on
        assert bool(live.window._feed.history.held) == on
        assert dashboard.places.shown[1].cursors.on == on
    assert live.sent() == []


def test_stop_key_acts_while_help_is_open_and_the_picture_is_held(live, rows):
    live.publish(rows[:500])
    live.window.dashboard.transport.help.click()
    live.window.dashboard.transport.button.click()
    QtTest.QTest.keyClick(live.window.dashboard._help, QtCore.Qt.Key.Key_Space)
    assert live.sent() == [Stop()]


PLAY_KEYS = [*(KEYS(KEYS.Key_F1 + k) for k in range(6)), KEYS.Key_Left, KEYS.Key_Space]


@pytest.mark.parametrize("title", ["Force, speed", "Spectrum", "Position, velocity, force, command"])
def test_charts_zoom_and_return(live, rows, title):
    live.run(rows[:6000], mouse=False)
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
        assert box.viewRange() == zoomed, "drawing keeps the zoom"
        turn_wheel(chart, -8)
        live.window.dashboard.transport.home.click()
        assert box.viewRange()[0] == pytest.approx(home[0])
        assert not box.zoomed


def test_plane_is_not_moved_by_the_mouse_as_the_hand(live, rows):
    live.run(rows[:500], mouse=True)
    box = live.window.dashboard.plane.chart.getViewBox()
    home = box.viewRange()
    drag(live.window.dashboard.plane.chart, (0.3, 0.3), (0.7, 0.6))
    turn_wheel(live.window.dashboard.plane.chart, 3)
    assert box.viewRange() == home


def play(window, chance, step):
    """Do something at random with a window, then draw it."""
    action = chance.random()
    if action < 0.6:
        controls = controls_of(window)
        use(chance.choice(controls), chance.random())
    elif action < 0.85 and charts_of(window):
        chart = chance.choice(charts_of(window))
        places = [(chance.random(), chance.random()) for _ in range(2)]
        if chance.random() < 0.5:
            drag(chart, *places)
        else:
            turn_wheel(chart, chance.randint(-6, 6), places[0])
    elif action < 0.95:
        QtTest.QTest.keyClick(window, chance.choice(PLAY_KEYS))
    else:
        window.resize(chance.randint(1260, 1800), chance.randint(600, 1100))
    step()


@pytest.mark.timeout(900)
def test_every_control_can_be_used_and_random_use_does_not_break_a_session(live, rows):
    """At least 100 random actions; MONKEY_SECONDS=180 runs it for minutes of computing."""
    seconds = float(os.environ.get("MONKEY_SECONDS", "0"))
    chance, start, done, written = random.Random(7), time.process_time(), 0, 3000
    run = {"laws": ("coulomb", "stribeck", "elliptic"), "law": "coulomb", "mouse": False}
    live.run(rows[:written], **run)

    def step():
        nonlocal written
        publish(live.trace, rows[written : written + 120])
        written += 120
        live.window.frame()
        QtWidgets.QApplication.processEvents()

    used, sent = 0, []
    for control in controls_of(live.window):
        if control.isVisible() and control.isEnabled():  # one may hide another
            use(control)
            step()
            if isinstance(control, QtWidgets.QToolButton) and control.isChecked():
                use(control)  # undo it: a plot alone hides the others
            used += 1
            sent += live.sent()
    assert used > 25
    assert {Start, Stop, SetParameter} <= {type(message) for message in sent}
    while done < 100 or time.process_time() - start < seconds:
        play(live.window, chance, step)
        done += 1
        live.sent()
        if done % 60 == 59:  # the run ends and another one begins
            live.session.send(SessionEnded("stopped", SUMMARY))
            step()
            live.begin(**run)
            written = 0
        assert live.window.isVisible()
