"""A session without a clock in this process is the session that a servo process runs, tick by tick."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from apps.session.application import Application
from apps.session.offline import record_offline
from apps.settings.config import complete
from apps.verification import examine
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.checks import OK
from haptics.recording.recording import Recording


def tables(folder: Path, **session: object) -> dict[str, dict[str, object]]:
    usual = {"model": "C", "duration": 0.5, "clock": "off", "record": str(folder), "picture": False}
    return {"session": {**usual, **session}, "device": {"name": "virtual-joystick"}}


def test_it_has_the_ticks_of_a_session_in_a_process_of_its_own(tmp_path: Path) -> None:
    own = record_offline(complete(tables(tmp_path)), tmp_path / "own")
    outcome = Application(tables(tmp_path / "there"), tell=lambda line: None).run()
    other = Recording(Path(outcome.summary["recording"]))
    assert len(own.rows) == len(other.rows) == 500
    for name in ("tick", "position", "velocity", "command", "friction_force", "hand_force", "status"):
        np.testing.assert_array_equal(own.rows[name], other.rows[name])
    found = examine(own)
    assert (found.mismatches, found.verdict) == (0, OK)


def test_the_wall_clock_and_no_end_are_refused(tmp_path: Path) -> None:
    for config in (complete(tables(tmp_path, clock="wall")), complete(tables(tmp_path, clock="wall", duration=None))):
        with pytest.raises(ConfigurationError, match="must be 'off'"):
            record_offline(config, tmp_path / "own")
    assert list(tmp_path.iterdir()) == []


def test_a_fault_is_raised_once_the_recording_says_so(tmp_path: Path) -> None:
    with pytest.raises(DeviceFault):
        record_offline(complete(tables(tmp_path, faults=["read-error@0.2"])), tmp_path / "own")
    recording = Recording(tmp_path / "own")
    assert 150 < len(recording.rows) < 250
    assert recording.metadata["reason"] == "fault"
