"""The overview of a recording: extremes, marks, what was counted until when, and its cache. No window."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.view import overview as module
from apps.view.counts import Counts, Durations
from apps.view.feed import ReplayFeed
from apps.view.overview import BINS, CACHE, Overview, OverviewScan, row_of
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.recording.tick_file import TableInMemory, TickTable
from haptics.records import ROW, Rows, Status
from haptics.trace import Reader, Trace

COUNT = 20_000


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an overview look at few rows at a time."""
    monkeypatch.setattr(module, "STEP", 3000)
    monkeypatch.setattr("apps.view.feed.STEP", 3000)
    monkeypatch.setattr(module, "WORTH_KEEPING", 10_000)


def made(count: int = COUNT) -> Rows:
    rng = np.random.default_rng(4)
    rows = np.zeros(count, ROW)
    rows["tick"] = np.arange(count)
    rows["tick"][count // 2 :] += 5
    rows["time"] = rows["tick"] * 1e-3
    rows["velocity"], rows["command"], rows["force"] = rng.normal(size=(3, count, 2))
    rows["period_error"], rows["tick_time"] = rng.gamma(2.0, 1e-5, (2, count))
    rows["injected_energy"] = rng.random(count)
    rows["status"][count // 2] = int(Status.AFTER_SKIP)
    return rows


def looked_at(rows: Rows) -> Overview:
    found = Overview(TableInMemory(rows))
    assert found.scan()
    return found


@pytest.mark.usefixtures("steps")
def test_extremes_are_those_of_all_rows() -> None:
    rows = made()
    rows["velocity"][7] = np.nan
    found = looked_at(rows)
    parts = np.arange(COUNT) * BINS // COUNT
    for extremes, name in ((found.force, "command"), (found.speed, "velocity")):
        norms = np.nan_to_num(np.hypot(*rows[name].T))
        for part in (0, 1, 7, 600, 615, 2000, BINS - 1):
            inside = norms[parts == part]
            np.testing.assert_allclose(extremes[part], (inside.min(), inside.max()), rtol=1e-6)


def test_a_recording_with_fewer_rows_than_parts_leaves_parts_unknown() -> None:
    found = looked_at(made(100))
    assert np.isfinite(found.force).all(axis=1).sum() == 100


@pytest.mark.usefixtures("steps")
def test_marks_are_where_something_changes() -> None:
    rows = made()
    rows["status"][2990:3020] |= int(Status.STALE)  # across two pieces
    rows["status"][9000] |= int(Status.STALE)
    rows["status"][9500] |= int(Status.STALE)  # within a second of the one before
    rows["status"][15_000:15_500] |= int(Status.ENERGY)
    rows["marker"][6000:], rows["marker"][12_500:] = 1, 2
    rows["settings_version"][8000:] = 3
    found = [(mark.kind, mark.row, mark.words) for mark in looked_at(rows).marks]
    assert found == [
        ("unusable", 2990, "no usable sample"),
        ("trial", 6000, "marker 1"),
        ("settings", 8000, "settings 3"),
        ("unusable", 9000, "no usable sample"),
        ("skipped", 10_000, "deadlines were missed"),
        ("trial", 12_500, "marker 2"),
        ("limit", 15_000, module.KINDS["limit"]),
    ]


def test_number_of_marks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_MARKS", 50)
    rows = made()
    rows["marker"] = np.arange(COUNT)
    rows["status"][::2] |= int(Status.SPEED)
    kinds = [mark.kind for mark in looked_at(rows).marks]
    assert kinds.count("trial") <= 50
    assert kinds.count("limit") <= 50


def test_keys_and_the_end_are_marked() -> None:
    rows, found = made(), looked_at(made())
    events: list[dict[str, Any]] = [
        {"event": "key", "name": "f", "down": True, "tick": 300},
        {"event": "key", "name": "f", "down": False, "tick": 310},
        {"event": "key", "name": "g", "down": True, "tick": int(rows["tick"][15_000])},
        {"event": "key", "name": "h", "down": True, "tick": "soon"},
        {"event": "key", "name": "i", "down": True, "tick": 10**9},
        {"event": "completed", "ticks": 4},
    ]
    found.mark_events(events, {"reason": "fault", "error": "the cable"})
    marks = [(mark.row, mark.words) for mark in found.marks if mark.kind != "skipped"]
    assert marks == [(300, "key f"), (15_000, "key g"), (COUNT - 1, "key i"), (COUNT - 1, "the end: the cable")]


# --- counts -------------------------------------------------------------------------------------------------------


def counted(rows: Rows) -> dict[str, Any]:
    counts, lateness, computation = Counts(), Durations(), Durations()
    counts.add(rows)
    lateness.add(1e6 * rows["period_error"])
    computation.add(1e6 * rows["tick_time"])
    return state(counts, lateness, computation)


def state(counts: Counts, lateness: Durations, computation: Durations) -> dict[str, Any]:
    return {
        **{name: value for name, value in vars(counts).items() if name not in ("flags", "last")},
        "flags": counts.flags.tolist(),
        "last": counts.last.tolist(),
        "durations": [(one.counts.tolist(), one.maximum) for one in (lateness, computation)],
    }


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("places", [(19_999, 0, 12_345), (5, 19_000, 2999, 3000, 3001)])
def test_going_anywhere_counts_what_there_was_until_then(places: tuple[int, ...]) -> None:
    rows = made()
    rows["status"][4000] |= int(Status.STALE)
    feed = ReplayFeed(rows, 1000.0, overview=looked_at(rows))
    feed.show_span(1.0)
    for place in places:
        feed.seek(place)
        assert (feed.index, feed.tick, feed.counted) == (place, rows["tick"][place], True)
        assert state(feed.counts, feed.lateness, feed.tick_times) == counted(rows[: place + 1])
        assert feed.history.count == place + 1


@pytest.mark.usefixtures("steps")
def test_what_is_not_known_yet_is_said_and_not_made_up() -> None:
    rows = made()
    overview = Overview(TableInMemory(rows))
    feed = ReplayFeed(rows, 1000.0, overview=overview)
    feed.show_span(1.0)
    feed.seek(15_000)
    assert not feed.counted
    assert overview.scan()
    feed.seek(15_000)
    assert feed.counted
    assert feed.counts.ticks == 15_001


class Watched(TableInMemory):
    """Remembers how many rows were read."""

    most = 0

    def read(self, start: int = 0, stop: int | None = None, columns: Any = None) -> Rows:
        found = super().read(start, stop, columns)
        self.most = max(self.most, len(found))
        return found


@pytest.mark.usefixtures("steps")
def test_no_more_is_read_than_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = made()
    table = Watched(rows)
    monkeypatch.setattr("apps.view.feed.table_of", lambda source: table)
    feed = ReplayFeed(rows, 1000.0, overview=looked_at(rows))
    feed.show_span(1.0)
    for place in (19_999, 100, 9000, 9001, 9800):
        feed.seek(place)
    assert table.most == 1000
    feed.show_span(5.0)
    assert table.most == 5000
    assert len(feed.history) == 5000


@pytest.mark.parametrize("time", [-1.0, 0.0, 0.0005, 3.0, 10.001, 10.0049, 1e9])
def test_row_at_a_time_is_found_without_reading_all(time: float) -> None:
    rows = made()
    expected = max(int(np.searchsorted(rows["time"], time, side="right")) - 1, 0)
    for near in (0, 1, 2999, 3001, 10_000, 10_004, COUNT - 1, COUNT, -1):
        assert row_of(TableInMemory(rows), "time", time, near) == expected


# --- kept beside the recording ------------------------------------------------------------------------------------


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    rows = made()
    rows["status"][9000] |= int(Status.STALE)
    trace = Trace.create(tmp_path / "trace", capacity=COUNT + 2)
    recorder = Recorder(tmp_path / "run", {"rate_hz": 1000.0})
    recorder.follow(Reader(trace))
    trace.slots[:COUNT] = rows
    trace.publish(COUNT)
    recorder.drain()
    recorder.close({"reason": "completed"}, complete=True)
    return Recording(tmp_path / "run")


def run(recording: Recording) -> Overview:
    scan = OverviewScan(Overview(recording.table), recording)
    scan.start()
    scan._thread.join()
    assert scan.over
    return scan.overview


def told(overview: Overview) -> list[Any]:
    arrays = [overview.force.tolist(), overview.speed.tolist()]
    return [*arrays, overview.marks, [state(*one) for one in overview._states]]


@pytest.mark.usefixtures("steps")
def test_second_look_is_the_first_one_without_reading_the_ticks(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(recording)
    assert (recording.folder / CACHE).exists()
    monkeypatch.setattr(TickTable, "chunks", None)
    assert told(run(recording)) == told(first)


def change_ticks(folder: Path) -> None:
    description = json.loads((folder / "recording.json").read_text())
    description["rows_sha256"] = "0" * 64
    (folder / "recording.json").write_text(json.dumps(description))


def cut_cache(folder: Path) -> None:
    data = (folder / CACHE).read_bytes()
    (folder / CACHE).write_bytes(data[: len(data) // 2])


def put_objects(folder: Path) -> None:
    np.savez(folder / CACHE, force=np.array([{}], dtype=object))


def put_other_shapes(folder: Path) -> None:
    with np.load(folder / CACHE) as arrays:
        np.savez(folder / CACHE, **{**arrays, "counts": np.zeros((3, 1))})


def put_wild_marks(folder: Path) -> None:
    with np.load(folder / CACHE) as arrays:
        np.savez(folder / CACHE, **{**arrays, "marks_limit": np.array([[10**12, 0]])})


def put_no_numbers(folder: Path) -> None:
    with np.load(folder / CACHE) as arrays:
        np.savez(folder / CACHE, **{**arrays, "counts": np.full(arrays["counts"].shape, np.nan)})


def put_a_link(folder: Path) -> None:
    shutil.move(folder / CACHE, folder.parent / "elsewhere.npz")
    (folder / CACHE).symlink_to(folder.parent / "elsewhere.npz")


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize(
    "spoil",
    [change_ticks, cut_cache, put_objects, put_other_shapes, put_wild_marks, put_no_numbers, put_a_link],
)
def test_cache_that_is_stale_or_hostile_is_not_believed(recording: Recording, spoil: Any) -> None:
    first = run(recording)
    spoil(recording.folder)
    again = Overview(recording.table)
    seal = json.loads((recording.folder / "recording.json").read_text())["rows_sha256"]
    assert not again.load(recording.folder, seal)
    assert told(run(Recording(recording.folder))) == told(first)


@pytest.mark.usefixtures("steps")
def test_recording_that_nobody_closed_or_cannot_be_written_beside_keeps_nothing(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = told(run(recording))
    (recording.folder / CACHE).unlink()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")))
    assert told(run(recording)) == whole
    monkeypatch.undo()
    assert [path.name for path in recording.folder.glob("*overview*")] == []
    monkeypatch.setattr(module, "STEP", 3000)
    recording.metadata.pop("rows_sha256")
    run(recording)
    assert not (recording.folder / CACHE).exists()


@pytest.mark.usefixtures("steps")
def test_look_that_is_stopped_keeps_nothing(recording: Recording) -> None:
    scan = OverviewScan(Overview(recording.table), recording)
    scan._stopped.set()
    scan.start()
    scan.stop()
    assert not scan.overview.complete
    assert not (recording.folder / CACHE).exists()
