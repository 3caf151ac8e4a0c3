"""Report of the benchmark of the triggers."""

from __future__ import annotations

import numpy as np

from apps.bench.servo import ServoSlice, Trial
from apps.bench.triggers import report
from haptics.records import ROW

TRIAL = Trial(
    np.zeros(0, ROW), {}, {"realtime": "fifo", "priority": 80, "processors": "0", "machine": "", "processor": ""}, 1.0
)


def servo_slice(lateness):
    summary = {"rate_hz": 1000.0, "ticks": 1000, "skipped": 0, "lost_ticks": 0}
    return ServoSlice(np.full(1000, lateness), 0.0, None, np.full(1000, 2e-5), summary, 1.0, np.arange(1000))


def codes(received, in_order=True):
    return {"changes": 100, "received": received, "in_order": in_order, "delay_s": np.linspace(1e-4, 3e-4, received)}


def test_report_has_ratios_delays_and_lost_codes():
    answer = report([servo_slice(1e-5)] * 2, [servo_slice(2e-5)] * 2, [codes(100), codes(100)], TRIAL, 1.0)
    assert answer.result["ratio_p99"] == 2.0 and answer.error == ""
    assert answer.result["delay_us"]["p50"] == 200.0 and answer.result["delay_us"]["max"] == 300.0
    assert "200 of 200 codes received, all in order" in answer.text
    lost = report([servo_slice(1e-5)], [servo_slice(1e-5)], [codes(99, in_order=False)], TRIAL, 1.0)
    assert "99 of 100 codes received, NOT in order" in lost.text and lost.error
    none = report([servo_slice(1e-5)], [servo_slice(1e-5)], [codes(0, in_order=False)], TRIAL, 1.0)
    assert "0 of 100 codes received" in none.text and none.error and none.result["delay_us"] is None
