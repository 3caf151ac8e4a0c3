"""Which plots are shown where."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtWidgets

from tests.apps.view.driving import frames, publish


def titles(shown) -> list[str]:
    return [plot.title for plot in shown.dashboard.places.shown]


def test_a_plot_is_chosen_from_the_list_of_another_one(shown) -> None:
    assert titles(shown) == ["Start delay", "Force, speed", "Force over speed"]
    lower = shown.dashboard.places.shown[2]
    lower.choice.setCurrentText("Spectrum")
    lower.choice.activated.emit(lower.choice.currentIndex())
    assert titles(shown) == ["Start delay", "Force, speed", "Spectrum"]
    assert not lower.isVisible()
    assert lower.choice.currentText() == "Force over speed", "each list names its own plot"
    assert shown.dashboard.places.shown[2].isVisible()
    assert shown.dashboard.places.shown[2].method.text().startswith("Welch"), "and it is drawn at once"


def test_plots_that_have_a_place_already_change_places(shown) -> None:
    places = shown.dashboard.places
    places.choose(places.shown[0], "Force over speed")
    assert titles(shown) == ["Force over speed", "Force, speed", "Start delay"]
    assert all(plot.isVisible() for plot in places.shown)


def test_a_plot_can_be_shown_alone(shown) -> None:
    places = shown.dashboard.places
    alone = places.shown[1]
    before = alone.width()
    alone.size_button.click()
    frames(shown)
    assert places.visible == [alone]
    assert alone.width() > 1.8 * before
    alone.size_button.click()
    assert len(places.visible) == 4


def test_plots_out_of_sight_are_not_drawn(shown, rows, monkeypatch) -> None:
    places = shown.dashboard.places
    hidden = places.shown[2]
    places.choose(hidden, "Energy")
    monkeypatch.setattr(hidden, "refresh", lambda feed: pytest.fail("drawn in vain"))
    publish(shown.trace, rows[6000:6100])
    frames(shown)


def test_every_plot_says_what_it_shows(shown) -> None:
    places = shown.dashboard.places
    plots = [*(places.plot(title) for title in places.kinds), shown.dashboard.plane]
    assert len({plot.name for plot in plots}) == len(plots) == 9
    for plot in plots:
        assert len(plot.about) > 60
        assert all(plot.about in chart.toolTip() for chart in plot.charts)
    for button in shown.window.findChildren(QtWidgets.QToolButton):
        assert button.toolTip() or not button.isVisible()
