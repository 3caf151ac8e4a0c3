"""Certificates, flags and checks of a run, accumulated from its rows in pieces."""

import numpy as np
import pytest

from haptics.device import Causality
from haptics.recording import certificate as module
from haptics.recording.certificate import BIN_EDGES_US, Distribution, Fitness, RunSummary, quantiles
from haptics.recording.checks import Scan
from haptics.recording.recorder import Recorder
from haptics.recording.tick_file import TickTable
from haptics.records import ROW, Permission, Status
from haptics.trace import Reader, Trace
from tests.certificates import certificate, felt, flags_seen


def rows_of(count, skipped_from=None):
    rows = np.zeros(count, ROW)
    rows["tick"] = np.arange(count)
    if skipped_from is not None:
        rows["tick"][skipped_from:] += 5
    rows["period_error"] = np.arange(count) * 1e-6
    rows["tick_time"] = 20e-6
    rows["command"] = (3.0, 4.0)
    rows["force"] = (0.0, 2.0)
    rows["sticking"][: count // 4] = 1
    return rows


def test_ticks_and_skips_add_up_to_the_plan():
    rows = rows_of(95, skipped_from=50)
    found = certificate(rows, executed=95, planned=100, period=1e-3)
    assert (found["ticks"], found["skipped"], found["lost_ticks"]) == (95, 5, 0)
    assert found["longest_gap_us"] == pytest.approx(6001.0)
    # Ended before its time: the plan is the number of ticks up to the last one.
    assert certificate(rows, executed=95, planned=None, period=1e-3)["skipped"] == 5
    assert certificate(rows_of(90), executed=95, planned=95, period=1e-3)["lost_ticks"] == 5
    assert certificate(rows_of(0), 0, None, period=1e-3)["ticks"] == 0


def test_late_ticks_are_counted_and_listed():
    rows = rows_of(100)
    rows["status"][[3, 7]] = Status.STARTED_LATE
    rows["status"][8] = Status.ENDED_LATE | Status.STARTED_LATE
    found = certificate(rows, 100, 100, period=1e-3)
    assert found["overruns"] == 3
    assert found["late_ticks"] == [3, 7, 8]
    assert flags_seen(rows) == {"STARTED_LATE": 3, "ENDED_LATE": 1}


def test_felt_force_is_the_command_or_the_measured_force():
    rows = rows_of(100)
    assert felt(rows, Causality.IMPEDANCE) == {"force_n": {"mean": 5.0, "max": 5.0}, "stick_fraction": 0.25}
    assert felt(rows, Causality.ADMITTANCE)["force_n"] == {"mean": 2.0, "max": 2.0}
    rows["force"][5] = np.nan
    assert felt(rows, Causality.ADMITTANCE)["force_n"]["max"] == pytest.approx(2.0)
    assert felt(rows[:0], Causality.IMPEDANCE) == {"force_n": {}, "stick_fraction": None}


def test_run_with_a_fault_is_never_fit():
    timing = {"ticks": 1000, "skipped": 0, "overruns": 0, "unusable_ticks": 0, "longest_gap_us": 1e3, "lost_ticks": 0}
    assert Fitness().evaluate(timing) == []
    (complaint,) = Fitness(lost_ticks=10.0).evaluate(timing, "the disk is full")
    assert "fault: the disk is full" in complaint


def random_run(count, seed=1):
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, ROW)
    rows["tick"] = np.cumsum(rng.choice([1, 1, 1, 4], count)) - 1
    for name in ("period_error", "tick_time", "sample_age", "write_time"):
        rows[name] = rng.gamma(2.0, 20e3, count).astype(np.int64) * 1e-9
    rows["sample_age"][rng.random(count) < 0.01] = np.inf
    rows["status"] = rng.choice([0, int(Status.STARTED_LATE), int(Status.STALE | Status.FADE)], count)
    rows["sticking"] = rng.random(count) < 0.3
    rows["command"], rows["force"] = rng.normal(size=(2, count, 2))
    rows["force"][rng.random(count) < 0.01] = np.nan
    return rows


def everything(summary):
    return {
        **summary.certificate(summary.count + 3, None),
        "flags": summary.flags_seen(),
        **{str(kind): summary.force_statistics(kind) for kind in Causality},
    }


