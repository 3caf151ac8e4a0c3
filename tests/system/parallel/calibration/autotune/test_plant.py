"""Long computations for the topic of tests/calibration/autotune/test_plant.py."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.autotune.answers import NAMES, Plant, Push
from calibration.autotune.plant import fit_plant
from tests.calibration.autotune.test_plant import pushed


@pytest.mark.parametrize(
    ("plant", "period", "step"),
    [
        (Plant(0.2, 1.0, 0.1, 0.0, 0.5e-3), 1e-3, 1e-5),
        (Plant(0.05, 0.5, 0.0, 0.02, 4.7e-3), 1e-3, 2e-5),
        (Plant(0.8, 2.0, 0.05, 0.0, 1.3e-3), 4e-3, 1e-4),
    ],
)
def test_the_numbers_of_a_handle_are_inside_their_intervals(plant: Plant, period: float, step: float) -> None:
    fit = fit_plant(pushed(plant, period, step, 3), period, 2.0 * plant.mass, step)
    for name in NAMES:
        low, high = fit.interval(name)
        assert low <= getattr(plant, name) <= high, name
    assert fit.errors["mass"] < 0.05 * plant.mass
    assert fit.errors["delay"] < 0.5e-3
    assert fit.residual < 0.45 * step  # that of rounding is 0.29


def test_a_delay_that_was_missed_shows_in_what_is_left() -> None:
    plant = Plant(0.1, 1.0, 0.0, 0.0, 3e-3)
    pushes = pushed(plant, 1e-3, 1e-6, 1)
    early = [Push(np.roll(one.command, 20), one.position, one.history) for one in pushes]  # no delay explains that
    assert fit_plant(early, 1e-3, 0.1, 1e-6).residual > 20.0 * fit_plant(pushes, 1e-3, 0.1, 1e-6).residual
