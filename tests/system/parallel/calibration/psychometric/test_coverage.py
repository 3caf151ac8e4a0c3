"""Long computations for the topic of tests/calibration/psychometric/test_coverage.py."""

from __future__ import annotations

import pytest

from tests.calibration.psychometric.coverage import CASES, Case, cover
from tests.sampling import sample


def test_short_staircases_too_in_2000_runs() -> None:
    """With a prior that expects steeper functions it is 93 %."""
    got = cover(Case("staircase", 60, proportion=0.85), runs=2000, seed=98)
    assert 0.935 <= got.wide <= 0.965


@pytest.mark.parametrize("case", sample(CASES, 3), ids=str)
def test_intervals_hold_the_truth_in_500_runs(case: Case) -> None:
    got = cover(case)
    assert 0.92 <= got.wide <= 0.985
    assert 0.6 <= got.narrow <= 0.82  # 30 trials say less than the prior: wide rather than narrow
    assert got.ratio == pytest.approx(1.0, abs=0.15)
