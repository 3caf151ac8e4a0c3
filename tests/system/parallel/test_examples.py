"""The examples run as shipped."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from apps.cli import main
from tests.processes import ROOT
from tests.system.parallel.commands import haptics, run_python

EXAMPLES = ROOT / "examples"
SHORT = ("--duration", "3", "--headless", "--json")


def example(name, *arguments, folder):
    """Run an example and return its output."""
    return run_python(EXAMPLES / name, *arguments, folder=folder).stdout


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sliding_block.py", ("T = 1 ms: stops at tick 78", "T = 4 ms: stops at tick 20", "afterwards 0.0 m/s")),
        ("virtual_session.py", ("while slipping: 4.000000 N",)),
        ("stick_slip_network.py", ("avalanches of 1 to 40 blocks",)),
        ("script_session.py", ("Coulomb(force=4.0), up to", "certificate fit")),
    ],
)
def test_example_prints_its_result(name, words, tmp_path):
    said = example(name, folder=tmp_path)
    assert [part for part in words if part not in said] == []
    assert said.count("afterwards 0.0 m/s") == (2 if name == "sliding_block.py" else 0)


def test_the_passivity_controller_settles_what_rings_without_it(tmp_path):
    said = example("passivity.py", folder=tmp_path)
    swings = {line.split(":")[0]: float(line.split("swings by")[1].split()[0]) for line in said.splitlines()[:2]}
    assert swings["without the controller"] > 1.0
    assert swings["with the controller"] < 0.1


def test_walls_hold_what_the_cone_of_friction_lets_them(tmp_path):
    said = example("walls.py", folder=tmp_path)
    assert said.count("friction over normal force 0.400000 to 0.400000") == 2
    assert said.count("moves by 0.000000000 um") == 2
    assert "0 ticks ENERGY" in said


def test_friction_in_mujoco_holds_and_sticks_and_slips(tmp_path):
    pytest.importorskip("mujoco")
    said = example("mujoco_friction.py", folder=tmp_path)
    assert "exact: creeps at 0.000000 um/s, sticks: True" in said
    assert "breaks away 6 times" in said


def test_a_law_of_ones_own_runs_alone_and_in_a_session(tmp_path):
    assert "slides at 3.571 N" in example("own_law.py", folder=tmp_path)
    settings = ("--model", "C", "--set", f"law.file={EXAMPLES / 'own_law.py'}", "--set", "law.static=5")
    said = haptics("run", "--device", "virtual-joystick", *settings, *SHORT, folder=tmp_path).stdout
    outcome = json.loads(said)
    assert outcome["reason"] == "completed"
    assert 0.0 < outcome["stick_fraction"] < 1.0
    assert 4.8 < outcome["force_n"]["max"] <= 5.0


def test_a_session_from_the_example_settings_can_be_read_by_the_example(tmp_path):
    haptics("run", "--config", EXAMPLES / "rubber.toml", *SHORT, folder=tmp_path)
    recording = next((tmp_path / "recordings").iterdir())
    assert "model C" in example("read_recording.py", recording, folder=tmp_path)


def test_the_example_joint_is_what_its_script_makes_and_its_friction_is_found_again(tmp_path):
    shipped, made = EXAMPLES / "data" / "joint.csv", tmp_path / "made.csv"
    example("joint_data.py", made, folder=tmp_path)
    values, again = (np.loadtxt(path, delimiter=",", skiprows=1) for path in (shipped, made))
    assert shipped.read_text().splitlines()[0] == "time_s,velocity_rad_per_s,torque_nm"
    assert values.shape == again.shape
    assert np.abs(values - again).max() < 2e-6  # rounding of the last digit
    assert main(["calibrate", "friction", "--data", str(shipped), "--out", str(tmp_path / "joint.toml")]) == 0
    found = tomllib.loads((tmp_path / "joint.toml").read_text())["joint"]["joint"]["friction"]
    assert (found["model"], found["warnings"]) == ("stribeck", [])
    intervals = found["interval_95"]
    for name, truth in {
        "coulomb_torque_nm": 3.0,
        "static_torque_forward_nm": 4.2,
        "static_torque_backward_nm": 4.2,
        "stribeck_velocity_rad_per_s": 0.05,
        "viscosity_nms_per_rad": 2.0,
    }.items():
        low, high = intervals[name]
        assert low <= truth <= high
        assert high - low < 0.1 * truth


def test_the_tables_of_the_page_on_parameters_are_those_that_are_printed(tmp_path):
    page = (ROOT / "docs" / "choosing_parameters.md").read_text(encoding="utf-8")
    said = example("choosing_parameters.py", folder=tmp_path)
    limits = [line.rsplit("|", 3)[0] for line in said.splitlines() if line.startswith("| ")]
    assert len(limits) == 18
    assert [row for row in limits if row not in page] == []


def test_every_example_is_run_here():
    text = Path(__file__).read_text(encoding="utf-8")
    elsewhere = {"threshold_methods.py", "own_trials.py"}  # tests/system/parallel/apps: test_experiment, test_scripting
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - elsewhere
    assert [file for file in sorted(files) if not re.search(f"[\"']{re.escape(file)}", text)] == []


def test_experiment_with_the_staircase_of_psychopy(tmp_path):
    output = example("psychopy_discrimination.py", "--simulate", folder=tmp_path)
    assert output.count("trial ") == 24
    threshold = float(re.search(r"threshold \(70.7 % correct\): ([0-9.]+) N", output)[1])
    assert 0.1 < threshold < 0.8  # the simulated participant has noise of 0.25 N in each interval
    assert output.rstrip().endswith("stopped")


def test_notebook_runs(tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pages = [output["data"].get("text/html", "") for output in outputs if "data" in output]
    assert sum("<svg" in page for page in pages) == 2
    assert any("image/png" in output.get("data", {}) for output in outputs)
