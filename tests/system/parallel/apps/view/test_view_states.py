"""What the live window says of itself: before the first tick, while a choice waits, and after the end."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtCore

from apps.front_ends.messages import Advised, Captioned, Preparing, SessionEnded
from apps.view import qt
from tests.apps.view.driving import frames, publish
from tests.apps.view.summaries import UNFIT


def test_stop_is_inside_a_small_screen(live, monkeypatch) -> None:
    room = QtCore.QRect(0, 0, 1280, 720)
    monkeypatch.setattr(type(live.window.screen()), "availableGeometry", lambda screen: room)
    qt.fit(live.window, 1260, 760)
    live.begin()
    assert live.window.width() <= room.width() and live.window.height() <= room.height() - 40
    stop = live.window.controls.stop
    bottom = stop.mapTo(live.window, stop.rect().bottomLeft()).y()
    assert stop.height() >= 60 and bottom < live.window.height()
    assert live.window.controls.stop_key.mapTo(live.window, QtCore.QPoint(0, 0)).y() < live.window.height() - 10


def test_a_large_screen_gets_the_whole_window(live, monkeypatch) -> None:
    monkeypatch.setattr(type(live.window.screen()), "availableGeometry", lambda screen: QtCore.QRect(0, 0, 1920, 1080))
    qt.fit(live.window, 1260, 760)
    assert (live.window.width(), live.window.height()) == (1260, 760)


def test_what_is_done_before_the_first_tick_is_shown_and_advice_comes_back(live, rows) -> None:
    live.begin()
    notice = live.window.dashboard.notice
    live.session.send(Preparing("compiling kernel 3 of about 60 (5 s; only the first time)"))
    frames(live)
    assert notice.isVisible() and notice.words.text().startswith("Compiling kernel 3 of about 60 (5 s")
    assert live.window.dashboard.numbers.text() == "before the first tick"
    live.session.send(Preparing(""))
    frames(live)
    assert not notice.isVisible()
    live.session.send(Advised("too stiff"))
    live.session.send(Preparing("opening"))
    live.session.send(Preparing(""))
    frames(live)
    assert notice.isVisible() and notice.words.text() == "too stiff"
    publish(live.trace, rows[:10])
    frames(live)
    assert "1000 Hz" in live.window.dashboard.numbers.text()


def test_a_caption_stays_and_advice_comes_after_it(live) -> None:
    live.begin()
    notice = live.window.dashboard.notice
    live.session.send(Captioned("Tap the handle."))
    live.session.send(Preparing("opening"))
    live.session.send(Preparing(""))
    frames(live)
    assert notice.isVisible() and notice.words.text() == "Tap the handle."
    live.session.send(Advised("too stiff"))
    frames(live)
    assert notice.words.text() == "Tap the handle. too stiff"
    live.begin()
    live.session.send(Advised("too stiff"))
    frames(live)
    assert notice.words.text() == "too stiff"


def test_a_choice_that_waits_for_start_does_not_look_as_if_it_ran(live) -> None:
    live.begin()
    controls = live.window.controls
    assert controls.start.text() == "Start again" and controls.session.pending.isHidden()
    controls.session.model.setCurrentText("B")
    assert controls.start.text() == "Start again with these" and controls.start.property("pending")
    assert controls.session.pending.isVisible()
    assert controls.session.pending.text().startswith("PENDING: until then model C goes on")
    controls.session.model.setCurrentText("C")
    assert controls.start.text() == "Start again" and controls.session.pending.isHidden()
    controls.session.device.setCurrentText("virtual-arm")
    live.begin(device="virtual-arm", model="A", causality="admittance")
    assert controls.session.pending.isHidden() and not controls.start.property("pending")


def test_after_the_end_nothing_looks_as_if_it_ran(live, rows) -> None:
    live.begin()
    publish(live.trace, rows[:100])
    frames(live)
    controls, path = live.window.controls, live.window.dashboard.path
    assert not controls.stop.property("idle") and path.toolTip().startswith("recording to ")
    live.session.send(SessionEnded("completed", UNFIT))
    frames(live)
    assert controls.stop.property("idle") and controls.stop.isEnabled()
    assert path.toolTip().startswith("recorded in ")
    live.begin()
    assert not controls.stop.property("idle") and path.toolTip().startswith("recording to ")
