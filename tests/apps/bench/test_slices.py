from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from apps.bench import slices


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Replace the processor's time [ns] by a number that the candidates advance."""
    now = [0]
    monkeypatch.setattr(slices.time, "thread_time_ns", lambda: now[0])
    return now


def _candidate(clock: list[int], durations: Iterator[int], log: list[str], name: str) -> Callable[[], None]:
    def run() -> None:
        log.append(name)
        clock[0] += next(durations)

    return run


def test_candidates_take_turns_and_each_slice_is_timed_by_itself(clock: list[int]) -> None:
    log: list[str] = []
    first = _candidate(clock, iter(range(100, 200)), log, "first")
    second = _candidate(clock, iter(range(1000, 1100)), log, "second")
    times = slices.measure([first, second], rounds=4)
    assert log == ["first", "second"] * (len(log) // 2)
    warm_up = len(log) // 2 - 4
    assert warm_up > 0
    expected = np.array([[100 + warm_up + k, 1000 + warm_up + k] for k in range(4)]) * 1e-9
    np.testing.assert_allclose(times, expected, rtol=1e-12)


@pytest.mark.parametrize("collecting", [True, False])
def test_no_garbage_is_collected_in_a_slice_and_afterwards_it_is_as_before(collecting: bool) -> None:
    seen: list[bool] = []
    (gc.enable if collecting else gc.disable)()
    try:
        slices.measure([lambda: seen.append(gc.isenabled())], rounds=2)
        with pytest.raises(ZeroDivisionError):
            slices.measure([lambda: 1 // 0], rounds=2)
        assert gc.isenabled() == collecting
    finally:
        gc.enable()
    assert seen
    assert not any(seen)


def test_a_ratio_is_a_median_over_rounds_and_its_spread_the_middle_half() -> None:
    references = np.array([1.0, 2.0, 4.0, 1.0, 2.0])  # the machine changes its speed from round to round
    ratio = slices.compare(references * [1.5, 1.4, 1.6, 9.0, 1.5], references)
    assert ratio.median == pytest.approx(1.5)
    assert ratio.spread == pytest.approx(0.1)


def test_nanoseconds_are_for_one_of_many() -> None:
    assert slices.nanoseconds(np.array([1e-3, 3e-3, 2e-3]), 1000) == pytest.approx(2000.0)
