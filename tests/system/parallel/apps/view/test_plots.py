"""Plots of the view: their curves and tables, cursors, places, scenes and custom laws."""

from dataclasses import replace

import numpy as np
import pytest

from apps.front_ends.run import from_metadata
from tests.apps.view.view_rows import numbered

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from hypothesis import given
from hypothesis import strategies as st

from apps.front_ends.messages import LawInForce, Parameter, SceneInForce, ValuesInForce
from apps.view.history import Column
from apps.view.plot import Reading
from haptics import Coulomb
from haptics.scenes import find_scene, read_scene, scene_table
from tests.apps.view.driving import frames, law_drawn, publish
from tests.apps.view.view_rows import DAMPING, FORCE, STIFFNESS
from tests.haptics.references import region_at

NAMES = (
    *("plane", "force_and_speed", "start_delay", "force_over_speed", "force_over_displacement"),
    *("spectrum", "energy", "motion", "contact"),
)


@pytest.mark.parametrize("name", NAMES)
def test_table_has_units_and_columns_of_one_length(place, shown, name):
    table = place(name).table(shown.history)
    assert len({len(values) for values in table.values()}) == 1
    assert len(next(iter(table.values()))) > 40
    assert all(np.isfinite(values).all() for values in table.values())
    for column in table:
        assert column.rsplit("_", 1)[-1] in {"s", "mm", "n", "mj", "hz", "us", "ticks", "sticking", "region"}


def test_force_over_speed_lies_on_the_drawn_law_which_follows_its_slider(place, shown):
    plot = place("force_over_speed")
    speeds, forces = law_drawn(shown, plot)
    assert forces == pytest.approx(Coulomb(FORCE)(speeds[1] * 1e-3) * np.ones(len(speeds)))
    table = plot.table(shown.history)
    fast = table["sliding_speed_mm_per_s"] > 20.0
    assert np.count_nonzero(fast) > 1000
    assert table["friction_n"][fast] == pytest.approx(FORCE, rel=1e-9)
    shown.window.controls.sliders[0].spin.setValue(2.5)
    assert law_drawn(shown, plot)[1] == pytest.approx(np.full(160, 2.5))


def test_unknown_law_is_not_drawn(place, shown):
    plot = place("force_over_speed")
    shown.begin(law="my-own", mouse=False)
    assert len(law_drawn(shown, plot)[0]) == 0
    assert plot.key.texts[0].text() == "no law"


def test_area_of_the_loops_is_the_work_of_the_hand(place, shown, rows):
    table = place("force_over_displacement").table(shown.history)
    area = np.trapezoid(table["friction_along_n"], table["displacement_mm"])
    work = shown.history.column(Column.WORK)
    # The loop leaves out the motion across the main direction.
    assert 0.5 * (work[-1] - work[0]) < area <= 1.02 * (work[-1] - work[0])


def test_energy_ledger_balances(place, shown, rows):
    table = place("energy").table(shown.history)
    kept = rows[1000:6000]
    stored = 0.5e3 * STIFFNESS * (kept["displacement"] ** 2).sum(axis=1)
    assert table["stored_mj"] == pytest.approx(stored)
    # Work is stored, or dissipated by sliding and by the damper B parallel to the spring.
    stretching = np.diff(kept["displacement"], axis=0, prepend=kept["displacement"][:1]) / 1e-3
    damper = 1e3 * 1e-3 * np.cumsum(DAMPING * (stretching**2).sum(axis=1))
    missing = table["work_mj"] - table["dissipated_mj"] - (stored - stored[0]) - (damper - damper[0])
    assert table["work_mj"][-1] > 500
    assert np.abs(missing).max() < 0.02 * table["work_mj"][-1]


def test_spectrum_names_its_method_and_finds_a_vibration(place, live, shown, rows):
    plot = place("spectrum")
    shaken = rows[:6000].copy()
    shaken["command"][:, 0] += 0.5 * np.sin(2 * np.pi * 37.0 * shaken["time"])
    shown.window._feed.history.clear()
    shown.window._feed.add_rows(shaken)
    plot.refresh(shown.window._feed)
    plot.refresh_texts(shown.window._feed)
    for part in ("Hann", "1 s", "9 segments", "resolution 1.5 Hz", "largest above 5 Hz: 37 Hz"):
        assert part in plot.method.text()


def test_motion_shows_both_axes_and_zooms_them_together(place, shown, rows):
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


@given(st.floats(-3.0, 13.0))
def test_reading_is_the_nearest_sample(place):
    x = np.array([0.0, 1.0, 2.5, 4.0, 10.0])
    value = Reading("height", "mm", x, 10 * x).at(place)
    assert value is not None
    assert abs(value / 10 - place) == pytest.approx(np.abs(x - place).min())
    assert Reading("height", "mm", np.zeros(0), np.zeros(0)).at(1.0) is None


