"""A recording of a joint: its derived signals, and what is wrong with it."""

import numpy as np
import pytest

from haptics.errors import ConfigurationError
from tests.calibration.simulated_joints import PERIOD, joint, motion, recorded


def test_without_position_and_acceleration_they_follow_from_the_velocity():
    time, position, velocity, acceleration = motion()
    seen = recorded(time, velocity, velocity)
    inner = slice(50, -50)
    assert np.abs(seen.path - position)[inner].max() < 2e-4 * np.ptp(position)
    assert np.abs(seen.known_acceleration - acceleration)[inner].max() < 0.02 * np.abs(acceleration).max()


def test_motion_and_ripple_add_up_to_what_was_measured():
    time, _, velocity, _ = motion()
    ripple = 0.01 * np.sin(2.0 * np.pi * 80.0 * time)
    seen = recorded(time, velocity + ripple, velocity)
    assert np.allclose(seen.smooth_velocity + seen.ripple, velocity + ripple, atol=1e-14)
    assert np.abs(seen.ripple - ripple)[100:-100].max() < 0.1 * 0.01


def test_travel_counts_the_way_there_and_back():
    time = PERIOD * np.arange(1000)
    seen = recorded(time, np.cos(np.pi * time), np.cos(np.pi * time), position=np.sin(np.pi * time) / np.pi)
    assert seen.travel[-1] == pytest.approx(8.0 / np.pi, rel=0.01)  # four half turns, each 2/pi long
    assert np.all(np.diff(seen.travel) >= 0.0)


def test_a_start_at_rest_is_seen_and_has_the_direction_of_the_motion_to_come():
    seen = joint()
    assert seen.starts_at_rest
    assert not seen.part(0.5, 1.0).starts_at_rest
    first = np.sign(seen.velocity[np.argmax(np.abs(seen.velocity) > 0.05)])
    assert np.all(seen.direction_from_rest(0.01)[:100] == first)


def test_a_part_has_all_signals_of_that_time():
    seen = joint()
    part = seen.part(0.25, 0.5)
    assert len(part) == len(seen) // 4
    assert part.time[0] == seen.time[len(seen) // 4]
    assert part.position is not None
    assert part.load is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"velocity": np.ones(500)}, "the velocity never changes"),
        ({"velocity": np.full(500, np.nan)}, "velocity is not a finite number in sample 0"),
        ({"position": np.zeros(499)}, r"position has the shape \(499,\)"),
        ({"time": np.zeros(500)}, "times of a recording must increase"),
    ],
)
def test_what_cannot_be_used_is_said(change, words):
    given = {"time": 0.01 * np.arange(500), "velocity": np.sin(np.arange(500)), "friction": np.ones(500), **change}
    with pytest.raises(ConfigurationError, match=words):
        recorded(**given).require_terms()


def test_too_few_samples_are_said():
    with pytest.raises(ConfigurationError, match="50 samples are too few"):
        recorded(np.arange(50.0), np.sin(np.arange(50.0)), np.ones(50)).require_terms()
