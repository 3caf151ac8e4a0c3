"""A session that is killed at any moment is taken up again, and its journal comes out as that of one that was not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from apps.experiment.journal import SessionFolder, read_journal, replay, sessions_below
from haptics.recording.recording import Recording
from tests.apps.experiment.design.designs import WEBER, changed
from tests.processes import ROOT

STAMPS = ("number", "utc", "monotonic_ns")


def told(place: SessionFolder) -> list[dict[str, Any]]:
    """Return what a journal says, without stamps, kills and what they had interrupted."""
    records = read_journal(place.journal).records
    ended = {(one.trial, one.number): one for one in replay(records).attempts if one.end is not None}
    kept = []
    for record in records:
        key = record.get("trial"), record.get("attempt")
        interrupted = record["record"] in ("trial_start", "response", "trial_end") and key not in ended
        if interrupted or record["record"] == "block_start" or record.get("name") == "resumed":
            continue
        kept.append({name: value for name, value in record.items() if name not in (*STAMPS, "attempt", "markers")})
    return kept


def run_killed(folder: Path, kills: int, seed: int) -> int:
    file = changed(folder, "most_trials = 4", "most_trials = 30", WEBER.replace("{ most_trials = 3 }", "{}"))
    command = [
        sys.executable,
        "-m",
        "tests.apps.experiment.engine.killed",
        str(file),
        str(folder),
        str(kills),
        str(seed),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def compare(folder: Path) -> None:
    (whole,), (cut,) = sessions_below(folder / "whole"), sessions_below(folder / "cut")
    expected, found = told(whole), told(cut)
    assert found[1:] == expected[1:]
    state = replay(read_journal(cut.journal).records)
    for one in state.answered.values():
        assert one.recording is not None
        found = set(np.unique(Recording(cut.folder / one.recording).rows["marker"]).tolist())
        assert found >= set(one.start["markers"]), "what was answered is in the recording, too"
    for one in state.attempts:
        assert one.end is not None or one.response is None, "an answered trial was lost"
        assert one.end is not None or state.attempts_at(one.trial) > one.number, "an interrupted trial was not repeated"


def test_a_killed_session_comes_out_as_one_that_was_not(tmp_path: Path) -> None:
    met = run_killed(tmp_path, 3, 1)
    assert met >= 2
    compare(tmp_path)


def test_thirty_kills(tmp_path: Path) -> None:
    met = run_killed(tmp_path, 30, 2)
    assert met >= 20
    compare(tmp_path)
