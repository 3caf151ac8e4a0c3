"""The device's own friction, measured before the first block of every session, kept, compared and compensated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.experiment.design import read_design
from apps.experiment.engine.running import resume_session
from apps.experiment.friction.changes import changes
from apps.experiment.friction.measuring import require_known
from apps.experiment.journal import SessionFolder, read_journal, trial_rows
from apps.experiment.stimulus import measure
from calibration.parameters.files import read_parameter_file
from haptics.errors import ConfigurationError, DeviceFault, RecordingError
from tests.apps.experiment.design.designs import WEBER, changed
from tests.apps.experiment.engine.running import simulate

EARLIER = """\
[provenance]
device = "virtual-joystick"
[joint.x]
rotary = false
[joint.x.friction]
model = "coulomb-viscous"
coulomb_force_n = 0.25
viscosity_ns_per_m = 1.0
[joint.x.friction.interval_95]
coulomb_force_n = [0.24, 0.26]
viscosity_ns_per_m = [0.9, 1.1]
[joint.y]
rotary = false
[joint.y.friction]
model = "coulomb-viscous"
coulomb_force_n = 0.4
viscosity_ns_per_m = 1.0
[joint.y.friction.interval_95]
coulomb_force_n = [0.38, 0.42]
viscosity_ns_per_m = [0.9, 1.1]
"""
LEVELS = "{ coulomb_forward = 0.4, coulomb_backward = 0.4 }"
DEVICE = f"""\
name = "virtual-joystick"
friction_parameters = "earlier.toml"
compensation = 0.95
friction = {{ x = {LEVELS}, y = {LEVELS} }}
"""
SHORT = """\
[friction]
measure_each_session = true
excitation = { slowest = 0.01, speeds = 3, rounds = 2, strokes = 1 }

"""


def design_in(folder: Path, device: str = DEVICE) -> Path:
    (folder / "earlier.toml").write_text(EARLIER, encoding="utf-8")
    text = WEBER.replace('name = "virtual-joystick"\n', device).replace("[stimulus]", f"{SHORT}[stimulus]")
    return changed(folder, "[hand]", "[hand]\nstiffness = 2000.0\ndamping = 20.0\ntremor = 0.0", text)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> SessionFolder:
    folder = tmp_path_factory.mktemp("measured")
    result, place = simulate(design_in(folder), folder / "out")
    assert result["reason"] == "completed"
    return place


def event(place: SessionFolder) -> dict[str, Any]:
    (found,) = [one for one in read_journal(place.journal).records if one.get("name") == "own-friction"]
    return dict(found)


def test_a_change_beyond_its_interval_is_told_and_the_other_axis_is_not(session: SessionFolder) -> None:
    told = event(session)
    beyond = {(one["axis"], one["name"]) for one in told["changes"] if one["beyond"]}
    assert beyond == {("x", "coulomb")}
    assert "coulomb of x is 0.4 N and was 0.25 N" in told["words"] and "of y" not in told["words"]


def test_what_was_measured_is_compensated_and_not_the_earlier_file(session: SessionFolder) -> None:
    block = json.loads((session.recording(1) / "recording.json").read_text())
    assert block["friction_file_hash"] == event(session)["sha256"]
    rows = trial_rows(session, measure)
    off = [abs(row[f"felt_{k}"] / row[f"asked_{k}"] - 1.0) for row in rows for k in (1, 2)]
    assert max(off) < 0.02, "with the earlier file, 0.15 N too little, it is more than 5 %"


def test_felt_by_the_model_goes_by_the_file_in_the_session_folder(session: SessionFolder) -> None:
    block = session.recording(1)
    (block / "stimulus.json").unlink(missing_ok=True)
    ticks = np.load(block / "ticks.npy", mmap_mode="r+")
    kept, ticks["hand_force"] = np.array(ticks["hand_force"]), np.nan
    ticks.flush()
    (start, *_) = [one for one in read_journal(session.journal).records if one["record"] == "trial_start"]
    found = measure(block, start)
    ticks["hand_force"] = kept
    ticks.flush()
    (block / "stimulus.json").unlink(missing_ok=True)
    assert found["felt_source"] == "model"
    assert found["felt_1"] == pytest.approx(start["values"][0], rel=0.02)
    assert found["felt_low_1"] < start["values"][0] < found["felt_high_1"]


def test_a_session_that_was_killed_goes_on_with_what_it_has_measured(session: SessionFolder, tmp_path: Path) -> None:
    _, place = simulate(design_in(tmp_path), tmp_path / "out")
    whole = read_journal(place.journal).records
    lines = place.journal.read_text().splitlines(keepends=True)
    place.journal.write_text("".join(lines[:9]))
    resume_session(place.folder)
    again = [one for one in read_journal(place.journal).records if one["record"] != "block_start"]
    assert sum(one.get("name") == "own-friction" for one in again) == 1, "it was not measured a second time"
    trials = ("trial_start", "response", "trial_end")
    own = ("utc", "monotonic_ns", "number")
    told, expected = (
        [{k: v for k, v in one.items() if k not in own} for one in records if one["record"] in trials]
        for records in (again, whole)
    )
    assert told == expected
    place.journal.write_text("".join(lines[:9]))
    (place.folder / "own_friction.toml").write_text(EARLIER)
    with pytest.raises(RecordingError, match="was changed"):
        resume_session(place.folder)


def test_without_measuring_the_file_that_was_used_is_kept(tmp_path: Path) -> None:
    file = design_in(tmp_path)
    file.write_text(file.read_text().replace(SHORT, ""))
    _, place = simulate(file, tmp_path / "out")
    assert (place.folder / "own_friction.toml").read_text() == EARLIER


def test_a_device_whose_friction_cannot_be_measured_is_refused_with_the_line(tmp_path: Path) -> None:
    file = design_in(tmp_path)
    text = file.read_text().replace("slowest = 0.01", "slowest = 0.9, fastest = 1.9")
    file.write_text(text)
    line = text[: text.index("measure_each_session")].count("\n") + 1
    with pytest.raises(ConfigurationError, match=rf"weber\.toml:{line}: .*measure_each_session.*0\.9"):
        read_design(file)


def test_a_friction_that_was_not_found_is_not_compensated(tmp_path: Path) -> None:
    (tmp_path / "wide.toml").write_text(EARLIER.replace("[0.38, 0.42]", "[-22.0, 22.8]"))
    joints = read_parameter_file(tmp_path / "wide.toml").joints
    with pytest.raises(DeviceFault, match=r"along y was not found: it may be another by 22 N.*Resume the session"):
        require_known(joints, tmp_path)
    require_known(joints[:1], tmp_path)


def test_measurements_without_intervals_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(EARLIER)
    bare = "\n".join(line for line in EARLIER.splitlines() if "interval_95" not in line and "[0." not in line)
    (tmp_path / "b.toml").write_text(bare)
    both = read_parameter_file(tmp_path / "a.toml")
    assert not changes(read_parameter_file(tmp_path / "b.toml"), both)
    assert not any(one.beyond for one in changes(both, both)) and len(changes(both, both)) == 4