def test_cursors_over_time_read_the_curves_of_all_charts(shown, place):
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
    history = shown.history
    newest = history.newest(0)
    for (_, _, values), column in ((friction, 8), (speed, 9)):
        expected = [np.interp(newest + at, history.column(0), history.column(column)) for at in (-2.0, -0.5)]
        assert values == pytest.approx(expected, abs=1e-9)
    assert "1.5" in cursors.text(), "the difference"
    assert "[s]" in cursors.text() or "&nbsp;s" in cursors.text()


def test_point_cursors_read_both_coordinates(shown, place):
    plot = place("force_over_speed")
    shown.dashboard.transport.cursors.click()
    plot.cursors.move_to(0, 50.0, 1.0)
    plot.cursors.move_to(1, 80.0, 3.5)
    assert [(name, unit, values) for name, unit, values in plot.cursors.rows()] == [
        ("sliding speed", "mm/s", [50.0, 80.0]),
        ("friction", "N", [1.0, 3.5]),
    ]
    assert "2.5" in plot.cursors.text()


def test_cursors_are_shown_within_the_range_and_hidden(shown, place):
    plot = place("force_and_speed")
    shown.dashboard.transport.cursors.click()
    assert all(-5.0 < x < 0.0 for x, _ in plot.cursors.places)
    plot.cursors.move_to(0, -40.0)
    shown.dashboard.transport.cursors.click()
    assert not plot.cursors.on
    assert not plot.cursors.isVisible()
    shown.dashboard.transport.cursors.click()
    assert all(-5.0 < x < 0.0 for x, _ in plot.cursors.places)
    assert place("energy").cursors.on, "a plot that is chosen later has cursors"


def titles(shown):
    return [plot.title for plot in shown.dashboard.places.shown]


def test_plot_is_chosen_from_the_list_of_another_one(shown):
    assert titles(shown) == ["Start delay", "Force, speed", "Force over speed"]
    lower = shown.dashboard.places.shown[2]
    lower.choice.setCurrentText("Spectrum")
    lower.choice.activated.emit(lower.choice.currentIndex())
    assert titles(shown) == ["Start delay", "Force, speed", "Spectrum"]
    assert not lower.isVisible()
    assert lower.choice.currentText() == "Force over speed", "each list names its own plot"
    assert shown.dashboard.places.shown[2].isVisible()
    assert shown.dashboard.places.shown[2].method.text().startswith("Welch"), "and it is drawn at once"


def test_visible_plots_exchange_places(shown):
    places = shown.dashboard.places
    places.choose(places.shown[0], "Force over speed")
    assert titles(shown) == ["Force over speed", "Force, speed", "Start delay"]
    assert all(plot.isVisible() for plot in places.shown)


def test_plot_can_be_shown_alone(shown):
    places = shown.dashboard.places
    alone = places.shown[1]
    before = alone.width()
    alone.size_button.click()
    frames(shown)
    assert places.visible == [alone]
    assert alone.width() > 1.8 * before
    alone.size_button.click()
    assert len(places.visible) == 4


def test_hidden_plots_are_not_drawn(shown, rows, monkeypatch):
    places = shown.dashboard.places
    hidden = places.shown[2]
    places.choose(hidden, "Energy")
    monkeypatch.setattr(hidden, "refresh", lambda feed: pytest.fail("drawn in vain"))
    publish(shown.trace, rows[6000:6100])
    frames(shown)


SOURCE = "def level(speed, rest=2.0, rise=3.0):\n    return rest + rise * speed\n"


def forces_of(law, speeds):
    """Return the friction [N] at sliding speeds [mm/s]."""
    return np.hypot(*law(np.outer(1e-3 * speeds, (1.0, 0.0))).T)


def on_scene(live, rows, name, at, **columns):
    """Begin a run on a shipped scene with the contact at a place; return the scene."""
    scene = read_scene(find_scene(name))
    live.begin(scene=scene, law=scene.law.name, parameters=(), mouse=False)
    found = rows[:600].copy()
    found["proxy"], found["region"] = at, region_at(scene, [at])[0]
    for column, value in columns.items():
        found[column] = value
    live.publish(found)
    return scene


@pytest.mark.parametrize(("x", "region", "levels"), [(-0.04, 1, (0.4, 0.3)), (0.0, 0, (2.2, 1.8)), (0.04, 2, (5, 4.2))])
def test_drawn_law_depends_on_the_place(live, rows, x, region, levels):
    scene = on_scene(live, rows, "ice-wood-rubber", (x, 0.0))
    places = live.window.dashboard.places
    plot, series = places.plot("Force over speed"), places.plot("Force, speed")
    speeds, forces = law_drawn(live, plot)
    assert forces == pytest.approx(forces_of(scene.regions[region - 1].law if region else scene.law, speeds), rel=1e-9)
    assert series.forces.levels == pytest.approx(levels)
    assert plot.key.texts[0].text() == "law here"
    assert ("ice", "rubber")[region - 1] in plot.key.texts[0].toolTip() or not region


