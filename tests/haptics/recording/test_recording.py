"""Recordings: readable at every moment, complete after every end."""

import json
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics.errors import RecordingError
from haptics.recording.recorder import Recorder, salvage
from haptics.recording.recording import METADATA, PART, SETTINGS, TICKS, Recording
from haptics.recording.tick_file import TickFile
from haptics.records import COLUMNS, ROW
from haptics.trace import Reader, Trace


def ticks(start: int, stop: int) -> np.ndarray:
    rows = np.zeros(stop - start, ROW)
    rows["tick"] = np.arange(start, stop)
    rows["position"][:, 0] = rows["tick"] * 1e-3
    return rows


def append(trace: Trace, rows: np.ndarray) -> None:
    for row in rows:
        trace.append(row)


@pytest.fixture
def recorder(tmp_path: Path, trace: Trace) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "run", {"model": "C"})
    recorder.follow(Reader(trace))
    yield recorder
    recorder._ticks.close()


def test_the_description_is_there_before_the_first_tick(recorder: Recorder) -> None:
    metadata = json.loads((recorder.folder / METADATA).read_text())
    assert metadata["state"] == "running"
    assert metadata["model"] == "C"
    assert metadata["columns"]["position"] == "m"
    assert len(np.load(recorder.folder / PART)) == 0


def test_the_part_file_is_a_valid_npy_file_after_every_append(recorder: Recorder, trace: Trace) -> None:
    for count in range(0, 5000, 500):
        append(trace, ticks(count, count + 500))
        recorder.drain()
        assert np.load(recorder.folder / PART)["tick"].tolist() == list(range(count + 500))


def test_rows_cut_off_by_a_crash_do_not_spoil_those_before(recorder: Recorder, trace: Trace) -> None:
    append(trace, ticks(0, 100))
    recorder.drain()
    with open(recorder.folder / PART, "ab") as file:  # rows were written, the header was not yet
        file.write(b"\0" * (3 * COLUMNS.itemsize + 17))
    assert np.load(recorder.folder / PART)["tick"].tolist() == list(range(100))


def test_of_a_file_that_was_cut_short_the_whole_rows_are_read(recorder: Recorder, trace: Trace) -> None:
    append(trace, ticks(0, 100))
    recorder.drain()
    part = recorder.folder / PART
    os.truncate(part, part.stat().st_size - 2 * COLUMNS.itemsize - 17)
    assert Recording(recorder.folder).rows["tick"].tolist() == list(range(97))


def test_closing_completes_and_renames(recorder: Recorder, trace: Trace) -> None:
    append(trace, ticks(0, 10))
    recorder.drain()
    recorder.close({"reason": "completed"}, complete=True)
    recording = Recording(recorder.folder)
    assert recording.rows["tick"].tolist() == list(range(10))
    assert recording.metadata["state"] == "complete"
    assert (recorder.folder / TICKS).exists()
    assert not (recorder.folder / PART).exists()


def test_a_run_that_was_not_closed_in_order_keeps_its_part_file(recorder: Recorder, trace: Trace) -> None:
    append(trace, ticks(0, 10))
    recorder.drain()
    recorder.close({"reason": "fault"}, complete=False)
    recording = Recording(recorder.folder)
    assert len(recording.rows) == 10
    assert recording.metadata["state"] == "interrupted"
    assert (recorder.folder / PART).exists()


def test_salvage_adds_what_the_dead_application_had_not_written(recorder: Recorder, trace: Trace) -> None:
    append(trace, ticks(0, 60))
    recorder.drain()
    append(trace, ticks(60, 100))
    salvage(recorder.folder, Reader(trace))
    recording = Recording(recorder.folder)
    assert recording.rows["tick"].tolist() == list(range(100))
    assert recording.metadata["state"] == "interrupted"


def test_with_the_first_rows_the_recording_says_when_tick_0_was(recorder: Recorder, trace: Trace) -> None:
    trace.origin[:] = 13_000_000_000_007, 1_700_000_000_123_456_789
    recorder.drain()
    assert "origin_utc" not in recorder.metadata
    append(trace, ticks(0, 3))
    recorder.drain()
    for metadata in (recorder.metadata, Recording(recorder.folder).metadata):
        assert metadata["origin_monotonic_ns"] == 13_000_000_000_007
        assert metadata["origin_utc"] == "2023-11-14T22:13:20.123456+00:00"
    trace.origin[:] = 5, 6
    append(trace, ticks(3, 6))
    recorder.drain()
    assert recorder.metadata["origin_monotonic_ns"] == 13_000_000_000_007


def test_an_instant_that_cannot_be_written_down_keeps_no_row_from_the_disk(recorder: Recorder, trace: Trace) -> None:
    trace.origin[:] = 5, 6_000
    (recorder.folder / "recording.tmp").mkdir()  # the description cannot be replaced
    for start in (0, 10):
        append(trace, ticks(start, start + 10))
        recorder.drain()
    (recorder.folder / "recording.tmp").rmdir()
    recorder.close({}, complete=True)
    recording = Recording(recorder.folder)
    assert recording.rows["tick"].tolist() == list(range(20))
    assert recording.metadata["origin_monotonic_ns"] == 5


