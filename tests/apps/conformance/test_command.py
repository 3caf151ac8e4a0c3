"""The command, its files and its picture."""

import argparse
import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from apps.conformance import suite
from apps.conformance.command import add_options, run
from apps.conformance.suite import METRICS
from haptics.errors import ConfigurationError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "conformance.md"

KEYS = {"element", "grip", "quantisation_um", "rate_hz", "velocity", *(metric.key for metric in METRICS)}


def ask(*arguments):
    parser = argparse.ArgumentParser()
    add_options(parser)
    return run(parser.parse_args(arguments))


def test_one_element_is_judged_in_the_reference_cell():
    answer = ask("--quick", "--element", "A")
    assert answer.status == 0
    found = json.loads(json.dumps(answer.result, allow_nan=False))
    (row,) = found["rows"]
    assert row.keys() >= KEYS
    assert found["verdicts"]["A"]["passed"] is True
    assert found["limits"].keys() == {metric.key for metric in METRICS if metric.is_judged} < row.keys()
    assert found["raw_rows"] == []  # an admittance takes no velocity
    assert found["verdicts"]["A"]["raw"] is None
    assert re.search(r"^A +reference +0 ", answer.text, re.MULTILINE)


def test_raw_velocity_is_judged_beside_the_estimator_as_documented():
    answer = ask("--quick", "--element", "C")
    found = answer.result
    (row,), (raw,) = found["rows"], found["raw_rows"]
    assert (row["velocity"], raw["velocity"]) == ("tracker", "difference")
    assert raw.keys() == row.keys() >= KEYS
    assert [raw[key] for key in ("grip", "quantisation_um", "rate_hz")] == ["light", 20.0, 1000.0]
    assert found["verdicts"]["C"]["passed"] is True
    assert found["verdicts"]["C"]["raw"] == {"passed": False, "failed": ["direction_error_deg_p95", "buzz_n_rms"]}
    assert re.search(r"^C +reference .* pass\n +raw .* FAIL$", answer.text, re.MULTILINE)
    sliding = [row["buzz_sliding_n_rms"], row["buzz_n_rms"], raw["buzz_sliding_n_rms"]]
    costs = [raw["buzz_n_rms"], raw["direction_error_deg_p95"]]
    for pattern, expected in (
        (r"buzz (\d\.\d+) N rms, direction error (\d\.\d+) degrees", costs),
        (r"(\d\.\d+) N rms above 10 Hz for (\d\.\d+), with the plain\s+difference (\d\.\d+)", sliding),
    ):
        stated = re.search(pattern, PAGE.read_text())
        assert [float(number) for number in stated.groups()] == pytest.approx(expected, rel=0.05)


def test_all_cells_are_judged_by_default(monkeypatch):
    """One row replaces the rows of all cells, which are not run."""
    (row,) = ask("--quick", "--element", "A").result["rows"]

    def judge_all(subjects, cells, _):
        places = [(cell.grip.name, cell.quantisation_um, cell.rate) for cell in cells]
        keys = ("grip", "quantisation_um", "rate_hz")
        return [{**row, **dict(zip(keys, place, strict=True))} for _ in subjects for place in places]

    monkeypatch.setattr(suite, "judge_all", judge_all)
    answer = ask("--element", "A")
    conditions = {(row["grip"], row["quantisation_um"], row["rate_hz"]) for row in answer.result["rows"]}
    assert len(answer.result["rows"]) == len(conditions) == 18
    assert re.search(r"^ +worst .* 18 of 18 cells$", answer.text, re.MULTILINE)


def test_result_files_are_written(tmp_path):
    answer = ask("--quick", "--element", "A", "--element", "C", "--out", str(tmp_path / "new" / "folder"))
    files = answer.result["files"]
    assert json.loads(Path(files["json"]).read_text())["rows"] == answer.result["rows"]
    with open(files["csv"], newline="") as file:
        table = list(csv.DictReader(file))
    judged = [(row["element"], row["velocity"]) for row in table]
    assert judged == [("A", "tracker"), ("C", "tracker"), ("C", "difference")]
    assert float(table[1]["buzz_n_rms"]) == answer.result["rows"][1]["buzz_n_rms"]
    assert Path(files["picture"]).read_bytes().startswith(b"\x89PNG")
    assert all(path in answer.text for path in files.values())


def test_command_starts_without_heavy_imports():
    heavy = "('numba', 'numpy', 'matplotlib', 'PySide6')"
    code = f"import sys, apps.conformance.command; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_documentation_states_the_limits():
    text = PAGE.read_text()
    for metric in METRICS:
        line = next(line for line in text.splitlines() if line.startswith(f"| `{metric.key}`"))
        stated = line.rstrip("| ").rsplit("|", 1)[1].split()[0]
        if metric.is_judged:
            assert float(stated) == pytest.approx(metric.limit * metric.scale), line
        else:
            assert stated == "none"


def test_renderers_with_equal_names_are_refused(tmp_path):
    places = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "mine.py"
        file.write_text("def make(period):\n    return lambda position, velocity: (0.0, 0.0)\n")
        places += ["--renderer", f"{file}:make"]
    with pytest.raises(ConfigurationError, match="two renderers are called mine:make"):
        ask("--quick", *places)


def test_unknown_element_is_refused():
    with pytest.raises(ConfigurationError, match="unknown element"):
        ask("--element", "E")
