"""A data set of BIDS: judged by its own validator where that is installed, and by the rules written here anyway."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from apps.cli import main
from tests.apps.experiment.exports.sessions import plain_session, recorded_session, rows_of

_ENTITIES = r"sub-[A-Za-z0-9]+_ses-[A-Za-z0-9]+_task-[A-Za-z0-9]+"
_NAMES = (
    r"dataset_description\.json|README\.md|participants\.(tsv|json)|\.haptics-export\.json",
    r"(sub-[A-Za-z0-9]+)/(ses-[A-Za-z0-9]+)/\1_\2_scans\.tsv",
    rf"(sub-[A-Za-z0-9]+)/(ses-[A-Za-z0-9]+)/beh/(?=\1_\2_){_ENTITIES}_beh\.(tsv|json)",
    rf"(sub-[A-Za-z0-9]+)/(ses-[A-Za-z0-9]+)/motion/(?=\1_\2_){_ENTITIES}_tracksys-[A-Za-z0-9]+_run-[0-9]+"
    r"_(motion\.(tsv|json)|channels\.tsv)",
)
_UNITS = {"POS": "m", "VEL": "m/s", "LATENCY": "s"}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    plain_session(tmp_path / "data")
    recorded_session(tmp_path / "data")
    out = tmp_path / "bids"
    assert main(["experiment", "export", str(tmp_path / "data"), "--to", "bids", "--out", str(out)]) == 0
    return out


def table(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    cells = [line.split("\t") for line in lines]
    assert len({len(row) for row in cells}) == 1, path
    assert all(cell for row in cells for cell in row), f"{path}: an empty cell must be n/a"
    return cells


def test_every_file_has_a_name_of_bids(dataset: Path) -> None:
    names = [path.relative_to(dataset).as_posix() for path in dataset.rglob("*") if path.is_file()]
    assert [name for name in names if not any(re.fullmatch(pattern, name) for pattern in _NAMES)] == []
    assert sum(name.endswith("_motion.tsv") for name in names) == 2
    told = json.loads((dataset / "dataset_description.json").read_text())
    assert told["Name"] == "friction"
    assert told["BIDSVersion"].startswith("1.10")
    participants = table(dataset / "participants.tsv")
    assert participants[0][0] == "participant_id"
    assert [row[0] for row in participants[1:]] == sorted(path.name for path in dataset.glob("sub-*"))
    assert set(json.loads((dataset / "participants.json").read_text())) == set(participants[0][1:])


def test_tables_of_trials_are_described_and_name_their_recordings(dataset: Path) -> None:
    for path in dataset.rglob("*_beh.tsv"):
        header, *rows = table(path)
        assert set(header) <= set(json.loads(path.with_suffix(".json").read_text()))
        assert len(rows) == 8
        for name in {row[header.index("recording")] for row in rows} - {"n/a"}:
            assert (path.parents[1] / name).is_file()


def test_motion_is_described_channel_by_channel(dataset: Path) -> None:
    for seed, path in enumerate(sorted(dataset.rglob("*_motion.tsv")), 1):
        rows = rows_of(seed)
        header, *channels = table(path.with_name(path.name.replace("_motion.tsv", "_channels.tsv")))
        assert header == ["name", "component", "type", "tracked_point", "units"]
        by_name = {name: (component, kind, point, units) for name, component, kind, point, units in channels}
        assert len(by_name) == len(channels)
        for component, kind, _, units in by_name.values():
            assert component in ("x", "y", "n/a")
            assert _UNITS.get(kind, units) == units
        values = table(path)
        assert len(values) == len(rows)
        assert len(values[0]) == len(channels)
        names = list(by_name)
        for axis, name in enumerate(("position_x", "position_y")):
            found = [float(row[names.index(name)]) for row in values]
            assert found == rows["position"][:, axis].tolist()
        assert by_name["force_x"] == ("x", "MISC", "handle", "N")
        assert [values[7][names.index(f"force_{axis}")] for axis in "xy"] == ["n/a", "n/a"]
        assert "hand_force_x" not in by_name  # nobody knows it
        latency = [float(row[names.index("latency")]) for row in values]
        assert np.allclose(np.diff(latency), np.diff(rows["time"] + rows["period_error"]), atol=1e-12)
        told = json.loads(path.with_suffix(".json").read_text())
        kinds = [kind for _, kind, _, _ in by_name.values()]
        assert all(told[f"{kind}ChannelCount"] == kinds.count(kind) for kind in set(kinds))
        assert told["MotionChannelCount"] == len(channels)
        assert told["SamplingFrequency"] == 1000.0
        assert np.isclose(told["RecordingDuration"], rows["time"][-1] - rows["time"][0], atol=0.01)


def test_scans_say_when_a_recording_began(dataset: Path) -> None:
    (path,) = dataset.rglob("*_scans.tsv")
    header, *rows = table(path)
    assert header == ["filename", "acq_time"]
    for name, instant in rows:
        assert (path.parent / name).is_file()
        assert re.fullmatch(r"2026-09-\d\dT\d\d:\d\d:\d\d\.123456Z", instant)


_VALIDATOR = shutil.which("bids-validator-deno")


@pytest.mark.skipif(_VALIDATOR is None, reason="bids-validator-deno is not installed (pip install bids-validator-deno)")
def test_the_validator_of_bids_finds_no_error(dataset: Path) -> None:
    done = subprocess.run(
        [str(_VALIDATOR), "--format", "json", "--max-rows", "-1", str(dataset)],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    issues = json.loads(done.stdout)["issues"]["issues"]
    assert [issue for issue in issues if issue["severity"] == "error"] == []
    assert done.returncode == 0
