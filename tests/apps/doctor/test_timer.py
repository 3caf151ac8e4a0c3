"""The measurement: every deadline is counted once, and judged by the limits for a run."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.doctor import timing
from apps.doctor.checks import timer
from apps.doctor.child import ask
from haptics.recording.fitness import Fitness
from tests.apps.doctor.machines import expect, machine

PERIOD = 1e-3


@given(missed=st.integers(0, 50), part=st.floats(0.01, 0.99))
def test_a_delay_counts_for_every_deadline_that_passed_meanwhile(missed: int, part: float) -> None:
    late = (missed + part) * PERIOD
    delays = timing.passed(late, PERIOD)
    assert delays[0] == late
    assert all(0.0 < delay <= late for delay in delays)
    assert sum(delay > PERIOD for delay in delays) == missed == len(delays) - 1


@given(delays=st.lists(st.floats(0.0, 0.02), min_size=1, max_size=300))
def test_quantiles_are_delays_that_occurred_and_rise(delays: list[float]) -> None:
    found = timing.lateness(delays, PERIOD)
    quantiles = [found[name] for name in ("p50_us", "p99_us", "p999_us", "max_us")]
    assert quantiles == sorted(quantiles)
    assert set(quantiles) <= {round(1e6 * delay, 1) for delay in delays}
    assert quantiles[-1] == round(1e6 * max(delays), 1)
    assert 0.0 <= found["missed_share"] <= found["late_share"] <= 1.0


def test_a_short_measurement_says_everything_there_is_to_say(tmp_path: Path) -> None:
    shown: list[str] = []
    facts = ask("apps.doctor.timing:measure", 0.1, 500.0, waiting=lambda passed: shown.append(str(passed)))
    assert facts["rate_hz"] == 500.0 and facts["duration_s"] == 0.1
    assert facts["realtime"] in {"fifo", "other"}
    assert facts["p50_us"] <= facts["p99_us"] <= facts["p999_us"] <= facts["max_us"]
    assert "stolen_s" in facts["usage"]
    assert timer.timer(machine(tmp_path), lambda _: facts).facts == facts


def facts(**others: Any) -> dict[str, Any]:
    return {
        **{"p50_us": 1.0, "p99_us": 20.0, "p999_us": 60.0, "max_us": 90.0, "late_share": 0.0, "missed_share": 0.0},
        **{"realtime": "fifo", "low_latency": True, "memory_locked": True, "usage": {"stolen_s": 0.0}},
        **others,
    }


@pytest.mark.parametrize(
    ("others", "severity", "word"),
    [
        ({}, "ok", "99.9 % 60"),
        ({"late_share": 0.004}, "note", "top"),
        ({"late_share": 0.004, "usage": {"stolen_s": 0.12}}, "note", "120 ms"),
        ({"late_share": 0.02, "missed_share": 0.02}, "problem", "2 %"),
        ({"late_share": 0.2}, "problem", "us"),
        ({"late_share": 0.004, "max_us": 150e3}, "problem", "150000"),
        (
            {"late_share": 0.2, "realtime": "other", "low_latency": False},
            "problem",
            "doctor scheduling cpu-dma-latency timer",
        ),
        ({"usage": {"stolen_s": None}}, "ok", "us"),
    ],
)
def test_judgement(tmp_path: Path, others: dict[str, Any], severity: str, word: str) -> None:
    expect(timer.timer(machine(tmp_path), lambda _: facts(**others)), severity, word)


@given(late=st.floats(0.0, 1.0), part=st.floats(0.0, 1.0), longest=st.floats(1.0, 1e6))
def test_what_is_a_problem_here_would_make_a_run_unfit(late: float, part: float, longest: float) -> None:
    found = facts(late_share=late, missed_share=late * part, max_us=longest)
    count = 1_000_000
    certificate = {
        "ticks": count,
        "skipped": 0,
        "overruns": late * count,
        "unusable_ticks": 0,
        "longest_gap_us": longest,
        "lost_ticks": 0,
    }
    unfit = bool(Fitness().judge(certificate)) or late * part > Fitness().skipped_share
    assert (timer.judge(found) == "problem") == (unfit and late > 0.001)
