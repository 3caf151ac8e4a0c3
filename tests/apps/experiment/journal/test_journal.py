"""The journal: what it has taken is kept, whatever happens to the process or the disk."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.experiment.journal import Journal, JournalFault, read_journal, replay
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.journal.records import HEADER, begin_block, place, run_trial
from tests.processes import ROOT

STAMPS = ("utc", "monotonic_ns")


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER, {"room": "B12"}) as journal:
        begin_block(journal)
        run_trial(journal, 1)
        journal.append("event", name="criterion", correct=5, of=6)
        journal.append("note", text='said "rough",\n\tthen frowned: äöü 摩擦', by="experimenter")
        journal.append("end", reason="complete", trials=1, repeated=0)
    records = Journal.read(journal.place.folder)
    assert records == journal.records
    assert [one["number"] for one in records] == list(range(8))
    assert records[0]["participant"] == "P01"
    assert records[0]["slot"] is None
    assert records[6]["text"].endswith("摩擦")
    sidecar = json.loads(journal.place.sidecar.read_text(encoding="utf-8"))
    assert sidecar["room"] == "B12"
    assert sidecar["design"] == HEADER["design"]


def test_the_names_are_those_of_bids(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path, session=3), HEADER) as journal:
        pass
    assert journal.place.journal == tmp_path / "sub-P01" / "ses-03" / "sub-P01_ses-03_task-friction_journal.jsonl"
    assert sorted(path.name for path in journal.place.folder.iterdir()) == [
        ".lock",
        "session.json",
        journal.place.journal.name,
    ]


def test_one_writes_at_a_time_and_a_session_is_begun_once(tmp_path: Path) -> None:
    where = place(tmp_path)
    with Journal.create(where, HEADER):
        with pytest.raises(ConfigurationError, match=rf"written by process {os.getpid()} on "):
            Journal.open(where)
    with pytest.raises(ConfigurationError, match="has a journal: resume"):
        Journal.create(where, HEADER)
    with Journal.open(where) as journal:
        assert len(journal.records) == 1


def test_a_session_that_is_opened_again_goes_on_with_the_next_number(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
    with Journal.open(journal.place) as again:
        assert again.append("event", name="resumed")["number"] == 2
    assert len(read_journal(again.place.journal).records) == 3


@pytest.mark.parametrize("fields", [{"text": float("nan"), "by": "x"}, {"text": "a"}, {"text": "a", "by": "b", "c": 1}])
def test_a_record_that_is_none_is_a_mistake_of_the_program_and_writes_nothing(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        before = journal.place.journal.read_bytes()
        with pytest.raises(ValueError, match="note"):
            journal.append("note", **fields)
        with pytest.raises(ValueError, match="event"):
            journal.append("event", name="x", number=3)
        with pytest.raises(ValueError, match="finite"):
            journal.append("event", name="x", deep=[{"inside": float("inf")}])
        assert journal.place.journal.read_bytes() == before
        assert journal.append("note", text="a", by="b")["number"] == 1


def test_nothing_personal_gets_in(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="looks like an address"):
        Journal.create(place(tmp_path), HEADER | {"fields": {"contact": "ann@example.org"}})
    with pytest.raises(ConfigurationError, match="'name'"):
        Journal.create(place(tmp_path), HEADER | {"fields": {"name": "x"}})
    assert not (tmp_path / "sub-P01").exists()


# --- links, other people's files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".lock", "session.json", "journal"])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str) -> None:
    where = place(tmp_path / "out")
    where.folder.mkdir(parents=True)
    target = tmp_path / "precious"
    target.write_text("precious")
    (where.journal if name == "journal" else where.folder / name).symlink_to(target)
    with pytest.raises((ConfigurationError, JournalFault)):
        Journal.create(where, HEADER)
    assert target.read_text() == "precious"


def test_a_journal_that_became_a_link_is_not_written(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        pass
    moved = journal.place.journal.rename(tmp_path / "moved.jsonl")
    journal.place.journal.symlink_to(moved)
    with pytest.raises(JournalFault):
        Journal.open(journal.place)


def test_a_sidecar_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    where = place(tmp_path)
    where.folder.mkdir(parents=True)
    where.sidecar.write_text('{\n  "mine": 1\n}\n')
    with pytest.raises(JournalFault, match="somebody's"):
        Journal.create(where, HEADER)
    assert not where.journal.exists()


@pytest.mark.parametrize("harm", ["remove", "grow", "shrink"])
def test_a_journal_that_somebody_touched_takes_no_more(tmp_path: Path, harm: str) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        path = journal.place.journal
        if harm == "remove":
            path.unlink()
        else:
            os.truncate(path, path.stat().st_size + (5 if harm == "grow" else -5))
        for _ in range(2):
            with pytest.raises(JournalFault, match="changed or removed"):
                journal.append("note", text="a", by="b")


def test_a_journal_under_another_ones_name_is_not_gone_on_with(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        pass
    other = place(tmp_path, "P02")
    other.folder.mkdir(parents=True)
    journal.place.journal.rename(other.journal)
    with pytest.raises(RecordingError, match="of participant 'P01'"):
        Journal.open(other)


# --- a torn last line -------------------------------------------------------------------------------------------------


def test_a_last_line_torn_at_any_byte_is_cut_and_reported(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        whole = journal.place.journal.stat().st_size
        journal.append("note", text="äö", by="e")
    data = journal.place.journal.read_bytes()
    for length in range(whole, len(data)):
        journal.place.journal.write_bytes(data[:length])
        found = read_journal(journal.place.journal)
        assert (len(found.records), found.length, found.torn) == (2, whole, length - whole)
    assert read_journal(journal.place.journal).torn == len(data) - 1 - whole


def test_a_session_with_a_torn_line_goes_on_after_it(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        whole = journal.place.journal.stat().st_size
        journal.append("note", text="a", by="e")
    os.truncate(journal.place.journal, whole + 20)
    with Journal.open(journal.place) as again:
        assert again.torn == 20
        again.append("event", name="resumed", cut_bytes=again.torn)
    names = [one["record"] for one in read_journal(journal.place.journal).records]
    assert names == ["header", "block_start", "event"]


# --- the disk refuses -------------------------------------------------------------------------------------------------


def test_a_full_disk_ends_the_journal_in_words_and_keeps_what_it_had(tmp_path: Path) -> None:
    """The limit on file sizes stands for a full disk: part of the line is written, the rest is refused."""
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        whole = journal.place.journal.stat().st_size
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (whole + 30, before[1]))
            with pytest.raises(JournalFault, match=r"File too large.*note is not kept.*haptics experiment resume"):
                journal.append("note", text="a", by="e")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        assert journal.place.journal.stat().st_size == whole
        with pytest.raises(JournalFault, match="note is not kept"):
            journal.append("event", name="later")
    with Journal.open(journal.place) as again:
        assert again.torn == 0
        assert again.append("event", name="resumed")["number"] == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(JournalFault, match="cannot be made"):
        Journal.create(place(tmp_path), HEADER)


def test_an_interrupt_while_writing_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        monkeypatch.setattr(os, "fsync", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            journal.append("note", text="a", by="e")
        monkeypatch.undo()
        assert journal.append("note", text="b", by="e")["number"] == 1
    assert [one.get("text") for one in read_journal(journal.place.journal).records] == [None, "b"]


def _interrupt(_: int) -> None:
    raise KeyboardInterrupt


# --- kill -9 ----------------------------------------------------------------------------------------------------------

_WRITER = """
import sys
from pathlib import Path
from apps.experiment.journal import Journal, replay
from tests.apps.experiment.journal.records import HEADER, begin_block, place, response, start, end