def test_summary_agrees_with_numpy_on_all_rows_at_once():
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
def test_quantiles_of_few_values_are_interpolated_as_numpy_does(count):
    values = np.random.default_rng(count).normal(size=count)
    found = Distribution()
    for value in values:
        found.add(np.array([value, np.nan]))
    expected = np.percentile(values, [50.0, 99.0, 99.9, 100.0])
    assert list(found.quantiles(scale=1.0, p999=True).values()) == [round(float(one), 3) for one in expected]
    assert quantiles(values[:0], scale=1.0) == {}


def test_quantiles_of_many_values_are_within_half_the_resolution(monkeypatch):
    monkeypatch.setattr(module, "MAX_EXACT_VALUES", 1000)
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


def test_certificate_states_the_resolution_of_its_quantiles(monkeypatch):
    rows = random_run(20_000)
    assert "resolution_us" not in RunSummary(1e-3).add(rows).certificate(len(rows), None)
    monkeypatch.setattr(module, "MAX_EXACT_VALUES", 5000)
    found = RunSummary(1e-3).add(rows).certificate(len(rows), None)
    assert set(found["resolution_us"]) == {"period_error_us", "tick_us", "sample_age_us", "write_us"}
    expected = np.percentile(rows["tick_time"], 50.0) * 1e6
    assert found["tick_us"]["p50"] == pytest.approx(expected, abs=0.5 * found["resolution_us"]["tick_us"] + 5e-4)


def test_recorder_summarises_its_own_rows(tmp_path):
    trace = Trace.create(tmp_path / "trace", capacity=64)
    recorder = Recorder(tmp_path / "run", {"rate_hz": 500.0})
    recorder.attach(Reader(trace))
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


# --- checks of each row


COUNT = 100
PIECES = [1, 3, 17, 41, 60, COUNT]


def sound():
    rows = np.zeros(COUNT, ROW)
    rows["tick"], rows["gate"] = np.arange(COUNT), 1.0
    rows["time"] = rows["tick"] * 1e-3
    return rows


def scanned(rows, size, dead_man="none"):
    scan = Scan(1e-3, dead_man)
    for start in range(0, len(rows), size):
        scan.add(rows[start : start + size])
    return scan, list(scan.findings())


def skip(rows):
    rows["tick"][41:] += 7
    rows["time"] = rows["tick"] * 1e-3


def explained(rows):
    skip(rows)
    rows["status"][41] = int(Status.AFTER_SKIP)


def go_back(rows):
    rows["tick"][60] = 58


def start_late(rows):
    rows["tick"] += 3
    rows["time"] = rows["tick"] * 1e-3


def older_settings(rows):
    rows["settings_version"][20:] = 2
    rows["settings_version"][70:] = 1


def spoil_times(rows):
    rows["time"][[5, 50, 90]] += 1e-6
    rows["period_error"][[7, 8]] = np.nan
    rows["status"][[30, 31]] = int(Status.ENDED_LATE)
    rows["gate"][99] = 1.5


SPOILT = {"time": (5, 3), "period_error": (7, 2), "ended_late": (30, 2), "gate": (99, 1)}


@pytest.mark.parametrize("size", PIECES)
@pytest.mark.parametrize(
    ("change", "gap", "back", "older", "broken"),
    [
        (lambda rows: None, COUNT, None, None, {}),
        (skip, 41, None, None, {}),
        (explained, COUNT, None, None, {}),
        (go_back, 60, (59, 58), None, {"time": (58, 1)}),
        (start_late, 0, None, None, {}),
        (older_settings, COUNT, None, 70, {}),
        (spoil_times, COUNT, None, None, SPOILT),
    ],
)
def test_scan_in_pieces_of_any_size_finds_gaps_and_bad_values(change, gap, back, older, broken, size):
    rows = sound()
    change(rows)
    scan, findings = scanned(rows, size)
    assert (scan.gap, scan.back, scan.older_settings) == (gap, back, older)
    told = {one.rule: (one.tick, int(one.words.rpartition("(")[2].split()[0])) for one in findings}
    assert told == broken


@pytest.mark.parametrize("size", PIECES)
def test_scan_judges_permissions_by_the_dead_man(size):
    rows = sound()
    rows["permission"][40:50] = int(Permission.ENDING)
    rows["permission"][60:] = int(Permission.RELEASED)
    _, findings = scanned(rows, size)
    assert [(one.words.split(",")[0], one.tick) for one in findings] == [
        ("a run that was ending went on", 50),
        ("a dead-man's switch was released", 60),
    ]
    _, findings = scanned(rows, size, dead_man="button")
    assert [one.rule for one in findings] == ["permission", "buttons"]