def test_regions_and_walls_of_the_scene_are_shown(live, rows):
    places = live.window.dashboard.places
    places.choose(places.shown[2], "Region, normal force")
    plot = places.plot("Region, normal force")
    on_scene(live, rows, "box", (0.0, 0.03), normal_force=2.5)
    assert (plot.regions.chart.isVisible(), plot.normal.chart.isVisible()) == (False, True)
    assert plot.normal.curves[0].getData()[1] == pytest.approx(2.5)
    on_scene(live, rows, "ice-wood-rubber", (0.04, 0.0))
    assert (plot.regions.chart.isVisible(), plot.normal.chart.isVisible()) == (True, False)
    assert plot.regions.curves[0].getData()[1][-1] == pytest.approx(2.0)
    assert plot.here.text() == "now in: rubber"
    ticks = plot.regions.chart.plotItem.getAxis("left")._tickLevels
    assert ticks == [[(0, "wood"), (1, "ice"), (2, "rubber")]]
    live.run()
    assert plot.here.text() == "This run is not on a scene."


def test_custom_law_is_drawn_from_its_source(live, rows):
    live.begin(law="custom", law_settings={"source": SOURCE, "rise": 8.0}, parameters=(), mouse=False)
    publish(live.trace, rows[:600])
    plot = live.window.dashboard.places.plot("Force over speed")
    speeds, forces = law_drawn(live, plot)
    assert forces == pytest.approx(2.0 + 8.0e-3 * speeds)


def test_law_and_model_changed_during_the_run_are_shown(live, rows):
    publish(live.trace, rows[:600])
    plot = live.window.dashboard.places.plot("Force over speed")
    law_drawn(live, plot)
    controls = live.window.controls
    controls.session.hand.setCurrentText("minimum-jerk")
    viscous = Parameter("law.viscosity", 8.0, 0.0, 20.0, "N s/m")
    force = Parameter("law.force", 2.0, 0.0, 10.0, "N")
    settings = {"force": 2.0, "viscosity": 8.0}
    live.receive(LawInForce("B", "coulomb-viscous", settings, (force, viscous)))
    speeds, forces = law_drawn(live, plot)
    assert forces == pytest.approx(2.0 + 8.0e-3 * speeds)
    assert [(slider.key, slider.spin.value()) for slider in controls.sliders] == [
        ("law.force", 2.0),
        ("law.viscosity", 8.0),
    ]
    assert (controls.session.chosen["law"], controls.session.chosen["model"]) == ("coulomb-viscous", "B")
    assert controls.session.pending.isHidden() or "law" not in controls.session.pending.text()
    assert live.window.windowTitle().startswith("haptics: model B on ")


def test_recording_has_its_scene_and_its_law():
    scene = read_scene(find_scene("border"))
    law = {"name": "custom", "source": SOURCE, "rest": 1.0}
    info = from_metadata({"configuration": {"scene": scene_table(scene), "law": law}}, numbered(0, 10))
    assert info.scene is not None
    assert scene_table(info.scene) == scene_table(scene)
    assert (info.law, info.law_settings) == ("custom", {"source": SOURCE, "rest": 1.0})
    assert from_metadata({"configuration": {"scene": {"law": 3}}}, numbered(0, 10)).scene is None


def test_scene_changed_during_the_run_is_drawn(live, rows):
    on_scene(live, rows, "border", (0.04, 0.0))
    places = live.window.dashboard.places
    places.choose(places.shown[2], "Region, normal force")
    wood = read_scene(find_scene("ice-wood-rubber"))
    live.receive(ValuesInForce({"law.static_force": 3.0}), SceneInForce(wood, 2))
    assert places.plot("Force, speed").forces.levels == pytest.approx((5.0, 4.2)), "of rubber"
    assert places.plot("Region, normal force").here.text().startswith("now in: ")
    axis = places.plot("Region, normal force").regions.chart.plotItem.getAxis("left")
    assert axis._tickLevels == [[(0, "wood"), (1, "ice"), (2, "rubber")]]
    live.receive(SceneInForce(None, 3))
    assert places.plot("Force, speed").forces.levels == pytest.approx((3.0,)), "the numbers in force, everywhere"
    assert places.plot("Region, normal force").here.text() == "This run is not on a scene."


def test_law_of_a_scene_changed_during_the_run_is_drawn(live, rows):
    on_scene(live, rows, "ice-wood-rubber", (0.04, 0.0))
    plot = live.window.dashboard.places.plot("Force over speed")
    law_drawn(live, plot)
    scene = read_scene(find_scene("ice-wood-rubber"))
    ice, rubber = scene.regions
    rougher = replace(rubber, law=replace(rubber.law, static_force=6.5))
    for number, region in enumerate((rougher, rubber, rougher)):
        live.session.send(SceneInForce(replace(scene, regions=(ice, region)), number))
        speeds, forces = law_drawn(live, plot)
        assert forces == pytest.approx(forces_of(region.law, speeds), rel=1e-9)
