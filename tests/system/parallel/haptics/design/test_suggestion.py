"""Long computations for the topic of tests/haptics/design/test_suggestion.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics.design import (
    SETTLED,
    Coupling,
    Handle,
    count_jump,
    growth,
    settling_time,
    stiffness_limit,
    stuck_matrix,
    suggest,
)
from tests.haptics.strategies import log_floats


@settings(max_examples=5)
@given(
    mass=log_floats(0.03, 3.0),
    own=st.one_of(st.just(0.0), log_floats(0.05, 5.0)),
    delay=st.floats(0.0, 3e-3),
    resolution=st.one_of(st.just(0.0), log_floats(1e-6, 3e-4)),
    force=log_floats(0.3, 20.0),
)
def test_it_keeps_every_bound_and_no_damping_would_allow_more(
    mass: float, own: float, delay: float, resolution: float, force: float
) -> None:
    handle = Handle(mass, own, delay, resolution)
    found = suggest(handle, force)
    assert found.growth == growth(stuck_matrix(Coupling(found.stiffness, found.damping), handle)) < 1.0
    assert found.presliding == pytest.approx(force / found.stiffness)
    assert found.count_jump == count_jump(Coupling(found.stiffness, found.damping), handle)

    def allowed(damping: float) -> float:
        stable = min(stiffness_limit(handle, damping), stiffness_limit(handle, 2.0 * damping)) / 2.0
        fine = (0.1 * force - damping * resolution / 1e-3) / resolution if resolution else math.inf
        return max(min(stable, fine), 0.0)

    assert found.stiffness <= allowed(found.damping) * (1.0 + 1e-6)
    others = [(allowed(damping), damping) for damping in found.damping * np.geomspace(0.2, 5.0, 13)]
    couplings = [Coupling(k, damping) for k, damping in others if k > 0.0]
    best = max(couplings, key=lambda coupling: coupling.stiffness)
    if settling_time(handle, best) < SETTLED:
        assert found.stiffness >= 0.995 * best.stiffness
    shortest = min(settling_time(handle, coupling) for coupling in couplings)
    assert found.settling <= max(SETTLED, 3.3 * shortest)
