"""Every plot draws what was recorded, and gives what it shows as a table with units."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from apps.view.history import Column
from haptics import Coulomb
from tests.apps.view.driving import frames, law_drawn
from tests.apps.view.view_rows import DAMPING, FORCE, STIFFNESS

NAMES = (
    *("plane", "force_and_speed", "start_delay", "force_over_speed", "force_over_displacement"),
    *("spectrum", "energy", "motion", "contact"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_table_has_units_in_its_names_and_columns_of_one_length(place, shown, name: str) -> None:
    table = place(name).table(shown.history)
    assert len({len(values) for values in table.values()}) == 1
    assert len(next(iter(table.values()))) > 40
    assert all(np.isfinite(values).all() for values in table.values())
    for column in table:
        assert column.rsplit("_", 1)[-1] in {"s", "mm", "n", "mj", "hz", "us", "ticks", "sticking", "region"}


def test_force_over_speed_lies_on_the_law_that_is_drawn_under_it(place, shown) -> None:
    plot = place("force_over_speed")
    speeds, forces = law_drawn(shown, plot)
    assert forces == pytest.approx(Coulomb(FORCE)(speeds[1] * 1e-3) * np.ones(len(speeds)))
    table = plot.table(shown.history)
    fast = table["sliding_speed_mm_per_s"] > 20.0
    assert np.count_nonzero(fast) > 1000
    assert table["friction_n"][fast] == pytest.approx(FORCE, rel=1e-9)


def test_the_law_that_is_drawn_follows_its_slider(place, shown) -> None:
    plot = place("force_over_speed")
    shown.window.controls.sliders[0].spin.setValue(2.5)
    assert law_drawn(shown, plot)[1] == pytest.approx(np.full(160, 2.5))


def test_a_law_that_is_not_known_is_not_drawn_and_says_so(place, shown) -> None:
    plot = place("force_over_speed")
    shown.begin(law="my-own", mouse=False)
    assert len(law_drawn(shown, plot)[0]) == 0
    assert plot._key.texts[0].text() == "no law"


def test_the_area_of_the_loops_is_the_work_of_the_hand_along_that_direction(place, shown, rows) -> None:
    table = place("force_over_displacement").table(shown.history)
    area = np.trapezoid(table["friction_along_n"], table["displacement_mm"])
    work = shown.history.column(Column.WORK)
    # A path in the plane: what goes across the main direction is not in the loop.
    assert 0.5 * (work[-1] - work[0]) < area <= 1.02 * (work[-1] - work[0])


def test_the_ledger_balances(place, shown, rows) -> None:
    table = place("energy").table(shown.history)
    kept = rows[1000:6000]
    stored = 0.5e3 * STIFFNESS * (kept["displacement"] ** 2).sum(axis=1)
    assert table["stored_mj"] == pytest.approx(stored)
    # Work is stored, dissipated by sliding, or taken by the damper B beside the spring.
    stretching = np.diff(kept["displacement"], axis=0, prepend=kept["displacement"][:1]) / 1e-3
    damper = 1e3 * 1e-3 * np.cumsum(DAMPING * (stretching**2).sum(axis=1))
    missing = table["work_mj"] - table["dissipated_mj"] - (stored - stored[0]) - (damper - damper[0])
    assert table["work_mj"][-1] > 500
    assert np.abs(missing).max() < 0.02 * table["work_mj"][-1]


def test_the_spectrum_says_its_method_and_finds_a_vibration(place, live, shown, rows) -> None:
    plot = place("spectrum")
    shaken = rows[:6000].copy()
    shaken["command"][:, 0] += 0.5 * np.sin(2 * np.pi * 37.0 * shaken["time"])
    shown.window._feed.history.clear()
    shown.window._feed.take(shaken)
    plot.refresh(shown.window._feed)
    plot.refresh_texts(shown.window._feed)
    for part in ("Hann", "1 s", "9 segments", "resolution 1.5 Hz", "largest above 5 Hz: 37 Hz"):
        assert part in plot.method.text()


def test_motion_shows_both_axes_and_zooms_them_together(place, shown, rows) -> None:
    plot = place("motion")
    _times, values = plot.strips[0].curves[1].getData()
    assert values.max() == pytest.approx(1e3 * rows["position"][1000:6000, 1].max(), rel=1e-3)
    plot.charts[1].getViewBox().sigRangeChangedManually.emit([True, True])
    plot.charts[1].getViewBox().setXRange(-2.0, -1.0, padding=0)
    plot.charts[1].getViewBox().sigRangeChangedManually.emit([True, True])
    assert all(shown.getViewBox().viewRange()[0] == pytest.approx([-2.0, -1.0]) for shown in plot.charts)
    frames(shown)
    assert plot.charts[3].getViewBox().viewRange()[0] == pytest.approx([-2.0, -1.0])
    plot.home()
    assert all(shown.getViewBox().viewRange()[0] == pytest.approx([-5.0, 0.0]) for shown in plot.charts)
