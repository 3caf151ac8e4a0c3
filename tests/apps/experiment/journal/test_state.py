"""What a journal says has happened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from apps.experiment.journal import Journal, replay
from haptics.errors import RecordingError
from tests.apps.experiment.journal.records import HEADER, begin_block, end, place, response, run_trial, start


def test_trials_attempts_and_blocks_are_counted(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        run_trial(journal, 1)
        journal.append("trial_start", **start(2))
        journal.append("trial_end", **end(2, 1, "repeat", "too fast"))
        run_trial(journal, 3)
        journal.append("trial_start", **start(2, 2))
        journal.append("response", **response(2, 2))
        state = replay(journal.records)
    assert list(state.answered) == [1, 3]
    assert (state.repeated, state.attempts_at(2), state.attempts_at(9), state.blocks) == (1, 2, 0, {1: 1})
    assert state.interrupted is not None
    assert (state.interrupted.trial, state.interrupted.number) == (2, 2)
    assert state.interrupted.response is not None


def test_a_session_has_ended_until_it_is_taken_up_again(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        journal.append("end", reason="aborted", trials=0, repeated=0)
        journal.append("note", text="went home", by="experimenter")
        assert replay(journal.records).end is not None
        journal.append("event", name="resumed")
        assert replay(journal.records).end is None


def test_what_is_done_again_counts_no_more(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        run_trial(journal, 1)
        journal.append("event", name="redo", trial=1)
        assert replay(journal.records).answered == {}
        journal.append("trial_start", **start(1, 2))
        journal.append("response", **response(1, 2))
        journal.append("trial_end", **end(1, 2))
        assert replay(journal.records).answered[1].number == 2


def test_the_age_is_that_of_the_last_record(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        state = replay(journal.records)
    assert timedelta(0) <= state.age() < timedelta(minutes=1)
    state.last_utc = "2026-01-01T00:00:00+00:00"
    assert state.age(datetime(2026, 1, 3, tzinfo=UTC)) == timedelta(days=2)
    state.last_utc = "yesterday"
    with pytest.raises(RecordingError, match="no date and time"):
        state.age()


def test_contradictions_name_their_line(tmp_path: Path) -> None:
    def refused(words: str, *entries: tuple[str, dict[str, object]]) -> None:
        number[0] += 1
        with Journal.create(place(tmp_path, f"P{number[0]}"), HEADER) as journal:
            begin_block(journal)
            for kind, fields in entries:
                journal.append(kind, **fields)
            with pytest.raises(RecordingError, match=rf"line {2 + len(entries)}: .*{words}"):
                replay(journal.records)

    number = [0]
    refused("is begun for the 1. time", ("trial_start", start(1, 2)))
    refused("which was not begun", ("trial_start", start(1, block=2)))
    refused("not being run", ("response", response(1)))
    refused("not being run", ("trial_start", start(1)), ("trial_end", end(2)))
    refused("answered twice", ("trial_start", start(1)), ("response", response(1)), ("response", response(1)))
    refused("counts", ("trial_start", start(1)), ("trial_end", end(1)), ("trial_start", start(1, 2)))
    refused("begun for the 2. time", ("block_start", {"block": 1, "conditions": [], "recording": None, "attempt": 1}))


def test_an_empty_journal_says_nothing() -> None:
    with pytest.raises(RecordingError, match="empty"):
        replay([])
