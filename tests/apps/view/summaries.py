"""Summaries of a run, as a session makes them."""

from __future__ import annotations

from typing import Any

SUMMARY: dict[str, Any] = {
    **{"ticks": 12000, "rate_hz": 1000.0, "skipped": 2, "lost_ticks": 1, "overruns": 34, "unusable_ticks": 7},
    "longest_gap_us": 3020.0,
    "period_error_us": {"p50": 21.0, "p99": 63.0, "p999": 410.0, "max": 1377.0},
    "tick_us": {"p50": 8.0, "p99": 14.0, "p999": 31.0, "max": 55.0},
    "write_us": {"p50": 6.0, "p99": 11.0, "p999": 24.0, "max": 43.0},
    "sample_age_us": {"p50": 0.0, "p99": 0.0, "p999": 0.0, "max": 0.0},
    **{"realtime": "fifo", "processors": "1", "stolen_s": 0.25, "involuntary_switches": 9, "major_faults": 0},
    **{"fit": True, "unfit_because": [], "force_n": {"mean": 2.5, "max": 4.0}, "stick_fraction": 0.385},
}
REASONS = ["12 % of the ticks started or ended late; fitness.late_share allows 5 %", "3 ticks were lost"]
UNFIT = {**SUMMARY, "fit": False, "unfit_because": REASONS}