def test_what_nobody_has_timed_has_no_origin(recorder: Recorder, trace: Trace) -> None:
    append(trace, ticks(0, 3))
    recorder.drain()
    recorder.close({}, complete=True)
    assert not {"origin_monotonic_ns", "origin_utc"} & Recording(recorder.folder).metadata.keys()


CHANNELS = [("joint_angles", "rad", 2), ("temperature", "degC", 1)]


def with_channels(folder: Path, trace: Trace) -> Recorder:
    """Begin a recording of a device with two channels, and fill three ticks of the trace; one has no channels."""
    rows = ticks(0, 3)
    rows["hand_force"] = [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]
    rows["channels"] = np.nan
    rows["channels"][[0, 2], :3] = [(0.1, 0.2, 21.0), (0.3, 0.4, 22.0)]
    rows["channels"][:, 3] = 99.0  # whatever stands behind them
    recorder = Recorder(folder, {"device": {"name": "bench", "channels": CHANNELS}})
    recorder.follow(Reader(trace))
    append(trace, rows)
    return recorder


def the_channels_are_there(folder: Path) -> None:
    recording = Recording(folder)
    rows, written = recording.rows, np.load(recording.ticks)
    assert rows.dtype.names == written.dtype.names == tuple(recording.metadata["columns"])
    assert recording.metadata["columns"]["channel_joint_angles"] == "rad"
    assert rows["tick"].tolist() == [0, 1, 2]
    assert rows["hand_force"].tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    np.testing.assert_array_equal(rows["channel_joint_angles"], [(0.1, 0.2), (np.nan, np.nan), (0.3, 0.4)])
    np.testing.assert_array_equal(rows["channel_temperature"], [21.0, np.nan, 22.0])
    assert rows.dtype.names[-2:] == ("channel_joint_angles", "channel_temperature")


def test_what_else_a_device_measures_is_recorded_by_name(tmp_path: Path, trace: Trace) -> None:
    recorder = with_channels(tmp_path / "run", trace)
    recorder.drain()
    recorder.close({}, complete=True)
    the_channels_are_there(recorder.folder)


def test_salvage_keeps_the_channels(tmp_path: Path, trace: Trace) -> None:
    recorder = with_channels(tmp_path / "run", trace)
    salvage(recorder.folder, Reader(trace))
    the_channels_are_there(recorder.folder)
    recorder._ticks.close()


def test_a_table_of_others_is_not_appended_to(tmp_path: Path) -> None:
    for number, more in enumerate(("<f8", "<i8", "<f4")):
        path = tmp_path / f"{number}.npy"
        TickFile(path, np.dtype([*np.lib.format.dtype_to_descr(COLUMNS), ("more", more)])).close()
        if more == "<f8":
            TickFile(path, append=True).close()
        else:
            with pytest.raises(RecordingError, match="other columns"):
                TickFile(path, append=True)


def test_salvage_says_when_tick_0_was(recorder: Recorder, trace: Trace) -> None:
    trace.origin[:] = 7, 1_500_000_000_000_000_000
    append(trace, ticks(0, 3))
    salvage(recorder.folder, Reader(trace))
    metadata = Recording(recorder.folder).metadata
    assert (metadata["origin_monotonic_ns"], metadata["origin_utc"]) == (7, "2017-07-14T02:40:00.000000+00:00")


