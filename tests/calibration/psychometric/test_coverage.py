"""Intervals hold the truth as often as they say."""

from __future__ import annotations

import pytest

from tests.calibration.psychometric.coverage import Case, cover


@pytest.mark.parametrize("case", [Case("constant", 60), Case("quest+", 30)], ids=lambda case: case.method)
def test_intervals_hold_the_truth_in_some_runs(case: Case) -> None:
    got = cover(case, runs=60)
    assert got.wide >= 0.88
    assert 0.5 <= got.narrow <= 0.85
    assert got.ratio == pytest.approx(1.0, abs=0.2)
