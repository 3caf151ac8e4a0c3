"""Two cursors over a plot: what they read, and the difference."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from hypothesis import given
from hypothesis import strategies as st

from apps.view.plots.cursors import Reading


@given(st.floats(-3.0, 13.0))
def test_a_reading_is_that_of_the_sample_next_to_the_cursor(place: float) -> None:
    x = np.array([0.0, 1.0, 2.5, 4.0, 10.0])
    value = Reading("height", "mm", x, 10 * x).at(place)
    assert value is not None
    assert abs(value / 10 - place) == pytest.approx(np.abs(x - place).min())


def test_where_there_is_no_curve_nothing_is_read() -> None:
    assert Reading("height", "mm", np.zeros(0), np.zeros(0)).at(1.0) is None


def test_cursors_over_time_read_the_curves_in_all_charts(shown, place) -> None:
    series = place("force_and_speed")
    shown.dashboard.transport.cursors.click()
    cursors = series.cursors
    assert cursors.on
    assert [len(row) for row in cursors._items] == [2, 2], "a line in each chart"
    cursors.move_to(0, -2.0)
    cursors.move_to(1, -0.5)
    assert [line.pos().x() for line in cursors._items[0]] == [-2.0, -2.0]
    (name, unit, times), friction, *_, speed = cursors.rows()
    assert (name, unit, times) == ("time", "s", [-2.0, -0.5])
    history, times = shown.history, shown.history
    newest = history.newest(0)
    for (_, _, values), column in ((friction, 8), (speed, 9)):
        expected = [np.interp(newest + at, history.column(0), history.column(column)) for at in (-2.0, -0.5)]
        assert values == pytest.approx(expected, abs=1e-9)
    assert "1.5" in cursors.text(), "the difference"
    assert "[s]" in cursors.text() or "&nbsp;s" in cursors.text()


def test_cursors_that_are_points_read_both_coordinates(shown, place) -> None:
    plot = place("force_over_speed")
    shown.dashboard.transport.cursors.click()
    plot.cursors.move_to(0, 50.0, 1.0)
    plot.cursors.move_to(1, 80.0, 3.5)
    assert [(name, unit, values) for name, unit, values in plot.cursors.rows()] == [
        ("sliding speed", "mm/s", [50.0, 80.0]),
        ("friction", "N", [1.0, 3.5]),
    ]
    assert "2.5" in plot.cursors.text()


def test_cursors_come_into_sight_and_go(shown, place) -> None:
    plot = place("force_and_speed")
    shown.dashboard.transport.cursors.click()
    assert all(-5.0 < x < 0.0 for x, _ in plot.cursors.places)
    plot.cursors.move_to(0, -40.0)
    shown.dashboard.transport.cursors.click()
    assert not plot.cursors.on
    assert not plot.cursors.isVisible()
    shown.dashboard.transport.cursors.click()
    assert all(-5.0 < x < 0.0 for x, _ in plot.cursors.places)


def test_a_plot_that_is_chosen_later_has_them_too(shown, place) -> None:
    shown.dashboard.transport.cursors.click()
    assert place("energy").cursors.on
