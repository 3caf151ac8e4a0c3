"""What plots show of a run on a scene, and of a law that somebody wrote: the law where the contact is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from apps.front_ends.messages import SceneInForce, ValuesInForce
from haptics.scenes import find_scene, read_scene, scene_table
from tests.apps.view.driving import frames, law_drawn, publish

SOURCE = "def level(speed, rest=2.0, rise=3.0):\n    return rest + rise * speed\n"


def forces_of(law, speeds: np.ndarray) -> np.ndarray:
    """Return the friction [N] at sliding speeds [mm/s]."""
    return np.hypot(*law(np.outer(1e-3 * speeds, (1.0, 0.0))).T)


def on_scene(live, rows, name: str, at: tuple[float, float], **columns: float):
    """Begin a run on a shipped scene whose contact is at a place, and return the scene."""
    scene = read_scene(find_scene(name))
    live.begin(scene=scene, law=scene.law.name, parameters=(), mouse=False)
    found = rows[:600].copy()
    found["proxy"], found["region"] = at, scene.region_at([at])[0]
    for column, value in columns.items():
        found[column] = value
    publish(live.trace, found)
    frames(live)
    return scene


@pytest.mark.parametrize(("x", "region", "levels"), [(-0.04, 1, (0.4, 0.3)), (0.0, 0, (2.2, 1.8)), (0.04, 2, (5, 4.2))])
def test_the_law_that_is_drawn_is_that_of_the_place(live, rows, x: float, region: int, levels) -> None:
    scene = on_scene(live, rows, "ice-wood-rubber", (x, 0.0))
    places = live.window.dashboard.places
    plot, series = places.plot("Force over speed"), places.plot("Force, speed")
    speeds, forces = law_drawn(live, plot)
    assert forces == pytest.approx(forces_of(scene.regions[region - 1].law if region else scene.law, speeds), rel=1e-9)
    assert series._levels == pytest.approx(levels)
    assert plot._key.texts[0].text() == "law here"
    assert ("ice", "rubber")[region - 1] in plot._key.texts[0].toolTip() or not region


def test_the_background_follows_its_numbers(live, rows) -> None:
    on_scene(live, rows, "box", (0.0, 0.03))
    live.window.dashboard.show_values({"law.force": 1.7})
    frames(live)
    assert live.window.dashboard.places.plot("Force, speed")._levels == pytest.approx((1.7,))


def test_regions_and_walls_are_shown_where_there_are_some(live, rows) -> None:
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
    live.begin()
    frames(live)
    assert plot.here.text() == "This run is not on a scene."


def test_a_custom_law_is_drawn_from_its_text(live, rows) -> None:
    live.begin(law="custom", law_settings={"source": SOURCE, "rise": 8.0}, parameters=(), mouse=False)
    publish(live.trace, rows[:600])
    plot = live.window.dashboard.places.plot("Force over speed")
    speeds, forces = law_drawn(live, plot)
    assert forces == pytest.approx(2.0 + 8.0e-3 * speeds)


def test_a_recording_says_its_scene_and_its_law() -> None:
    from apps.front_ends.run import from_metadata
    from tests.apps.view.view_rows import numbered

    scene = read_scene(find_scene("border"))
    law = {"name": "custom", "source": SOURCE, "rest": 1.0}
    info = from_metadata({"configuration": {"scene": scene_table(scene), "law": law}}, numbered(0, 10))
    assert info.scene is not None
    assert scene_table(info.scene) == scene_table(scene)
    assert (info.law, info.law_settings) == ("custom", {"source": SOURCE, "rest": 1.0})
    assert from_metadata({"configuration": {"scene": {"law": 3}}}, numbered(0, 10)).scene is None


def test_a_scene_that_is_changed_in_mid_run_is_the_one_that_is_drawn(live, rows) -> None:
    on_scene(live, rows, "border", (0.04, 0.0))
    places = live.window.dashboard.places
    places.choose(places.shown[2], "Region, normal force")
    wood = read_scene(find_scene("ice-wood-rubber"))
    live.session.send(ValuesInForce({"law.static_force": 3.0}))
    live.session.send(SceneInForce(wood, 2))
    frames(live)
    assert places.plot("Force, speed")._levels == pytest.approx((5.0, 4.2)), "of rubber, which has its own numbers"
    assert places.plot("Region, normal force").here.text().startswith("now in: ")
    axis = places.plot("Region, normal force").regions.chart.plotItem.getAxis("left")
    assert axis._tickLevels == [[(0, "wood"), (1, "ice"), (2, "rubber")]]
    live.session.send(SceneInForce(None, 3))
    frames(live)
    assert places.plot("Force, speed")._levels == pytest.approx((3.0,)), "the numbers in force, everywhere"
    assert places.plot("Region, normal force").here.text() == "This run is not on a scene."


def test_the_law_that_is_drawn_is_that_of_a_scene_that_was_changed_in_mid_run(live, rows) -> None:
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
