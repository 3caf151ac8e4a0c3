from __future__ import annotations

import json
import multiprocessing
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps import cli
from apps.bench.live import cyclictest
from apps.bench.live.beside import Feeder
from apps.bench.live.servo import Settings
from apps.bench.live.servo_report import report
from apps.bench.live.servo_slices import Condition, ServoSlice, Slice, Trial
from haptics.errors import ConfigurationError
from haptics.records import ROW
from haptics.trace import Reader, Trace
from tests.conftest import MISSING_QT

COUNTS = {"ticks": 990, "skipped": 10, "lost_ticks": 0, "overruns": 3}
REAL_TIME = {
    "scheduling": "fifo",
    "priority": 80,
    "processors": "0, 1",
    "machine": "Linux 6.18 x86_64",
    "processor": "a processor",
}
TRIAL = Trial(np.zeros(0, ROW), {}, REAL_TIME, 1.5)


def servo_slice(lateness: float, frames: float | None = 30.0, **counts: int) -> ServoSlice:
    ticks = np.full(1000, 20e-6)
    summary = {"rate_hz": 1000.0, "tick_us": {"p50": 20.0}, "involuntary_switches": 2, **COUNTS, **counts}
    return ServoSlice(np.full(1000, lateness), 0.25, frames, ticks, summary, 1.0, np.arange(1000))


def reference_slice(lateness: float, frames: float | None = 30.0) -> Slice:
    return Slice(np.full(1000, lateness), 0.5, frames)


def condition(pairs: list[tuple[float, float]], frames: float | None = 30.0, **counts: int) -> Condition:
    own = [servo_slice(lateness, frames, **counts) for lateness, _ in pairs]
    return Condition(own, [reference_slice(lateness, frames) for _, lateness in pairs])


def test_what_counts_is_the_median_over_pairs_not_one_bad_slice() -> None:
    outcome = report(
        {"with_view": condition([(10e-6, 20e-6), (5e-3, 20e-6), (10e-6, 20e-6)])}, TRIAL, 1.0, "cyclictest"
    )
    result = outcome.result
    assert result["ratio_p50"] == result["ratio_p999"] == 0.5 and result["ratio_late_share"] == 1.0
    assert result["period_error_us"]["max"] == pytest.approx(5000.0)
    assert result["late_share"] == pytest.approx(1 / 3)
    assert [pair["ratio_late_share"] for pair in result["slices"]] == [1.0, 1000.0, 1.0]
    assert outcome.error == ""


def test_the_result_has_what_a_run_has_and_the_reference_beside_it() -> None:
    slices = {"with_view": condition([(1e-5, 2e-5)] * 2), "without_view": condition([(3e-5, 2e-5)], frames=None)}
    result = report(slices, TRIAL, 1.0, "cyclictest --loops=1").result
    json.dumps(result, allow_nan=False)
    assert result["device"] == "virtual-joystick" and result["model"] == "C" and result["rate_hz"] == 1000.0
    assert result["ticks"] == 1980 and result["skipped"] == 20 and result["overruns"] == 6
    assert set(result["period_error_us"]) == {"p50", "p99", "p999", "max"}
    assert set(result["reference"]) >= {"p50", "p99", "p999", "max", "late_share"}
    assert result["tick_us"]["p50"] == pytest.approx(20.0)
    assert result["realtime"] == "fifo" and result["priority"] == 80
    assert result["stolen_s"] == 0.5 and result["reference"]["stolen_s"] == 1.0
    headline = result["conditions"]["with_view"]
    assert headline["ratio_p99"] == result["ratio_p99"] == pytest.approx(0.5)
    assert result["conditions"]["without_view"]["ratio_p99"] == pytest.approx(1.5)
    assert result["conditions"]["without_view"]["view_frames_per_s"] is None


