"""What a report says besides its numbers, without drawing one: methods, timing, percentages, the warning of observers.

Whole reports are in test_report.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apps.cli import main
from apps.experiment.report import page
from apps.experiment.report.analysis import analyse
from apps.experiment.report.sessions import read_experiment
from apps.experiment.report.settings import AnalysisSettings
from apps.experiment.report.words import SIMULATED, methods, timing
from tests.apps.experiment.report.sittings import QUEST, design, write_session

SHORT = design(references=(1.0,), procedure={**QUEST, "trials": 8}, catch={})


def said_of(folder: Path) -> str:
    experiment, settings = read_experiment([folder]), AnalysisSettings()
    return methods(experiment, [analyse(experiment, person, settings) for person in experiment.people], settings)


@pytest.mark.parametrize("simulated", [False, True])
def test_methods_name_what_was_used_and_who_answered(tmp_path: Path, simulated: bool) -> None:
    write_session(tmp_path, tables=SHORT, simulated=simulated)
    words = said_of(tmp_path)
    for part in (
        "law.force [N] of the coulomb law rendered by model C on the device virtual-joystick by haptics 0.1.0",
        "calibration has the SHA-256 abababababababab",
        "no recordings with a certificate",
        "References were 1 N. Levels were chosen by QUEST+ (Watson 2017).",
        f"1 {'simulated observer' if simulated else 'participant'} gave 8 answers",
        "None was excluded.",
        "read off at 75 % correct, without lapses",
    ):
        assert part in words, part
    assert (SIMULATED in words) is simulated


def test_late_ticks_are_counted(tmp_path: Path) -> None:
    recording = write_session(tmp_path, tables=SHORT) / "blocks" / "block-01"
    recording.mkdir(parents=True)
    delays = {"p50": 4.0, "p99": 61.0, "p999": 90.0, "max": 120.0}
    certificate = {"ticks": 64000, "overruns": 4, "period_error_us": delays, "fit": True}
    (recording / "recording.json").write_text(json.dumps({"certificate": certificate}), encoding="utf-8")
    words = " ".join(timing(read_experiment([tmp_path])).split())
    assert "The recording has 64 000 ticks, of which 4 (0.0063 %) were late" in words
    assert "4 µs (median) and 61 µs (99th percentile) late" in words
    assert "It is fit by its limits." in words


def test_the_command_takes_percentages_and_tells_all_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages are not drawn."""
    monkeypatch.setattr(page, "report", lambda *_: "<html></html>")
    write_session(tmp_path, tables=SHORT)
    out = tmp_path / "R.html"
    words = ["experiment", "report", str(tmp_path), "--out", str(out), "--json", "--percent", "71", "--percent", "84"]
    assert main(words) == 0
    assert out.read_text() == "<html></html>"
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    ((condition,),) = [one["conditions"] for one in result["participants"]]
    assert [one["percent"] for one in condition["differences"]] == [71.0, 84.0]
    for one in condition["differences"]:
        assert one["jnd"]["low"] <= one["jnd"]["value"]
    assert result["simulated"] is True and SIMULATED in result["methods"]
    assert [one["percent"] for one in result["group"]["conditions"]] == [71.0, 84.0]
