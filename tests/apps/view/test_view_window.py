"""The live window, offscreen, with a session at the other end of a real pipe."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtGui, QtOpenGLWidgets, QtTest, QtWidgets

from apps.session.messages import (
    Advised,
    Close,
    HandTarget,
    Parameter,
    Quit,
    Refused,
    SessionEnded,
    SetParameter,
    Start,
    Stop,
)
from apps.view.controls import ParameterSlider
from apps.view.plane import raster_step
from apps.view.scale import STEPS
from apps.view.theme import DARK, LIGHT
from apps.view.throttle import Throttle
from haptics.trace import Status
from tests.apps.view.test_view_data import REASONS, SUMMARY, UNFIT


def publish(trace, rows) -> None:
    """Append rows to a trace."""
    for row in rows:
        trace.append(row)


def key(widget, code: QtCore.Qt.Key) -> None:
    """Press and release a key in a widget."""
    QtTest.QTest.keyClick(widget, code)


def frames(live, count: int = 3) -> None:
    """Let the window draw: numbers change in every third frame only."""
    for _ in range(count):
        live.window.frame()
        QtWidgets.QApplication.processEvents()


def test_a_run_appears(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:3000])
    frames(live)
    dashboard = live.window.dashboard
    assert live.window.windowTitle() == "haptics: model C on virtual-joystick"
    assert "3\u2009000 ticks" in dashboard.numbers.text()
    assert "0:03.0 of 0:10.0" in dashboard.numbers.text()
    assert dashboard.plane._effector.getData()[0][0] == pytest.approx(1e3 * rows["position"][2999, 0])
    times, values = dashboard.series.speeds.curves[0].getData()
    assert times[-1] == pytest.approx(0.0, abs=0.011)
    assert values.max() == pytest.approx(1e3 * np.hypot(*rows["velocity"][:3000].T).max())
    assert dashboard.timing.quantiles.text().startswith("p50 22 µs")
    edges, ticks = dashboard.timing._work.getData()
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


def test_the_laws_level_follows_its_slider(live) -> None:
    live.begin()
    (line,) = live.window.dashboard.series._level_lines
    assert line.value() == 4.0
    live.window.controls.sliders[0].spin.setValue(6.0)
    assert line.value() == 6.0
    assert live.window.dashboard.series._dashes.style() == QtCore.Qt.PenStyle.DashLine


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
        "combo": controls.device,
        "start": controls.start,
        "list": controls.device,
    }[place]
    widget.setFocus()
    if place == "list":
        controls.device.showPopup()
        widget = controls.device.view()
    key(widget, QtCore.Qt.Key.Key_Space)
    assert live.sent() == [Stop()]
    controls.device.hidePopup()


def test_space_typed_at_the_window_system_stops_once(live, qtbot) -> None:
    live.begin()
    spin = live.window.controls.sliders[0].spin
    live.window.activateWindow()
    spin.setFocus()
    qtbot.waitUntil(spin.hasFocus)
    QtTest.QTest.keyClick(live.window.windowHandle(), QtCore.Qt.Key.Key_Space)
    assert live.sent() == [Stop()]


def test_other_keys_still_reach_the_spin_box(live) -> None:
    live.begin()
    spin = live.window.controls.sliders[0].spin
    spin.selectAll()
    QtTest.QTest.keyClicks(spin, "6")
    key(spin, QtCore.Qt.Key.Key_Return)
    assert live.sent() == [SetParameter("law.force", 6.0)]


def test_stop_acts_when_it_is_pressed_not_when_it_is_let_go(live) -> None:
    live.begin()
    QtTest.QTest.mousePress(live.window.controls.stop, QtCore.Qt.MouseButton.LeftButton)
    assert live.sent() == [Stop()]
    assert "STOP" in live.window.controls.stop.text()


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


def test_many_moves_become_few_messages_and_the_last_one_counts(qtbot) -> None:
    passed: list[tuple[float, float]] = []
    throttle = Throttle(lambda x, y: passed.append((x, y)), 8)
    for k in range(50):
        throttle.offer(float(k), 0.0)
    assert passed == [(0.0, 0.0)]
    qtbot.waitUntil(lambda: len(passed) == 2)
    assert passed[-1] == (49.0, 0.0)


def test_start_sends_what_is_chosen_and_models_follow_the_device(live) -> None:
    live.begin()
    controls = live.window.controls
    assert (controls.device.currentText(), controls.model.currentText()) == ("virtual-joystick", "C")
    assert controls.hand.currentText() == "mouse"
    controls.device.setCurrentText("virtual-arm")
    assert [controls.model.itemText(k) for k in range(controls.model.count())] == ["A", "D"]
    controls.model.setCurrentText("D")
    controls.hand.setCurrentText("tracing")
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


def test_the_end_shows_reason_and_certificate_and_keeps_the_picture(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:500])
    live.session.send(SessionEnded("the time was over", SUMMARY))
    frames(live)
    card = live.window.dashboard.end
    assert card.isVisible()
    assert card.text.startswith("FIT\nRun ended: the time was over")
    for part in ("p99.9", "410", "1377", "pinned to processor 1", "0.25\u00a0s stolen"):
        assert part in card.text
    assert not card.because.isVisible()
    assert not live.window.dashboard.notice.isVisible()
    assert "500 ticks" in live.window.dashboard.numbers.text()
    assert len(live.window.dashboard.plane._effector.getData()[0]) == 1
    assert live.window.windowTitle().endswith("(ended)")
    assert not live.window.controls.sliders[0].isEnabled()
    live.trace.path.unlink()
    frames(live)
    assert live.window.controls.start.text() == "Start"


def test_an_unfit_run_says_why(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:500])
    live.session.send(SessionEnded("completed", SUMMARY))
    frames(live)
    card = live.window.dashboard.end
    fit = card.badge.styleSheet()
    live.session.send(SessionEnded("completed", UNFIT))
    frames(live)
    assert card.text.startswith("UNFIT\nRun ended: completed")
    assert card.because.isVisible()
    assert all(reason in card.because.text() for reason in REASONS)
    assert card.badge.styleSheet() != fit


def test_a_fault_is_told_until_the_next_run(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:500])
    live.session.send(SessionEnded("fault", UNFIT, "virtual-joystick failed at tick 512: unplugged"))
    frames(live)
    dashboard = live.window.dashboard
    assert dashboard.notice.isVisible()
    assert dashboard.notice.words.text() == "virtual-joystick failed at tick 512: unplugged"
    assert "Run ended: fault" in dashboard.end.text
    live.begin()
    assert not dashboard.notice.isVisible()


@pytest.mark.parametrize("size", [(1000, 640), (1280, 800)])
def test_the_certificate_leaves_room_for_the_plots_and_is_not_cut(live, rows, size: tuple[int, int]) -> None:
    live.begin()
    live.window.resize(*size)
    publish(live.trace, rows[:3000])
    long = {"p50": 410.0, "p99": 9999.0, "p999": 42000.0, "max": 123456.0}
    ages = dict.fromkeys(("period_error_us", "tick_us", "write_us", "sample_age_us"), long)
    live.session.send(SessionEnded("stopped", {**UNFIT, **ages}))
    frames(live)
    dashboard = live.window.dashboard
    assert (live.window.width(), live.window.height()) == size
    assert dashboard.series.forces.chart.height() > 100
    assert dashboard.series.speeds.chart.height() > 80
    area = dashboard.end.findChild(QtWidgets.QScrollArea)
    assert area.widget().minimumSizeHint().width() <= area.viewport().width()
    if size[1] == 800:
        assert area.widget().height() <= area.viewport().height()


def test_a_new_run_begins_empty(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:500])
    live.session.send(SessionEnded("stopped", SUMMARY))
    frames(live)
    live.begin(model="B", mouse=False, parameters=())
    dashboard = live.window.dashboard
    assert not dashboard.end.isVisible()
    assert live.window.windowTitle() == "haptics: model B on virtual-joystick"
    assert live.window.controls.sliders == []
    assert not dashboard.series._level_lines[0].isVisible()


def test_a_trace_that_cannot_be_read_is_told(live) -> None:
    live.begin(trace="/nowhere/at/all")
    assert "cannot be shown" in live.window.dashboard.notice.words.text()


def test_lamps_light_go_out_and_remember(live, rows) -> None:
    live.begin()
    flagged = rows[:3000].copy()
    flagged["status"] = 0
    flagged["status"][100] = Status.LIMITED
    lamps = live.window.dashboard.safety.lamps
    lamp = lamps.lamps[Status.LIMITED]
    publish(live.trace, flagged[:200])
    frames(live)
    assert lamps.state(Status.LIMITED) == (True, True)
    assert lamps.state(Status.SLEW) == (False, False)
    lit = lamp.styleSheet()
    publish(live.trace, flagged[200:])
    frames(live)
    assert lamps.state(Status.LIMITED) == (True, False)
    assert lamp.styleSheet() != lit
    assert lamp.toolTip().endswith("clamped: 1 tick of this run")


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
    series = dashboard.series
    for chart in (dashboard.plane.chart, series.forces.chart, series.speeds.chart, dashboard.timing.chart):
        assert not isinstance(chart.viewport(), QtOpenGLWidgets.QOpenGLWidget)
        assert not any(chart.plotItem.getAxis(side).grid for side in ("left", "bottom"))
        assert not any(chart.getViewBox().autoRangeEnabled())


def test_thick_lines_are_drawn_in_segments(live) -> None:
    live.begin()
    dashboard = live.window.dashboard
    thick = [*dashboard.plane._tail, dashboard.plane._held, dashboard.plane._arrow, dashboard.series.forces.curves[0]]
    for item in thick:
        assert item.opts["pen"].widthF() > 1
        assert item.opts["segmentedLineMode"] == "on"


def test_the_window_fits_its_least_size_without_cutting_texts(live, rows) -> None:
    live.begin()
    live.window.resize(1000, 640)
    publish(live.trace, rows[:3000])
    frames(live)
    assert (live.window.minimumWidth(), live.window.minimumHeight()) == (1000, 640)
    texts = [w for w in live.window.findChildren(QtWidgets.QLabel) if w.isVisible() and w.text() and not w.wordWrap()]
    texts.remove(live.window.dashboard.path)  # gives up its middle on purpose
    cut = [w.text() for w in texts if w.width() < w.minimumSizeHint().width()]
    assert len(texts) > 20
    assert cut == []


def test_all_text_is_at_least_ten_points(live) -> None:
    live.begin()
    for widget in live.window.findChildren(QtWidgets.QLabel):
        assert widget.font().pointSizeF() >= 10


def test_closing_the_window_is_told_to_the_session(live) -> None:
    live.begin()
    live.window.close()
    assert live.sent() == [Close()]


def test_quit_closes_without_an_answer(live) -> None:
    live.begin()
    live.session.send(Quit())
    frames(live, 1)
    assert not live.window.isVisible()
    assert live.sent() == []


def test_when_the_application_is_gone_the_window_says_so_and_closes(live, qtbot, monkeypatch) -> None:
    monkeypatch.setattr("apps.view.window._FAREWELL_MS", 50)
    live.begin()
    live.session.close()
    live.window.frame()
    assert "application has gone" in live.window.dashboard.notice.words.text()
    assert live.window.dashboard.notice.isVisible()
    qtbot.waitUntil(lambda: not live.window.isVisible())


def test_sending_to_an_application_that_is_gone_does_no_harm(live) -> None:
    live.begin()
    live.session.close()
    live.window.controls.stop_asked.emit()
    live.window.controls.stop_asked.emit()
    assert live.window._link.gone


def test_hand_targets_are_left_out_when_nobody_reads(live) -> None:
    live.begin()
    for _ in range(20000):
        live.window._send_hand(0.01, 0.02)  # would wait for ever if it insisted
    assert len(live.sent()) < 20000
    live.window.controls.stop_asked.emit()
    assert live.sent() == [Stop()]


def run_process(messages: list[object]) -> tuple[int | None, list[object]]:
    """Start the real view process, send messages, close nothing; return its exit code and its answers."""
    from apps.view.process import main

    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=main, args=(far, "dark"))
    process.start()
    far.close()
    for message in messages:
        near.send(message)
    if not messages:
        near.close()
    process.join(60)
    code = process.exitcode
    answers = []
    try:
        while messages and near.poll():
            answers.append(near.recv())
    except EOFError:
        pass
    process.kill()
    return code, answers


def test_the_process_shows_a_run_and_quits_in_order(started, trace, rows) -> None:
    publish(trace, rows[:500])
    assert run_process([started, Quit()]) == (0, [])


def test_the_process_ends_by_itself_when_the_application_dies() -> None:
    assert run_process([])[0] == 0
