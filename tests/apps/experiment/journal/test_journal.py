"""The journal of a session: names, locking, durability, hostile files, and slots."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.experiment.journal import Journal, SessionFolder, folder, read_journal, replay, sessions_below
from apps.experiment.journal.folder import (
    JournalFault,
    create_entry,
    has_slot,
    require_code,
    reserve_slot,
    rewrite_entry,
    task_label,
)
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.journal.records import HEADER, begin_block, place, run_trial
from tests.processes import ROOT


def test_journal_round_trip_keeps_records_and_sidecar(tmp_path):
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


def test_file_names_follow_bids(tmp_path):
    with Journal.create(place(tmp_path, session=3), HEADER) as journal:
        pass
    assert journal.place.journal == tmp_path / "sub-P01" / "ses-03" / "sub-P01_ses-03_task-friction_journal.jsonl"
    names = sorted(path.name for path in journal.place.folder.iterdir())
    assert names == [".lock", "session.json", journal.place.journal.name]


def test_journal_has_one_writer_and_is_created_once(tmp_path):
    where = place(tmp_path)
    with Journal.create(where, HEADER):
        with pytest.raises(ConfigurationError, match=rf"written by process {os.getpid()} on "):
            Journal.open(where)
    with pytest.raises(ConfigurationError, match="has a journal: resume"):
        Journal.create(where, HEADER)
    with Journal.open(where) as journal:
        assert len(journal.records) == 1


@pytest.mark.parametrize("fields", [{"text": float("nan"), "by": "x"}, {"text": "a"}, {"text": "a", "by": "b", "c": 1}])
def test_invalid_record_raises_and_writes_nothing(tmp_path, fields):
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


def test_personal_data_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="looks like an address"):
        Journal.create(place(tmp_path), HEADER | {"fields": {"contact": "ann@example.org"}})
    with pytest.raises(ConfigurationError, match="'name'"):
        Journal.create(place(tmp_path), HEADER | {"fields": {"name": "x"}})
    assert not (tmp_path / "sub-P01").exists()


@pytest.mark.parametrize("name", [".lock", "session.json", "journal"])
def test_create_does_not_write_through_a_link(tmp_path, name):
    where = place(tmp_path / "out")
    where.folder.mkdir(parents=True)
    target = tmp_path / "precious"
    target.write_text("precious")
    (where.journal if name == "journal" else where.folder / name).symlink_to(target)
    with pytest.raises((ConfigurationError, JournalFault)):
        Journal.create(where, HEADER)
    assert target.read_text() == "precious"


@pytest.fixture
def closed(tmp_path):
    """Return the place of a session that has begun and is not being written."""
    Journal.create(place(tmp_path), HEADER).close()
    return place(tmp_path)


def test_open_refuses_a_link(closed, tmp_path):
    moved = closed.journal.rename(tmp_path / "moved.jsonl")
    closed.journal.symlink_to(moved)
    with pytest.raises(JournalFault):
        Journal.open(closed)


def test_foreign_sidecar_is_not_overwritten(tmp_path):
    where = place(tmp_path)
    where.folder.mkdir(parents=True)
    where.sidecar.write_text('{\n  "mine": 1\n}\n')
    with pytest.raises(JournalFault, match="not written by this program"):
        Journal.create(where, HEADER)
    assert not where.journal.exists()


@pytest.mark.parametrize("harm", ["remove", "grow", "shrink"])
def test_append_fails_after_the_file_was_modified(tmp_path, harm):
    with Journal.create(place(tmp_path), HEADER) as journal:
        path = journal.place.journal
        if harm == "remove":
            path.unlink()
        else:
            os.truncate(path, path.stat().st_size + (5 if harm == "grow" else -5))
        for _ in range(2):
            with pytest.raises(JournalFault, match="changed or removed"):
                journal.append("note", text="a", by="b")


def test_open_refuses_a_journal_of_another_participant(closed, tmp_path):
    other = place(tmp_path, "P02")
    other.folder.mkdir(parents=True)
    closed.journal.rename(other.journal)
    with pytest.raises(RecordingError, match="of participant 'P01'"):
        Journal.open(other)


def test_torn_last_line_is_reported_at_any_byte_and_truncated_by_open(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        whole = journal.place.journal.stat().st_size
        journal.append("note", text="äö", by="e")
    data = journal.place.journal.read_bytes()
    for length in range(whole, len(data)):
        journal.place.journal.write_bytes(data[:length])
        found = read_journal(journal.place.journal)
        assert (len(found.records), found.length, found.torn) == (2, whole, length - whole)
    with Journal.open(journal.place) as again:
        assert again.torn == len(data) - 1 - whole
        again.append("event", name="resumed", cut_bytes=again.torn)
    names = [one["record"] for one in read_journal(journal.place.journal).records]
    assert names == ["header", "block_start", "event"]


def test_full_disk_closes_the_journal_and_keeps_its_records(tmp_path):
    """The limit on file sizes simulates a full disk: part of the line is written, the rest is refused."""
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
def test_create_reports_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(JournalFault, match="cannot be made"):
        Journal.create(place(tmp_path), HEADER)


def test_interrupt_while_writing_leaves_no_partial_record(tmp_path, monkeypatch):
    with Journal.create(place(tmp_path), HEADER) as journal:
        monkeypatch.setattr(os, "fsync", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            journal.append("note", text="a", by="e")
        monkeypatch.undo()
        assert journal.append("note", text="b", by="e")["number"] == 1
    assert [one.get("text") for one in read_journal(journal.place.journal).records] == [None, "b"]


_WRITER = """
import sys
from pathlib import Path
from apps.experiment.journal import Journal, replay
from tests.apps.experiment.journal.records import HEADER, begin_block, place, run_trial

