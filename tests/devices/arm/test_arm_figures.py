"""The statistics of the arm's figures, on strokes that are known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.devices.arm.figures import unsteadiness


def strokes(mass: float, ripple: float) -> np.ndarray:
    """Return rows of sinusoidal strokes against 6 N of friction, in front of a mass; the friction ripples at 40 Hz."""
    rows = np.zeros(8000, dtype=[("time", float), ("velocity", float, 2), ("force", float, 2)])
    time = rows["time"] = np.arange(8000) * 1e-3
    direction, angle = np.array([0.6, 0.8]), 2.0 * np.pi * 0.5 * time
    speed, acceleration = 0.2 * np.cos(angle), -0.2 * np.pi * np.sin(angle)
    friction = 6.0 + ripple * np.sqrt(2.0) * np.sin(2.0 * np.pi * 40.0 * time)
    rows["velocity"] = speed[:, None] * direction
    rows["force"] = (np.sign(speed) * friction + mass * acceleration)[:, None] * direction
    return rows


def test_what_the_mass_takes_is_no_unsteadiness_of_the_friction() -> None:
    whole, steady = unsteadiness(strokes(2.0, 0.0), 2.0)
    assert whole > 0.5
    assert steady < 0.01


def test_a_friction_that_ripples_is_found_as_much_as_it_does() -> None:
    _, steady = unsteadiness(strokes(2.0, 0.3), 2.0)
    assert steady == pytest.approx(0.3, rel=0.02)
