from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.bench.live.lateness import SETTLING, figures, medians, ratios, whole_lateness
from haptics.clock import Clock
from haptics.elements.models import MasslessImpedance
from haptics.friction.laws import Coulomb
from haptics.servo.servo import Servo
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice

PERIOD = 1e-3
SETTLED = round(SETTLING / PERIOD)


class StallingClock(Clock):
    """Is as late for every deadline that it is asked to wait for as it was told to be."""

    def __init__(self, delays: dict[int, float]) -> None:
        super().__init__(PERIOD)
        self.delays = delays
        self.waited: list[tuple[int, float]] = []

    def wait(self, tick: int) -> float:
        super().wait(tick)
        delay = self.delays.get(len(self.waited), 0.0)
        self.waited.append((tick, delay))
        return delay


@settings(max_examples=5)
@given(
    st.dictionaries(
        st.integers(0, SETTLED + 80), st.floats(0.0, 20 * PERIOD).filter(lambda d: 1e-6 < d % PERIOD < PERIOD - 1e-6)
    )
)
def test_a_stall_counts_in_full_although_the_servo_skips_what_it_missed(
    tmp_path_factory: pytest.TempPathFactory, delays: dict[int, float]
) -> None:
    clock = StallingClock(delays)
    path: Path = tmp_path_factory.mktemp("trace") / "ring"
    trace = Trace.create(path, capacity=512)
    element = MasslessImpedance(Coulomb(2.0), 6000.0, 10.0, PERIOD)
    Servo(BenchDevice(clock), element, trace, clock=clock).run(0.4)
    rows = trace.since(0)
    expected = [delay for tick, delay in clock.waited[: len(rows)] if tick >= SETTLED]
    np.testing.assert_allclose(whole_lateness(rows, PERIOD), expected, atol=1e-12)


def test_figures_are_in_microseconds_and_the_share_in_parts_of_one() -> None:
    found = figures(np.array([0.0] * 97 + [1e-5, 2e-3, 3e-3]))
    assert found["p50"] == 0.0 and found["max"] == pytest.approx(3000.0)
    assert found["late_share"] == pytest.approx(0.02)


def test_equal_slices_have_ratios_of_one_even_where_there_is_nothing() -> None:
    calm = figures(np.zeros(100))
    assert set(ratios(calm, calm, 100).values()) == {1.0}


@given(st.integers(1, 1000), st.integers(1, 50))
def test_a_reference_without_late_wake_ups_counts_as_one_that_had_one(count: int, late: int) -> None:
    late = min(late, count)
    own = figures(np.array([2e-3] * late + [0.0] * (count - late)))
    found = ratios(own, figures(np.zeros(count)), count)
    assert found["ratio_late_share"] == pytest.approx(late)
    assert all(math.isfinite(value) for value in found.values())


@given(st.lists(st.floats(1e-7, 1e-2), min_size=1, max_size=200), st.floats(0.5, 20.0))
def test_what_is_so_many_times_later_has_that_ratio(lateness: list[float], factor: float) -> None:
    own, reference = figures(np.array(lateness) * factor), figures(np.array(lateness))
    found = ratios(own, reference, len(lateness))
    for name in ("ratio_p50", "ratio_p99", "ratio_p999"):
        assert found[name] == pytest.approx(factor, rel=0.05)  # figures of 0.1 us have steps of 1 %


def test_the_ratio_of_a_run_is_the_median_of_its_slices() -> None:
    slices = [{f"ratio_{name}": value for name in ("p50", "p99", "p999", "late_share")} for value in (1.0, 100.0, 0.5)]
    assert set(medians(slices).values()) == {1.0}
