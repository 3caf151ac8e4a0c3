"""The motions: slow and fast ones, both ways, within the limits of a device."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.motions.excitation import Excitation, Plan, approach, plan
from haptics.errors import ConfigurationError
from tests.haptics.doubles import make_spec

PERIOD = 1e-3
SPEC = make_spec(mass=0.2, max_force=10.0, max_acceleration=50.0)
MIDDLE = (np.array(SPEC.workspace_min) + np.array(SPEC.workspace_max)) / 2.0
TRAVEL = np.array(SPEC.workspace_max) - np.array(SPEC.workspace_min)


def moving(motion: Plan, axis: int) -> np.ndarray:
    """Return the velocities of an axis while it is its turn."""
    return np.concatenate([motion.velocity[part, axis] for part in motion.parts[axis]])


@settings(max_examples=6)
@given(
    slowest=st.floats(1e-4, 0.02),
    fastest=st.floats(0.03, 0.5),
    speeds=st.integers(2, 6),
    strokes=st.integers(1, 3),
    acceleration=st.floats(0.5, 20.0),
)
def test_the_motion_stays_within_the_limits(
    slowest: float, fastest: float, speeds: int, strokes: int, acceleration: float
) -> None:
    asked = Excitation(slowest, fastest, speeds, strokes=strokes, acceleration=acceleration, stroke_time=0.2)
    motion = plan(asked, SPEC, PERIOD)
    assert (np.abs(motion.position - MIDDLE) <= 0.5 * TRAVEL).all()
    assert np.abs(motion.velocity).max() <= min(fastest, SPEC.max_speed) * (1.0 + 1e-9)
    steepest = np.abs(np.diff(motion.velocity, axis=0)).max() / PERIOD
    assert steepest <= min(acceleration, SPEC.max_force / 0.2) * (1.0 + 1e-6)
    np.testing.assert_allclose(motion.position[-1], MIDDLE, atol=1e-9)
    np.testing.assert_allclose(np.cumsum(motion.velocity, axis=0) * PERIOD, motion.position - MIDDLE, atol=1e-9)


def test_every_speed_is_there_in_both_directions_and_in_each_round() -> None:
    asked = Excitation(rounds=3)
    motion = plan(asked, SPEC, PERIOD)
    for axis in range(2):
        assert len(motion.parts[axis]) == asked.rounds
        for part in motion.parts[axis]:
            velocity = motion.velocity[part, axis]
            for speed in np.geomspace(asked.slowest, asked.fastest, asked.speeds):
                for side in (1.0, -1.0):
                    steady = np.abs(velocity - side * speed) < 0.01 * speed
                    assert steady.sum() * PERIOD > 0.2 * asked.stroke_time
        assert abs(moving(motion, axis).mean()) < 1e-9


def test_one_axis_moves_at_a_time() -> None:
    motion = plan(Excitation(rounds=2), SPEC, PERIOD)
    for axis in range(2):
        for part in motion.parts[axis]:
            assert not motion.velocity[part, 1 - axis].any()
    assert motion.parts[1][-1].stop == len(motion)


def test_the_handle_is_brought_to_the_middle_slowly() -> None:
    start = np.array((0.03, -0.02))
    position, velocity = approach(start, MIDDLE, PERIOD)
    np.testing.assert_allclose(position[-1], MIDDLE, atol=1e-12)
    assert np.hypot(*velocity.T).max() <= 0.05 * (1.0 + 1e-9)
    assert np.hypot(*(position[0] - start)) < 1e-4
    assert len(approach(MIDDLE, MIDDLE, PERIOD)[0]) == 0


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"slowest": 0.2}, "excitation.slowest = 0.2 m/s: must be less than"),
        ({"rounds": 2.5}, "excitation.rounds = 2.5: must be a whole number"),
        ({"speeds": 1}, "excitation.speeds = 1"),
        ({"fastest": 5.0}, "excitation.fastest = 5.0"),
    ],
)
def test_motions_that_make_no_sense_are_refused_in_words(changes: dict[str, float], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        Excitation(**changes)  # type: ignore[arg-type]


def test_a_device_without_room_is_told_so() -> None:
    small = make_spec(max_speed=1e-3, mass=0.2)
    with pytest.raises(ConfigurationError, match="the device allows"):
        plan(Excitation(slowest=1e-3), small, PERIOD)
