"""Long computations for the topic of tests/apps/experiment/power/test_threshold_methods.py."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import pytest

from tests.apps.experiment.power.test_threshold_methods import study  # noqa: F401


def test_no_method_beats_the_bound_and_one_that_knows_the_rest_comes_near(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "study.png"
    monkeypatch.setattr("sys.argv", ["threshold_methods", "--people=40", f"--picture={picture}"])
    study.main()
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    longest = {row[1]: [float(one) for one in row[2].split(" ± ")] for row in rows[1:] if row[0] == "80"}
    (floor,) = longest.pop(study.FLOOR)
    assert floor == pytest.approx(study.best(0.02)[1] / math.sqrt(80), abs=6e-4)
    for scatter, error in longest.values():
        assert scatter > floor - 3.0 * error
    assert longest["QUEST+ that knows slope and lapses"][0] < 1.25 * floor
    power = {row[0]: [float(one.split(" ± ")[0]) for one in row[1:-1]] for row in rows if len(row) == 11}
    assert all(powers[-1] > powers[0] for powers in power.values())
    assert power[study.FLOOR][4] > power["2-down/1-up"][4]
    assert picture.stat().st_size > 10_000
