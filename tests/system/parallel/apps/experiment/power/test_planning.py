"""Long computations for the topic of tests/apps/experiment/power/test_planning.py."""

from __future__ import annotations

import math

import numpy as np

from apps.experiment.power.planning import plan
from apps.experiment.power.settings import PowerSettings
from tests.apps.experiment.power.test_planning import closed_form


def test_the_interval_of_the_power_has_what_another_pool_would_change() -> None:
    """Pools of 150 people: the power differs between them by far more than drawing 4000 studies does."""
    settings = PowerSettings(participants=(12,))
    truth = closed_form(math.log(1.3), 0.4, 12, 0.05)
    rows = []
    for seed in range(25):
        pool = math.log(1.3) + 0.4 * np.random.default_rng(seed).standard_normal(150)
        rows += plan(pool, settings)
    assert sum(row.low <= truth <= row.high for row in rows) >= 22
    assert np.std([row.power for row in rows]) > 0.05
    assert np.mean([row.high - row.low for row in rows]) < 0.45
