"""Suggested parameters on random devices, and the table of servo laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import devices
from haptics.design.advice import Severity, advise, suggest
from haptics.design.bounds import SETTLED, count_jump, settling_time, stiffness_limit
from haptics.design.loops import Coupling, Handle, growth, stuck_matrix
from tests.haptics.design.test_advice import model_c, table
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import log_floats


@settings(max_examples=5)
@given(
    mass=log_floats(0.03, 3.0),
    own=st.one_of(st.just(0.0), log_floats(0.05, 5.0)),
    delay=st.floats(0.0, 3e-3),
    resolution=st.one_of(st.just(0.0), log_floats(1e-6, 3e-4)),
    force=log_floats(0.3, 20.0),
)
def test_suggestion_keeps_every_bound_and_is_optimal(mass, own, delay, resolution, force):
    handle = Handle(mass, own, delay, resolution)
    found = suggest(handle, force)
    assert found.growth == growth(stuck_matrix(Coupling(found.stiffness, found.damping), handle)) < 1.0
    assert found.presliding == pytest.approx(force / found.stiffness)
    assert found.count_jump == count_jump(Coupling(found.stiffness, found.damping), handle)

    def allowed(damping):
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


@settings(max_examples=5)
@given(
    mass=log_floats(0.03, 3.0),
    own=log_floats(0.05, 5.0),
    delay=st.floats(0.0, 9e-3),
    resolution=log_floats(1e-6, 3e-4),
    force=log_floats(0.3, 9.0),
)
def test_suggestion_gives_no_warning(mass, own, delay, resolution, force):
    spec = make_spec(mass=mass, damping=own, delay=delay, position_resolution=resolution)
    found = suggest(Handle(mass, own, delay, resolution), force)
    advice = advise(model_c(0.999 * found.stiffness, found.damping, force), spec)
    assert [one.text for one in advice if one.severity is Severity.WARNING] == []
    assert {one.bound for one in advice} <= {"settling", "presliding"}, "notes on what the device does not allow"
    soft = [one for one in advice if one.bound == "presliding"]
    assert bool(soft) is (force / (0.999 * found.stiffness) > 1e-3)


@pytest.mark.parametrize("row", table("servo law"))
def test_table_of_servo_laws_is_up_to_date(row):
    law, limit, shakes, *_ = row
    encoder = "both" if "linearising" in law else "motor"
    settings = {"servo": {"law": law.strip("`")}, "arm": {"encoder": encoder}}
    spec = devices.create_device("virtual-arm", settings | {"hand": {"name": "minimum-jerk"}}).spec
    assert (spec.grip_stiffness, spec.grip_damping) == (400.0, 8.0)
    assert spec.least_mass == pytest.approx(float(limit), abs=0.01)
    assert float(shakes) < float(limit)
