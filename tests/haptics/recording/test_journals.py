"""The journals and the description of a recording: JSON, whatever somebody wants to have written there."""

from __future__ import annotations

from pathlib import Path

import pytest

from haptics.errors import RecordingError
from haptics.recording.checks import check_recording
from haptics.recording.json_files import LARGEST_JSON
from haptics.recording.recorder import Recorder
from haptics.recording.recording import EVENTS, Recording


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_json_is_written_into_no_file(tmp_path: Path, bad: float) -> None:
    """It would be read as damage, and the whole recording refused."""
    recorder = Recorder(tmp_path / "run", {})
    recorder.journal_settings(0, {"model": "C"})
    before = {path.name: path.read_bytes() for path in recorder.folder.iterdir()}
    with pytest.raises(ValueError, match="JSON"):
        recorder.journal_settings(1, {"law": {"force": bad}})
    with pytest.raises(ValueError, match="JSON"):
        recorder.note(fit=bad)
    assert {path.name: path.read_bytes() for path in recorder.folder.iterdir()} == before
    assert Recording(recorder.folder).settings == [{"version": 0, "model": "C"}]
    recorder.close({"reason": "completed"}, complete=True)
    assert Recording(recorder.folder).metadata["reason"] == "completed"


def recorded(folder: Path) -> Recorder:
    """Return a closed recording with two events."""
    recorder = Recorder(folder, {})
    recorder.journal_event("key", name="f", down=True, tick=3, monotonic_ns=5)
    recorder.journal_event("stopped", ticks=0)
    recorder.close({"reason": "stopped"}, complete=True)
    return recorder


def test_events_are_read_in_order_and_there_may_be_none(tmp_path: Path) -> None:
    recorder = recorded(tmp_path / "run")
    key = {"event": "key", "name": "f", "down": True, "tick": 3, "monotonic_ns": 5}
    assert Recording(recorder.folder).events == [key, {"event": "stopped", "ticks": 0}]
    with open(recorder.folder / EVENTS, "a") as file:
        file.write('{"event": "cut sh')
    assert len(Recording(recorder.folder).events) == 2
    (recorder.folder / EVENTS).unlink()
    assert Recording(recorder.folder).events == []


@pytest.mark.parametrize(
    "damage",
    [b"{\n", b"[]\n", b"3\n", b'{"tick": NaN}\n', b"\xff\xfe\n", b"[" * 200_000 + b"\n", b'"' + b"\x00" * 50 + b"\n"],
)
def test_damaged_events_are_refused_in_a_sentence_and_harm_nothing_else(tmp_path: Path, damage: bytes) -> None:
    recorder = recorded(tmp_path / "run")
    sound = list(check_recording(Recording(recorder.folder)))
    (recorder.folder / EVENTS).write_bytes(damage)
    recording = Recording(recorder.folder)
    with pytest.raises(RecordingError, match=r"events\.jsonl"):
        _ = recording.events
    assert [finding.rule for finding in check_recording(recording)] == [finding.rule for finding in sound]


def test_a_file_of_events_without_an_end_is_not_read(tmp_path: Path) -> None:
    recorder = recorded(tmp_path / "run")
    with open(recorder.folder / EVENTS, "r+b") as file:
        file.truncate(LARGEST_JSON + 1)
    with pytest.raises(RecordingError, match="too large"):
        _ = Recording(recorder.folder).events
