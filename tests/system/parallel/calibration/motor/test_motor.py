"""Long computations for the topic of tests/calibration/motor/test_motor.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.motor.gain import identify_motor
from tests.calibration.measured import driven, friction


def test_intervals_hold_the_truth_also_when_noise_has_a_memory() -> None:
    measurement, hits = driven(), 0
    for seed in range(100):
        white = np.random.default_rng(seed).standard_normal(len(measurement) + 50)
        slow = np.convolve(white, np.ones(30) / 30.0**0.5, mode="valid")[: len(measurement)]
        low, high = identify_motor(replace(measurement, effort=measurement.effort + 0.1 * slow), friction).intervals[
            "gain"
        ]
        hits += low < 0.05 < high
    assert 86 <= hits <= 100  # white errors would give 50
