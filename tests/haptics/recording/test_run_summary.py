"""Certificates, forces and flags that are accumulated from pieces of a run."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from haptics.device import Causality
from haptics.recording import certificate as module
from haptics.recording.certificate import BIN_EDGES_US, Distribution, RunSummary
from haptics.recording.recorder import Recorder
from haptics.recording.tick_file import TickFile, TickTable
from haptics.records import ROW, Rows, Status
from haptics.trace import Reader, Trace


def nanoseconds(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.gamma(2.0, 20e3, count).astype(np.int64) * 1e-9


def random_run(count: int, seed: int = 1) -> Rows:
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, ROW)
    rows["tick"] = np.cumsum(rng.choice([1, 1, 1, 4], count)) - 1
    for name in ("period_error", "tick_time", "sample_age", "write_time"):
        rows[name] = nanoseconds(rng, count)
    rows["sample_age"][rng.random(count) < 0.01] = np.inf
    rows["status"] = rng.choice([0, int(Status.STARTED_LATE), int(Status.STALE | Status.FADE)], count)
    rows["sticking"] = rng.random(count) < 0.3
    rows["command"], rows["force"] = rng.normal(size=(2, count, 2))
    rows["force"][rng.random(count) < 0.01] = np.nan
    return rows


def everything(summary: RunSummary) -> dict[str, object]:
    return {
        **summary.certificate(summary.count + 3, None),
        "flags": summary.flags_seen(),
        **{str(kind): summary.felt(kind) for kind in Causality},
    }


@pytest.mark.parametrize("size", [1, 20, 777, 4096, 20_000])
def test_summary_does_not_depend_on_the_size_of_the_pieces(size: int) -> None:
    rows = random_run(20_000)
    whole, pieces = RunSummary(1e-3).add(rows), RunSummary(1e-3)
    for start in range(0, len(rows), size):
        pieces.add(rows[start : start + size])
    assert everything(pieces) == everything(whole)


def test_summary_agrees_with_numpy_on_all_rows_at_once() -> None:
    rows = random_run(50_001)
    found = RunSummary(1e-3).add(rows).certificate(len(rows), None)
    ages = rows["sample_age"][np.isfinite(rows["sample_age"])]
    expected = np.percentile(ages, [50.0, 99.0, 100.0]) * 1e6
    assert list(found["sample_age_us"].values()) == [round(float(value), 3) for value in expected]
    expected = np.percentile(rows["period_error"], [50.0, 99.0, 99.9, 100.0]) * 1e6
    assert list(found["period_error_us"].values()) == [round(float(value), 3) for value in expected]
    starts = rows["tick"] * 1e-3 + rows["period_error"]
    assert found["longest_gap_us"] == round(float(np.diff(starts).max()) * 1e6, 3)
    counts = np.histogram(np.minimum(rows["tick_time"] * 1e6, BIN_EDGES_US[-1]), BIN_EDGES_US)[0]
    assert found["histograms"]["tick_us"] == counts.tolist()
    assert found["late_ticks"] == rows["tick"][rows["status"] == int(Status.STARTED_LATE)][:1000].tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 1001])
def test_quantiles_of_few_values_are_interpolated_as_numpy_does(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    found = Distribution()
    for value in values:
        found.add(np.array([value, np.nan]))
    expected = np.percentile(values, [50.0, 99.0, 99.9, 100.0])
    assert list(found.quantiles(scale=1.0, p999=True).values()) == [round(float(one), 3) for one in expected]


def test_more_values_than_are_told_apart_are_off_by_half_of_the_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 1000)
    values, found = np.random.default_rng(2).normal(20e-6, 3e-6, 400_000), Distribution()
    for piece in np.array_split(values, 37):
        found.add(piece)
    quantiles = found.quantiles(scale=1e9, p999=True)
    assert 16e-9 <= found.resolution <= 64e-9
    other = Distribution()
    for piece in np.array_split(values[::-1], 11):
        other.add(piece)
    assert (other.quantiles(scale=1e9, p999=True), other.resolution) == (quantiles, found.resolution)
    for name, percent in (("p50", 50.0), ("p99", 99.0), ("p999", 99.9)):
        assert quantiles[name] == pytest.approx(np.percentile(values, percent) * 1e9, abs=0.5e9 * found.resolution)
    assert quantiles["max"] == round(float(values.max()) * 1e9, 3)
    inside = np.clip(values * 1e6, 0.0, None)
    assert found.histogram() == np.histogram(inside, BIN_EDGES_US)[0].tolist()


def test_certificate_says_where_its_quantiles_are_not_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_run(20_000)
    assert "resolution_us" not in RunSummary(1e-3).add(rows).certificate(len(rows), None)
    monkeypatch.setattr(module, "MOST_VALUES", 5000)
    found = RunSummary(1e-3).add(rows).certificate(len(rows), None)
    assert set(found["resolution_us"]) == {"period_error_us", "tick_us", "sample_age_us", "write_us"}
    expected = np.percentile(rows["tick_time"], 50.0) * 1e6
    assert found["tick_us"]["p50"] == pytest.approx(expected, abs=0.5 * found["resolution_us"]["tick_us"] + 5e-4)


def test_memory_does_not_grow_with_the_run() -> None:
    def peak(pieces: int) -> int:
        summary = RunSummary(1e-3)
        tracemalloc.start()
        for k in range(pieces):
            summary.add(random_run(20_000, seed=k % 3))
        summary.certificate(summary.count, None)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(2)
    assert peak(40) < 1.1 * peak(10)


def test_recorder_knows_the_certificate_of_what_it_has_written(tmp_path: Path) -> None:
    trace = Trace.create(tmp_path / "trace", capacity=64)
    recorder = Recorder(tmp_path / "run", {"rate_hz": 500.0})
    recorder.follow(Reader(trace))
    rows = random_run(300)
    for number, row in enumerate(rows):
        trace.append(row)
        if number % 50 == 0:
            recorder.drain()
    recorder.drain()
    recorder.close({}, complete=True)
    table = TickTable(tmp_path / "run" / "ticks.npy")
    read = RunSummary(1.0 / 500.0).add(table.read())
    assert recorder.summary.count == len(table) == 300
    assert everything(recorder.summary) == everything(read)
    assert recorder.metadata["rows_sha256"] == table.sha256()


def test_table_that_was_appended_to_again_has_the_hash_of_all_its_rows(tmp_path: Path) -> None:
    file = TickFile(tmp_path / "ticks.npy")
    file.append(random_run(10))
    file.close()
    file = TickFile(tmp_path / "ticks.npy", append=True)
    file.append(random_run(5))
    assert file.close() == TickTable(tmp_path / "ticks.npy").sha256()
