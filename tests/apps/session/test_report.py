"""The words at the end of a run."""

from typing import Any

import pytest

from apps.session.report import describe

SUMMARY: dict[str, Any] = {
    "device": "virtual-joystick",
    "model": "C",
    "rate_hz": 1000.0,
    "reason": "completed",
    "recording": "recordings/run",
    "picture": None,
    "ticks": 30000,
    "skipped": 2,
    "lost_ticks": 0,
    "overruns": 5,
    "unusable_ticks": 0,
    "longest_gap_us": 3021.0,
    "period_error_us": {"p50": 3.2, "p99": 60.0, "p999": 400.0, "max": 900.0},
    "tick_us": {"p50": 20.0, "p99": 50.0, "p999": 70.0, "max": 2345.0},
    "write_us": {"p50": 19.0, "p99": 49.0, "p999": 69.0, "max": 99.0},
    "sample_age_us": {"p50": 0.0, "p99": 0.0, "p999": 0.0, "max": 0.0},
    "realtime": "other",
    "processors": "0, 1",
    "stolen_s": 0.51,
    "involuntary_switches": 1234,
    "fit": True,
    "unfit_because": [],
    "force_n": {"mean": 2.0, "max": 4.0},
    "stick_fraction": 0.25,
}


def lines(**changes: Any) -> list[str]:
    return describe({**SUMMARY, **changes}).splitlines()


def test_the_report_says_what_was_measured_in_columns() -> None:
    text = lines()
    assert text[0] == "virtual-joystick, model C, 1000 Hz: completed"
    for line in (
        "  verdict           fit",
        "  recording         recordings/run",
        "  picture           none",
        "  ticks             30000",
        "  deadlines         2 skipped, 5 late, 0 lost",
        "  longest gap       3.02 ms between two ticks",
        "  scheduling        not real-time, CPUs 0, 1",
        "  disturbed by      CPU steal 0.51 s, 1234 preemptions",
        "  force             mean 2.00 N, max 4.00 N",
        "  start delay       p50 3.2 us, p99 60 us, p99.9 400 us, max 900 us",
        "  computation time  p50 20 us, p99 50 us, p99.9 70 us, max 2.35 ms",
    ):
        assert line in text
    assert not any("sample age" in line for line in text)


def test_an_unfit_run_says_why_first() -> None:
    reasons = ["12 % of the ticks started or ended late", "3 ticks were lost"]
    text = lines(fit=False, unfit_because=reasons)
    assert text[1:4] == ["  verdict           UNFIT", *(f"  because           {reason}" for reason in reasons)]


def test_a_terminal_that_knows_ascii_only_can_show_it() -> None:
    assert describe(SUMMARY).isascii()


def test_a_run_without_ticks_has_a_report() -> None:
    empty: dict[str, Any] = {"period_error_us": {}, "tick_us": {}, "write_us": {}, "sample_age_us": {}, "force_n": {}}
    text = lines(**empty, ticks=0, skipped=0, overruns=0, longest_gap_us=None, stick_fraction=None, stolen_s=None)
    assert "  ticks             0" in text
    assert not any("start delay" in line or "force" in line or "sticking" in line for line in text)


def test_advice_stands_at_the_end_where_it_is_seen() -> None:
    advice = ["element.stiffness = 9000 N/m: " + "too stiff for this device, " * 8, "law.force: lower it."]
    text = lines(advice=advice)
    start = next(number for number, line in enumerate(text) if line.startswith("  advice"))
    assert " ".join(" ".join(text[start:]).split()) == f"advice {advice[0].strip()} advice {advice[1]}"
    assert not any(line.startswith("  advice") for line in text[:start])


def test_no_line_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = lines(fit=False, unfit_because=["12 % of the ticks were late " * 6], advice=["too stiff " * 30])
    assert max(map(len, text)) <= 80
