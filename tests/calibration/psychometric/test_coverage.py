"""Intervals hold the truth as often as they say."""

from __future__ import annotations

import pytest

from tests.calibration.psychometric.coverage import CASES, Case, cover


@pytest.mark.few(1)
@pytest.mark.parametrize("case", [Case("constant", 60), Case("quest+", 30)], ids=lambda case: case.method)
def test_intervals_hold_the_truth_in_some_runs(case: Case) -> None:
    got = cover(case, runs=60)
    assert got.wide >= 0.88
    assert 0.5 <= got.narrow <= 0.85
    assert got.ratio == pytest.approx(1.0, abs=0.2)


@pytest.mark.slow
def test_short_staircases_too_in_2000_runs() -> None:
    """With a prior that expects steeper functions it is 93 %."""
    got = cover(Case("staircase", 60, proportion=0.85), runs=2000, seed=98)
    assert 0.935 <= got.wide <= 0.965


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_intervals_hold_the_truth_in_500_runs(case: Case) -> None:
    got = cover(case)
    assert 0.92 <= got.wide <= 0.985
    assert 0.6 <= got.narrow <= 0.82  # 30 trials say less than the prior: wide rather than narrow
    assert got.ratio == pytest.approx(1.0, abs=0.15)
