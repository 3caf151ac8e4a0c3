"""The live window: picture, states, certificate, safety lamps, and its fit on small and large screens."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore, QtWidgets

from apps.compare.comparison import Side
from apps.front_ends.messages import Advised, AskShown, Captioned, Preparing, SessionEnded, Shown
from apps.shared.theme import DARK, LIGHT
from apps.view import qt
from apps.view.comparison import PLOTS as COMPARED
from apps.view.comparison import CompareWindow
from apps.view.dashboard import PLOTS, HelpWindow
from apps.view.indicators import FALL, SAFETY, TIMING, lingering
from apps.view.plot import Plot
from apps.view.qt import POINT_SIZE, application, grow
from apps.view.replay import ReplayWindow
from apps.view.window import LEAST
from apps.view.xy_plots import PlanePanel
from haptics.records import Status
from tests.apps.view import view_rows
from tests.apps.view.driving import colour_of, cut_texts, frames, texts_of
from tests.apps.view.summaries import REASONS, SUMMARY, UNFIT

SIGNS = (*SAFETY, *TIMING)


def test_run_is_shown(live, rows):
    live.publish(rows[:3000])
    dashboard = live.window.dashboard
    assert live.window.windowTitle() == "haptics: model C on virtual-joystick"
    assert all(part in dashboard.numbers.text() for part in ("3\u2009000 ticks", "0:03.0 of 0:10.0"))
    assert dashboard.plane._effector.getData()[0][0] == pytest.approx(1e3 * rows["position"][2999, 0])
    times, values = dashboard.places.shown[1].speeds.curves[0].getData()
    assert times[-1] == pytest.approx(0.0, abs=0.011)
    assert values.max() == pytest.approx(1e3 * np.hypot(*rows["velocity"][:3000].T).max())
    assert dashboard.places.shown[0].quantiles.text().startswith("p50 22 µs")
    edges, ticks = dashboard.places.shown[0]._steps["computation"].getData()
    assert edges[ticks.argmax()] == pytest.approx(np.log10(np.median(rows["tick_time"][:3000] * 1e6)), abs=0.2)


def test_stick_and_slip_differ_in_shape_and_words(live, rows):
    plane = live.window.dashboard.plane
    sticking = np.flatnonzero(rows["sticking"] != 0)
    slipping = np.flatnonzero((rows["sticking"] == 0) & (rows["tick"] > sticking[500]))[0]
    live.publish(rows[: sticking[500] + 1])
    assert "STICK" in plane.state.text()
    assert plane._effector.opts["symbol"] == "s"
    assert len(plane._dots.data) >= 1
    live.publish(rows[sticking[500] + 1 : slipping + 1])
    assert "SLIP" in plane.state.text()
    assert plane._effector.opts["symbol"] == "o"


def test_vectors_start_on_the_path_every_20_ms(live, rows):
    live.publish(rows[:1001])
    plane = live.window.dashboard.plane
    x, y = plane._vectors.getData()
    assert len(x) == 2 * 51
    at = rows[:1001:20]
    assert x[::2] == pytest.approx(1e3 * at["position"][:, 0])
    assert x[1::2] - x[::2] == pytest.approx(plane._millimetres_per_newton * at["command"][:, 0])
    assert y[1::2] - y[::2] == pytest.approx(plane._millimetres_per_newton * at["command"][:, 1])


def test_unreadable_trace_is_reported(live):
    live.begin(trace="/nowhere/at/all")
    assert "cannot be shown" in live.window.dashboard.notice.words.text()


def test_theme_can_be_changed_during_the_run(live, rows):
    live.publish(rows[:1000])
    button = live.window.controls.theme_button
    assert (live.window.theme, button.text()) == (DARK, "Light")
    button.click()
    assert (live.window.theme, button.text()) == (LIGHT, "Dark")
    picture = live.window.grab().toImage()
    corner = live.window.dashboard.plane.chart.mapTo(live.window, QtCore.QPoint(2, 2))
    assert picture.pixelColor(corner).name() == LIGHT.panel
    button.click()
    assert live.window.theme is DARK


def test_window_and_stop_button_fit_the_screen(live, monkeypatch):
    large, room = QtCore.QRect(0, 0, 1920, 1080), QtCore.QRect(0, 0, 1280, 720)
    monkeypatch.setattr(type(live.window.screen()), "availableGeometry", lambda screen: large)
    qt.fit(live.window, 1260, 760)
    assert (live.window.width(), live.window.height()) == (1260, 760)
    monkeypatch.setattr(type(live.window.screen()), "availableGeometry", lambda screen: room)
    qt.fit(live.window, 1260, 760)
    live.begin()
    assert live.window.width() <= room.width() and live.window.height() <= room.height() - 40
    stop = live.window.controls.stop
    bottom = stop.mapTo(live.window, stop.rect().bottomLeft()).y()
    assert stop.height() >= 60 and bottom < live.window.height()


def test_preparation_is_shown_before_the_first_tick_and_advice_after_it(live, rows):
    notice = live.window.dashboard.notice
    live.receive(Preparing("compiling kernel 3 of about 60 (5 s; only the first time)"))
    assert notice.isVisible() and notice.words.text().startswith("Compiling kernel 3 of about 60 (5 s")
    assert live.window.dashboard.numbers.text() == "before the first tick"
    live.receive(Preparing(""))
    assert not notice.isVisible()
    live.receive(Advised("too stiff"), Preparing("opening"), Preparing(""))
    assert notice.isVisible() and notice.words.text() == "too stiff"
    live.publish(rows[:10])
    assert "1000 Hz" in live.window.dashboard.numbers.text()


def test_caption_remains_and_advice_follows_it(live):
    notice = live.window.dashboard.notice
    live.receive(Captioned("Tap the handle."), Preparing("opening"), Preparing(""))
    assert notice.isVisible() and notice.words.text() == "Tap the handle."
    live.receive(Advised("too stiff"))
    assert notice.words.text() == "Tap the handle. too stiff"
    live.begin()
    live.receive(Advised("too stiff"))
    assert notice.words.text() == "too stiff"


def test_end_shows_reason_and_certificate_and_keeps_the_picture(live, rows):
    live.publish(rows[:500])
    live.receive(SessionEnded("the time was over", SUMMARY))
    card = live.window.dashboard.end
    assert card.isVisible()
    assert texts_of(card).startswith("FIT\nRun ended: the time was over")
    for part in ("p99.9", "410", "1377", "pinned to CPU 1", "CPU steal 0.25\u00a0s"):
        assert part in texts_of(card)
    assert not card.because.isVisible()
    assert colour_of(card.badge) == live.window.theme.panel
    assert not live.window.dashboard.notice.isVisible()
    assert "500 ticks" in live.window.dashboard.numbers.text()
    assert len(live.window.dashboard.plane._effector.getData()[0]) == 1
    assert live.window.windowTitle().endswith("(ended)")
    assert not live.window.controls.sliders[0].isEnabled()
    live.trace.path.unlink()
    frames(live)
    assert live.window.controls.start.text() == "Start"
    live.receive(SessionEnded("completed", UNFIT))
    assert texts_of(card).startswith("UNFIT\nRun ended: completed")
    assert card.because.isVisible()
    assert all(reason in card.because.text() for reason in REASONS)
    assert colour_of(card.badge) == live.window.theme.notice


def test_fault_is_shown_until_the_next_run(live):
    live.receive(SessionEnded("fault", UNFIT, "virtual-joystick failed at tick 512: unplugged"))
    dashboard = live.window.dashboard
    assert dashboard.notice.isVisible() and "failed at tick 512: unplugged" in dashboard.notice.words.text()
    assert "Run ended: fault" in texts_of(dashboard.end)
    live.begin()
    assert not dashboard.notice.isVisible()


def test_new_run_begins_empty(live, rows):
    live.publish(rows[:500])
    controls, dashboard = live.window.controls, live.window.dashboard
    assert not controls.stop.property("idle") and dashboard.path.toolTip().startswith("recording to ")
    live.receive(SessionEnded("stopped", SUMMARY))
    assert controls.stop.property("idle") and controls.stop.isEnabled()
    assert dashboard.path.toolTip().startswith("recorded in ")
    live.begin(model="B", mouse=False, parameters=())
    assert not controls.stop.property("idle") and dashboard.path.toolTip().startswith("recording to ")
    assert not dashboard.end.isVisible()
    assert live.window.windowTitle() == "haptics: model B on virtual-joystick"
    assert controls.sliders == []
    assert not dashboard.places.shown[1]._level_lines[0].isVisible()


def test_visible_window_answers_a_request(waiting):
    waiting.receive(AskShown())
    assert waiting.sent() == [Shown()]


def test_lamp_lights_goes_out_and_remembers(live, rows):
    flagged = rows[:3000].copy()
    flagged["status"] = 0
    flagged["status"][100] = Status.LIMITED
    lamps = live.window.dashboard.safety.lamps
    lamp = lamps.lamps[Status.LIMITED]
    live.publish(flagged[:200])
    assert lamps.shown[Status.LIMITED] == (True, True)
    assert lamps.shown[Status.SLEW] == (False, False)
    assert colour_of(lamp) == live.window.theme.alarm
    live.publish(flagged[200:])
    assert lamps.shown[Status.LIMITED] == (True, False)
    assert colour_of(lamp) != live.window.theme.alarm
    assert lamp.toolTip().endswith("clamped: 1 tick of this run")


def test_every_flag_has_one_lamp():
    assert sorted(sign.flag for sign in SIGNS) == sorted(Status)
    assert len({sign.name for sign in SIGNS}) == len({sign.meaning for sign in SIGNS}) == len(SIGNS)


@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: sign.name)
def test_flag_lights_only_its_own_lamp_which_has_its_name_and_meaning(live, rows, sign):
    flagged, lamps = rows[:50].copy(), live.window.dashboard.safety.lamps
    flagged["status"] = int(sign.flag)
    live.publish(flagged)
    assert {other.flag for other in SIGNS if lamps.shown[other.flag] == (True, True)} == {sign.flag}
    lamp = lamps.lamps[sign.flag]
    assert (lamp.text(), lamp.isVisible()) == (sign.name, True)
    assert lamp.toolTip().startswith(sign.meaning)
    assert lamp.width() >= lamp.minimumSizeHint().width()


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50), st.floats(0.001, 2.0))
def test_energy_peak_decays(values, later):
    signal = np.array(values)
    times = 1e-3 * np.arange(len(signal))
    shown = lingering(signal, times)
    assert signal[-1] <= shown <= signal.max()
    after = lingering(np.append(signal, 0.0), np.append(times, times[-1] + later))
    assert after == pytest.approx(shown * np.exp(-later / FALL))


def test_energy_fills_the_bar_up_to_the_limit(live, rows):
    live.begin(max_energy=0.02)
    meter = live.window.dashboard.safety
    assert (meter.bar.filled, meter.number.text()) == (0.0, "energy 0.00 of 20\u00a0mJ")
    rising = rows[:2000].copy()
    rising["injected_energy"] = np.linspace(0.0, 8e-3, 2000)
    live.publish(rising[:1000])
    assert meter.bar.filled == pytest.approx(0.2, rel=0.01)
    live.publish(rising[1000:])
    assert meter.bar.filled == pytest.approx(0.4, rel=0.01)
    assert meter.number.text() == "energy 8.00 of 20\u00a0mJ"
    rising["injected_energy"] = 0.03
    rising["time"] += 2.0
    live.publish(rising[:100])
    full = meter.bar.grab().toImage().pixelColor(meter.bar.width() // 2, 5)
    assert (meter.bar.filled, meter.bar.marked) == (1.0, 1.0)
    assert full.name() == live.window.theme.alarm
    assert "30.00 mJ" in meter.bar.toolTip()


FRAME = (16, 48)
SCREENS = ((1280, 720), (1366, 768), (2560, 1440))


@pytest.fixture(
    params=[(*LEAST, DARK), *((w - FRAME[0], h - FRAME[1], LIGHT) for w, h in SCREENS)],
    ids=lambda room: f"{room[0]}x{room[1]}-{room[2].name}",
)
def room(request):
    """The size of a window, and its colours."""
    width, height, theme = request.param
    application()
    grow(width + FRAME[0], height + FRAME[1])
    yield width, height, theme
    grow(1280, 720)


def settle(qtbot, window, room):
    """Show a window in a size."""
    qtbot.addWidget(window)
    window.resize(*room[:2])
    window.show()
    for _ in range(4):
        QtWidgets.QApplication.processEvents()
    assert (window.width(), window.height()) == room[:2]


def check(window, room):
    assert cut_texts(window) == []
    for plot in (plot for plot in window.findChildren(Plot) if plot.isVisible()):
        parts = [part for part in (*plot.charts, plot.cursors) if part is not None and part.isVisible()]
        for one, other in itertools.combinations(parts, 2):
            assert not one.geometry().intersects(other.geometry()), plot.title
    sizes = [label.font().pointSizeF() for label in window.findChildren(QtWidgets.QLabel) if label.isVisible()]
    assert min(sizes) >= (14.0 if room[0] > 2000 else 10.0)


def test_replay_fits(qtbot, rows, room):
    metadata = {**view_rows.METADATA, "certificate": UNFIT, "reason": "stopped"}
    window = ReplayWindow(rows, metadata, room[2])
    settle(qtbot, window, room)
    check(window, room)
    window.dashboard.end.close()
    places = window.dashboard.places
    for kind in PLOTS:
        if places.shown[2].title != kind.title:
            places.choose(places.shown[2], kind.title)
        for _ in range(3):
            QtWidgets.QApplication.processEvents()
        assert cut_texts(window) == [], kind.title
        assert (window.width(), window.height()) == room[:2]


def test_comparison_fits(qtbot, rows, room):
    title = "model C, stribeck: law.name=stribeck law.static_force=5 (2026-11-22T19-00-00_virtual-joystick_C)"
    sides = Side("model C, coulomb", rows, view_rows.METADATA), Side(title, rows, view_rows.METADATA, open_loop=True)
    window = CompareWindow(sides, "mean force 2.1 N and 3.2 N; sticks 40 % and 55 % of the time; " * 2, room[2])
    settle(qtbot, window, room)
    check(window, room)
    for kind in COMPARED:
        window._choose(1, kind.title)
        for _ in range(3):
            QtWidgets.QApplication.processEvents()
        assert cut_texts(window) == [], kind.title


def test_help_fits_and_scrolls_only_vertically(qtbot, rows, room):
    parent = ReplayWindow(rows, view_rows.METADATA, room[2])
    qtbot.addWidget(parent)
    window = HelpWindow(parent, (PlanePanel, *PLOTS), past=True)
    window.show()
    QtWidgets.QApplication.processEvents()
    assert window.text.horizontalScrollBar().maximum() == 0
    assert window.text.document().defaultFont().pointSizeF() >= POINT_SIZE * (1.4 if room[0] > 2000 else 1.0)


def test_live_window_fits(room, live, rows):
    assert LEAST[0] <= 1280 - 16 and LEAST[1] <= 720 - 48 - 40, "a panel and a title bar"
    live.begin(laws=("coulomb", "stribeck"), law="coulomb")
    live.window.apply(room[2])
    live.window.resize(*room[:2])
    live.window._feed.add_rows(rows[:3000])
    for _ in range(4):
        live.window.frame()
        QtWidgets.QApplication.processEvents()
    assert (live.window.width(), live.window.height()) == room[:2]
    check(live.window, room)
    live.window.controls.session.law.setCurrentText("stribeck")
    live.window.dashboard.transport.cursors.click()
    if room[:2] != LEAST:
        live.window.dashboard.notice.show_notice("The end effector was at the edge of the workspace. " * 4)
    for _ in range(4):
        live.window.frame()
        QtWidgets.QApplication.processEvents()
    check(live.window, room)
    assert live.window.controls.stop.visibleRegion().boundingRect().size() == live.window.controls.stop.size()
