"""Benchmarks that run sessions in real time: servo, soak, stream, stage, and their interruption."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from apps import cli
from apps.bench import cyclictest, script, soak, stage
from apps.bench.servo import ServoSlice, Slice, Trial
from apps.bench.servo import Settings as ServoSettings
from apps.bench.servo import report as report_servo
from apps.bench.stream import Streamed, missing, report
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.recording.replay import Verification
from haptics.records import ROW
from tests.apps.screen import WHY_NOT
from tests.conftest import MISSING_QT
from tests.processes import program, until

COUNTS = {"ticks": 990, "skipped": 10, "lost_ticks": 0, "overruns": 3}
MACHINE = {"processors": "0, 1", "machine": "Linux 6.18 x86_64", "processor": "a processor"}
REAL_TIME = {"realtime": "fifo", "priority": 80, **MACHINE}
TRIAL = Trial(np.zeros(0, ROW), {}, REAL_TIME, 1.5)


def servo_slice(lateness, frames=30.0, **counts):
    ticks = np.full(1000, 20e-6)
    summary = {"rate_hz": 1000.0, "tick_us": {"p50": 20.0}, "involuntary_switches": 2, **COUNTS, **counts}
    return ServoSlice(np.full(1000, lateness), 0.25, frames, ticks, summary, 1.0, np.arange(1000))


def reference_slice(lateness, frames=30.0):
    return Slice(np.full(1000, lateness), 0.5, frames)


def condition(pairs, frames=30.0, **counts):
    own = [servo_slice(lateness, frames, **counts) for lateness, _ in pairs]
    return own, [reference_slice(lateness, frames) for _, lateness in pairs]


def test_servo_report_takes_the_median_over_pairs_of_slices():
    slices = {"with_view": condition([(10e-6, 20e-6), (5e-3, 20e-6), (10e-6, 20e-6)])}
    outcome = report_servo(slices, TRIAL, 1.0, "cyclictest")
    result = outcome.result
    assert result["ratio_p50"] == result["ratio_p999"] == 0.5 and result["ratio_late_share"] == 1.0
    assert result["period_error_us"]["max"] == pytest.approx(5000.0)
    assert result["late_share"] == pytest.approx(1 / 3)
    assert [pair["ratio_late_share"] for pair in result["slices"]] == [1.0, 1000.0, 1.0]
    assert outcome.error == ""


@pytest.mark.parametrize(
    ("facts", "complaint"), [({"lost_ticks": 4}, "8 ticks with view are missing"), ({"frames": 0.5}, "0.5 frames")]
)
def test_servo_report_names_figures_that_cannot_be_trusted(facts, complaint):
    outcome = report_servo({"with_view": condition([(1e-5, 2e-5)] * 2, **facts)}, TRIAL, 1.0, "cyclictest")
    assert complaint in outcome.error


@pytest.mark.skipif(not shutil.which(cyclictest.NAME), reason="needs cyclictest (Debian package rt-tests)")
@pytest.mark.skipif(bool(MISSING_QT), reason=MISSING_QT)
def test_servo_benchmark_runs_with_a_view(compiled_kernels, tmp_path, monkeypatch, capsys):
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


PASSED: dict[str, Any] = {
    "ticks": 3_599_990,
    "skipped": 11,
    "expected_ticks": 3_600_000,
    "lost_ticks": 0,
    "memory": {"application": {"growth_kib": 100}, "servo": {"samples": 1}},
    "replay": {"ticks": 3_599_990, "mismatches": 0, "error": None},
}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"skipped": 12}, "3600002 deadlines"),
        ({"skipped": 8}, "3599998 deadlines"),
        ({"lost_ticks": 2}, "2 ticks are missing"),
        ({"end_s": 0.41}, "complete 0.41 s after its last tick"),
        ({"memory": {"servo": {"growth_kib": 9000}}}, "the servo has 9000 KiB more"),
        ({"replay": {"ticks": 3_599_990, "mismatches": 1, "error": None}}, "1 of 3599990 ticks differ"),
        ({"replay": {"ticks": 5, "mismatches": 0, "error": None}}, "0 of 5 ticks"),
        ({"replay": {"ticks": 0, "mismatches": 0, "error": "it has lost ticks."}}, "it has lost ticks."),
    ],
)
def test_soak_failures_are_named(change, sentence):
    assert soak.failures(PASSED) == []
    (found,) = soak.failures({**PASSED, **change})
    assert sentence in found


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(soak, "LONGEST_END", 60.0)  # on a busy machine
    (tmp_path / "temporary").mkdir()
    return tmp_path / "temporary"


def test_soak_of_two_seconds_passes(compiled_kernels, temporary, tmp_path, capsys):
    record = tmp_path / "kept"
    assert cli.main(["bench", "soak", "--duration", "2", "--record", str(record), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert abs(result["ticks"] + result["skipped"] - 2000) <= 1 and result["lost_ticks"] == 0
    assert result["replay"] == {"ticks": result["ticks"], "mismatches": 0, "error": None}
    assert result["failures"] == [] and result["device"] == "virtual-joystick"
    assert all(memory["samples"] > 1 and memory["first_kib"] > 1000 for memory in result["memory"].values())
    recording = Recording(Path(result["recording"]))
    assert recording.folder.parent == record and len(recording.rows) == result["ticks"]
    assert result["recording_bytes"] > recording.rows.nbytes
    assert not list(temporary.iterdir()) and not multiprocessing.active_children()


def test_soak_keeps_the_recording_of_a_failed_run_only(temporary, monkeypatch):
    def examined(mismatches):
        monkeypatch.setattr(soak, "verify", lambda recording: Verification(len(recording.rows), mismatches, None))
        return soak.run(lambda share, words: None, duration=1.0, rate=500.0)

    passed = examined(0)
    assert passed.error == "" and passed.result["recording"] is None and not list(temporary.iterdir())
    assert "not kept" in passed.text
    failed = examined(7)
    assert "7 of" in failed.error and Recording(Path(failed.result["recording"])).metadata["state"] == "complete"


@pytest.mark.parametrize(
    ("kind", "wrong", "words"),
    [
        (ServoSettings, {"slice": 30.0}, "4 slices of"),
        (ServoSettings, {"duration": 1.0}, "4 slices of"),
        (ServoSettings, {"rate": 99.0}, r"bench servo\.rate = "),
        (ServoSettings, {"rate": 8001.0}, r"bench servo\.rate = "),
        (ServoSettings, {"scheduling": "idle"}, r"bench servo\.scheduling = "),
        (ServoSettings, {"view": "maybe"}, r"bench servo\.view = "),
        (lambda **wrong: soak.run(lambda share, words: None, **wrong), {"duration": 0.5}, r"bench soak\.duration = "),
        (lambda **wrong: soak.run(lambda share, words: None, **wrong), {"rate": 9000.0}, r"bench soak\.rate = "),
    ],
)
def test_wrong_settings_of_a_benchmark_are_refused_by_name(kind, wrong, words):
    with pytest.raises(ConfigurationError, match=words):
        kind(**wrong)


def test_soak_without_disk_space_is_refused(temporary, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**6))
    with pytest.raises(ConfigurationError, match=r"no room in .* for a recording of 1077 MB"):
        soak.run(lambda share, words: None)
    assert not list(temporary.iterdir())


def streamed(lateness, tick=20e-6, away=0, **counts):
    own = servo_slice(lateness, None, **counts)
    own.tick_time[:] = tick
    return Streamed(own) if away is None else Streamed(own, 990 - away, away, min(away, 1))


def test_report_takes_the_median_over_rounds():
    slices = {
        "off": [streamed(lateness, away=None) for lateness in (10e-6, 20e-6, 10e-6)],
        "udp": [streamed(20e-6, 30e-6), streamed(40e-6, 30e-6), streamed(5e-3, 90e-6)],
        "websocket": [streamed(10e-6), streamed(20e-6), streamed(10e-6)],
    }
    outcome = report(slices, TRIAL, 1.0)
    udp, websocket = outcome.result["streams"]
    assert (udp["stream"], udp["ratio_p99"], udp["ratio_p999"], udp["ratio_tick"]) == ("udp", 2.0, 2.0, 1.5)
    assert (websocket["ratio_p99"], websocket["ratio_tick"]) == (1.0, 1.0)
    assert (udp["received"], udp["missing"], len(udp["slices"])) == (3 * 990, 0, 3)
    assert outcome.result["without"]["ticks"] == 3 * 990
    assert outcome.error == ""
    json.dumps(outcome.result, allow_nan=False)
    lines = outcome.text.splitlines()
    assert [line.split()[0] for line in lines[-5:]] == ["off", "udp", "ratio", "websocket", "ratio"]


def test_report_allows_lost_datagrams_but_no_websocket_losses():
    base = [streamed(1e-5, away=None)]
    assert report({"off": base, "udp": [streamed(1e-5, away=3)]}, TRIAL, 1.0).error == ""
    said = report({"off": base, "websocket": [streamed(1e-5, away=3)]}, TRIAL, 1.0).error
    assert said == "the client of websocket missed 3 ticks in 1 gaps."
    assert "missed 990 ticks" in report({"off": base, "udp": [streamed(1e-5, away=990)]}, TRIAL, 1.0).error
    lost = report({"off": base, "udp": [streamed(1e-5, lost_ticks=2)]}, TRIAL, 1.0).error
    assert "2 ticks (udp) are missing in the recordings" in lost


def test_missing_ticks_are_counted_with_their_gaps():
    executed = np.array([0, 1, 2, 5, 6, 7, 8, 9])  # 3 and 4 were skipped
    assert missing(executed, executed[::-1]) == (0, 0)
    assert missing(executed, np.array([2, 5, 8, 5])) == (5, 3)
    assert missing(executed, np.array([], np.int64)) == (8, 1)


def test_stream_benchmark_runs_with_both_streams(compiled_kernels, tmp_path, monkeypatch, capsys):
    pytest.importorskip("websockets")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    status = cli.main(["bench", "stream", "--duration", "3", "--json"])
    output, words = capsys.readouterr()
    assert status == 0, words
    result = json.loads(output)
    assert [one["stream"] for one in result["streams"]] == ["udp", "websocket"]
    for one in result["streams"]:
        assert (one["ticks"] + one["skipped"], one["lost_ticks"]) == (1000, 0)
        assert one["ratio_p99"] > 0.0 and one["ratio_tick"] > 0.0
    assert (result["streams"][1]["missing"], result["streams"][1]["gaps"]) == (0, 0)
    assert result["streams"][1]["received"] == result["streams"][1]["ticks"]
    assert not list(tmp_path.iterdir())


def test_script_benchmark_measures_scripts_ends_and_changes(compiled_kernels, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(script, "BUSY", ("blocks", "stopped"))
    status = cli.main(["bench", "script", "--duration", "3", "--changes", "20", "--json"])
    output, words = capsys.readouterr()
    assert status == 0, words
    result = json.loads(output)
    assert list(result["scripts"]) == ["blocks", "stopped"]
    for one in (result["without"], *result["scripts"].values()):
        assert one["ticks"] + one["skipped"] == pytest.approx(1000, abs=1)
    assert all(0.0 < one["p50_ms"] <= one["max_ms"] for one in result["ends"].values())
    changes = result["changes"]
    assert (changes["mismatches"], changes["wrong_ticks"], changes["verdict"]) == (0, 0, "ok")
    assert 0.0 < changes["delay_ms"]["p50"] <= changes["delay_ms"]["p99"]
    assert not list(tmp_path.iterdir())


@pytest.fixture
def shown(screen, monkeypatch):
    monkeypatch.setenv("DISPLAY", screen.environment["DISPLAY"])


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.usefixtures("shown")
def test_stage_benchmark_compares_with_a_cleared_window(monkeypatch):
    monkeypatch.setattr(stage, "ROUNDS", 2)
    outcome = stage.run(lambda share, words: None)
    found = outcome.result
    assert found["shapes"] + found["standing_shapes"] <= 100
    assert found["shapes"] > 20
    assert 0 < found["frame_ms"]["p50"] <= found["frame_ms"]["p95"]
    assert found["ratio_p50"] > 1.0
    assert found["within_budget"] == (found["frame_ms"]["p95"] < stage.BUDGET)
    assert "ratio" in outcome.text


def alive(group):
    """Return the commands of the processes of `group` that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, _, process_group = rest.split()[:3]
        if int(process_group) == group and state not in "ZX":
            found.append(name)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
@pytest.mark.parametrize("name", ["servo", "soak"])
def test_interrupt_ends_the_benchmark_and_its_processes(compiled_kernels, name, tmp_path):
    if name == "servo" and not shutil.which(cyclictest.NAME):
        pytest.skip("needs cyclictest (Debian package rt-tests)")
    command = ("-m", "apps", "bench", name, "--duration", "30", "--json")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with program(*command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as process:
        until(lambda: process.poll() is not None or len(alive(process.pid)) > 1, "no session was started")
        assert process.poll() is None
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30.0)
        assert process.returncode == 130 and output == '{"error": "interrupted"}\n'
        until(lambda: not alive(process.pid), "a process of the benchmark remains", 10.0)
    assert list(tmp_path.iterdir()) == []
