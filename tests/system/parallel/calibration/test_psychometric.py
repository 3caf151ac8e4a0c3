"""Coverage of psychometric intervals in simulated sessions."""

import numpy as np
import pytest
from scipy.stats import norm

from calibration.psychometric import detectability
from tests.calibration.psychometric_coverage import CASES, Case, cover
from tests.sampling import sample


def test_short_staircases_have_their_nominal_coverage():
    """With a prior that expects steeper functions it is 93 %."""
    got = cover(Case("staircase", 60, proportion=0.85), runs=2000, seed=98)
    assert 0.935 <= got.wide <= 0.965


@pytest.mark.parametrize("case", sample(CASES, 3), ids=str)
def test_thresholds_have_their_nominal_coverage(case):
    got = cover(case)
    assert 0.92 <= got.wide <= 0.985
    assert 0.6 <= got.narrow <= 0.82  # 30 trials say less than the prior: wide rather than narrow
    assert got.ratio == pytest.approx(1.0, abs=0.15)


def test_intervals_of_d_prime_have_their_nominal_coverage():
    rng, d, hits = np.random.default_rng(3), 1.2, 0
    for _ in range(200):
        h, f = rng.binomial(40, norm.cdf(d / 2.0)), rng.binomial(40, norm.cdf(-d / 2.0))
        found = detectability(int(h), int(40 - h), int(f), int(40 - f)).d_prime
        hits += found.low <= d <= found.high
    assert 0.91 <= hits / 200 <= 0.99