def test_the_table_shows_both_candidates_under_every_condition() -> None:
    slices = {"with_view": condition([(1e-5, 2e-5)]), "without_view": condition([(3e-5, 2e-5)], frames=None)}
    lines = report(slices, TRIAL, 1.0, "cyclictest", "a remark").text.splitlines()
    assert sum("servo " in line for line in lines) == sum("cyclictest " in line for line in lines) == 2
    assert any(line.startswith("without view") for line in lines) and lines[-1] == "a remark"
    assert "fifo, priority 80" in lines[0]


@pytest.mark.parametrize(
    ("facts", "complaint"), [({"lost_ticks": 4}, "8 ticks with view are missing"), ({"frames": 0.5}, "0.5 frames")]
)
def test_figures_that_cannot_be_trusted_are_said_to_be(facts: dict[str, Any], complaint: str) -> None:
    outcome = report({"with_view": condition([(1e-5, 2e-5)] * 2, **facts)}, TRIAL, 1.0, "cyclictest")
    assert complaint in outcome.error


@given(st.floats(2.0, 1000.0), st.sampled_from(["on", "off", "both"]))
def test_all_slices_fit_into_the_duration(duration: float, view: str) -> None:
    settings = Settings(duration=duration, view=view)
    assert 0.5 <= settings.length <= 10.0 and settings.rounds >= 1
    assert 0.5 * duration < settings.rounds * settings.turns * settings.length <= duration * (1 + 1e-9)


@pytest.mark.parametrize("wrong", [{"slice": 30.0}, {"slice": 0.1}, {"duration": 1.0}])
def test_slices_that_do_not_fit_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="4 slices of"):
        Settings(**wrong)


@pytest.mark.parametrize("wrong", [{"rate": 99.0}, {"rate": 8001.0}, {"scheduling": "idle"}, {"view": "maybe"}])
def test_values_that_are_not_allowed_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=rf"bench servo\.{next(iter(wrong))} = "):
        Settings(**wrong)


@given(st.lists(st.floats(0.0, 0.4), min_size=1, max_size=20))
def test_the_trace_of_the_view_goes_on_without_a_gap(
    tmp_path_factory: pytest.TempPathFactory, steps: list[float]
) -> None:
    trace = Trace.create(tmp_path_factory.mktemp("view") / "ring", capacity=512)
    rows = np.zeros(70, ROW)
    rows["tick"] = np.arange(70)
    rows["status"] = np.arange(70)
    feeder, reader = Feeder(trace, rows, 1000.0), Reader(trace)
    now, seen = feeder._start, []
    for step in steps:
        now += step
        feeder.feed(now)
        seen += reader.read().tolist()
    assert reader.lost == 0
    assert all(after[0] == before[0] + 1 for before, after in pairwise(seen))
    assert trace.count == pytest.approx(1000.0 * (now - feeder._start), abs=1.0)


@pytest.mark.skipif(not shutil.which(cyclictest.NAME), reason="needs cyclictest (Debian package rt-tests)")
@pytest.mark.skipif(bool(MISSING_QT), reason=MISSING_QT)
def test_a_short_run_beside_a_view_that_draws(
    compiled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    status = cli.main(["bench", "servo", "--duration", "1", "--slice", "0.5", "--view", "on", "--json"])
    output, words = capsys.readouterr()
    if "scheduling policy" in words or "mlockall" in words:
        pytest.skip(f"cyclictest may not run here: {words}")
    assert status == 0, words
    result = json.loads(output)
    assert result["ticks"] + result["skipped"] == 500 and result["lost_ticks"] == 0
    assert result["view_frames_per_s"] > 0.0
    assert result["reference"]["p50"] > 0.0 and result["ratio_p50"] >= 0.0
    assert result["conditions"]["with_view"]["slices"][0]["servo"]["ticks"] == result["ticks"]
    assert result == {**result["benchmarks"]["servo"], "benchmarks": result["benchmarks"]}
    assert not list(tmp_path.iterdir()) and not multiprocessing.active_children()
