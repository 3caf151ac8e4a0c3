"""Long computations for the topic of tests/calibration/psychometric/test_signal_detection.py."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from calibration.psychometric import d_prime


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng, d, hits = np.random.default_rng(3), 1.2, 0
    for _ in range(200):
        h, f = rng.binomial(40, norm.cdf(d / 2.0)), rng.binomial(40, norm.cdf(-d / 2.0))
        found = d_prime(int(h), int(40 - h), int(f), int(40 - f))
        hits += found.low <= d <= found.high
    assert 0.91 <= hits / 200 <= 0.99
