"""The rows that the view keeps, and how they are thinned out to be drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.front_ends.stretches import means, runs
from apps.view.history import Column, History, arrow, averages, envelope, every, segments
from haptics.records import ROW
from tests.apps.view.view_rows import numbered


@given(st.lists(st.integers(0, 57), max_size=30))
def test_history_holds_the_newest_rows_in_order_however_they_come(sizes: list[int]) -> None:
    history, total = History(20), 0
    for size in sizes:
        history.append(numbered(total, size))
        total += size
        expected = np.arange(max(total - 20, 0), total)
        assert history.column(Column.X) == pytest.approx(expected)
        assert (history.first, history.count) == (max(total - 20, 0), total)


def test_history_takes_no_memory_before_there_are_rows_for_it() -> None:
    history = History(1000, kept=1_000_000)
    assert list(history.column(Column.X)) == []
    history.append(numbered(0, 3))
    assert history._data.nbytes < 10 * len(Column) * 8
    for first in range(3, 3000, 7):
        history.append(numbered(first, 7))
    assert history._data.nbytes < 3 * 3000 * len(Column) * 8


def test_history_converts_to_the_units_of_the_display() -> None:
    row = np.zeros(1, ROW)
    row["position"], row["proxy"], row["velocity"] = (0.01, -0.02), (0.011, -0.02), (0.3, 0.4)
    row["command"], row["friction_force"], row["force"] = (-3.0, 4.0), (0.6, 0.8), (5.0, 12.0)
    row["period_error"], row["sticking"], row["injected_energy"] = 25e-6, 1, 3e-3
    history = History(10)
    history.append(row)
    shown = {column: history.newest(column) for column in Column}
    assert (shown[Column.X], shown[Column.Y], shown[Column.PROXY_X]) == pytest.approx((10, -20, 11))
    assert (shown[Column.VECTOR_X], shown[Column.VECTOR_Y], shown[Column.FORCE]) == pytest.approx((-3, 4, 5))
    assert (shown[Column.FRICTION], shown[Column.SPEED]) == pytest.approx((1.0, 500.0))
    assert (shown[Column.LATENESS], shown[Column.STICKING], shown[Column.ENERGY]) == pytest.approx((25.0, 1.0, 3.0))


def test_history_of_an_admittance_device_shows_the_hand_force() -> None:
    row = np.zeros(1, ROW)
    row["command"], row["force"] = (0.01, 0.02), (5.0, 12.0)
    history = History(10, "admittance")
    history.append(row)
    assert history.newest(Column.FORCE) == pytest.approx(13.0)


def test_history_draws_a_row_that_is_not_finite_as_zero() -> None:
    row = np.zeros(1, ROW)
    row["position"], row["command"] = (np.nan, np.inf), (np.nan, 1.0)
    history = History(10)
    history.append(row)
    assert np.isfinite([history.newest(column) for column in Column]).all()


@given(st.integers(0, 1000), st.integers(1, 200), st.integers(1, 30))
def test_every_chooses_the_same_rows_whatever_the_window(first: int, length: int, stride: int) -> None:
    numbers = first + every(first, length, stride)
    assert numbers[-1] == first + length - 1
    assert all(number % stride == 0 for number in numbers[:-1])
    assert set(range(-(-first // stride) * stride, first + length, stride)) <= set(numbers.tolist())


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=300), st.integers(0, 50), st.integers(1, 20))
def test_envelope_keeps_order_and_values_and_the_extremes_of_whole_bins(
    signal: list[float], first: int, size: int
) -> None:
    values = np.array(signal)
    places, extremes = envelope(values, first, size)
    assert (np.diff(places) >= 0).all()
    assert (values[places.astype(int)] == extremes).all()
    whole = values[-first % size :] if size > 1 and len(values) >= 2 * size else values
    assert (extremes.max(), extremes.min()) == (whole.max(), whole.min())


@given(st.integers(0, 50), st.integers(0, 300), st.integers(1, 20))
def test_averages_are_over_the_same_rows_whatever_the_window(first: int, length: int, size: int) -> None:
    numbers = np.arange(first, first + length, dtype=float)
    places, values = averages(numbers, first, size)
    assert first + places - 0.5 == pytest.approx(values)
    assert values == pytest.approx(np.arange(-(-first // size), (first + length) // size) * size + 0.5 * (size - 1))


def test_runs_and_their_means() -> None:
    stretches = runs(np.array([1.0, 1, 0, 0, 1, 0, 1]))
    assert (stretches.start.tolist(), stretches.stop.tolist()) == ([0, 4, 6], [2, 5, 7])
    assert means(np.array([1.0, 3, 9, 9, 5, 9, 7]), stretches).tolist() == [2.0, 5.0, 7.0]
    assert len(runs(np.zeros(4)).start) == 0


def test_segments_are_pairs_from_the_path_along_the_force() -> None:
    x, y = segments(np.array([0.0, 1]), np.array([2.0, 3]), np.array([10.0, 20]), np.array([0.0, -1]))
    assert x.tolist() == [0, 10, 1, 21]
    assert y.tolist() == [2, 2, 3, 2]


@given(st.floats(0.1, 100), st.floats(-math.pi, math.pi), st.floats(0.01, 5))
def test_arrow_barbs_are_symmetric_and_point_back(length: float, angle: float, barb: float) -> None:
    x, y = arrow(1.0, 2.0, length * math.cos(angle), length * math.sin(angle), barb)
    tip = np.array([x[1], y[1]])
    left, right = np.array([x[3], y[3]]) - tip, np.array([x[5], y[5]]) - tip
    shaft = tip - (1.0, 2.0)
    assert np.hypot(*left) == pytest.approx(np.hypot(*right))
    assert np.hypot(*left) <= min(barb, 0.5 * length) * (1 + 1e-9)
    assert left @ shaft == pytest.approx(right @ shaft)
    assert left @ shaft < 0


def test_arrow_of_no_force_is_a_point() -> None:
    x, y = arrow(1.0, 2.0, 0.0, 0.0, 1.0)
    assert set(x) == {1.0}
    assert set(y) == {2.0}


def test_sums_over_time_do_not_depend_on_how_rows_come() -> None:
    rows = numbered(0, 300)
    rows["friction_force"], rows["velocity"], rows["sliding_velocity"] = (3.0, 4.0), (0.03, 0.04), (0.06, 0.08)
    history = History(50, kept=100)
    for part in np.array_split(rows, 17):
        history.append(part)
    # 5 N at 50 mm/s is 0.25 W, and 299 ms of it 74.75 mJ; the proxy is twice as fast.
    assert history.newest(Column.WORK) == pytest.approx(74.75)
    assert history.newest(Column.DISSIPATED) == pytest.approx(149.5)
