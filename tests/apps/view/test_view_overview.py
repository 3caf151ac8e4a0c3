"""The overview of a recording: extremes, marks, counts, and its cache."""

from __future__ import annotations

import json
import shutil
from typing import Any

import numpy as np
import pytest

from apps.view import overview as module
from apps.view.feed import ReplayFeed
from apps.view.history import Counts
from apps.view.overview import BINS, CACHE, Overview, OverviewScan, row_of
from haptics.device import Causality
from haptics.recording.recording import Recording
from haptics.recording.tick_file import TableInMemory, TickTable
from haptics.records import ROW, Status
from tests.apps.session.test_picture import record

COUNT = 20_000


@pytest.fixture
def steps(monkeypatch):
    """Limit the rows that an overview reads at a time."""
    monkeypatch.setattr(module, "STEP", 3000)
    monkeypatch.setattr("apps.view.feed.STEP", 3000)
    monkeypatch.setattr(module, "WORTH_KEEPING", 10_000)


def made(count=COUNT):
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


def scanned(rows):
    found = Overview(TableInMemory(rows))
    assert found.scan()
    return found


@pytest.mark.usefixtures("steps")
def test_overview_extremes_cover_all_rows():
    rows = made()
    rows["velocity"][7] = np.nan
    found = scanned(rows)
    parts = np.arange(COUNT) * BINS // COUNT
    for extremes, name in ((found.force, "command"), (found.speed, "velocity")):
        norms = np.nan_to_num(np.hypot(*rows[name].T))
        for part in (0, 1, 7, 600, 615, 2000, BINS - 1):
            inside = norms[parts == part]
            np.testing.assert_allclose(extremes[part], (inside.min(), inside.max()), rtol=1e-6)
    assert np.isfinite(scanned(made(100)).force).all(axis=1).sum() == 100, "empty bins are unknown"


@pytest.mark.usefixtures("steps")
def test_marks_are_set_at_changes():
    rows = made()
    rows["status"][2990:3020] |= int(Status.STALE)  # across two chunks
    rows["status"][9000] |= int(Status.STALE)
    rows["status"][9500] |= int(Status.STALE)  # within a second of the one before
    rows["status"][15_000:15_500] |= int(Status.ENERGY)
    rows["marker"][6000:], rows["marker"][12_500:] = 1, 2
    rows["settings_version"][8000:] = 3
    found = [(mark.kind, mark.row, mark.words) for mark in scanned(rows).marks]
    assert found == [
        ("unusable", 2990, "no usable sample"), ("trial", 6000, "marker 1"), ("settings", 8000, "settings 3"),
        ("unusable", 9000, "no usable sample"), ("skipped", 10_000, "deadlines were missed"),
        ("trial", 12_500, "marker 2"), ("limit", 15_000, module.KINDS["limit"]),
    ]  # fmt: skip


def test_number_of_marks_is_limited(monkeypatch):
    monkeypatch.setattr(module, "MOST_MARKS", 50)
    rows = made()
    rows["marker"] = np.arange(COUNT)
    rows["status"][::2] |= int(Status.SPEED)
    kinds = [mark.kind for mark in scanned(rows).marks]
    assert kinds.count("trial") <= 50
    assert kinds.count("limit") <= 50


def test_keys_and_the_end_are_marked():
    rows, found = made(), scanned(made())
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


def state(counts):
    return {
        **{name: value for name, value in vars(counts).items() if isinstance(value, int | float)},
        "flags": counts.flags.tolist(),
        "last": counts.last.tolist(),
        "durations": [(one.counts.tolist(), one.maximum) for one in (counts.lateness, counts.tick_times)],
    }


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("places", [(19_999, 0, 12_345), (5, 19_000, 2999, 3000, 3001)])
def test_seek_restores_the_counts_of_all_earlier_rows_once_they_were_scanned(places):
    rows = made()
    rows["status"][4000] |= int(Status.STALE)
    overview = Overview(TableInMemory(rows))
    feed = ReplayFeed(rows, 1000.0, overview=overview)
    feed.show_span(1.0)
    feed.seek(15_000)
    assert not feed.counted, "unknown until the overview is complete"
    assert overview.scan()
    for place in places:
        feed.seek(place)
        assert (feed.index, feed.tick, feed.counted) == (place, rows["tick"][place], True)
        expected = Counts()
        expected.add(rows[: place + 1])
        assert state(feed.counts) == state(expected)
        assert feed.history.count == place + 1


