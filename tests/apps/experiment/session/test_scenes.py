"""Experiments on scenes: regions and walls are rendered, recorded and verified, and designs select a scene."""

from __future__ import annotations

import numpy as np
import pytest

from apps.experiment.design import read_design
from apps.experiment.journal import trial_rows
from apps.experiment.report.data import read_experiment
from apps.experiment.report.page import methods
from apps.experiment.session.running import Request, begin, resume_session
from apps.experiment.settings import AnalysisSettings
from apps.experiment.stimulus import measure
from apps.verify.check import verify
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.recording.replay import verify as replay
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.session.running import simulate

SPOT = """\
name = "a rough spot"
law = { name = "coulomb", force_n = 1.0 }

[[regions]]
name = "rough"
circle = { center_m = [0.0, 0.0], radius_m = 0.01 }
law = { force_n = 2.5 }
"""
WALL = """\
[scene]
law = { name = "coulomb", force_n = 0.2 }
[[scene.walls]]
half_plane = { point_m = [0.0, 0.0], normal = [0.0, 1.0] }
friction = 0.5
"""
GRIP = "rest = 0.4\nstiffness = 2000.0\ndamping = 20.0\ntremor = 0.0\n"
FIRM = "[element]\nstiffness = 4000.0\ndamping = 4.0\n\n[stimulus]"
BARE = 'name = "virtual-joystick"\ndamping = 0.0\n'
TEXT = WEBER.replace("rest = 0.4\n", GRIP).replace("[stimulus]", FIRM).replace('name = "virtual-joystick"\n', BARE)
LAW = '[law]\nname = "coulomb"\n'


def on_a_spot(folder, scene="spot.toml", top=False):
    """Write an experiment that selects a scene at the top of the file or in the table of the session."""
    (folder / "spot.toml").write_text(SPOT, encoding="utf-8")
    key = f'scene = "{scene}"\n'
    return changed(folder, LAW, "", key + TEXT if top else TEXT.replace("[session]\n", f"[session]\n{key}"))


def along_a_wall(folder):
    text = TEXT.replace(LAW, WALL).replace('axis = "law.force"', 'axis = "wall.friction"')
    text = text.replace("points = [[-0.03, 0.0], [0.03, 0.0]]", "points = [[-0.03, -0.003], [0.03, -0.003]]")
    for name, reference in (("1 N", 0.3), ("2 N", 0.8)):
        text = text.replace(f'"{name}"\nreference = {name[0]}.0', f'"mu {reference}"\nreference = {reference}')
    return changed(folder, "start = 0.5\n", "start = 0.2\n", text.replace("maximum = 2.0", "maximum = 1.0"))


def verified_rows(place):
    """Assert that all blocks verify and replay with the same bits; return the rows of each."""
    rows = []
    for recording in sorted(place.folder.glob("blocks/*")):
        run, found = verify(recording)
        assert (found.violations, found.missing) == ([], []) and run.count
        again = replay(Recording(recording))
        assert (again.mismatches, again.verdict) == (0, "ok")
        rows.append(Recording(recording).rows)
    return rows


def assert_exact(place):
    """Assert that all blocks verify, replay, and deliver the asked levels; return their rows."""
    rows = verified_rows(place)
    table = trial_rows(place, measure)
    assert table and all(row["delivered_exact"] for row in table)
    for row in table:
        for k in (1, 2):
            assert row[f"delivered_{k}"] == row[f"asked_{k}"]
            assert abs(row[f"felt_{k}"] - row[f"asked_{k}"]) < 0.02 * row[f"asked_{k}"], row["stimulus_missing"]
    return rows


@pytest.mark.parametrize("top", [False, True], ids=["session", "top"])
def test_session_on_a_scene_is_exact(tmp_path, top):
    _, place = simulate(on_a_spot(tmp_path, top=top), tmp_path / "out")
    for rows in assert_exact(place):
        assert set(rows["region"].tolist()) == {0, 1}
    assert "on the scene spot.toml" in methods(read_experiment([place.folder]), [], AnalysisSettings())


