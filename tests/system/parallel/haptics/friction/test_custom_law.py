"""Long computations for the topic of tests/haptics/friction/test_custom_law.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import Stribeck
from tests.haptics.friction.test_custom_law import exponential
from tests.haptics.meetings import Meeting
from tests.haptics.references import norms, steepest
from tests.haptics.strategies import PHYSICS, log_floats


@PHYSICS
@given(log_floats(0.1, 50.0), st.floats(1.0, 3.0), log_floats(1e-3, 1.0), st.floats(0.0, 10.0), st.floats(0.01, 0.9))
def test_written_as_a_stribeck_law_it_is_one(
    kinetic: float, ratio: float, width: float, viscosity: float, share: float
) -> None:
    law = Stribeck(kinetic, kinetic * ratio, width, viscosity)
    twin = exponential(kinetic=kinetic, static=kinetic * ratio, width=width, viscosity=viscosity)
    meeting = Meeting(law, 1e-3 / (share * min(1.0, steepest(law))))
    x = meeting.arguments()
    expected, found = meeting.answers(x), Meeting(twin, meeting.mass).answers(x)
    size = np.maximum(law.breakaway_force, norms(expected.force))
    assert np.all(norms(found.force - expected.force) <= 1e-12 * size)
    assert np.all(norms(found.velocity - expected.velocity) <= 1e-12 * np.maximum(norms(x), meeting.mobility * size))
    assert twin.mobility_limit == pytest.approx(law.mobility_limit, rel=1e-3)
