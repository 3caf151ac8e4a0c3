"""Recordings: readable at every moment, complete after every end."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics.errors import RecordingError
from haptics.recording import METADATA, PART, SETTINGS, TICKS, Recorder, Recording, TickFile, salvage
from haptics.trace import ROW, Reader, Trace


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
        file.write(b"\0" * (3 * ROW.itemsize + 17))
    assert np.load(recorder.folder / PART)["tick"].tolist() == list(range(100))


def test_of_a_file_that_was_cut_short_the_whole_rows_are_read(recorder: Recorder, trace: Trace) -> None:
    append(trace, ticks(0, 100))
    recorder.drain()
    part = recorder.folder / PART
    os.truncate(part, part.stat().st_size - 2 * ROW.itemsize - 17)
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


def test_a_recording_is_never_overwritten(recorder: Recorder) -> None:
    with pytest.raises(FileExistsError):
        Recorder(recorder.folder, {})


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
