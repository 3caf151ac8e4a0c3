"""Proxy-based sliding mode control: a PID control inside its bound, the inclusion at it, and no overshoot after it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.arm.servo.kernels import servo_step
from devices.arm.servo.servo import new_servo
from devices.arm.servo.settings import ServoSettings
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from tests.devices.arm.servo_rig import JOINT, LINKS, RATIO, START, ServoRig

# More than any torque [N m].
ENOUGH = 1e6

PERIOD = 2e-4


def sliding(**own):
    return ServoSettings(law="sliding-mode", period=PERIOD, **own)


@kernel
def _step(servos):
    servo_step(servos[0])


# --- the inclusion ------------------------------------------------------------------------------------------------

bounds = st.floats(1.0, 300.0)
times = st.floats(1e-3, 10.0)


def driven(servo, motors):
    """Show the servo, whose reference rests, the motors at `motors`, (n, 2) [rad] off it.

    Returns the torque on the joints [N m], how far the proxy is ahead of the reference [rad], and the load [N m].
    """
    record = new_servo(servo, LINKS, (JOINT, JOINT), START, torque_limit=(ENOUGH, ENOUGH))
    record["axis"]["rest_band"] = record["axis"]["yield_band"] = -1.0  # disable the rest behaviour
    rows = []
    for motor in motors:
        record["motor"] = START + motor
        _step(record)
        axis = record["axis"][0]
        rows.append((RATIO * record["torque"][0], axis["ahead"].copy(), axis["wanted"]["load"].copy()))
    torque, ahead, load = (np.array(each) for each in zip(*rows, strict=True))
    return torque, ahead, load


@given(st.integers(0, 2**32 - 1), bounds, times, st.sampled_from([1e-5, 1e-3, 0.1]), st.sampled_from([0.0, 0.2, 1.0]))
@settings(max_examples=15)
def test_torque_satisfies_the_inclusion_and_the_pid_law(seed, bound, resume, size, integral):
    """Both relations are independent of the implementation: the relay at the end of the step, and the PID control."""
    servo = sliding(torque_bound=bound, resume_time=resume, integral=integral)
    motors = size * np.cumsum(np.random.default_rng(seed).normal(0.0, 0.2, (400, 2)), axis=0)
    torque, ahead, load = driven(servo, motors)
    before = np.vstack((np.zeros(2), ahead[:-1]))
    s = -ahead - resume / PERIOD * (ahead - before)
    tiny = 1e-9 * (1.0 + resume / PERIOD) * abs(ahead).max() + 1e-15
    assert (abs(torque) <= bound * (1.0 + 1e-12)).all()
    np.testing.assert_allclose(torque[s > tiny], bound, rtol=1e-9)
    np.testing.assert_allclose(torque[s < -tiny], -bound, rtol=1e-9)
    np.testing.assert_allclose(torque, pid(servo, ahead - motors) + load, atol=1e-7 * bound + 1e-9 * ENOUGH * size)


def pid(servo, error):
    """Return the torque of a PID control with the same gains for `error`, (n, 2) [rad] [N m]."""
    record = new_servo(servo, LINKS, (JOINT, JOINT), START)
    control, share = record["axis"]["control"][0], float(record["filter"][0])
    damping = control["velocity_gain"] * RATIO**2
    rate = np.zeros_like(error)
    for k in range(1, len(error)):
        rate[k] = rate[k - 1] + share * ((error[k] - error[k - 1]) / PERIOD - rate[k - 1])
    total = PERIOD * np.cumsum(error, axis=0)
    result = control["position_gain"] * damping * error + damping * rate
    return result + record["axis"]["integral_gain"][0] * total


@given(st.integers(0, 2**32 - 1), times)
@settings(max_examples=7)
def test_proxy_returns_geometrically_inside_the_bound(seed, resume):
    """The return is independent of the motion of the joint."""
    torque, ahead, _ = driven(sliding(torque_bound=50.0, resume_time=resume), jolt(np.random.default_rng(seed), 300))
    inside = (abs(torque[1:]) < 50.0 * (1.0 - 1e-9)).all(axis=1)
    assert inside.sum() > 100
    assert (abs(torque) > 49.9).any()
    np.testing.assert_allclose(
        ahead[1:][inside], resume / (resume + PERIOD) * ahead[:-1][inside], atol=1e-12, rtol=1e-9
    )


def jolt(numbers, count):
    """Return motors, (n, 2) [rad], that are pushed far away for a short time, and then flutter."""
    motors = numbers.normal(0.0, 2e-6, (count, 2))
    motors[5:25] += 0.01
    return motors


# --- on an arm ----------------------------------------------------------------------------------------------------


# Of the reference, all at once [rad].
JUMP = np.array((0.3, -0.2))


def test_torque_bound_is_limited_by_the_motor():
    rig = ServoRig(sliding(torque_bound=ENOUGH), torque_limit=0.3)
    assert abs(rig.run(np.tile(START + JUMP, (300, 1)))["torque"]).max() <= 0.3


@pytest.mark.parametrize(
    ("name", "words"), [("torque_bound", "greater than 0 N m"), ("resume_time", r"at least 0\.001 s")]
)
def test_settings_must_be_positive(name, words):
    with pytest.raises(ConfigurationError, match=rf"device\.servo\.{name} = 0\.0: must be .* {words}"):
        sliding(**{name: 0.0})
