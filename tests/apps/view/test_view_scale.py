"""Sliders, axes and the texts of numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.shared.scale import STEPS, AxisTop, SliderScale, clock, microseconds, millijoules, nice_ceiling


@given(
    st.integers(0, STEPS),
    st.floats(1e-3, 1e3),
    st.floats(1.5, 1e4),
    st.booleans(),
)
def test_slider_positions_go_to_values_and_back(position: int, lower: float, ratio: float, by_ratio: bool) -> None:
    scale = SliderScale(lower, lower * ratio, by_ratio)
    value = scale.value(position)
    assert lower * (1 - 1e-9) <= value <= lower * ratio * (1 + 1e-9)
    assert scale.position(value) == position


def test_logarithmic_slider_moves_in_equal_ratios() -> None:
    scale = SliderScale(100.0, 10000.0, logarithmic=True)
    assert scale.value(STEPS // 2) == pytest.approx(1000.0)
    assert scale.value(0) == pytest.approx(100.0)
    assert scale.value(STEPS) == pytest.approx(10000.0)


def test_logarithmic_slider_down_to_zero_is_linear() -> None:
    assert SliderScale(0.0, 10.0, logarithmic=True).value(STEPS // 2) == pytest.approx(5.0)


@given(st.integers(-20, 20), st.integers(1, 2000))
def test_slider_of_a_count_steps_by_one(lower: int, length: int) -> None:
    scale = SliderScale(lower, lower + length, logarithmic=True, whole=True)
    values = [scale.value(position) for position in range(scale.steps + 1)]
    assert values == pytest.approx(range(lower, lower + length + 1), abs=1e-9)
    assert [scale.position(value) for value in values] == list(range(length + 1))
    assert scale.decimals == 0


def test_slider_of_a_single_value_stays_there() -> None:
    scale = SliderScale(2.0, 2.0)
    assert scale.position(2.0) == 0
    assert scale.value(0) == 2.0
    assert scale.decimals == 2


@given(st.floats(1e-6, 1e6))
def test_nice_ceiling_is_close_above(value: float) -> None:
    assert value * (1 - 1e-8) <= nice_ceiling(value) <= 1.51 * value


def test_nice_ceiling_of_nonsense_is_one() -> None:
    assert [nice_ceiling(value) for value in (0.0, -3.0, math.nan, math.inf)] == [1.0] * 4


def test_axis_grows_at_once_and_shrinks_after_a_while() -> None:
    axis = AxisTop(1.0, patience=3)
    assert axis.follow(9.0)
    assert axis.top == 10.0
    assert [axis.follow(2.0) for _ in range(4)] == [False, False, False, True]
    assert axis.top == 2.5


def test_texts_of_times() -> None:
    assert [microseconds(us) for us in (0.0341, 21.4, 1300.0)] == ["0.034 µs", "21 µs", "1.3 ms"]
    assert (clock(0.0), clock(59.96), clock(75.25)) == ("0:00.0", "1:00.0", "1:15.3")


def test_texts_of_energies_go_with_their_limit() -> None:
    assert (millijoules(0.1), millijoules(0.02)) == ("100", "20")
    assert [millijoules(8.26e-4, limit) for limit in (1.0, 0.1, 0.02, 1e-4)] == ["1", "0.8", "0.83", "0.8260"]
