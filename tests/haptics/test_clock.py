"""Deadlines are absolute: lateness is reported, never accumulated."""

import time

import pytest

from haptics.clock import Clock, WallClock


def test_a_simulated_clock_does_not_wait() -> None:
    clock = Clock(1e-3)
    clock.start()
    assert clock.wait(5000) == 0.0
    assert clock.time == 5.0
    assert clock.elapsed() == 5.0


@pytest.mark.parametrize("kind", [Clock, WallClock])
def test_a_clock_knows_when_it_was_started(kind: type[Clock]) -> None:
    clock = kind(1e-3)
    assert clock.origin_ns == (0, 0)
    for _ in range(2):
        before = time.monotonic_ns(), time.time_ns()
        clock.start()
        after = time.monotonic_ns(), time.time_ns()
        assert all(a <= at <= b for a, at, b in zip(before, clock.origin_ns, after, strict=True))


def test_the_wall_clock_never_wakes_before_a_deadline_and_does_not_drift() -> None:
    clock = WallClock(2e-3)
    clock.start()
    for tick in range(1, 101):
        late = clock.wait(tick)
        assert late >= 0.0
        assert clock.elapsed() >= clock.time
    # 100 periods after the start, give or take the lateness of the last tick alone.
    assert abs(clock.elapsed() - 0.2 - late) < 5e-3


def test_lateness_is_measured_from_the_deadline() -> None:
    clock = WallClock(1e-3)
    clock.start()
    time.sleep(0.01)
    assert clock.wait(1) > 0.008
