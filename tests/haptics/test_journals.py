"""The journals and the description of a recording: JSON, whatever somebody wants to have written there."""

from __future__ import annotations

from pathlib import Path

import pytest

from haptics.recording import Recorder, Recording


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
