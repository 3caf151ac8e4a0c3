"""The shipped studies, shortened, from the experiment file to the report in one command."""

from __future__ import annotations

import json
import shutil

import pytest

from apps.cli import main
from apps.experiment.journal import sessions_below, trial_rows
from tests.processes import ROOT

STUDIES = ROOT / "examples/studies"


@pytest.mark.parametrize(
    ("name", "shorter", "result"),
    [
        (
            "friction_change",
            {"most_trials = 90": "most_trials = 10", "window = 6\ncorrect = 5": "window = 2\ncorrect = 1"},
            "to 2 N: Weber fraction at 75 % correct",
        ),
        ("grating_roughness", {"repeats = 10": "repeats = 1"}, "exponent of the estimates -"),
        (
            "texture_force",
            {"trials = 60\nleast_trials = 60": "trials = 8\nleast_trials = 8", "window = 6\ncorrect = 5": "window = 0"},
            "strong: Weber fraction at 75 % correct",
        ),
    ],
    ids=["friction_change", "grating_roughness", "texture_force"],
)
def test_study_runs_from_start_to_report(name, shorter, result, tmp_path, capsys):
    folder = tmp_path / name
    shutil.copytree(STUDIES / name, folder)
    file = folder / "study.toml"
    text = file.read_text(encoding="utf-8")
    for old, new in shorter.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text.replace('language = "en"', 'language = "de"'), encoding="utf-8")
    out, page = tmp_path / "out", tmp_path / "report.html"
    options = ["--observer", "simulated", "--participants", "1", "--out", str(out), "--report", str(page)]
    assert main(["experiment", "run", str(file), *options]) == 0
    assert result in capsys.readouterr().out and name.replace("_", "-") in page.read_text(encoding="utf-8")
    (place,) = sessions_below(out)
    assert all(row["delivered_exact"] for row in trial_rows(place))
    events = [json.loads(line) for line in place.journal.read_text(encoding="utf-8").splitlines()]
    assert {"consent", "form-completed"} <= {one.get("name") for one in events}