def test_facts_from_two_threads_are_all_kept(recorder: Recorder) -> None:
    def note(first: int) -> None:
        for number in range(first, 100, 2):
            recorder.note(**{f"fact_{number}": number})

    threads = [threading.Thread(target=note, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    metadata = json.loads((recorder.folder / METADATA).read_text())
    assert [metadata[f"fact_{number}"] for number in range(100)] == list(range(100))


def test_salvage_of_what_died_before_its_first_tick(recorder: Recorder) -> None:
    salvage(recorder.folder, None)
    recording = Recording(recorder.folder)
    assert len(recording.rows) == 0
    assert recording.metadata["reason"] == "application lost"


@pytest.mark.parametrize("died_before", ["the description", "the name"])
def test_salvage_of_what_died_while_it_was_closed(
    recorder: Recorder, trace: Trace, monkeypatch: pytest.MonkeyPatch, died_before: str
) -> None:
    append(trace, ticks(0, 10))
    recorder.drain()
    with monkeypatch.context() as dying:
        wanted = METADATA if died_before == "the description" else TICKS
        replace = os.replace

        def die(source: Path, target: Path) -> None:
            if target.name == wanted:
                raise KeyboardInterrupt
            replace(source, target)

        dying.setattr(os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            recorder.close({"reason": "completed"}, complete=True)
    assert len(Recording(recorder.folder).rows) == 10
    salvage(recorder.folder, Reader(trace))
    recording = Recording(recorder.folder)
    assert recording.rows["tick"].tolist() == list(range(10))
    assert recording.metadata["state"] == ("interrupted" if died_before == "the description" else "complete")
    assert (recorder.folder / TICKS).exists() == (recording.metadata["state"] == "complete")
    assert not list(recorder.folder.glob("*.tmp"))


def test_salvage_of_a_closed_recording_changes_nothing(recorder: Recorder, trace: Trace) -> None:
    append(trace, ticks(0, 10))
    recorder.drain()
    recorder.close({"reason": "completed"}, complete=True)
    before = {path.name: path.read_bytes() for path in recorder.folder.iterdir()}
    salvage(recorder.folder, Reader(trace))
    assert {path.name: path.read_bytes() for path in recorder.folder.iterdir()} == before


def test_salvage_of_a_file_that_was_cut_short_fills_the_gap(recorder: Recorder, trace: Trace) -> None:
    append(trace, ticks(0, 60))
    recorder.drain()
    append(trace, ticks(60, 100))
    part = recorder.folder / PART
    os.truncate(part, part.stat().st_size - 2 * COLUMNS.itemsize - 17)
    salvage(recorder.folder, Reader(trace))
    assert Recording(recorder.folder).rows["tick"].tolist() == list(range(100))


def append_for_ever(path: Path) -> None:
    file, count = TickFile(path), 0
    while True:
        file.append(ticks(count, count + 7))
        count += 7


def test_the_file_is_valid_while_another_process_writes_it_and_after_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / PART
    writer = multiprocessing.get_context("spawn").Process(target=append_for_ever, args=(path,))
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


def test_the_header_is_one_write_in_the_first_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[tuple[int, int]] = []
    pwrite = os.pwrite

    def watch(descriptor: int, data: bytes, offset: int) -> int:
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


def test_a_recording_is_never_overwritten(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for taken in (recorder.folder, tmp_path / "empty", tmp_path / "file"):
        with pytest.raises(FileExistsError):
            Recorder(taken, {})
    assert (tmp_path / "file").read_text() == ""


def test_a_folder_is_readable_when_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Recording] = []
    rename = os.rename

    def look_first(unborn: Path, folder: Path) -> None:
        assert not folder.exists()
        seen.append(Recording(unborn))
        rename(unborn, folder)

    monkeypatch.setattr(os, "rename", look_first)
    recorder = Recorder(tmp_path / "run", {"model": "C"})
    assert seen[0].metadata == recorder.metadata
    assert len(seen[0].rows) == 0
    assert [path.name for path in tmp_path.iterdir() if path.name != "trace"] == ["run"]
    recorder.close({}, complete=True)


def test_of_many_that_want_one_name_one_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(8)
    got: list[Recorder] = []
    refused: list[FileExistsError] = []
    rename = os.rename

    def all_at_once(unborn: Path, folder: Path) -> None:  # each has seen that the name is free
        together.wait()
        rename(unborn, folder)

    def begin() -> None:
        try:
            got.append(Recorder(tmp_path / "run", {}))
        except FileExistsError as error:
            refused.append(error)

    monkeypatch.setattr(os, "rename", all_at_once)
    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 7)
    assert list(tmp_path.iterdir()) == [tmp_path / "run"]
    got[0].close({}, complete=True)
    assert Recording(tmp_path / "run").metadata["state"] == "complete"


def test_what_a_killed_maker_left_hidden_is_swept_away_in_time(tmp_path: Path) -> None:
    old, young = tmp_path / ".haptics-new-old", tmp_path / ".haptics-new-young"
    for left in (old, young):
        (left / "run").mkdir(parents=True)
        (left / "run" / METADATA).write_text("{")
    os.utime(old, (0, 0))
    Recorder(tmp_path / "run", {}).close({}, complete=True)
    assert not old.exists()
    assert (young / "run" / METADATA).exists()


def test_a_settings_line_cut_short_is_left_out(recorder: Recorder) -> None:
    recorder.journal_settings(0, {"model": "C"})
    with open(recorder.folder / SETTINGS, "a") as file:
        file.write('{"version": 1, "mod')
    assert [entry["version"] for entry in Recording(recorder.folder).settings] == [0]


@pytest.mark.parametrize("damage", ["no folder", "no description", "no ticks", "other columns", "not json"])
def test_something_else_is_refused_by_name(tmp_path: Path, recorder: Recorder, damage: str) -> None:
    folder = recorder.folder
    if damage == "no folder":
        folder = tmp_path / "nowhere"
    elif damage == "no description":
        (folder / METADATA).unlink()
    elif damage == "no ticks":
        (folder / PART).unlink()
    elif damage == "other columns":
        with open(folder / PART, "wb") as file:
            np.save(file, np.zeros(3))
    else:
        (folder / METADATA).write_text("{")
    with pytest.raises(RecordingError, match=str(folder)):
        Recording(folder)


@given(st.lists(st.integers(0, 40), max_size=8))
def test_any_sequence_of_appends_and_reopenings_keeps_every_row(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    path = tmp_path_factory.mktemp("file") / PART
    TickFile(path).close()
    total = 0
    for size in sizes:
        file = TickFile(path, append=True)
        file.append(ticks(total, total + size))
        file.close()
        total += size
    assert np.load(path)["tick"].tolist() == list(range(total))
