"""A rehearsal: a simulated observer answers in real time in front of both screens, pages turn by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.experiment.journal import read_journal, sessions_below
from haptics.recording.recording import Recording
from tests.apps.experiment.design.designs import changed
from tests.apps.experiment.engine.live.killed import finish, run
from tests.apps.screen import WHY_NOT, virtual_screen
from tests.system.parallel.apps.experiment.engine.test_live_kills import QUICK

MEASURED = """
[friction]
measure_each_session = true
excitation = { slowest = 0.02, speeds = 2, rounds = 2, strokes = 1, stroke_time = 0.3 }

[texts]
instructions = ["The first page.", "The second page."]
"""


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.timeout(300)
def test_the_own_friction_is_measured_before_the_instructions_and_the_blocks(tmp_path: Path) -> None:
    text = QUICK.replace("most_trials = 30", "most_trials = 2") + MEASURED
    file = changed(tmp_path, text=text.replace("rest = 0.4\n", "rest = 0.4\nstiffness = 2000.0\ndamping = 20.0\n"))
    with virtual_screen() as screen:
        rehearsal = run(screen, file, tmp_path / "out")
        words = finish(rehearsal)
    assert rehearsal.returncode == 0, words
    (place,) = sessions_below(tmp_path / "out")
    records = read_journal(place.journal).records
    order = [one.get("name", one["record"]) for one in records if one["record"] in ("event", "block_start")]
    assert order[:3] == ["own-friction", "instructions", "block_start"]
    assert "own friction was measured" in words
    recording = Recording(place.folder / "friction")
    assert recording.metadata["state"] == "complete"
    assert recording.metadata["real_time"], "the device was moved by a servo process, in real time"
    block = json.loads((place.recording(1) / "recording.json").read_text())
    (told,) = [one for one in records if one.get("name") == "own-friction"]
    assert block["friction_file_hash"] == told["sha256"]
