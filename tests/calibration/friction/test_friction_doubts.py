"""When a friction fit is doubted: at which figure each doubt begins."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.friction import Samples, fit_friction


def at_two_speeds(fast: float, ratio: float) -> Samples:
    """Return exact samples of Coulomb friction and viscosity at speeds between `fast` and a little less, both ways."""
    speeds = fast * np.linspace(1.0 - ratio, 1.0, 200)
    velocity = np.concatenate((speeds, -speeds))
    return Samples(0.01 * np.arange(400), velocity, 0.8 * np.sign(velocity) + 3.0 * velocity)


@pytest.mark.parametrize(("ratio", "doubted"), [(0.5, False), (0.025, False), (0.02, True), (0.005, True)])
def test_levels_that_are_hardly_told_apart_are_doubted_from_a_condition_of_300_on(ratio: float, doubted: bool) -> None:
    """Speeds within a part r of each other leave a condition of ``4 sqrt(3) (1 - r/2) / r``, the columns scaled."""
    fit = fit_friction(at_two_speeds(0.2, ratio), "coulomb-viscous")
    assert fit.condition == pytest.approx(4.0 * np.sqrt(3.0) * (1.0 - 0.5 * ratio) / ratio, rel=0.02)
    assert ("ill-conditioned" in {doubt.code for doubt in fit.doubts}) == doubted
