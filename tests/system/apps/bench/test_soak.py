from __future__ import annotations

import json
import multiprocessing
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apps import cli
from apps.bench.live import soak
from apps.bench.outcome import Outcome
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.recording.replay import Verification

PASSED: dict[str, Any] = {
    "ticks": 3_599_990,
    "skipped": 11,
    "expected_ticks": 3_600_000,
    "lost_ticks": 0,
    "memory": {"application": {"growth_kib": 100}, "servo": {"samples": 1}},
    "replay": {"ticks": 3_599_990, "mismatches": 0, "error": None},
}


def test_a_deadline_more_or_less_is_no_failure() -> None:
    assert soak.failures(PASSED) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"skipped": 12}, "3600002 deadlines"),
        ({"skipped": 8}, "3599998 deadlines"),
        ({"lost_ticks": 2}, "2 ticks are missing"),
        ({"end_s": 0.41}, "complete 0.41 s after its last tick"),
        ({"memory": {"servo": {"growth_kib": 9000}}}, "the servo has 9000 KiB more"),
        ({"replay": {"ticks": 3_599_990, "mismatches": 1, "error": None}}, "1 of 3599990 ticks differ"),
        ({"replay": {"ticks": 5, "mismatches": 0, "error": None}}, "0 of 5 ticks"),
        ({"replay": {"ticks": 0, "mismatches": 0, "error": "it has lost ticks."}}, "it has lost ticks."),
    ],
)
def test_everything_else_is_a_failure(change: dict[str, Any], sentence: str) -> None:
    (found,) = soak.failures({**PASSED, **change})
    assert sentence in found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(soak, "LONGEST_END", 60.0)  # a busy machine is no failure of these tests
    (tmp_path / "temporary").mkdir()
    return tmp_path / "temporary"


def test_two_seconds_of_it(compiled: None, temporary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "kept"
    assert cli.main(["bench", "soak", "--duration", "2", "--record", str(record), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert abs(result["ticks"] + result["skipped"] - 2000) <= 1 and result["lost_ticks"] == 0
    assert result["replay"] == {"ticks": result["ticks"], "mismatches": 0, "error": None}
    assert result["failures"] == [] and result["device"] == "virtual-joystick"
    assert all(memory["samples"] > 1 and memory["first_kib"] > 1000 for memory in result["memory"].values())
    recording = Recording(Path(result["recording"]))
    assert recording.folder.parent == record and len(recording.rows) == result["ticks"]
    assert result["recording_bytes"] > recording.rows.nbytes
    assert not list(temporary.iterdir()) and not multiprocessing.active_children()


def test_the_recording_of_a_run_that_failed_is_kept_only_then(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def examined(mismatches: int) -> Outcome:
        monkeypatch.setattr(soak, "verify", lambda recording: Verification(len(recording.rows), mismatches, None))
        return soak.run(lambda share, words: None, duration=1.0, rate=500.0)

    passed = examined(0)
    assert passed.error == "" and passed.result["recording"] is None and not list(temporary.iterdir())
    assert "not kept" in passed.text
    failed = examined(7)
    assert "7 of" in failed.error and Recording(Path(failed.result["recording"])).metadata["state"] == "complete"


def test_without_room_for_the_recording_nothing_is_begun(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**6))
    with pytest.raises(ConfigurationError, match=r"no room in .* for a recording of 1077 MB"):
        soak.run(lambda share, words: None)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("wrong", [{"duration": 0.5}, {"rate": 9000.0}])
def test_values_that_are_not_allowed_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=rf"bench soak\.{next(iter(wrong))} = "):
        soak.run(lambda share, words: None, **wrong)
