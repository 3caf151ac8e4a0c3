"""Recordings: readable at every moment, complete after every end; journals, salvage and damage."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics.errors import RecordingError
from haptics.files import MAX_JSON_BYTES
from haptics.recording.checks import check_recording
from haptics.recording.recorder import Recorder, complete_recording
from haptics.recording.recording import EVENTS, METADATA, PART, SETTINGS, TICKS, Recording
from haptics.recording.tick_file import TickFile, TickTable
from haptics.records import COLUMNS, ROW
from haptics.trace import Reader


def ticks(start, stop):
    rows = np.zeros(stop - start, ROW)
    rows["tick"] = np.arange(start, stop)
    rows["position"][:, 0] = rows["tick"] * 1e-3
    return rows


def append(trace, rows):
    for row in rows:
        trace.append(row)


@pytest.fixture
def recorder(tmp_path, trace):
    recorder = Recorder(tmp_path / "run", {"model": "C"})
    recorder.attach(Reader(trace))
    yield recorder
    recorder._ticks.close()


@pytest.fixture
def record(recorder, trace):
    """Returns a function that moves ticks through the trace to the disk."""

    def record(start, stop):
        append(trace, ticks(start, stop))
        recorder.drain()

    return record


def test_rows_of_a_crashed_append_are_ignored(recorder, record):
    record(0, 100)
    with open(recorder.folder / PART, "ab") as file:  # rows were written, the header was not yet
        file.write(b"\0" * (3 * COLUMNS.itemsize + 17))
    assert np.load(recorder.folder / PART)["tick"].tolist() == list(range(100))


@pytest.mark.parametrize(("complete", "state", "name"), [(True, "complete", TICKS), (False, "interrupted", PART)])
def test_closing_renames_only_a_complete_recording(recorder, record, complete, state, name):
    record(0, 10)
    recorder.close({"reason": "any"}, complete=complete)
    recording = Recording(recorder.folder)
    assert recording.rows["tick"].tolist() == list(range(10))
    assert recording.metadata["state"] == state
    assert [name for name in (TICKS, PART) if (recorder.folder / name).exists()] == [name]


@pytest.mark.parametrize(
    "read",
    [lambda one: one.rows["tick"], lambda one: one.read()["tick"], lambda one: [one.table.sha256()]],
    ids=["rows", "read", "hash"],
)
def test_recording_that_is_completed_after_its_opening_stays_readable(recorder, record, read):
    record(0, 10)
    opened = Recording(recorder.folder)
    recorder.close({"reason": "any"}, complete=True)
    np.testing.assert_array_equal(read(opened), read(Recording(recorder.folder)))


def cut_short(path):
    """Cut two rows and a part of a third one off a table of ticks."""
    os.truncate(path, path.stat().st_size - 2 * COLUMNS.itemsize - 17)


def test_whole_rows_of_a_truncated_file_are_read(recorder, record):
    record(0, 100)
    cut_short(recorder.folder / PART)
    assert Recording(recorder.folder).rows["tick"].tolist() == list(range(97))


@pytest.mark.parametrize("truncated", [False, True])
def test_salvage_adds_the_missing_rows(recorder, record, trace, truncated):
    record(0, 60)
    append(trace, ticks(60, 100))
    if truncated:
        cut_short(recorder.folder / PART)
    complete_recording(recorder.folder, Reader(trace), "the application has ended")
    recording = Recording(recorder.folder)
    assert recording.rows["tick"].tolist() == list(range(100))
    assert recording.metadata["state"] == "interrupted"


def test_first_rows_record_the_time_of_tick_0(recorder, record, trace):
    record(0, 3)
    assert not {"origin_monotonic_ns", "origin_utc"} & recorder.metadata.keys()
    trace.origin[:] = 13_000_000_000_007, 1_700_000_000_123_456_789
    record(3, 6)
    for metadata in (recorder.metadata, Recording(recorder.folder).metadata):
        assert metadata["origin_monotonic_ns"] == 13_000_000_000_007
        assert metadata["origin_utc"] == "2023-11-14T22:13:20.123456+00:00"
    trace.origin[:] = 5, 6
    record(6, 9)
    assert recorder.metadata["origin_monotonic_ns"] == 13_000_000_000_007


def test_rows_are_written_when_the_description_cannot_be(recorder, record, trace):
    trace.origin[:] = 5, 6_000
    (recorder.folder / "recording.tmp").mkdir()  # the description cannot be replaced
    for start in (0, 10):
        record(start, start + 10)
    (recorder.folder / "recording.tmp").rmdir()
    recorder.close({}, complete=True)
    recording = Recording(recorder.folder)
    assert recording.rows["tick"].tolist() == list(range(20))
    assert recording.metadata["origin_monotonic_ns"] == 5


@pytest.mark.parametrize("salvaged", [False, True])
def test_channels_are_recorded_by_name(tmp_path, trace, salvaged):
    channels = [("joint_angles", "rad", 2), ("temperature", "degC", 1)]
    filled = ticks(0, 3)
    filled["hand_force"] = [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]
    filled["channels"] = np.nan
    filled["channels"][[0, 2], :3] = [(0.1, 0.2, 21.0), (0.3, 0.4, 22.0)]
    filled["channels"][:, 3] = 99.0  # beyond the declared channels
    recorder = Recorder(tmp_path / "run", {"device": {"name": "bench", "channels": channels}})
    recorder.attach(Reader(trace))
    append(trace, filled)
    if salvaged:
        complete_recording(recorder.folder, Reader(trace), "the application has ended")
    else:
        recorder.drain()
        recorder.close({}, complete=True)
    recording = Recording(recorder.folder)
    rows, written = recording.rows, np.load(recording.ticks)
    assert rows.dtype.names == written.dtype.names == tuple(recording.metadata["columns"])
    assert recording.metadata["columns"]["channel_joint_angles"] == "rad"
    assert rows["tick"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(rows["hand_force"], filled["hand_force"])
    np.testing.assert_array_equal(rows["channel_joint_angles"], [(0.1, 0.2), (np.nan, np.nan), (0.3, 0.4)])
    np.testing.assert_array_equal(rows["channel_temperature"], [21.0, np.nan, 22.0])
    assert rows.dtype.names[-2:] == ("channel_joint_angles", "channel_temperature")
    recorder._ticks.close()


def test_table_with_other_columns_is_not_appended_to(tmp_path):
    for number, more in enumerate(("<f8", "<i8", "<f4")):
        path = tmp_path / f"{number}.npy"
        TickFile(path, np.dtype([*np.lib.format.dtype_to_descr(COLUMNS), ("more", more)])).close()
        if more == "<f8":
            TickFile(path, append=True).close()
        else:
            with pytest.raises(RecordingError, match="other columns"):
                TickFile(path, append=True)


def test_notes_of_two_threads_are_all_kept(recorder):
    def note(first):
        for number in range(first, 100, 2):
            recorder.update_metadata(**{f"fact_{number}": number})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(note, (0, 1)))
    metadata = json.loads((recorder.folder / METADATA).read_text())
    assert [metadata[f"fact_{number}"] for number in range(100)] == list(range(100))


def test_salvage_before_the_first_tick(recorder):
    complete_recording(recorder.folder, None, "the application has ended")
    recording = Recording(recorder.folder)
    assert len(recording.rows) == 0
    assert recording.metadata["reason"] == "application lost"
    assert recording.metadata["error"] == "the application has ended"


@pytest.mark.parametrize("died_before", ["the description", "the name"])
def test_salvage_of_an_interrupted_close(recorder, record, trace, monkeypatch, died_before):
    record(0, 10)
    with monkeypatch.context() as dying:
        wanted = METADATA if died_before == "the description" else TICKS
        replace = os.replace

        def die(source, target):
            if target.name == wanted:
                raise KeyboardInterrupt
            replace(source, target)

        dying.setattr(os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            recorder.close({"reason": "completed"}, complete=True)
    assert len(Recording(recorder.folder).rows) == 10
    complete_recording(recorder.folder, Reader(trace), "the application has ended")
    recording = Recording(recorder.folder)
    assert recording.rows["tick"].tolist() == list(range(10))
    assert recording.metadata["state"] == ("interrupted" if died_before == "the description" else "complete")
    assert (recorder.folder / TICKS).exists() == (recording.metadata["state"] == "complete")
    assert not list(recorder.folder.glob("*.tmp"))


def test_salvage_of_a_closed_recording_changes_nothing(recorder, record, trace):
    record(0, 10)
    recorder.close({"reason": "completed"}, complete=True)
    before = {path.name: path.read_bytes() for path in recorder.folder.iterdir()}
    complete_recording(recorder.folder, Reader(trace), "the application has ended")
    assert {path.name: path.read_bytes() for path in recorder.folder.iterdir()} == before


def append_forever(path):
    file, count = TickFile(path), 0
    while True:
        file.append(ticks(count, count + 7))
        count += 7


def test_file_is_valid_during_and_after_a_killed_writer(tmp_path):
    path = tmp_path / PART
    writer = multiprocessing.get_context("spawn").Process(target=append_forever, args=(path,))
    writer.start()
    counts = [0]
    while counts[-1] < 7000:
        if path.exists() and path.stat().st_size > 4096:
            assert writer.is_alive()
            rows = np.load(path)
            assert rows["tick"].tolist() == list(range(len(rows)))
            counts.append(len(rows))
        time.sleep(0.001)
    writer.kill()
    writer.join()
    rows = np.load(path)
    assert len(rows) >= counts[-1] >= 7000
    assert rows["tick"].tolist() == list(range(len(rows)))


def test_header_is_one_write_in_the_first_page(tmp_path, monkeypatch):
    writes: list[tuple[int, int]] = []
    pwrite = os.pwrite

    def watch(descriptor, data, offset):
        writes.append((offset, len(data)))
        return pwrite(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", watch)
    file = TickFile(tmp_path / PART)
    for count in (1, 10, 1000):
        file.append(ticks(0, count))
    file.close()
    assert len(writes) == 4
    assert {offset for offset, _ in writes} == {0}
    assert len({size for _, size in writes}) == 1
    assert writes[0][1] < 4096
    assert len(np.load(tmp_path / PART)) == 1011


def test_recording_is_never_overwritten(recorder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for taken in (recorder.folder, tmp_path / "empty", tmp_path / "file"):
        with pytest.raises(FileExistsError):
            Recorder(taken, {})
    assert (tmp_path / "file").read_text() == ""


def test_folder_is_readable_when_it_is_renamed(tmp_path, monkeypatch):
    seen: list[Recording] = []
    rename = os.rename

    def look_first(unborn, folder):
        assert not folder.exists()
        seen.append(Recording(unborn))
        rename(unborn, folder)

    monkeypatch.setattr(os, "rename", look_first)
    recorder = Recorder(tmp_path / "run", {"model": "C"})
    assert seen[0].metadata == recorder.metadata
    assert len(seen[0].rows) == 0
    assert [path.name for path in tmp_path.iterdir() if path.name != "trace"] == ["run"]
    recorder.close({}, complete=True)


def test_one_of_many_recorders_gets_the_name(tmp_path, monkeypatch):
    together = threading.Barrier(8)
    rename = os.rename

    def all_at_once(unborn, folder):  # each has seen that the name is free
        together.wait()
        rename(unborn, folder)

    def begin(_):
        try:
            return Recorder(tmp_path / "run", {})
        except FileExistsError:
            return None

    monkeypatch.setattr(os, "rename", all_at_once)
    with ThreadPoolExecutor(8) as pool:
        (recorder,) = filter(None, pool.map(begin, range(8)))
    assert list(tmp_path.iterdir()) == [tmp_path / "run"]
    recorder.close({}, complete=True)
    assert Recording(tmp_path / "run").metadata["state"] == "complete"


def test_old_leftovers_are_removed(tmp_path):
    old, young = tmp_path / ".haptics-new-old", tmp_path / ".haptics-new-young"
    for left in (old, young):
        (left / "run").mkdir(parents=True)
        (left / "run" / METADATA).write_text("{")
    os.utime(old, (0, 0))
    Recorder(tmp_path / "run", {}).close({}, complete=True)
    assert not old.exists()
    assert (young / "run" / METADATA).exists()


def test_truncated_settings_line_is_ignored(recorder):
    recorder.journal_settings(0, {"model": "C"})
    with open(recorder.folder / SETTINGS, "a") as file:
        file.write('{"version": 1, "mod')
    assert [entry["version"] for entry in Recording(recorder.folder).settings] == [0]


@pytest.mark.parametrize(
    ("file", "content"), [(METADATA, None), (METADATA, b"{"), (PART, None), (PART, b"no table")], ids=str
)
def test_invalid_recording_is_refused_by_name(recorder, file, content):
    (recorder.folder / file).unlink()
    if content is not None:
        (recorder.folder / file).write_bytes(content)
    for folder in (recorder.folder, recorder.folder / "nowhere"):
        with pytest.raises(RecordingError, match=str(folder)):
            Recording(folder)


@given(st.lists(st.integers(0, 40), max_size=8))
def test_reopening_keeps_every_row(tmp_path_factory, sizes):
    path = tmp_path_factory.mktemp("file") / PART
    TickFile(path).close()
    total = 0
    for size in sizes:
        file = TickFile(path, append=True)
        file.append(ticks(total, total + size))
        assert file.close() == TickTable(path).sha256()
        total += size
    assert np.load(path)["tick"].tolist() == list(range(total))


# --- journals


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_numbers_are_never_written_as_json(tmp_path, bad):
    """It would be read as damage, and the whole recording refused."""
    recorder = Recorder(tmp_path / "run", {})
    recorder.journal_settings(0, {"model": "C"})
    before = {path.name: path.read_bytes() for path in recorder.folder.iterdir()}
    with pytest.raises(ValueError, match="JSON"):
        recorder.journal_settings(1, {"law": {"force": bad}})
    with pytest.raises(ValueError, match="JSON"):
        recorder.update_metadata(fit=bad)
    assert {path.name: path.read_bytes() for path in recorder.folder.iterdir()} == before
    assert Recording(recorder.folder).settings == [{"version": 0, "model": "C"}]
    recorder.close({"reason": "completed"}, complete=True)
    assert Recording(recorder.folder).metadata["reason"] == "completed"


def recorded(folder):
    """Return a closed recording with two events."""
    recorder = Recorder(folder, {})
    recorder.journal_event("key", name="f", down=True, tick=3, monotonic_ns=5)
    recorder.journal_event("stopped", ticks=0)
    recorder.close({"reason": "stopped"}, complete=True)
    return recorder


def test_events_are_read_in_order(tmp_path):
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
def test_damaged_events_are_refused_without_other_findings(tmp_path, damage):
    recorder = recorded(tmp_path / "run")
    sound = list(check_recording(Recording(recorder.folder)))
    (recorder.folder / EVENTS).write_bytes(damage)
    recording = Recording(recorder.folder)
    with pytest.raises(RecordingError, match=r"events\.jsonl"):
        _ = recording.events
    assert [finding.rule for finding in check_recording(recording)] == [finding.rule for finding in sound]
    with open(recorder.folder / EVENTS, "r+b") as file:
        file.truncate(MAX_JSON_BYTES + 1)
    with pytest.raises(RecordingError, match="too large"):
        _ = Recording(recorder.folder).events
