"""Long computations for the topic of tests/calibration/terms/test_selection.py."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.terms.selection import select_terms
from tests.calibration.simulated_joints import joint, recorded


@settings(max_examples=5)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_do_not_change_the_choice(length, force):
    seen = joint(inertia=-8.0)
    scaled = recorded(
        seen.time,
        length * seen.velocity,
        force * seen.friction,
        length * seen.position,
        length * seen.acceleration,
        rotary=False,
    )
    plain = recorded(seen.time, seen.velocity, seen.friction, seen.position, seen.acceleration, rotary=False)
    first, second = select_terms(plain), select_terms(scaled)
    assert [term.name for term in second.model.terms] == [term.name for term in first.model.terms]
    assert second.score.value == pytest.approx(first.score.value, rel=1e-6)