where = place(Path(sys.argv[1]))
journal = Journal.open(where) if where.journal.exists() else Journal.create(where, HEADER)
state = replay(journal.records)
begin_block(journal, attempt=state.blocks.get(1, 0) + 1)
trial = len(state.counted_attempts)
while True:
    trial += 1
    run_trial(journal, trial, state.attempts_at(trial) + 1)
    print(trial, flush=True)
"""


def _killed_writer(out, after, extra):
    """Kill a writer `extra` [s] after it reported `after` trials; return the last trial that it reported."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(out)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    lines = [writer.stdout.readline() for _ in range(after)]
    try:
        writer.wait(extra)
    except subprocess.TimeoutExpired:
        writer.kill()
    lines += writer.stdout.readlines()
    writer.stdout.close()
    writer.wait()
    return int([line for line in lines if line.endswith("\n")][-1])


def test_kill_9_loses_no_answer(tmp_path):
    rng, times = random.Random(20), 4
    for _ in range(times):
        reported = _killed_writer(tmp_path, rng.randrange(1, 6), rng.uniform(0.0, 0.02))
        state = replay(read_journal(place(tmp_path).journal).records)
        assert len(state.counted_attempts) >= reported, "a reported trial is missing in the journal"
        assert list(state.counted_attempts) == list(range(1, len(state.counted_attempts) + 1))
    assert state.blocks == {1: times}


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=15)
@given(st.lists(st.tuples(TEXTS, PLAIN), max_size=5))
def test_any_json_content_round_trips(tmp_path_factory, entries):
    with Journal.create(place(tmp_path_factory.mktemp("out")), HEADER) as journal:
        for text, value in entries:
            journal.append("note", text=text, by="x")
            journal.append("event", name=text, value=value)
    found = read_journal(journal.place.journal)
    assert found.records == journal.records
    assert found.torn == 0


@pytest.mark.parametrize("code", ["P01", "01", "s3", "SIM", "x", "A" * 32])
def test_participant_code_is_accepted(code):
    assert require_code(code) == code


@pytest.mark.parametrize(
    "code", ["", "Ann Lee", "a@b.org", "sub-01", "P_01", "P.01", "../x", "Ü1", "P01\n", "A" * 33, "Anna", "Meier", "１"]
)
def test_personal_name_or_path_is_refused_as_code(code):
    with pytest.raises(ConfigurationError, match="must be a code"):
        require_code(code)


@pytest.mark.parametrize("number", [0, -1, 1000])
def test_session_number_out_of_range_is_refused(number):
    with pytest.raises(ConfigurationError, match="session"):
        SessionFolder.new(Path("out"), "P01", number, "friction")


def test_task_label_keeps_letters_and_digits():
    assert task_label("Weber-function of friction (2)") == "Weberfunctionoffriction2"
    for name in ("", "---", "摩擦", "x" * 65):
        with pytest.raises(ConfigurationError, match="letters"):
            task_label(name)


def test_session_folder_is_found_from_folder_or_journal(closed, tmp_path):
    assert SessionFolder.of(closed.folder) == SessionFolder.of(closed.journal) == closed
    assert closed.recording(3).name == "block-03"
    assert closed.recording(3, 2).name == "block-03_2"
    with pytest.raises(RecordingError, match="no session"):
        SessionFolder.of(tmp_path)
    (closed.folder / "sub-P02_ses-01_task-friction_journal.jsonl").write_text("")
    with pytest.raises(RecordingError, match="must be one file"):
        SessionFolder.of(closed.folder)


def test_sessions_below_searches_every_level(tmp_path):
    for participant, session in (("P02", 1), ("P01", 2), ("P01", 1)):
        Journal.create(place(tmp_path, participant, session), HEADER).close()
    found = [(one.participant, one.session) for one in sessions_below(tmp_path)]
    assert found == [("P01", 1), ("P01", 2), ("P02", 1)]
    assert [one.session for one in sessions_below(tmp_path / "sub-P01")] == [1, 2]
    assert sessions_below(tmp_path / "sub-P02" / "ses-01")[0].participant == "P02"
    with pytest.raises(RecordingError, match="holds no session"):
        sessions_below(tmp_path / "sub-P01" / "ses-01" / "blocks")


_STATION = """
import sys
from pathlib import Path
from apps.experiment.journal.folder import reserve_slot

sys.stdin.readline()
print(*(reserve_slot(Path(sys.argv[1]), "friction", code) for code in sys.argv[2:]))
"""