@pytest.mark.parametrize(("axis", "reference", "unit"), [("amplitude", "0.3", ""), ("wavelength", "0.003", "m")])
def test_texture_varies_exactly(tmp_path, axis, reference, unit):
    texture = '[[scene.regions]]\nname = "grating"\ncircle = { center_m = [0.0, 0.0], radius_m = 0.1 }\n'
    texture += "law = { force_n = 1.0 }\ntexture = { amplitude = 0.3, wavelength_m = 0.003 }\n"
    scene = '[scene]\nlaw = { name = "coulomb", force_n = 1.0 }\n' + texture
    text = TEXT.replace(LAW, scene).replace('axis = "law.force"', f'axis = "texture.{axis}"')
    text = text.replace("reference = 1.0", f"reference = {reference}").replace(
        "reference = 2.0", f"reference = {reference}"
    )
    text = text.replace("start = 0.5", "start = 0.002").replace("minimum = 0.02", "minimum = 0.0005")
    file = changed(tmp_path, "maximum = 2.0", "maximum = 0.004", text)
    _, place = simulate(file, tmp_path / "out")
    rows = np.concatenate(verified_rows(place))
    table = trial_rows(place, measure)
    assert all(row["delivered_exact"] and row["axis_unit"] == unit for row in table)
    assert all(0.08 < row[f"speed_{k}"] < 0.15 for row in table for k in (1, 2)), "known without a felt stimulus"
    assert {row[f"felt_{k}"] for row in table for k in (1, 2)} == {None} and "a texture" in table[0]["stimulus_missing"]
    for row, marked in ((row, rows["marker"] == 100 * row["trial"] + 11) for row in table):
        sliding = np.abs(rows["friction_force"][marked & (rows["sticking"] == 0), 0])
        amplitude, way = np.ptp(sliding) / 2.0, np.ptp(rows["proxy"][marked, 0]) * 2.0  # two strokes
        wavelength = 2.0 * way / np.count_nonzero(np.diff(sliding > 1.0))
        found = {"amplitude": amplitude, "wavelength": wavelength}[axis]
        assert found == pytest.approx(row["asked_1"], rel=0.05)


def test_texture_axis_requires_a_texture(tmp_path):
    on_a_spot(tmp_path)
    text = TEXT.replace(LAW, "").replace("[session]\n", '[session]\nscene = "spot.toml"\n')
    with pytest.raises(ConfigurationError, match=r"unknown axis 'texture\.amplitude'"):
        read_design(changed(tmp_path, 'axis = "law.force"', 'axis = "texture.amplitude"', text))


def test_resume_refuses_a_modified_scene(tmp_path):
    file = on_a_spot(tmp_path)
    journal, _ = begin(read_design(file), Request("P01", 1, 7, tmp_path / "out", {}, simulated=True))
    journal.close()
    (tmp_path / "spot.toml").write_text(SPOT.replace("2.5", "2.6"), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="not the one that it began with"):
        resume_session(journal.place.folder)
    (tmp_path / "spot.toml").write_text(SPOT, encoding="utf-8")
    assert resume_session(journal.place.folder)["reason"] == "completed"


@pytest.mark.parametrize(
    ("old", "new", "mark", "words"),
    [
        ("friction = 0.5", "friction = -0.5", "friction = -0.5", "friction = -0.5"),
        ("friction = 0.5", "frictions = 0.5", "frictions = 0.5", "frictions"),
        ("force_n = 0.2", "force_n = -0.2", "law = {", "force"),
        ('axis = "wall.friction"', 'axis = "wall.grip"', 'axis = "wall.grip"', "wall.friction"),
        ("[session]\n", '[session]\nscene = "box"\n', 'scene = "box"', "scene"),
    ],
)
def test_invalid_scene_is_refused_with_its_line(tmp_path, old, new, mark, words):
    file = along_a_wall(tmp_path)
    text = file.read_text(encoding="utf-8").replace(old, new, 1)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        read_design(file)
    line = text[: text.index(mark)].count("\n") + 1
    assert f"{file}:{line}: " in str(caught.value) and words in str(caught.value)


def test_wall_axis_requires_a_wall(tmp_path):
    with pytest.raises(ConfigurationError, match=r"axis 'wall.friction'|wall\.friction"):
        read_design(changed(tmp_path, 'axis = "law.force"', 'axis = "wall.friction"'))


def test_shipped_scene_is_selected_by_name(tmp_path):
    scene = read_design(on_a_spot(tmp_path, "border")).session.scene
    assert scene is not None and len(scene.regions) == 1
