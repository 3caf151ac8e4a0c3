"""Measurement of wake-up latency with the servo's clock; runs in a separate process."""

from __future__ import annotations

import math
from typing import Any

from haptics.clock import WallClock
from haptics.servo.realtime import Usage, request_real_time


def measure(duration: float, rate: float) -> dict[str, Any]:
    """Wait for deadlines like the servo, without work in between.

    Parameters
    ----------
    duration : float
        Duration of the measurement [s].
    rate : float
        Deadlines per second [Hz].

    Returns
    -------
    dict
        Latencies [us] and their possible causes; JSON serializable.
    """
    granted = request_real_time()
    clock, count = WallClock(1.0 / rate), round(duration * rate)
    delays: list[float] = []
    before = Usage.now()
    clock.start()
    while len(delays) < count:
        delays += passed(clock.wait(len(delays)), clock.period)
    usage = before.until_now()
    return {
        "rate_hz": rate,
        "duration_s": duration,
        **lateness(delays[:count], clock.period),
        "realtime": granted.scheduling,
        "low_latency": granted.low_latency,
        "memory_locked": granted.memory_locked,
        "usage": usage,
    }


def passed(late: float, period: float) -> list[float]:
    """Return the delays [s] of all deadlines that have passed: the awaited one and the missed ones."""
    return [late - k * period for k in range(max(int(late / period), 0) + 1)]


def lateness(delays: list[float], period: float) -> dict[str, float]:
    """Return quantiles of the `delays` [us], and the shares later than half a period and than a period."""
    ordered, count = sorted(delays), len(delays)

    def at(share: float) -> float:
        return round(1e6 * ordered[math.ceil(share * count) - 1], 1)

    def later_than(limit: float) -> float:
        return sum(delay > limit for delay in ordered) / count

    return {
        "p50_us": at(0.5),
        "p99_us": at(0.99),
        "p999_us": at(0.999),
        "max_us": at(1.0),
        "late_share": later_than(period / 2),
        "missed_share": later_than(period),
    }
