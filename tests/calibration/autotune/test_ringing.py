"""The rate of a ring: of swings that grow or die out, with dry friction and an encoder."""

import math

import numpy as np
import pytest

from calibration.autotune.ringing import ring_of


def swing(rate: float, frequency: float, period: float, amplitude: float, step: float, seconds: float) -> np.ndarray:
    time = period * np.arange(round(seconds / period))
    swung: np.ndarray = np.round(amplitude * np.exp(rate * time) * np.cos(frequency * time) / step) * step
    return swung


@pytest.mark.parametrize("rate", [-3.0, -0.3, 0.3, 2.0])
@pytest.mark.parametrize("frequency", [60.0, 400.0, 2900.0])
def test_the_rate_of_a_swing_is_found_with_its_sign(rate: float, frequency: float) -> None:
    ring = ring_of(swing(rate, frequency, 1e-3, 1e-3, 1e-5, 1.0), 1e-3, 1.1 * frequency, 0.0, 1e-5)
    assert ring.rate == pytest.approx(rate, abs=0.1)
    assert ring.frequency == pytest.approx(frequency, rel=0.03)


def test_what_dry_friction_takes_is_not_taken_for_stability() -> None:
    mass, stiffness, friction, negative = 0.2, 5000.0, 0.05, -0.3  # a spring that feeds its swing
    x, v, fine, places = 2e-3, 0.0, 1e-5, []
    for k in range(60000):
        if k % 100 == 0:
            places.append(x)
        free = v + fine / mass * (-stiffness * x - negative * v)
        v = math.copysign(max(abs(free) - fine / mass * friction, 0.0), free)
        x += fine * v
    frequency = math.sqrt(stiffness / mass)
    seen = np.round(np.array(places) / 1e-6) * 1e-6
    assert ring_of(seen, 1e-3, frequency, 4.0 * friction / mass, 1e-6).rate == pytest.approx(0.75, abs=0.15)
    assert ring_of(seen, 1e-3, frequency, 0.0, 1e-6).rate < 0.5  # without that knowledge


def test_too_few_counts_tell_nothing() -> None:
    assert math.isnan(ring_of(swing(0.0, 300.0, 1e-3, 1e-5, 1e-5, 1.0), 1e-3, 300.0, 0.0, 1e-5).rate)
    assert math.isnan(ring_of(np.zeros(0), 1e-3, 300.0, 0.0, 1e-5).rate)
