"""Recordings of earlier formats: read as they were written, and computed again to the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from haptics.recording.columns import completed
from haptics.recording.recording import Recording
from haptics.recording.replay import COMPUTED, again, verify
from haptics.records import Status
from tests.recordings import KEPT, of_every_kept_recording


def test_every_kind_of_run_is_kept() -> None:
    assert {path.name for path in KEPT if path.parent.name == "format_2"} == {
        "a_arm",
        "b_fault",
        "c_custom",
        "c_killed",
        "c_sliders",
        "d_arm",
    }


@of_every_kept_recording
def test_rows_are_those_that_were_written(kept: Path) -> None:
    """NumPy reads the table too, and knows nothing of formats."""
    recording = Recording(kept)
    written = np.load(recording.ticks)
    assert recording.metadata["format"] == 2
    assert 300 < len(written) == len(recording.rows)
    for name in written.dtype.names:
        assert recording.rows[name].tobytes() == written[name].tobytes()


@of_every_kept_recording
def test_every_tick_comes_out_with_the_same_bits(kept: Path) -> None:
    recording = Recording(kept)
    found = verify(recording)
    assert (found.ticks, found.mismatches) == (len(recording.rows), 0)
    assert found.verdict == ("incomplete" if kept.name == "c_killed" else "ok")
    computed, recorded = again(recording, recording.rows), completed(recording.rows)
    for name in COMPUTED:
        assert computed[name].tobytes() == recorded[name].tobytes()


@pytest.mark.parametrize("column", ["velocity", "force", "friction_force", "proxy"])
@of_every_kept_recording
def test_a_changed_tick_is_found(kept: Path, column: str) -> None:
    """What comes out is computed, not copied: from the velocity in models B and C, from the force in A and D."""
    recording = Recording(kept)
    rows = np.array(recording.rows)
    changed = int(np.flatnonzero(rows["sticking"] == 0)[100])
    rows[column][changed, 0] += 1e-3
    recording.rows = rows
    unused = "velocity" if recording.metadata["model"] in "AD" else "force"
    first = None if column == unused else rows["tick"][changed]
    assert verify(recording).first_mismatch == first


def test_what_happened_in_them_is_in_them() -> None:
    recordings = {path.name: Recording(path) for path in KEPT if path.parent.name == "format_2"}
    assert set(recordings["c_sliders"].rows["settings_version"]) == {0, 1, 2, 3, 4}
    faulty = recordings["b_fault"].rows
    assert np.flatnonzero(faulty["status"] & Status.NOT_FINITE).tolist() == list(range(250, 270))
    assert recordings["c_custom"].settings[0]["law"]["name"] == "custom"
    assert recordings["c_killed"].ticks.name == "ticks.npy.part"
    assert recordings["a_arm"].metadata["certificate"]["skipped"] == 2
    for recording in recordings.values():
        share = np.count_nonzero(recording.rows["sticking"]) / len(recording.rows)
        assert 0.1 < share < 0.5
