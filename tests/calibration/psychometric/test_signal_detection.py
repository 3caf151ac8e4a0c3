"""d' and criterion: printed values, inverses of the models, intervals that hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.psychometric import criterion, d_prime, detectability, proportion


def test_yes_no_is_the_textbooks_example() -> None:
    # Macmillan and Creelman 2005, chapter 1: "old" to 20 of 25 old and 10 of 25 new faces: d' = 1.095, c = -0.294
    found = detectability(20, 5, 10, 15)
    assert found.d_prime.value == pytest.approx(1.095, abs=0.06)
    assert found.criterion.value == pytest.approx(-0.294, abs=0.04)
    exact = detectability(20000, 5000, 10000, 15000)
    assert exact.d_prime.value == pytest.approx(1.095, abs=0.002)
    assert exact.criterion.value == pytest.approx(-0.294, abs=0.002)


@pytest.mark.parametrize("d", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.8])
def test_rates_of_a_simulated_comparison_give_its_distance_back(d: float, shift: float) -> None:
    rng, n = np.random.default_rng(7), 400_000
    first, second = rng.normal(size=n), rng.normal(size=n)
    for task, hit, false_alarm in (
        ("yes-no", first + d > shift, second > shift),
        ("2afc", second + d - first > shift, second - first - d > shift),
        ("same-different", abs(second + d - first) > 1.0 + abs(shift), abs(second - first) > 1.0 + abs(shift)),
    ):
        counts = [int(k) for k in (hit.sum(), n - hit.sum(), false_alarm.sum(), n - false_alarm.sum())]
        found = d_prime(*counts, task=task)  # type: ignore[arg-type]
        assert found.value == pytest.approx(d, abs=0.03), task
        assert found.low <= found.value <= found.high
    assert criterion(*counts, task="same-different").value == pytest.approx(1.0 + abs(shift), abs=0.02)


def test_nothing_missed_is_large_but_finite_and_wide() -> None:
    found = d_prime(20, 0, 0, 20)
    assert 3.0 < found.value < 6.0
    assert math.isfinite(found.high)
    assert found.high - found.low > 1.5


def test_a_proportion_of_none_reaches_zero_and_of_all_one() -> None:
    none, some, every = (proportion(k, 20) for k in (0, 1, 20))
    assert none.low == 0.0
    assert every.high == 1.0
    assert none.high == pytest.approx(0.117, abs=0.002)  # Brown, Cai and DasGupta 2001, 0 of 20
    assert some.low < 0.05 < some.high
