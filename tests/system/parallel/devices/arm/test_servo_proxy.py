"""Long computations for the topic of tests/devices/arm/test_servo_proxy.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from devices.arm.servo.settings import ServoSettings
from tests.devices.arm.servo_rig import RATIO, START, TICK, ServoRig, strokes
from tests.devices.arm.test_servo_proxy import ENOUGH, JUMP, PERIOD, sliding


@pytest.mark.parametrize("encoders", ["motor", "both"])
def test_inside_the_bound_it_is_a_pid_control(encoders: str) -> None:
    """Along strokes, at rest, and under a hand; with the integrator and all that it does at rest."""
    rows = []
    for servo in (ServoSettings(period=PERIOD), sliding(torque_bound=ENOUGH)):
        rig = ServoRig(servo, encoders=encoders, motor_step=7.7e-6, joint_step=6e-6)
        rows.append(np.concatenate((rig.run(strokes(2.0)), rig.hold(0.5), rig.hold(0.5, (0.0, 40.0)))))
    for name in ("torque", "angle", "rotor"):
        np.testing.assert_allclose(rows[1][name], rows[0][name], rtol=1e-6, atol=1e-9)


def jumped(servo: ServoSettings, seconds: float = 3.0) -> NDArray[np.void]:
    """Return what an arm does under a reference that is suddenly elsewhere, as it is when a blocked one is freed."""
    return ServoRig(servo, torque_limit=1.9).run(np.tile(START + JUMP, (round(seconds / TICK), 1)))


@pytest.mark.parametrize("bound", [20.0, 60.0, 150.0])
@pytest.mark.parametrize("resume", [0.1, 0.3])
def test_freed_it_comes_back_exponentially_and_never_beyond(bound: float, resume: float) -> None:
    rows = jumped(sliding(torque_bound=bound, resume_time=resume), 10.0 * resume + 1.0)
    left = (START + JUMP - rows["angle"]) / JUMP
    assert abs(RATIO * rows["torque"]).max() <= bound * (1.0 + 1e-12)
    assert left.min() > -0.005, "no overshoot but what friction and gears give"
    assert abs(left[-1]).max() < 0.005
    time, left = TICK * np.arange(len(rows)), (START + JUMP - rows["rotor"]) / JUMP  # encoders are on the motors
    window = (time > 2.0 * resume + 0.1) & (left > 0.01).all(axis=1)
    assert window.sum() > 50
    for joint in left.T:
        slope = np.polyfit(time[window], np.log(joint[window]), 1)[0]
        assert -1.0 / slope == pytest.approx(resume, rel=0.1)


def test_a_plain_pid_control_with_the_same_motors_goes_far_beyond() -> None:
    left = (START + JUMP - jumped(ServoSettings(period=PERIOD))["angle"]) / JUMP
    assert left.min() < -0.1


@given(st.tuples(st.floats(-0.4, 0.4), st.floats(-0.4, 0.4)), st.floats(20.0, 190.0), st.floats(0.1, 0.4))
@settings(max_examples=6)
def test_from_any_distance_it_settles_within_its_bound(jump: tuple[float, float], bound: float, resume: float) -> None:
    rig = ServoRig(sliding(torque_bound=bound, resume_time=resume), torque_limit=1.9)
    rows = rig.run(np.tile(np.add(START, jump), (round((12.0 * resume + 0.5) / TICK), 1)))
    assert abs(RATIO * rows["torque"]).max() <= bound * (1.0 + 1e-12)
    assert abs(rows["angle"][-1] - START - jump).max() < 2e-3
    assert abs(rows["speed"][-1]).max() < 0.02


def test_a_reference_that_moves_on_is_followed_as_by_pid_once_it_has_been_caught_up_with() -> None:
    rig = ServoRig(sliding(torque_bound=60.0, resume_time=0.1), torque_limit=1.9)
    rig.run(np.tile(START + JUMP, (1500, 1)))
    wanted = strokes(3.0) + JUMP
    rows, other = rig.run(wanted), ServoRig(ServoSettings(period=PERIOD), torque_limit=1.9)
    other.hold(1.5)
    pid_rows = other.run(strokes(3.0))
    mine, theirs = abs(rows["angle"] - wanted).max(), abs(pid_rows["angle"] - strokes(3.0)).max()
    assert mine < 1.2 * theirs
