"""Hysteresis loops of known friction, and how far two of them differ."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.hysteresis import BINS, Motion, compare_loops, mean_loop
from haptics.errors import ConfigurationError

TIME = np.arange(0.0, 20.0, 0.005)


def swung(level: float = 2.0, viscosity: float = 0.0, middle: float = 0.0, amplitude: float = 0.5) -> Motion:
    velocity = amplitude * np.cos(TIME)
    return Motion(middle + amplitude * np.sin(TIME), velocity, level * np.sign(velocity) + viscosity * velocity)


def test_the_loop_of_dry_friction_is_a_rectangle() -> None:
    found = compare_loops(swung(2.0), swung(2.2))
    assert found.level == pytest.approx(2.0)
    assert found.difference == pytest.approx(0.1)
    assert found.area_measured == pytest.approx(2.0 * 2.0 * 1.0, rel=1e-3)
    assert found.area_rendered == pytest.approx(1.1 * found.area_measured)


def test_branches_are_means_over_distance() -> None:
    """Of two passes over a bin, a slow one and a fast one, both count alike."""
    steps = np.concatenate([np.full(100, 0.01), np.full(1000, -0.001), np.full(1000, 0.001), np.full(100, -0.01)])
    fast = np.abs(steps) > 0.005
    motion = Motion(np.cumsum(steps), steps, np.sign(steps) * np.where(fast, 3.0, 1.0))
    loop = mean_loop(motion, np.linspace(0.1, 0.9, BINS + 1))
    np.testing.assert_allclose(loop.forward, 2.0, atol=0.25)
    assert loop.forward.mean() == pytest.approx(2.0, abs=0.05)
    assert loop.backward.mean() == pytest.approx(-2.0, abs=0.05)


def test_only_the_shared_range_is_compared() -> None:
    found = compare_loops(swung(2.0, amplitude=0.5), swung(2.0, amplitude=0.3, middle=0.1))
    assert found.measured.position[0] > -0.2
    assert found.measured.position[-1] < 0.4
    assert found.difference == pytest.approx(0.0, abs=1e-12)


def test_motions_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="do not overlap"):
        compare_loops(swung(), swung(middle=5.0))
    with pytest.raises(ConfigurationError, match="encloses no work"):
        compare_loops(swung(-2.0), swung())
    few = Motion(*(column[:3] for column in (swung().position, swung().velocity, swung().friction)))
    with pytest.raises(ConfigurationError, match="share 0 of 60 positions"):
        compare_loops(swung(), few)
