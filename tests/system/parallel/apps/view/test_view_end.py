"""What the live window shows at the end of a run: its reason, the certificate, a fault."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtWidgets

from apps.front_ends.messages import SessionEnded
from apps.view.window import LEAST
from tests.apps.view.driving import frames, publish
from tests.apps.view.summaries import REASONS, SUMMARY, UNFIT


def end(live, rows, *how: object):
    """Let a run of some ticks end, and return the dashboard that shows it."""
    live.begin()
    publish(live.trace, rows[:500])
    live.session.send(SessionEnded(*how))
    frames(live)
    return live.window.dashboard


def test_the_end_shows_reason_and_certificate_and_keeps_the_picture(live, rows) -> None:
    card = end(live, rows, "the time was over", SUMMARY).end
    assert card.isVisible()
    assert card.text.startswith("FIT\nRun ended: the time was over")
    for part in ("p99.9", "410", "1377", "pinned to CPU 1", "CPU steal 0.25\u00a0s"):
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
    card = end(live, rows, "completed", SUMMARY).end
    fit = card.badge.styleSheet()
    live.session.send(SessionEnded("completed", UNFIT))
    frames(live)
    assert card.text.startswith("UNFIT\nRun ended: completed")
    assert card.because.isVisible()
    assert all(reason in card.because.text() for reason in REASONS)
    assert card.badge.styleSheet() != fit


def test_a_fault_is_told_until_the_next_run(live, rows) -> None:
    dashboard = end(live, rows, "fault", UNFIT, "virtual-joystick failed at tick 512: unplugged")
    assert dashboard.notice.isVisible()
    assert dashboard.notice.words.text() == "virtual-joystick failed at tick 512: unplugged"
    assert "Run ended: fault" in dashboard.end.text
    live.begin()
    assert not dashboard.notice.isVisible()


@pytest.mark.parametrize("size", [LEAST, (1280, 800)])
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
    assert dashboard.places.shown[1].forces.chart.height() > 60
    assert dashboard.places.shown[1].speeds.chart.height() > 60
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
    assert not dashboard.places.shown[1]._level_lines[0].isVisible()
