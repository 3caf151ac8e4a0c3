"""Observers in whole sessions, with the journal as the judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.experiment.design import read_design
from apps.experiment.engine.opening import Request
from apps.experiment.engine.running import run_session
from apps.experiment.journal import Journal
from tests.apps.experiment.design.designs import WEBER, changed

ONE_CONDITION = WEBER.replace('[[conditions]]\nname = "2 N"\nreference = 2.0\nprocedure = { most_trials = 3 }\n', "")
PROCEDURE = ONE_CONDITION[ONE_CONDITION.index("[procedure]") : ONE_CONDITION.index("[catch]")]


def session(folder: Path, level: float, observer: str) -> list[dict[str, Any]]:
    """Return the responses of a session with 16 trials at one level on 1 N."""
    procedure = (
        f'[procedure]\nkind = "series"\nlevel = {level}\ntrials = 16\n\n[observer]\n{observer}\nspread = 0.0\n\n'
    )
    file = changed(folder, PROCEDURE, procedure, ONE_CONDITION.replace("easy = 0.2", "easy = 0.0"))
    result = run_session(read_design(file), Request("P01", 1, 7, folder / "out", {}, simulated=True))
    records = Journal.read(Path(result["folder"]))
    return [record for record in records if record["record"] == "response"]


def test_one_that_feels_cannot_tell_what_is_not_there(tmp_path: Path) -> None:
    responses = session(tmp_path, 1e-6, "level = 2\nlapse = 0.0")
    assert 3 <= sum(response["correct"] for response in responses) <= 13
