"""The controls of the live window: sliders, starting, stopping, and what the session answers."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtTest, QtWidgets

from apps.front_ends.messages import Advised, Parameter, Refused, SetParameter, Start, Stop, ValuesInForce
from apps.shared.scale import STEPS
from apps.view.panels.controls import ParameterSlider
from tests.apps.view.driving import frames


def test_moving_a_slider_sends_the_value_that_is_shown(live) -> None:
    live.begin()
    linear, logarithmic = live.window.controls.sliders
    linear.slider.setValue(STEPS // 4)
    logarithmic.slider.setValue(STEPS // 2)
    assert live.sent() == [SetParameter("law.force", 2.5), SetParameter("element.stiffness", 1000.0)]
    assert logarithmic.spin.text() == "1000 N/m"


def test_typing_a_number_moves_the_slider_and_sends_it(live) -> None:
    live.begin()
    slider = live.window.controls.sliders[0]
    slider.spin.setValue(7.5)
    assert slider.slider.value() == 750
    assert live.sent() == [SetParameter("law.force", 7.5)]


def test_showing_parameters_sends_nothing(live) -> None:
    live.begin()
    frames(live)
    assert live.sent() == []


def test_a_count_is_moved_and_typed_by_whole_numbers(qtbot) -> None:
    slider = ParameterSlider(Parameter("element.count", 6.0, 1.0, 12.0, "", whole=True))
    qtbot.addWidget(slider)
    sent: list[float] = []
    slider.changed.connect(lambda key, value: sent.append(value))
    assert slider.spin.text() == "6"
    for position in range(slider.slider.maximum() + 1):
        slider.slider.setValue(position)
    slider.spin.stepDown()
    assert sent == [*range(1, 13), 11]
    assert slider.slider.value() == 10


def test_a_parameter_outside_its_range_widens_it(qtbot) -> None:
    slider = ParameterSlider(Parameter("law.force", 12.0, 0.0, 10.0, "N"))
    qtbot.addWidget(slider)
    assert slider.value == 12.0
    assert slider.slider.value() == STEPS


@pytest.mark.parametrize("place", ["window", "spin", "combo", "start", "list"])
def test_space_stops_whatever_has_the_focus(live, place: str) -> None:
    live.begin()
    controls = live.window.controls
    widget = {
        "window": live.window,
        "spin": controls.sliders[0].spin,
        "combo": controls.session.device,
        "start": controls.start,
        "list": controls.session.device,
    }[place]
    widget.setFocus()
    if place == "list":
        controls.session.device.showPopup()
        widget = controls.session.device.view()
    QtTest.QTest.keyClick(widget, QtCore.Qt.Key.Key_Space)
    assert live.sent() == [Stop()]
    controls.session.device.hidePopup()


def test_space_typed_at_the_window_system_stops_once(live, qtbot) -> None:
    live.begin()
    spin = live.window.controls.sliders[0].spin
    live.window.activateWindow()
    spin.setFocus()
    qtbot.waitUntil(spin.hasFocus)
    QtTest.QTest.keyClick(live.window.windowHandle(), QtCore.Qt.Key.Key_Space)
    assert live.sent() == [Stop()]


def test_other_keys_still_reach_the_spin_box_and_nobody_else(live, qtbot) -> None:
    live.begin()
    spin = live.window.controls.sliders[0].spin
    live.window.activateWindow()
    spin.setFocus()
    qtbot.waitUntil(spin.hasFocus)
    spin.selectAll()
    QtTest.QTest.keyClicks(spin, "6")
    QtTest.QTest.keyClick(spin, QtCore.Qt.Key.Key_Return)
    assert live.sent() == [SetParameter("law.force", 6.0)]


def test_stop_acts_when_it_is_pressed_not_when_it_is_let_go(live) -> None:
    live.begin()
    QtTest.QTest.mousePress(live.window.controls.stop, QtCore.Qt.MouseButton.LeftButton)
    assert live.sent() == [Stop()]
    assert "STOP" in live.window.controls.stop.text()


def test_start_sends_what_is_chosen_and_models_follow_the_device(live) -> None:
    live.begin()
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


def test_there_is_nothing_to_start_before_the_session_has_spoken(live) -> None:
    assert not live.window.controls.start.isEnabled()


def test_a_refusal_is_shown_and_start_is_possible_again(live, qtbot) -> None:
    live.begin()
    live.window.controls.start.click()
    live.session.send(Refused("law.force is 40 N: at most 10 N is allowed"))
    frames(live)
    notice = live.window.dashboard.notice
    assert notice.isVisible()
    assert notice.words.text() == "law.force is 40 N: at most 10 N is allowed"
    assert live.window.controls.start.isEnabled()
    assert QtWidgets.QApplication.activeModalWidget() is None
    notice.tell("short", seconds=0.01)
    qtbot.waitUntil(notice.isHidden)


def test_advice_is_shown_and_changes_nothing(live) -> None:
    live.begin()
    live.window.controls.start.click()
    live.session.send(Advised("element.stiffness = 60000 N/m, and the joystick buzzes above 10500 N/m"))
    frames(live)
    assert live.window.dashboard.notice.isVisible()
    assert "buzzes above 10500 N/m" in live.window.dashboard.notice.words.text()
    assert not live.window.controls.start.isEnabled()


def test_a_refused_value_goes_back_to_the_one_in_force(live) -> None:
    live.begin()
    slider = live.window.controls.sliders[0]
    before = slider.value
    slider.spin.setValue(before + 1.0)
    live.session.send(Refused("not allowed", {slider.key: before}))
    sent = len(live.sent())
    frames(live)
    assert slider.value == before
    assert len(live.sent()) == 0 and sent == 1


def test_what_another_window_has_changed_is_shown_and_not_sent(live) -> None:
    live.begin()
    live.session.send(ValuesInForce({"law.force": 7.0, "element.stiffness": 1000.0}))
    frames(live)
    assert [slider.value for slider in live.window.controls.sliders] == [7.0, 1000.0]
    assert live.window.dashboard.places.shown[1]._levels == (7.0,)
    assert live.sent() == []


def test_a_slider_that_is_moved_does_not_jump_back_and_ends_where_the_session_is(live) -> None:
    """Another window moves the same one: the session has had the first wish from here, then theirs, then the second."""
    live.begin()
    slider = live.window.controls.sliders[0]
    slider.spin.setValue(5.0)
    slider.spin.setValue(6.0)
    for answer in (ValuesInForce({"law.force": 5.0}, yours=True), ValuesInForce({"law.force": 3.0})):
        live.session.send(answer)
        frames(live)
        assert slider.value == 6.0
    live.session.send(ValuesInForce({"law.force": 6.0}, yours=True))
    live.session.send(ValuesInForce({"law.force": 2.0}))
    frames(live)
    assert slider.value == 2.0


def test_after_a_refusal_others_are_followed_again(live) -> None:
    live.begin()
    slider = live.window.controls.sliders[0]
    slider.spin.setValue(5.0)
    live.session.send(Refused("no", {"law.force": 4.0}))
    live.session.send(ValuesInForce({"law.force": 2.0}))
    frames(live)
    assert slider.value == 2.0