def test_slot_is_unique_and_kept_per_participant(tmp_path):
    assert [reserve_slot(tmp_path, "friction", code) for code in ("P3", "P1", "P2", "P1")] == [0, 1, 2, 1]
    assert reserve_slot(tmp_path, "viscosity", "P2") == 0


def test_concurrent_reservations_never_share_a_slot(tmp_path):
    """Three stations reserve at once; participant P1 is reserved at each of them."""
    codes = [[f"S{station}P{number}" for number in range(12)] for station in range(3)]
    command = [sys.executable, "-c", _STATION, str(tmp_path)]
    stations = [
        subprocess.Popen([*command, "P1", *own], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for own in codes
    ]
    for station in stations:
        station.stdin.write("go\n")
        station.stdin.flush()
    found = [[int(word) for word in station.communicate()[0].split()] for station in stations]
    assert all(station.returncode == 0 for station in stations)
    assert len({places[0] for places in found}) == 1
    others = [number for places in found for number in places[1:]]
    assert len(set(others) | {found[0][0]}) == len(others) + 1 == 37
    for own, places in zip(codes, found, strict=True):
        assert [reserve_slot(tmp_path, "friction", code) for code in own] == places[1:]
    assert len(list((tmp_path / "slots" / "task-friction").iterdir())) == 37


def test_stations_that_reserve_the_same_participants_leave_no_second_place(tmp_path):
    codes = [f"P{number}" for number in range(40)]
    command = [sys.executable, "-c", _STATION, str(tmp_path)]
    orders = [random.Random(station).sample(codes, len(codes)) for station in range(4)]
    stations = [
        subprocess.Popen([*command, *order], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for order in orders
    ]
    for station in stations:
        station.stdin.write("go\n")
        station.stdin.flush()
    found = [station.communicate()[0].split() for station in stations]
    slots = dict(zip(orders[0], map(int, found[0]), strict=True))
    assert sorted(slots.values()) == list(range(40))
    for order, places in zip(orders, found, strict=True):
        assert [slots[code] for code in order] == [int(one) for one in places]
    assert len(list((tmp_path / "slots" / "task-friction").iterdir())) == 40


def test_slot_that_another_process_has_transferred_or_erased_is_not_reported(tmp_path):
    """A process remembers the slots that it has read; the files decide."""
    slots = tmp_path / "slots" / "task-friction"
    assert [reserve_slot(tmp_path, "friction", code) for code in ("P1", "P2", "P3")] == [0, 1, 2]
    rewrite_entry(slots / "slot-0000", {"participant": "P4"})
    assert has_slot(tmp_path, "friction", "P4") and not has_slot(tmp_path, "friction", "P1")
    rewrite_entry(slots / "slot-0001", {"participant": "P5"})
    assert [reserve_slot(tmp_path, "friction", code) for code in ("P2", "P5", "P4")] == [3, 1, 0]
    (slots / "slot-0002").unlink()
    (slots / "slot-0000").unlink()
    assert [reserve_slot(tmp_path, "friction", code) for code in ("P3", "P4", "P6")] == [0, 2, 4]


def test_slot_of_another_process_is_found_and_read_once(tmp_path, monkeypatch):
    read, reads = folder.read_small, []
    monkeypatch.setattr(folder, "read_small", lambda path: reads.append(Path(path).name) or read(path))
    slots = tmp_path / "slots" / "task-friction"
    for number in range(30):
        assert reserve_slot(tmp_path, "friction", f"P{number}") == 2 * number
        create_entry(slots / f"slot-{2 * number + 1:04d}", {"participant": f"Q{number}"})
    assert reserve_slot(tmp_path, "friction", "Q7") == 15
    assert sorted(reads) == sorted([*(f"slot-{2 * number + 1:04d}" for number in range(30)), "slot-0015"])


def test_participant_started_at_two_stations_keeps_the_lower_slot(tmp_path, monkeypatch):
    """The other station reserves between the first look of this one and its claim; there is no second place."""
    link, slots = os.link, tmp_path / "slots" / "task-friction"
    reserve_slot(tmp_path, "friction", "P1")

    def slow(whole, path, **more):
        monkeypatch.setattr(os, "link", link)
        create_entry(slots / "slot-0001", {"participant": "P2"})
        create_entry(slots / "slot-0002", {"participant": "P3"})
        return link(whole, path, **more)

    monkeypatch.setattr(os, "link", slow)
    assert reserve_slot(tmp_path, "friction", "P2") == 1
    assert sorted(path.name for path in slots.iterdir()) == ["slot-0000", "slot-0001", "slot-0002"]


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"participant": "Ann Lee"}', "x" * 5_000_000])
def test_foreign_slot_file_is_named(tmp_path, content):
    reserve_slot(tmp_path, "friction", "P1")
    (tmp_path / "slots" / "task-friction" / "slot-0001").write_text(content)
    with pytest.raises(ConfigurationError, match=r"slot-0001 is no reserved place"):
        reserve_slot(tmp_path, "friction", "P2")
