"""State of a session from its journal: recordings of an attempt; and slots when all are taken."""

import pytest

from apps.experiment.journal import folder
from apps.experiment.journal.folder import reserve_slot
from apps.experiment.journal.journal import Attempt, SessionState
from haptics.errors import ConfigurationError
from tests.apps.experiment.journal.records import HEADER, start


def test_attempt_may_be_in_the_recordings_of_its_block_from_its_start_on():
    starts = [(1, "a"), (1, None), (2, "b"), (1, "c"), (1, "d")]
    state = SessionState(HEADER, block_starts=[{"block": block, "recording": name} for block, name in starts])

    def found(block, recording):
        return state.recordings_of(Attempt(start(1, block=block), recording=recording))

    assert found(1, "a") == ["a", "c", "d"]
    assert found(1, "c") == ["c", "d"]
    assert found(2, "b") == ["b"]
    assert found(1, None) == found(2, "a") == []


def test_participant_without_a_free_slot_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "MOST_SLOTS", 2)
    assert [reserve_slot(tmp_path, "friction", code) for code in ("P1", "P2", "P1")] == [0, 1, 0]
    with pytest.raises(ConfigurationError, match="all 2 places are taken"):
        reserve_slot(tmp_path, "friction", "P3")
    assert sorted(path.name for path in (tmp_path / "slots" / "task-friction").iterdir()) == ["slot-0000", "slot-0001"]
