"""Differences of impedances: closed form against an observer who feels the force of a prescribed motion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.psychometric import impedance_differences
from haptics.errors import ConfigurationError

C = 0.1
TIME = np.arange(4000) / 1000.0
"""Four seconds, whole cycles of the frequencies below."""


def force(stiffness: float, damping: float, mass: float, frequency: float) -> np.ndarray:
    """Return the force of an impedance whose end is moved by 10 mm to and fro [N]."""
    w = 2.0 * np.pi * frequency
    x = 0.01 * np.sin(w * TIME)
    return stiffness * x + damping * np.gradient(x, TIME, edge_order=2) - mass * w**2 * x


@given(st.floats(0.0, 400.0), st.floats(0.0, 20.0), st.floats(0.1, 3.0), st.sampled_from([0.5, 1.0, 2.0]))
def test_each_difference_changes_the_force_by_the_same_share(K: float, B: float, M: float, frequency: float) -> None:
    """As Fu found it: the change of the force, by its root mean square, is a tenth of the force, whatever changes."""
    told = impedance_differences(K, B, M, frequency, C)
    before = force(K, B, M, frequency)
    size = np.sqrt(np.mean(before**2))
    for changed in ((K + told.stiffness, B, M), (K, B + told.damping, M), (K, B, M + told.mass)):
        change = np.sqrt(np.mean((force(*changed, frequency) - before) ** 2))
        assert change == pytest.approx(C * size, rel=2e-3)


def test_a_stiffness_alone_has_the_weber_fraction_of_force() -> None:
    """Fu 2017: where the deflection is prescribed, the Weber fraction of stiffness is that of force."""
    assert impedance_differences(200.0, 0.0, 0.0, 1.0, C).stiffness == pytest.approx(20.0)


def test_a_spring_masks_damping_and_a_mass_in_resonance_unmasks_it() -> None:
    alone = impedance_differences(0.0, 5.0, 0.0, 1.0, C).damping
    assert alone == pytest.approx(0.5)
    assert impedance_differences(200.0, 5.0, 0.0, 1.0, C).damping > 6.0 * alone
    tuned = 200.0 / (2.0 * np.pi) ** 2
    assert impedance_differences(200.0, 5.0, tuned, 1.0, C).damping == pytest.approx(alone)


@pytest.mark.parametrize("wrong", [(-1.0, 0, 0, 1, 1), (1.0, 0, 0, 0, 1), (1.0, 0, 0, 1, -0.1), (0.0, 0, 0, 1, 1)])
def test_what_cannot_be_is_refused(wrong: tuple[float, ...]) -> None:
    with pytest.raises(ConfigurationError):
        impedance_differences(*wrong)
