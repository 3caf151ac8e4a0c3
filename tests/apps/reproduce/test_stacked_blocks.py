"""Fig. 11's two blocks: the rigid reference solves its set-valued law, and the compliant network stays near it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.reproduce.stacked_blocks import (
    FRICTION,
    MASSES,
    SPRINGS,
    WIRINGS,
    Wiring,
    compliant,
    drive,
    law_residual,
    network,
    rigid,
    rigid_friction,
)

MODES = st.sampled_from((-1, 0, 1))
SPEEDS = st.floats(-1.0, 1.0)


@given(SPEEDS, SPEEDS, MODES, MODES, st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.floats(-0.9, 0.9))
def test_two_coupled_contacts_obey_the_law_whatever_the_guess(
    q1: float, q2: float, m1: int, m2: int, a: float, c: float, coupling: float
) -> None:
    b = coupling * float(np.sqrt(a * c))
    limits = (0.7, 0.3)
    forces, _ = rigid_friction((q1, q2), (a, b, c), limits, (m1, m2))
    velocity = np.array((q1, q2)) - np.array(((a, b), (b, c))) @ forces
    # The law, written without cases: f is f + v cut off at the levels.
    assert np.clip(forces + velocity, -np.array(limits), limits) == pytest.approx(np.array(forces), abs=1e-8)
    assert forces == pytest.approx(rigid_friction((q1, q2), (a, b, c), limits)[0], abs=1e-7)


def test_velocities_that_are_no_numbers_fit_no_mode() -> None:
    with pytest.raises(ArithmeticError, match="no mode fits"):
        rigid_friction((np.nan, 0.0), (1.0, 0.0, 1.0), (0.1, 0.1))


@pytest.mark.parametrize("wiring", WIRINGS)
def test_the_rigid_reference_obeys_its_law_and_newton(wiring: Wiring) -> None:
    period = 2e-4
    run = rigid(wiring, 3.0, period)
    assert law_residual(run) < 1e-9
    assert law_residual(replace(run, friction_force=run.friction_force + 0.01)) > 0.009
    assert run.sticking.any(axis=0).all() and not run.sticking.all(axis=0).any()
    u = drive(run.time)
    far_end = period * np.cumsum(u) if wiring == "ground" else 0.0 * u
    pull = -np.array(SPRINGS) * (run.position - np.column_stack((far_end, 0.0 * u)))
    friction = run.friction_force - np.column_stack((run.friction_force[:, 1], 0.0 * u))
    acceleration = np.diff(run.velocity, axis=0) / period
    late = np.abs(np.array(MASSES) * acceleration - (pull - friction)[1:])
    assert late.max() < 0.05  # springs are taken at the start of each step


@pytest.mark.parametrize("wiring", WIRINGS)
def test_the_rigid_reference_converges_with_its_step(wiring: Wiring) -> None:
    coarse, fine, finest = (rigid(wiring, 2.0, period) for period in (4e-4, 2e-4, 1e-4))
    first = np.abs(coarse.position - fine.position[1::2]).max()
    second = np.abs(fine.position - finest.position[1::2]).max()
    assert second < 0.7 * first
    assert second < 3e-4


@pytest.mark.parametrize("wiring", WIRINGS)
def test_the_compliant_blocks_obey_the_law_where_they_touch(wiring: Wiring) -> None:
    run = compliant(network(wiring), 3.0)
    assert law_residual(run) == 0.0
    assert np.abs(run.friction_force).max(axis=0).tolist() == list(FRICTION)
