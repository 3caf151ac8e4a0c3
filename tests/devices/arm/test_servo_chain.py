"""The reference that follows a command: exact, without lag behind a steady motion, and at rest in the end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.servo.chain import CHAIN_FIELDS, fill_chain
from devices.arm.servo.references import MotorReferences
from devices.arm.servo.settings import ServoSettings
from haptics.errors import ConfigurationError
from tests.devices.arm.servo_rig import JOINT, LINKS


def follow(commands, period, frequency=100.0):
    """Return the motion of both references, (n, 2, 5), while `commands`, (n, 2), come in; it begins at rest."""
    settings = ServoSettings(reference="smooth", reference_frequency=frequency)
    references = MotorReferences(settings, LINKS, (JOINT, JOINT), period)
    references.start(tuple(commands[0]))
    motion = np.empty((len(commands), 2, 5))
    for k, command in enumerate(commands):
        references.step(command)
        motion[k] = references.motion
    return motion


def line(count, period, rate=(1.0, -0.5), bend=0.0):
    """Return commands (n, 2) [rad] that move at a steady rate [rad/s], or with a steady acceleration [rad/s^2]."""
    time = period * np.arange(count)[:, None]
    return np.array([0.3, 1.2]) + time * np.array(rate) + 0.5 * bend * time**2


def test_it_does_not_lag_behind_a_steady_motion():
    commands = line(400, 1e-3)
    motion = follow(commands, 1e-3)
    np.testing.assert_allclose(motion[-1, :, 0], commands[-1], atol=1e-13)
    np.testing.assert_allclose(motion[-1, :, 1], [1.0, -0.5], rtol=1e-12)


@pytest.mark.parametrize("period", [1e-3, 1e-4])
def test_nor_behind_a_steady_acceleration(period):
    commands = line(600, period, bend=4.0)
    motion = follow(commands, period)
    np.testing.assert_allclose(motion[-1, :, 0], commands[-1], atol=1e-10)
    np.testing.assert_allclose(motion[-1, :, 1], [1.0 + 4.0 * 599 * period, -0.5 + 4.0 * 599 * period], rtol=1e-9)
    np.testing.assert_allclose(motion[-1, :, 2], 4.0, rtol=1e-6)


@given(st.integers(2, 20), st.floats(5.0, 500.0), st.sampled_from([1e-4, 1e-3, 1e-2]))
def test_a_long_period_is_many_short_ones(parts, frequency, period):
    """What is left of an error after a period has no error of its own."""
    coarse, fine = np.zeros(1, CHAIN_FIELDS), np.zeros(1, CHAIN_FIELDS)
    fill_chain(coarse, frequency, period, period)
    fill_chain(fine, frequency, period / parts, period)
    scale = (2.0 * np.pi * frequency) ** np.arange(4.0)
    sized = [record["transition"][0] * scale / scale[:, None] for record in (coarse, fine)]
    np.testing.assert_allclose(np.linalg.matrix_power(sized[1], parts), sized[0], atol=1e-9)


def test_its_poles_lie_where_they_are_asked_for():
    record = np.zeros(1, CHAIN_FIELDS)
    fill_chain(record, 20.0, 1e-3, 1e-3)
    poles = np.log(np.linalg.eigvals(record["transition"][0]).astype(complex)) / 1e-3
    np.testing.assert_allclose(poles, -2.0 * np.pi * 20.0, rtol=0.02)  # a fourfold root is found to the fourth root


def test_too_many_periods_in_a_tick_are_refused():
    with pytest.raises(ConfigurationError, match=r"servo.period = 2e-05: must be at least 0.0001 s"):
        fill_chain(np.zeros(1, CHAIN_FIELDS), 100.0, 2e-5, 1e-2)


def test_its_derivatives_are_derivatives():
    period = 1e-5
    commands = np.concatenate((line(2000, period), line(2000, period, (3.0, 2.0))))
    motion = follow(commands, period)[2:1999]
    for order in range(3):
        rise = np.diff(motion[..., order], axis=0) / period
        middle = 0.5 * (motion[1:, :, order + 1] + motion[:-1, :, order + 1])
        np.testing.assert_allclose(rise, middle, atol=1e-3 * abs(middle).max())


@given(st.floats(20.0, 1000.0), st.sampled_from([2e-4, 2e-3]), st.floats(-3.0, 3.0))
def test_after_a_jump_it_is_bounded_and_comes_to_rest_exactly(frequency, period, jump):
    """A jump of the command is a fast straight line of one period: the reference overshoots it, but not for ever."""
    commands = np.tile([0.1 + jump, 0.2], (int(12.0 / (frequency * period)) + 20, 1))
    commands[0, 0] = 0.1
    motion = follow(commands, period, frequency)
    assert (abs(motion[:, 0, 0] - 0.1) <= 2.5 * abs(jump) + 1e-12).all()
    np.testing.assert_array_equal(motion[-1], [[0.1 + jump, 0.0, 0.0, 0.0, 0.0], [0.2, 0.0, 0.0, 0.0, 0.0]])


def test_without_it_the_command_is_the_reference():
    references = MotorReferences(ServoSettings(holds_weight=False), LINKS, (JOINT, JOINT), 1e-3)
    references.start((0.5, 1.0))
    angles, speeds, torques = references.step((0.501, 0.998))
    np.testing.assert_array_equal(angles, [0.501, 0.998])
    np.testing.assert_allclose(speeds, [1.0, -2.0], rtol=1e-10)
    np.testing.assert_array_equal(torques, 0.0)


@pytest.mark.parametrize("law", ["flatness", "rigid"])
def test_laws_with_a_feed_forward_need_its_derivatives(law):
    assert ServoSettings(law=law).smooth
    assert not ServoSettings(law="pid").smooth