where = place(Path(sys.argv[1]))
journal = Journal.open(where) if where.journal.exists() else Journal.create(where, HEADER)
state = replay(journal.records)
begin_block(journal, attempt=state.blocks.get(1, 0) + 1)
trial = len(state.answered)
while True:
    trial += 1
    attempt = state.attempts_at(trial) + 1
    journal.append("trial_start", **start(trial, attempt))
    journal.append("response", **response(trial, attempt))
    journal.append("trial_end", **end(trial, attempt))
    sys.stdout.write(f"{trial}\\n")
    sys.stdout.flush()
"""


def _killed_writer(out: Path, after: int, extra: float) -> int:
    """Run a writer until it has told of `after` trials and a moment more; return the last trial it told of."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(out)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(after)]
    try:
        writer.wait(extra)
    except subprocess.TimeoutExpired:
        writer.kill()
    lines += writer.stdout.readlines()
    writer.stdout.close()
    writer.wait()
    return int([line for line in lines if line.endswith("\n")][-1])


def _kill_often(out: Path, times: int) -> None:
    rng = random.Random(20)
    for _ in range(times):
        told = _killed_writer(out, rng.randrange(1, 6), rng.uniform(0.0, 0.02))
        state = replay(read_journal(place(out).journal).records)
        assert len(state.answered) >= told, "what was told is not in the journal"
        assert list(state.answered) == list(range(1, len(state.answered) + 1))
    state = replay(read_journal(place(out).journal).records)
    assert state.blocks == {1: times}


def test_kill_9_at_random_moments_loses_nothing_answered(tmp_path: Path) -> None:
    _kill_often(tmp_path, 4)


# --- any content ------------------------------------------------------------------------------------------------------

_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=15)
@given(st.lists(st.tuples(_TEXTS, _PLAIN), max_size=5))
def test_whatever_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, Any]]) -> None:
    with Journal.create(place(tmp_path_factory.mktemp("out")), HEADER) as journal:
        for text, value in entries:
            journal.append("note", text=text, by="x")
            journal.append("event", name=text, value=value)
    found = read_journal(journal.place.journal)
    assert found.records == journal.records
    assert found.torn == 0
