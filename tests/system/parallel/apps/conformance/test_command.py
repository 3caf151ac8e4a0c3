"""Long computations for the topic of tests/apps/conformance/test_command.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.apps.conformance.test_command import PAGE, ask


def test_every_cell_without_quick() -> None:
    rows = ask("--element", "A").result["rows"]
    conditions = {(row["grip"], row["quantisation_um"], row["rate_hz"]) for row in rows}
    assert len(rows) == len(conditions) == 18


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    """The renderer in the page is judged as the page says; the other example is its use from Python."""
    renderer, use = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path / "my_module.py"
    file.write_text(renderer)
    answer = ask("--quick", "--renderer", f"{file}:make")
    assert [row["element"] for row in answer.result["rows"]] == ["my_module:make"]
    done = subprocess.run(
        [sys.executable, "-c", use],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{PAGE.parents[1]}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) == pytest.approx(answer.result["rows"][0]["hold_drift_um_s"], abs=0.05)