class Watched(TableInMemory):
    """Table that keeps the largest number of rows read at a time."""

    most = 0

    def read(self, start=0, stop=None, columns=None):
        found = super().read(start, stop, columns)
        self.most = max(self.most, len(found))
        return found


@pytest.mark.usefixtures("steps")
def test_seek_reads_only_the_visible_rows(monkeypatch):
    rows = made()
    table = Watched(rows)
    monkeypatch.setattr("apps.view.feed.table_of", lambda source: table)
    feed = ReplayFeed(rows, 1000.0, overview=scanned(rows))
    feed.show_span(1.0)
    for place in (19_999, 100, 9000, 9001, 9800):
        feed.seek(place)
    assert table.most == 1000
    feed.show_span(5.0)
    assert table.most == 5000
    assert len(feed.history) == 5000


@pytest.mark.parametrize("time", [-1.0, 0.0, 0.0005, 3.0, 10.001, 10.0049, 1e9])
def test_row_is_found_by_its_time(time):
    rows = made()
    expected = max(int(np.searchsorted(rows["time"], time, side="right")) - 1, 0)
    for near in (0, 1, 2999, 3001, 10_000, 10_004, COUNT - 1, COUNT, -1):
        assert row_of(TableInMemory(rows), "time", time, near) == expected


# --- cache ------------------------------------------------------------------------------------


@pytest.fixture
def recording(tmp_path):
    rows = made()
    rows["status"][9000] |= int(Status.STALE)
    return record(tmp_path, rows, Causality.IMPEDANCE, {"reason": "completed"})


def run(recording):
    scan = OverviewScan(Overview(recording.table), recording)
    scan.start()
    scan._thread.join()
    assert scan.over
    return scan.overview


def contents(overview):
    states = [state(one) for one in overview._states]
    return [overview.force.tolist(), overview.speed.tolist(), overview.marks, states]


@pytest.mark.usefixtures("steps")
def test_cached_overview_equals_the_first_one(recording, monkeypatch):
    first = run(recording)
    assert (recording.folder / CACHE).exists()
    monkeypatch.setattr(TickTable, "chunks", None)
    assert contents(run(recording)) == contents(first)


def spoil(folder, way):
    """Make the cache stale or hostile."""
    cache, description = folder / CACHE, folder / "recording.json"
    with np.load(cache) as kept:
        arrays = dict(kept)
    if way == "other ticks":
        description.write_text(json.dumps(json.loads(description.read_text()) | {"rows_sha256": "0" * 64}))
    elif way == "truncated":
        cache.write_bytes(cache.read_bytes()[: cache.stat().st_size // 2])
    elif way == "link":
        shutil.move(cache, folder.parent / "elsewhere.npz")
        cache.symlink_to(folder.parent / "elsewhere.npz")
    else:
        arrays |= {
            "objects": {"force": np.array([{}], dtype=object)},
            "shapes": {"counts": np.zeros((3, 1))},
            "marks": {"marks_limit": np.array([[10**12, 0]])},
            "nan": {"counts": np.full(arrays["counts"].shape, np.nan)},
        }[way]
        np.savez(cache, **arrays)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("way", ["other ticks", "truncated", "link", "objects", "shapes", "marks", "nan"])
def test_stale_or_hostile_cache_is_ignored(recording, way):
    first = run(recording)
    spoil(recording.folder, way)
    again = Overview(recording.table)
    seal = json.loads((recording.folder / "recording.json").read_text())["rows_sha256"]
    assert not again.load(recording.folder, seal)
    assert contents(run(Recording(recording.folder))) == contents(first)


@pytest.mark.usefixtures("steps")
def test_unclosed_or_unwritable_recording_has_no_cache(recording, monkeypatch):
    whole = contents(run(recording))
    (recording.folder / CACHE).unlink()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")))
    assert contents(run(recording)) == whole
    monkeypatch.undo()
    assert [path.name for path in recording.folder.glob("*overview*")] == []
    monkeypatch.setattr(module, "STEP", 3000)
    recording.metadata.pop("rows_sha256")
    run(recording)
    assert not (recording.folder / CACHE).exists()


@pytest.mark.usefixtures("steps")
def test_stopped_scan_leaves_no_cache(recording):
    scan = OverviewScan(Overview(recording.table), recording)
    scan._stopped.set()
    scan.start()
    scan.stop()
    assert not scan.overview.complete
    assert not (recording.folder / CACHE).exists()
