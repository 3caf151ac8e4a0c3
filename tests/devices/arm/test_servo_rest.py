"""What a servo does at rest and at its limit, rule by rule; one that is started anew has forgotten everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from devices.arm.servo import kernels
from devices.arm.servo.rest import calm, integrate, rest
from devices.arm.servo.servo import new_servo
from devices.arm.servo.settings import ServoSettings
from haptics.jit import kernel
from tests.devices.arm.servo_rig import JOINT, LINKS, RATIO, START, ServoRig, strokes


@kernel
def _rest(servos: Any, error: float, seen: float) -> bool:
    s = servos[0]
    resting: bool = rest(s, s.axis[0], error, seen)
    return resting


@kernel
def _integrate(servos: Any, tau: float, error: float, resting: bool) -> float:
    s = servos[0]
    torque: float = integrate(s, s.axis[0], tau, error, resting)
    return torque


@kernel
def _calm(servos: Any, tau: float, motor: float, resting: bool) -> float:
    s = servos[0]
    torque: float = calm(s, s.axis[0], tau, motor, resting)
    return torque


class Joint:
    """The first joint of a servo at rest; its fields can be read and set."""

    def __init__(self) -> None:
        self.servo = new_servo(ServoSettings(), LINKS, (JOINT, JOINT), START, torque_limit=(2.0, 2.0))

    def __getitem__(self, name: str) -> float:
        return float(self.servo["axis"][name][0, 0])

    def __setitem__(self, name: str, value: float) -> None:
        self.servo["axis"][name][0, 0] = value

    def wanted(self, velocity: float, acceleration: float) -> None:
        self.servo["axis"]["wanted"]["velocity"][0, 0] = velocity
        self.servo["axis"]["wanted"]["acceleration"][0, 0] = acceleration


@pytest.fixture
def joint() -> Joint:
    made = Joint()
    made["rest_band"], made["yield_band"], made["calm_band"] = 1e-3, 2e-3, 1e-5
    made.servo["yielding"], made.servo["recovery"], made.servo["patience"] = 0.1, 0.2, 3
    return made


@pytest.mark.parametrize(
    ("velocity", "acceleration", "resting"), [(0.0, 0.0, True), (0.1, 0.0, False), (0.0, 1.0, False)]
)
def test_a_joint_rests_while_its_reference_neither_moves_nor_begins_to(
    joint: Joint, velocity: float, acceleration: float, resting: bool
) -> None:
    joint.wanted(velocity, acceleration)
    joint["offset"], joint["integral"] = 1e-4, 5.0
    assert _rest(joint.servo, 5e-4, 6e-4) == resting
    assert joint["offset"] == pytest.approx(1e-4 + 0.1 * 5e-4 if resting else 0.8e-4)
    assert joint["integral"] == pytest.approx(4.5 if resting else 5.0)


def test_a_joint_that_was_moved_away_yields_no_more_until_its_reference_moves(joint: Joint) -> None:
    joint["integral"] = 5.0
    assert _rest(joint.servo, 1.9e-3, 1.9e-3), "friction may have kept it off that far"
    assert not _rest(joint.servo, 2.1e-3, 2.1e-3)
    joint["offset"], joint["integral"] = 1e-4, 5.0
    for error, resting in ((1.9e-3, False), (0.9e-3, True)):
        assert _rest(joint.servo, error, error) == resting
    assert (joint["offset"], joint["integral"]) == (pytest.approx(0.64e-4), 5.0)
    joint.wanted(0.1, 0.0)
    assert not _rest(joint.servo, 0.0, 0.0)
    joint.wanted(0.0, 0.0)
    assert _rest(joint.servo, 1.9e-3, 1.9e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_integrator_does_not_grow_at_the_limit_and_leaves_it_at_once(joint: Joint, sign: float) -> None:
    u, step = 100.0, joint.servo["period"][0] * joint["integral_gain"] * 1e-3
    assert _integrate(joint.servo, sign * 1.0, sign * 1e-3, False) == pytest.approx(sign * (1.0 + step / u))
    assert joint["integral"] == pytest.approx(sign * step)
    assert _integrate(joint.servo, sign * 1.0, sign * 1e-3, True) == pytest.approx(sign * (1.0 + step / u))
    assert joint["integral"] == pytest.approx(sign * step), "it stands still at rest"
    for _ in range(10):
        assert _integrate(joint.servo, sign * 9.0, sign * 1e-3, False) == sign * 2.0
    assert joint["integral"] == pytest.approx(sign * step)
    assert _integrate(joint.servo, sign * 9.0, -sign * 1e-3, False) == sign * 2.0
    assert joint["integral"] == pytest.approx(0.0, abs=1e-9), "what leads away from the limit counts"


def test_a_joint_that_only_flickers_gets_the_mean_of_its_torques(joint: Joint) -> None:
    told = [_calm(joint.servo, tau, 5e-6 * (-1.0) ** k, True) for k, tau in enumerate((1.0, 2.0, 3.0, 6.0, 9.0, 9.0))]
    assert told == pytest.approx([1.0, 2.0, 3.0, 6.0, 3.0, 3.0])
    assert _calm(joint.servo, 7.0, 1e-4, True) == 7.0, "it has moved"
    assert _calm(joint.servo, 8.0, 1e-4, True) == 8.0


@pytest.mark.parametrize("period", [1e-4, 2e-4])
def test_the_torque_of_a_calm_joint_is_held_after_a_twentieth_of_a_second(period: float) -> None:
    servo = new_servo(ServoSettings(period=period), LINKS, (JOINT, JOINT), START)
    calm_periods = next(k for k in range(2000) if _calm(servo, float(k), 0.0, True) != k)
    assert calm_periods * period == pytest.approx(0.05, abs=1.5 * period)


def test_the_bands_of_rest_are_steps_of_the_encoder_and_what_friction_can_hold() -> None:
    """10 N m of dry friction against the stiffness of the servo, and the twist of the gearbox under them."""
    bands = {}
    for step in (0.0, 1e-4):
        axis = new_servo(ServoSettings(), LINKS, (JOINT, JOINT), START, resolution=(step, 2.0 * step))["axis"][0]
        bands[step] = axis["rest_band"].copy()
        np.testing.assert_allclose(axis["yield_band"] - bands[step], JOINT.stiffness.twist(10.0), rtol=1e-6)
        gain = axis["control"]["position_gain"] * axis["control"]["velocity_gain"] * RATIO**2
    np.testing.assert_allclose(bands[0.0], 2.0 * 10.0 / gain, rtol=1e-6)
    np.testing.assert_allclose(bands[1e-4] - bands[0.0], (2e-4, 4e-4), rtol=1e-9)


@pytest.mark.parametrize("reason", ["it moves", "the hand is known"])
def test_a_joint_that_has_a_task_is_not_calmed(joint: Joint, reason: str) -> None:
    joint.servo["knows_hand"] = reason == "the hand is known"
    told = [_calm(joint.servo, float(k), 0.0, reason != "it moves") for k in range(9)]
    assert told == list(range(9))


@pytest.mark.parametrize("law", ["pid", "flatness", "fractional"])
def test_a_servo_that_is_started_anew_has_forgotten_everything(law: str) -> None:
    fresh, used = (ServoRig(ServoSettings(law=law), torque_limit=1.9) for _ in range(2))
    used.run(strokes(0.2, amplitude=0.6, frequency=5.0), (30.0, -20.0))
    used.hold(0.1, (40.0, 10.0))
    used.plant[:] = fresh.plant
    used.drives[:] = fresh.drives
    used.commanded = fresh.commanded
    for name in ("insists", "offset", "integral", "trim", "link_rate", "motor_rate", "calm_torque"):
        used.servo["axis"][name] = 1
    kernels.start_servos(used.servo, np.array(START))
    path = np.concatenate((np.tile(START, (20, 1)), strokes(0.1)))
    again, first = used.run(path), fresh.run(path)
    assert first["torque"].any()
    for name in ("torque", "angle", "reference"):
        np.testing.assert_array_equal(again[name], first[name])
