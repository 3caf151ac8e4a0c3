"""Benchmarks: the needs of commands against the length of a recording, and the cost of every element."""

from __future__ import annotations

import json

import pytest

from apps.bench import hours, kernel
from apps.bench.workload import elements
from haptics.errors import ConfigurationError, HapticError


def test_missing_disk_space_is_reported_before_recording(tmp_path, monkeypatch):
    monkeypatch.setattr(hours, "_SPARE", 1e12)
    with pytest.raises(ConfigurationError, match="name another folder with --record"):
        hours.run(lambda *_: None, record=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_failing_command_is_named_with_its_error():
    with pytest.raises(HapticError, match=r"haptics verify /nowhere: /nowhere is not a readable recording"):
        hours._measure(["verify", "/nowhere"], 1)


@pytest.mark.timeout(300)
def test_every_command_is_measured_for_each_length(tmp_path, monkeypatch, compiled_kernels):
    monkeypatch.setattr(hours, "_PARTS", (6, 1))
    found = hours.run(lambda *_: None, duration=60.0, rate=200.0, record=str(tmp_path)).result
    commands = found["commands"]
    assert {"run", "run with picture", "replay --verify", "verify", "compare", "export --to csv"} <= commands.keys()
    for one in commands.values():
        assert [length["ticks"] for length in one["lengths"]] == [2000, 12_000]
        middle, longest = (length["memory_mb"] for length in one["lengths"])
        assert one["memory_ratio"] == pytest.approx(longest / middle, abs=1e-3)
        assert all(20.0 < length["memory_mb"] < 1000.0 for length in one["lengths"])
    assert list(tmp_path.iterdir()) == []


def test_kernel_benchmark_has_a_row_for_every_element_and_law(few_rounds, reference):
    shares: list[float] = []
    outcome = kernel.run(lambda done, words: shares.append(done))
    rows = outcome.result["rows"]
    assert {(row["element"], row["law"]) for row in rows} == {(e.model, e.law.name) for e in elements()}
    for row in (*rows, *outcome.result["classic"]):
        assert row["ns_per_step"] > 0.0 and row["reference_ns_per_step"] > 0.0 and row["ratio"] > 0.0
    assert outcome.error == ""
    assert shares == sorted(shares) and shares[0] == 0.0 and shares[-1] == 1.0
    assert all(row["element"] in outcome.text for row in (*rows, *outcome.result["classic"]))
    json.dumps(outcome.result, allow_nan=False)
