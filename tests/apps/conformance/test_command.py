"""The command, its files and its picture."""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from apps.conformance import suite
from apps.conformance.cells import REFERENCE, Cell
from apps.conformance.command import add_options, run
from apps.conformance.limits import METRICS
from apps.conformance.picture import draw
from apps.conformance.subjects import Subject, choose
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "conformance.md"

KEYS = {
    "element",
    "grip",
    "quantisation_um",
    "rate_hz",
    "hold_drift_um_s",
    "fluctuation_drift_um",
    "breakaway_error",
    "sliding_error",
    "sliding_std",
    "direction_error_deg_p95",
    "isotropy",
    "buzz_n_rms",
    "buzz_sliding_n_rms",
    "velocity",
}


def ask(*arguments: str) -> Answer:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return run(parser.parse_args(arguments))


def test_one_element_in_the_reference_cell() -> None:
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


def test_what_is_owed_to_the_velocity_estimator_is_beside_the_reference_cell() -> None:
    answer = ask("--quick", "--element", "C")
    found = answer.result
    (row,), (raw,) = found["rows"], found["raw_rows"]
    assert (row["velocity"], raw["velocity"]) == ("tracker", "difference")
    assert raw.keys() == row.keys() >= KEYS
    assert [raw[key] for key in ("grip", "quantisation_um", "rate_hz")] == ["light", 20.0, 1000.0]
    assert found["verdicts"]["C"]["passed"] is True
    assert found["verdicts"]["C"]["raw"] == {
        "passed": False,
        "failed": ["direction_error_deg_p95", "buzz_n_rms"],
    }
    assert re.search(r"^C +reference .* pass\n +raw .* FAIL$", answer.text, re.MULTILINE)


def test_the_page_says_what_the_plain_difference_costs() -> None:
    found = ask("--quick", "--element", "C").result
    (row,), (raw,) = found["rows"], found["raw_rows"]
    said = re.search(r"buzz (\d\.\d+) N rms, direction error (\d\.\d+) degrees", PAGE.read_text())
    assert said is not None
    assert [float(number) for number in said.groups()] == pytest.approx(
        [raw["buzz_n_rms"], raw["direction_error_deg_p95"]], rel=0.05
    )
    said = re.search(
        r"(\d\.\d+) N rms above 10 Hz for (\d\.\d+), with the plain\s+difference (\d\.\d+)", PAGE.read_text()
    )
    assert said is not None
    assert [float(number) for number in said.groups()] == pytest.approx(
        [row["buzz_sliding_n_rms"], row["buzz_n_rms"], raw["buzz_sliding_n_rms"]], rel=0.05
    )


def test_without_quick_all_cells_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without running them: one row is taken for all."""
    (row,) = ask("--quick", "--element", "A").result["rows"]

    def judge_all(subjects: Sequence[Subject], cells: Sequence[Cell], _: object) -> list[dict[str, Any]]:
        places = [(cell.grip.name, cell.quantisation_um, cell.rate) for cell in cells]
        keys = ("grip", "quantisation_um", "rate_hz")
        return [{**row, **dict(zip(keys, place, strict=True))} for _ in subjects for place in places]

    monkeypatch.setattr(suite, "judge_all", judge_all)
    answer = ask("--element", "A")
    conditions = {(row["grip"], row["quantisation_um"], row["rate_hz"]) for row in answer.result["rows"]}
    assert len(answer.result["rows"]) == len(conditions) == 18
    assert re.search(r"^ +worst .* 18 of 18 cells$", answer.text, re.MULTILINE)


def test_files_are_written(tmp_path: Path) -> None:
    answer = ask("--quick", "--element", "A", "--element", "C", "--out", str(tmp_path / "new" / "folder"))
    files = answer.result["files"]
    assert json.loads(Path(files["json"]).read_text())["rows"] == answer.result["rows"]
    with open(files["csv"], newline="") as file:
        table = list(csv.DictReader(file))
    assert [(row["element"], row["velocity"]) for row in table] == [
        ("A", "tracker"),
        ("C", "tracker"),
        ("C", "difference"),
    ]
    assert float(table[1]["buzz_n_rms"]) == answer.result["rows"][1]["buzz_n_rms"]
    assert Path(files["picture"]).read_bytes().startswith(b"\x89PNG")
    assert all(path in answer.text for path in files.values())


@pytest.mark.parametrize("cells", [1, 3])
def test_a_picture_is_drawn_whatever_the_values(tmp_path: Path, cells: int) -> None:
    def row(name: str, value: Any, rate: float) -> dict[str, Any]:
        place = {"element": name, "grip": "light", "quantisation_um": 20.0, "rate_hz": rate, "causality": "admittance"}
        return {**place, **{metric.key: value for metric in METRICS}}

    rates = [REFERENCE.rate + k for k in range(cells)]
    rows = [row("A", 0.0, rate) for rate in rates] + [row("D", None, rate) for rate in rates]
    for raw in ([], [row("D", 1.0, REFERENCE.rate)]):
        assert Path(draw(rows, choose(["A", "D"]), tmp_path, raw)).read_bytes().startswith(b"\x89PNG")


def test_the_command_starts_without_heavy_imports() -> None:
    heavy = "('numba', 'numpy', 'matplotlib', 'PySide6')"
    code = f"import sys, apps.conformance.command; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_documentation_states_the_limits() -> None:
    text = PAGE.read_text()
    for metric in METRICS:
        line = next(line for line in text.splitlines() if line.startswith(f"| `{metric.key}`"))
        stated = line.rstrip("| ").rsplit("|", 1)[1].split()[0]
        if metric.is_judged:
            assert float(stated) == pytest.approx(metric.limit * metric.scale), line
        else:
            assert stated == "none"


def test_two_renderers_of_one_name_are_refused(tmp_path: Path) -> None:
    places = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "mine.py"
        file.write_text("def make(period):\n    return lambda position, velocity: (0.0, 0.0)\n")
        places += ["--renderer", f"{file}:make"]
    with pytest.raises(ConfigurationError, match="two renderers are called mine:make"):
        ask("--quick", *places)


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown element"):
        ask("--element", "E")
