"""Long computations for the topic of tests/calibration/friction/test_friction.py."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.friction import (
    MODELS,
    Samples,
    choose_model,
)
from tests.calibration.friction.test_friction import measured, truth_of
from tests.calibration.hand_moved import DEGREE, KNEE


def test_a_motion_that_grows_and_fades_does_not_hide_the_better_model() -> None:
    """Blocks differ widely in what the static levels matter there: that is no reason to take them for chance."""
    time = np.arange(0.0, 60.0, 0.01)
    velocity = 20.0 * DEGREE * (0.55 + 0.45 * np.cos(0.13 * time)) * np.sin(0.9 * time)
    noise = 0.1 * np.random.default_rng(1).standard_normal(len(time))
    choice = choose_model([Samples(time, velocity, MODELS["stribeck"].evaluate(KNEE, velocity) + noise)])
    assert choice.name in {"stribeck", "stribeck-plateau"}


@pytest.mark.parametrize("truth", ["coulomb-viscous", "stribeck-offset"])
def test_without_noise_rounding_errors_do_not_choose_the_model(truth: str) -> None:
    choice = choose_model([measured(truth_of(truth), 0, model=truth)])
    assert choice.name == truth
    assert choice.fit.values == pytest.approx(truth_of(truth), rel=1e-9)
