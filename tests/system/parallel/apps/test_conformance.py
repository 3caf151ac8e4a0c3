"""Conformance: the example of the documentation, the order of rows, an exact element, and pictures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from apps.cli import main
from apps.conformance.cells import CELLS, REFERENCE
from apps.conformance.report import by_element, draw
from apps.conformance.subjects import RendererSubject, choose
from apps.conformance.suite import METRICS, judge_all, passes, run_cell
from tests.processes import ROOT
from tests.system.parallel.commands import run_python


def test_examples_of_the_page_are_judged_by_the_command_and_from_python(tmp_path, capsys):
    renderer, use = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "conformance.md").read_text(), re.DOTALL)
    file = tmp_path / "my_module.py"
    file.write_text(renderer)
    assert main(["conformance", "--quick", "--renderer", f"{file}:make", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["element"] == "my_module:make"
    done = run_python("-c", use, folder=tmp_path, path=f"{tmp_path}:{ROOT}")
    assert float(done.stdout.split()[0]) == pytest.approx(row["hold_drift_um_s"], abs=0.05)


def viscous(_):
    return lambda _, velocity: -20.0 * velocity


def test_rows_are_in_the_order_of_renderers_and_cells():
    subjects = [RendererSubject("one", viscous), RendererSubject("two", viscous)]
    some = (CELLS[9], CELLS[0])
    seen: list[tuple[int, int]] = []
    rows = judge_all(subjects, some, lambda done, total, _: seen.append((done, total)))
    order = [("one", "firm"), ("one", "light"), ("two", "firm"), ("two", "light")]
    assert [(row["element"], row["grip"]) for row in rows] == order
    assert seen == [(k, 4) for k in range(4)]
    assert list(by_element(rows)) == ["one", "two"]


def test_rigid_admittance_does_not_move():
    (subject,) = choose(["A"])
    for cell in (REFERENCE, CELLS[0], CELLS[-1]):
        row = run_cell(subject, cell)
        assert row["hold_drift_um_s"] == 0.0
        assert row["fluctuation_drift_um"] == 0.0
    assert passes(run_cell(subject, REFERENCE))


@pytest.mark.parametrize("cells", [1, 3])
def test_picture_is_drawn_for_any_values(tmp_path, cells):
    def row(name, value, rate):
        place = {"element": name, "grip": "light", "quantisation_um": 20.0, "rate_hz": rate, "causality": "admittance"}
        return {**place, **{metric.key: value for metric in METRICS}}

    rates = [REFERENCE.rate + k for k in range(cells)]
    rows = [row("A", 0.0, rate) for rate in rates] + [row("D", None, rate) for rate in rates]
    for raw in ([], [row("D", 1.0, REFERENCE.rate)]):
        assert Path(draw(rows, choose(["A", "D"]), tmp_path, raw)).read_bytes().startswith(b"\x89PNG")
