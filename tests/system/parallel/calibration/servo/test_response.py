"""Long computations for the topic of tests/calibration/servo/test_response.py."""

from __future__ import annotations

import numpy as np

from tests.calibration.servo.test_response import PERIOD, followed, found


def test_standard_errors_are_those_of_repeated_measurements() -> None:
    time, truth = PERIOD * np.arange(8000), (17.0, 1.4, 4e-3)
    clean = followed(time, *truth, knows=True)
    fits = [
        found(time, clean + 2e-4 * np.random.default_rng(seed).standard_normal(len(time)), time, knows=True)
        for seed in range(40)
    ]
    values = np.array([(fit.frequency, fit.damping_ratio, fit.lag) for fit in fits])
    errors = np.array([(fit.frequency_error, fit.damping_ratio_error, fit.lag_error) for fit in fits])
    scaled = (values - truth) / errors
    assert (np.abs(scaled.mean(axis=0)) < 0.7).all()  # 4 standard errors of a mean of 40
    assert (scaled.std(axis=0) > 0.6).all() and (scaled.std(axis=0) < 1.6).all()
