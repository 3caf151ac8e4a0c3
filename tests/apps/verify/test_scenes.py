"""Verification of recordings on scenes: regions, images, textures and walls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from apps.verify.check import verify
from apps.verify.findings import INCOMPLETE, VIOLATED
from apps.verify.walls import Mass, Touch, on_a_handle, on_a_mass, on_the_surface
from haptics import Coulomb, Elliptic, Stribeck
from haptics.friction.laws import ClosedForm
from haptics.recording.recording import Recording
from haptics.recording.replay import verify as replay
from haptics.scenes import (
    Circle,
    HalfPlane,
    ImageMap,
    Polygon,
    Region,
    Scene,
    Texture,
    Wall,
    read_scene,
    scene_table,
)
from tests.apps.verify.forging import Forgery, assert_honest, copy_of, put, scale
from tests.apps.verify.runs import Plan, make, tables_of
from tests.haptics.wall_runs import ADMITTANCE, SHAPES, SLOPE, T, dragged, mass, pushed, wandering

SPIRAL = read_scene("relief").regions[0].law
assert isinstance(SPIRAL, ImageMap)
EVERYTHING = Scene(
    Stribeck(1.0, 1.3, 0.2, 1.0),
    (
        Region(
            "disc", Circle((0.02, 0.0), 0.02), Stribeck(2.0, 2.5, 0.2), texture=Texture("noise", 0.6, 0.004, seed=9)
        ),
        Region("hook", Polygon(((-0.05, -0.05), (0.0, -0.05), (-0.03, -0.03), (-0.05, 0.0))), Stribeck(0.5, 0.6, 0.2)),
        Region(
            "image",
            HalfPlane((-0.01, 0.0), (1.0, 0.2)),
            ImageMap(SPIRAL.levels, Stribeck(1.0, 1.2, 0.2), Stribeck(2.0, 2.1, 0.2), (-0.05, -0.05), (0.1, 0.1)),
        ),
        Region("ridges", HalfPlane((0.0, 0.03), (0.0, -1.0)), Stribeck(1.0, 1.2, 0.2), texture=Texture(angle=0.7)),
    ),
    border=0.004,
)
CLOSED = Scene(
    ClosedForm(Stribeck(1.0, 1.1, 0.5)),
    (Region("disc", Circle((0.0, 0.0), 0.02), ClosedForm(Stribeck(2.0, 2.2, 0.5))),),
)
TURNED = Scene(
    Elliptic(1.0, 2.0, 0.5, 1.0), (Region("a", Circle((0.0, 0.0), 0.02), Elliptic(3.0, 1.0, 0.5), texture=Texture()),)
)
SCENES: dict[str, dict[str, Any]] = {
    "everything": scene_table(EVERYTHING),
    "image": scene_table(read_scene("relief")),
    "closed form": scene_table(CLOSED),
    "elliptic": scene_table(TURNED),
}
ROUND = [[0.045, 0.0], [0.0, 0.04], [-0.045, -0.01], [-0.01, -0.045], [0.03, 0.03]]


def plan(model, scene, **others):
    hand = {"name": "minimum-jerk", "points": ROUND, "pause": 0.02, "rest": 0.0, "speed": 0.5}
    return Plan(tables_of(model, scene=scene, hand=hand), 1200, **others)


def honest(folder, made):
    """Make a recording, and assert that it replays with the same bits and verifies without findings."""
    recording = Recording(make(folder / "run", made))
    again = replay(recording)
    assert (again.mismatches, again.verdict) == (0, "ok"), again.findings
    assert_honest(recording.folder)
    return recording


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("model", "ABCD")
def test_honest_recordings_on_scenes_raise_no_alarm(model, name, tmp_path):
    recording = honest(tmp_path, plan(model, SCENES[name]))
    assert len(set(recording.rows["region"].tolist())) > 1 or name != "everything"
    assert np.isnan(recording.rows["normal_force"]).all()


DISTURBED: dict[str, Any] = {"skips": (90, 610), "faults": ("nan@0.2+0.02", "jump@0.7+0.003")}


@pytest.mark.parametrize("model", "BD")
def test_disturbed_recordings_on_scenes_raise_no_alarm(model, tmp_path):
    changes: dict[int, Any] = {
        150: {"scene": "ice-wood-rubber"},
        300: {"law": {"static_force": 2.4}},
        450: {"element": {"mass": 0.3 if model == "B" else 3.0}},
        600: {"session": {"model": "C" if model == "B" else "A"}},
        750: {"scene": SCENES["everything"]},
    }
    recording = honest(tmp_path, plan(model, SCENES["image"], changes=changes, shut=((350, 500),), **DISTURBED))
    assert set(recording.rows["settings_version"].tolist()) == {0, 1, 2, 3, 4, 5}
    names = [entry["scene"]["name"] for entry in recording.settings[:2]]
    assert names == ["a relief from an image", "ice, wood, rubber"]


@pytest.mark.parametrize("model", "CD")
def test_unusable_samples_on_an_image_raise_no_alarm(model, tmp_path):
    recording = honest(tmp_path, plan(model, SCENES["image"], faults=("nan@0.2+0.02",)))
    assert np.isnan(recording.rows["position"]).any()


def test_scene_may_be_loaded_during_a_run(tmp_path):
    begun = plan("C", {}, changes={400: {"scene": "border"}})
    del begun.tables["scene"]
    rows = honest(tmp_path, begun).rows
    assert set(rows["region"][:400].tolist()) == {-1} and set(rows["region"][402:].tolist()) <= {0, 1}


@pytest.fixture(scope="module")
def recorded_scene(tmp_path_factory):
    return make(tmp_path_factory.mktemp("scenes") / "run", plan("C", SCENES["everything"]))


def falsify(recording, folder, change):
    forgery = copy_of(recording, folder)
    change(forgery)
    forgery.metadata["configuration"]["scene"] = forgery.settings[0].get("scene")
    forgery.save()
    return folder


def of_scene(change):
    return lambda forgery: change(forgery.settings[0]["scene"])


def scaled(name):
    """Scale a column in the tick with the largest normal force."""
    return lambda forgery: scale(name, 1.0 + 1e-6)(forgery, int(np.argmax(forgery.rows["normal_force"])))


SCENE_WRONGS: dict[str, tuple[Callable[[Forgery], Any], str]] = {
    "region": (lambda forgery: put("region", lambda f, k: 0)(forgery, 700), "region"),
    "wall": (lambda forgery: put("normal_force", lambda f, k: 1.0)(forgery, 700), "normal force"),
    "border": (of_scene(lambda scene: scene.update(border_m=0.0042)), "law"),
    "texture": (of_scene(lambda scene: scene["regions"][0]["texture"].update(seed=10)), "law"),
    "force": (of_scene(lambda scene: scene["regions"][2]["image"]["upper"].update(static_force_n=2.2)), "law"),
    "background": (of_scene(lambda scene: scene["law"].update(static_force_n=1.31)), "settings"),
}


def test_unknown_scene_key_is_incomplete(recorded_scene, tmp_path):
    _, found = verify(falsify(recorded_scene, tmp_path / "forged", of_scene(lambda scene: scene.update(lava=True))))
    assert found.verdict == INCOMPLETE
    assert "its entry 'lava' is unknown" in found.missing[0].words


BOX = Scene(
    Coulomb(0.4),
    (Region("disc", Circle((0.0, 0.0), 0.02), Coulomb(2.0)),),
    walls=(
        Wall(HalfPlane((0.035, 0.0), (-1.0, 0.0)), 1500.0, 12.0, 0.4),
        Wall(HalfPlane((0.0, 0.03), (0.1, -1.0)), 2500.0, 0.0, 0.8),
        Wall(Circle((-0.03, -0.02), 0.012), 1000.0, 40.0, 0.0),
        Wall(Polygon(((-0.05, 0.0), (-0.02, 0.005), (-0.03, 0.01), (-0.025, 0.025), (-0.05, 0.02))), 2000.0, 10.0, 0.3),
    ),
    name="a box",
)
TABLE = scene_table(BOX)


@pytest.mark.parametrize("model", "ABCD")
def test_honest_recordings_among_walls_raise_no_alarm(model, tmp_path):
    rows = honest(tmp_path, plan(model, TABLE)).rows
    assert (rows["normal_force"] > 1.0).mean() > 0.2
    assert (rows["normal_force"] == 0.0).mean() > 0.1


@pytest.mark.parametrize("model", "BD")
def test_disturbed_recordings_among_walls_raise_no_alarm(model, tmp_path):
    stiffer = scene_table(Scene(Coulomb(0.4), walls=BOX.walls[:2], name="less"))
    changes: dict[int, Any] = {
        150: {"law": {"force": 0.6}},
        300: {"scene": stiffer},
        450: {"scene": "border"},
        600: {"scene": TABLE},
        750: {"session": {"model": "C" if model == "B" else "A"}},
    }
    rows = honest(tmp_path, plan(model, TABLE, changes=changes, shut=((350, 420),), **DISTURBED)).rows
    assert np.isnan(rows["normal_force"][rows["settings_version"] == 3]).all()
    assert np.isfinite(rows["normal_force"][rows["settings_version"] != 3]).all()


@pytest.mark.parametrize("control", [False, True])
def test_walls_with_a_delayed_force_raise_no_alarm(control, tmp_path):
    late = plan("C", TABLE)
    late.tables["device"] |= {"delay": 0.002}
    late.tables["envelope"] = {"passivity_control": control}
    assert (honest(tmp_path, late).rows["normal_force"] > 1.0).any()


@pytest.fixture(scope="module")
def recorded_walls(tmp_path_factory):
    return make(tmp_path_factory.mktemp("walls") / "run", plan("C", TABLE))


WALL_WRONGS: dict[str, tuple[Callable[[Forgery], Any], str]] = {
    "normal force": (scaled("normal_force"), "walls"),
    "force": (scaled("command_unlimited"), "equations"),
    "proxy": (scaled("proxy"), "proxy"),
    "stiffness": (of_scene(lambda scene: scene["walls"][0].update(stiffness_n_per_m=1501.0)), "walls"),
    "friction": (of_scene(lambda scene: scene["walls"][0].update(friction=0.41)), "equations"),
    "place": (of_scene(lambda scene: scene["walls"][2]["circle"].update(radius_m=0.0121)), "walls"),
    "no walls": (of_scene(lambda scene: scene.pop("walls")), "normal force"),
}


WRONGS = [
    *(pytest.param("recorded_scene", *one, id=f"scene-{name}") for name, one in SCENE_WRONGS.items()),
    *(pytest.param("recorded_walls", *one, id=f"walls-{name}") for name, one in WALL_WRONGS.items()),
]


@pytest.mark.parametrize(("recording", "change", "rule"), WRONGS)
def test_falsified_scene_or_wall_is_detected(request, recording, change, rule, tmp_path):
    _, found = verify(falsify(request.getfixturevalue(recording), tmp_path / "forged", change))
    assert found.verdict == VIOLATED
    assert rule in {one.rule for one in found.violations}


def test_replay_detects_a_changed_scene(recorded_scene, recorded_walls, tmp_path):
    border = falsify(recorded_scene, tmp_path / "border", of_scene(lambda scene: scene.update(border_m=0.0042)))
    walls = falsify(recorded_walls, tmp_path / "walls", WALL_WRONGS["friction"][0])
    assert replay(Recording(border)).mismatches > 10 and replay(Recording(walls)).mismatches > 10


@pytest.mark.parametrize(
    "change",
    [
        lambda scene: scene["walls"][0].pop("half_plane"),
        lambda scene: scene["walls"][0].update(friction="much"),
        lambda scene: scene.update(walls="a fence"),
    ],
    ids=["shape", "number", "list"],
)
def test_unknown_wall_is_not_verified(recorded_walls, tmp_path, change):
    _, found = verify(falsify(recorded_walls, tmp_path / "forged", of_scene(change)))
    assert found.verdict == VIOLATED or found.missing


STAR = Polygon(((0.0, 0.03), (0.008, 0.008), (0.03, 0.0), (0.008, -0.008), (0.0, -0.03), (-0.02, 0.0)))
ALL_SHAPES = {**SHAPES, "star": STAR}


def tables(*walls):
    found: list[dict[str, Any]] = scene_table(Scene(Coulomb(0.0), walls=walls))["walls"]
    return found


@pytest.mark.parametrize("shape", ALL_SHAPES.values(), ids=ALL_SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_wall_force_on_a_handle_agrees_with_the_program(shape, seed):
    walls = (Wall(shape, 2000.0, 10.0, 0.4), Wall(SLOPE, 500.0, 3.0, 1.0))
    path = wandering(np.random.default_rng(seed).uniform(-1.0, 1.0, 16).tolist())
    rows, stored = dragged(path, walls)
    anew = np.zeros(len(path), bool)
    anew[0] = True
    found = on_a_handle(tables(*walls), path, rows["velocity"], anew, T, Touch(), len(path))
    assert found.normal.max() > 1.0
    assert (np.abs(rows["normal_force"] - found.normal) <= found.doubt + 1e-300).all()
    off = np.abs(rows["command_unlimited"] - found.force).max(axis=1)
    assert (off <= found.doubt).all() and found.doubt.max() < 1e-8
    np.testing.assert_allclose(found.store, stored, atol=1e-12)
    np.testing.assert_allclose(rows["proxy"], on_the_surface(tables(*walls), path), atol=1e-13)


TIMES = np.arange(1500)[:, None] * T
PUSH = 12.0 * np.sin(2.0 * np.pi * np.array([1.9, 2.3]) * TIMES + np.array([0.3, 1.0]))


def pushed_mass(*walls):
    """Push a mass against walls; return rows, stored energy, reference, velocity before, and the verified forces."""
    rows, stored = pushed(PUSH, walls, mass(2.0))
    reference = np.concatenate((np.zeros((1, 2)), rows["command"][:-1]))
    moved = (rows["command"] - reference) / T  # after the envelope
    before = np.concatenate((np.zeros((1, 2)), moved[:-1]))
    state = Mass(np.full(len(PUSH), 2.0), before, PUSH, ADMITTANCE.max_acceleration)
    found = on_a_mass(tables(*walls), reference, state, np.ones(len(PUSH)), T, len(PUSH))
    assert (np.abs(rows["normal_force"] - found.normal) <= found.doubt + 1e-8).all()
    return rows, stored, reference, before, found


@pytest.mark.parametrize("shape", ALL_SHAPES.values(), ids=ALL_SHAPES)
@pytest.mark.parametrize("stiffness", [2000.0, 1e6])
def test_wall_force_on_a_mass_agrees_with_the_program(shape, stiffness):
    wall = Wall(shape, stiffness, 60.0, 0.4)
    rows, stored, _, before, found = pushed_mass(wall)
    assert found.normal.max() > 1.0
    balance = 2.0 * (rows["sliding_velocity"] - before) / T - PUSH - found.force
    assert (np.abs(balance).max(axis=1) <= found.doubt + 1e-8).all()
    np.testing.assert_allclose(found.store, stored, atol=1e-10 * stiffness)


def test_several_walls_are_solved_together():
    walls = (Wall(SLOPE, 3000.0, 60.0, 0.4), Wall(SHAPES["circle"], 2000.0, 60.0, 1.0), Wall(STAR, 2000.0, 60.0, 0.2))
    _, stored, reference, _, found = pushed_mass(*walls)
    deep = np.sum([wall.depth(reference) > 0.0 for wall in walls], axis=0)
    assert (deep > 1).sum() > 50
    np.testing.assert_allclose(found.store, stored, atol=1e-9)
