"""Recordings on scenes: computed again with the same bits, judged with the numbers of the place, and wrongs noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.verify.check import verify
from apps.verify.findings import INCOMPLETE, OK, VIOLATED
from haptics import Elliptic, Stribeck
from haptics.recording.recording import Recording
from haptics.recording.replay import verify as replay
from haptics.recording.tick_file import TickTable
from haptics.scenes import Circle, HalfPlane, ImageMap, Polygon, Region, Scene, Texture, read_scene, scene_table
from tests.apps.verify.runs import ELEMENTS, Plan, make

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
CLOSED = {
    "law": {
        "name": "stribeck-closed-form",
        "kinetic_force_n": 1.0,
        "static_force_n": 1.1,
        "stribeck_velocity_m_per_s": 0.5,
    },
    "regions": [
        {"circle": {"center_m": [0.0, 0.0], "radius_m": 0.02}, "law": {"kinetic_force_n": 2.0, "static_force_n": 2.2}}
    ],
}
TURNED = Scene(
    Elliptic(1.0, 2.0, 0.5, 1.0), (Region("a", Circle((0.0, 0.0), 0.02), Elliptic(3.0, 1.0, 0.5), texture=Texture()),)
)
SCENES: dict[str, dict[str, Any]] = {
    "everything": scene_table(EVERYTHING),
    "image": scene_table(read_scene("relief")),
    "closed form": CLOSED,
    "elliptic": scene_table(TURNED),
}
ROUND = [[0.045, 0.0], [0.0, 0.04], [-0.045, -0.01], [-0.01, -0.045], [0.03, 0.03]]


def plan(model: str, scene: dict[str, Any], **others: Any) -> Plan:
    hand: dict[str, Any] = {"name": "minimum-jerk", "points": ROUND, "pause": 0.02, "rest": 0.0, "speed": 0.5}
    tables: dict[str, dict[str, Any]] = {
        "device": {"name": "virtual-arm" if model in "AD" else "virtual-joystick"},
        "session": {"model": model},
        "scene": scene,
        "element": dict(ELEMENTS[model]),
        "hand": hand,
    }
    return Plan(tables, others.pop("ticks", 1200), **others)


def sound(folder: Path) -> Recording:
    recording = Recording(folder)
    again = replay(recording)
    assert (again.mismatches, again.verdict) == (0, "ok"), again.findings
    run, found = verify(folder)
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)
    assert max(one.share for one in found.residuals.values()) < 0.5
    assert run.count == len(recording.rows)
    return recording


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("model", "ABCD")
def test_honest_recordings_on_scenes_raise_no_alarm(model: str, name: str, tmp_path: Path) -> None:
    recording = sound(make(tmp_path / "run", plan(model, SCENES[name])))
    assert len(set(recording.rows["region"].tolist())) > 1 or name != "everything"
    assert np.isnan(recording.rows["normal_force"]).all()


@pytest.mark.parametrize("model", "BD")
def test_changes_in_mid_run_gates_skips_and_faults_on_scenes_raise_no_alarm(model: str, tmp_path: Path) -> None:
    changes: dict[int, Any] = {
        150: {"scene": "ice-wood-rubber"},
        300: {"law": {"static_force": 2.4}},
        450: {"element": {"mass": 0.3 if model == "B" else 3.0}},
        600: {"session": {"model": "C" if model == "B" else "A"}},
        750: {"scene": SCENES["everything"]},
    }
    others: dict[str, Any] = {"shut": ((350, 500),), "skips": (90, 610), "faults": ("nan@0.2+0.02", "jump@0.7+0.003")}
    recording = sound(make(tmp_path / "run", plan(model, SCENES["image"], changes=changes, **others)))
    assert set(recording.rows["settings_version"].tolist()) == {0, 1, 2, 3, 4, 5}
    assert [entry["scene"]["name"] for entry in recording.settings[:2]] == [
        "a relief from an image",
        "ice, wood, rubber",
    ]


@pytest.mark.parametrize("model", "CD")
def test_unusable_samples_on_an_image_raise_no_alarm(model: str, tmp_path: Path) -> None:
    recording = sound(make(tmp_path / "run", plan(model, SCENES["image"], faults=("nan@0.2+0.02",))))
    assert np.isnan(recording.rows["position"]).any()


def test_a_run_may_come_onto_a_scene(tmp_path: Path) -> None:
    begun = plan("C", {}, changes={400: {"scene": "border"}})
    del begun.tables["scene"]
    rows = sound(make(tmp_path / "run", begun)).rows
    assert set(rows["region"][:400].tolist()) == {-1} and set(rows["region"][402:].tolist()) <= {0, 1}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("scenes") / "run", plan("C", SCENES["everything"]))


def forge(folder: Path, copy: Path, change: Callable[[np.ndarray, list[dict[str, Any]]], None]) -> Path:
    """A copy in which rows or journal are changed, hashed anew."""
    import shutil

    shutil.copytree(folder, copy)
    rows = np.load(copy / "ticks.npy")
    journal = [json.loads(line) for line in (copy / "settings.jsonl").read_text().splitlines()]
    change(rows, journal)
    np.save(copy / "ticks.npy", rows)
    (copy / "settings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in journal))
    metadata = json.loads((copy / "recording.json").read_text())
    metadata["rows_sha256"] = TickTable(copy / "ticks.npy").sha256()
    metadata["configuration"]["scene"] = journal[0].get("scene")
    (copy / "recording.json").write_text(json.dumps(metadata))
    return copy


def put(name: str, value: Any) -> Callable[[np.ndarray, list[dict[str, Any]]], None]:
    def change(rows: np.ndarray, _: list[dict[str, Any]]) -> None:
        rows[name][700] = value

    return change


def of_the_scene(change: Callable[[dict[str, Any]], Any]) -> Callable[[np.ndarray, list[dict[str, Any]]], None]:
    return lambda rows, journal: (change(journal[0]["scene"]), None)[1]


WRONGS: dict[str, tuple[Callable[[np.ndarray, list[dict[str, Any]]], None], str]] = {
    "another region": (put("region", 0), "region"),
    "a wall": (put("normal_force", 1.0), "normal force"),
    "a border": (of_the_scene(lambda scene: scene.update(border_m=0.0042)), "law"),
    "a texture": (of_the_scene(lambda scene: scene["regions"][0]["texture"].update(seed=10)), "law"),
    "a force": (of_the_scene(lambda scene: scene["regions"][2]["image"]["upper"].update(static_force_n=2.2)), "law"),
    "the background": (of_the_scene(lambda scene: scene["law"].update(static_force_n=1.31)), "settings"),
}


@pytest.mark.parametrize(("change", "rule"), WRONGS.values(), ids=WRONGS.keys())
def test_wrongs_on_a_scene_are_noticed(recorded: Path, change: Any, rule: str, tmp_path: Path) -> None:
    _, found = verify(forge(recorded, tmp_path / "forged", change))
    assert found.verdict == VIOLATED
    assert rule in {one.rule for one in found.violations}


def test_the_replay_notices_a_changed_scene_too(recorded: Path, tmp_path: Path) -> None:
    forged = forge(recorded, tmp_path / "forged", of_the_scene(lambda scene: scene.update(border_m=0.0042)))
    assert replay(Recording(forged)).mismatches > 10


def test_a_scene_that_nobody_knows_leaves_it_incomplete(recorded: Path, tmp_path: Path) -> None:
    forged = forge(recorded, tmp_path / "forged", of_the_scene(lambda scene: scene.update(lava=True)))
    _, found = verify(forged)
    assert found.verdict == INCOMPLETE
    assert "'lava' is not known here" in found.missing[0].words
