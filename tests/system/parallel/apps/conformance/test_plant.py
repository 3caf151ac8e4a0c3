"""Long computations for the topic of tests/apps/conformance/test_plant.py."""

from __future__ import annotations

import numpy as np

from apps.conformance import cells
from tests.apps.conformance.test_plant import oscillator


def test_the_plant_makes_no_energy() -> None:
    x, v = oscillator(0.0, 20000)
    energy = 0.5 * cells.HANDLE_MASS * v**2 + 200.0 * x**2
    np.testing.assert_allclose(energy, energy[0], rtol=1e-11)
    x, v = oscillator(0.5, 20000)
    assert (np.diff(0.5 * cells.HANDLE_MASS * v**2 + 200.0 * x**2) < 0.0).all()
