"""The spectrum: its integral is the variance, and it is the one that others compute."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import welch as peers

from apps.view.plots.welch import welch


@pytest.mark.parametrize(("count", "rate"), [(5000, 1000.0), (700, 1000.0), (333, 500.0), (20_000, 10_000.0)])
def test_it_is_that_of_scipy(count: int, rate: float) -> None:
    random = np.random.default_rng(3)
    x, y = random.normal(size=(2, count)).cumsum(axis=1)
    found = welch(x, y, rate)
    assert found is not None
    size = round(found.seconds * rate)
    for values in (x, y):
        frequency, density = peers(values, rate, window="hann", nperseg=size, noverlap=size - max(size // 2, 1))
        assert found.frequency == pytest.approx(frequency)
    both = sum(peers(v, rate, window="hann", nperseg=size, noverlap=size - max(size // 2, 1))[1] for v in (x, y))
    assert found.density == pytest.approx(both, rel=1e-9)
    assert density.shape == found.density.shape


def test_its_integral_is_the_variance_of_noise() -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 20_000))
    found = welch(2.0 * x, y, 1000.0)
    assert found is not None
    assert np.trapezoid(found.density, found.frequency) == pytest.approx(5.0, rel=0.05)
    assert "39 segments" in found.method


def test_too_few_rows_have_no_spectrum() -> None:
    assert welch(np.zeros(15), np.zeros(15), 1000.0) is None
