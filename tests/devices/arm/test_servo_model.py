"""What the model in the servo stands for: friction of the reference, a missing encoder, the past before its start."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from devices.arm.flatness.friction import SmoothCoulomb
from devices.arm.flatness.joint import ElasticJoint
from devices.arm.servo import servo
from devices.arm.servo.kernels import refer_address, servo_step
from devices.arm.servo.servo import new_servo
from devices.arm.servo.settings import ServoSettings
from haptics.jit import kernel
from haptics.parts import run_part
from haptics.records import Rows
from tests.devices.arm.servo_rig import JOINT, LINKS, START


@kernel
def _step(servos: Rows) -> None:
    servo_step(servos[0])


def ramp(count: int, period: float) -> NDArray[np.float64]:
    """Return commands (n, 2) [rad] that swing, one each period."""
    phase = 2.0 * np.pi * 3.0 * period * np.arange(count)
    return np.asarray(START + 0.1 * np.column_stack((1.0 - np.cos(phase), np.sin(phase) ** 2)))


def loads(joint: ElasticJoint, period: float) -> NDArray[np.float64]:
    """Return load, rate and acceleration of both joints for exact linearisation, (n, 3, 2)."""
    settings = ServoSettings(law="linearising", period=period)
    record = new_servo(settings, LINKS, (joint, joint), START, encoders="both", tick=period)
    rows = []
    for command in ramp(1000, period):
        record["command"] = command
        run_part(refer_address(record), record.ctypes.data, 0.0, 0.0)
        wanted = record["axis"]["wanted"][0]
        rows.append([wanted[name].copy() for name in ("load", "load_rate", "load_acceleration")])
    return np.array(rows)


def test_exact_linearisation_knows_how_friction_changes_along_the_reference() -> None:
    period, smooth = 2e-4, SmoothCoulomb(10.0, 3.0, 5.0)
    free = dataclasses.replace(JOINT, friction=SmoothCoulomb(0.0, 0.0, 1.0))
    friction = loads(dataclasses.replace(JOINT, friction=smooth), period) - loads(free, period)
    for order in range(2):
        rise = np.gradient(friction[:, order], period, axis=0)[100:-1]
        np.testing.assert_allclose(friction[100:-1, order + 1], rise, atol=2e-3 * abs(rise).max())


@pytest.mark.parametrize("feedback", ["model-based", "conventional"])
def test_the_twist_of_the_model_stands_for_a_missing_encoder(feedback: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the joint's encoder alone the motor is taken to be where joint and twist put it."""
    monkeypatch.setattr(servo, "require_stable", lambda *_: None)
    settings = ServoSettings(law="flatness", feedback=feedback)
    one, both = (new_servo(settings, LINKS, (JOINT, JOINT), START, encoders=e) for e in ("joint", "both"))
    torques = []
    for command in ramp(200, settings.period):
        link = 0.999 * command
        for record in (one, both):
            record["command"], record["link"] = command, link
        _step(one)
        wanted = one["axis"]["wanted"][0]
        both["motor"] = link + wanted["motor_angle"] / JOINT.gear_ratio - wanted["position"]
        _step(both)
        torques.append((one["torque"][0].copy(), both["torque"][0].copy()))
    found, expected = np.array(torques).swapaxes(0, 1)
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_fractional_law_takes_its_first_error_for_one_that_has_always_been() -> None:
    """The torque of a steady error is the same from the first period on."""
    record: Any = new_servo(ServoSettings(law="fractional"), LINKS, (JOINT, JOINT), START)
    record["axis"]["rest_band"] = record["axis"]["yield_band"] = -1.0
    error = 1e-3
    record["motor"] = np.subtract(START, error)
    axis, gain = record["axis"][0], record["weights"][0].sum()
    for _ in range(5):
        _step(record)
        expected = (axis["fractional_gain"] * gain + axis["proportional"]) * error / JOINT.gear_ratio
        np.testing.assert_allclose(record["torque"][0], expected, rtol=1e-9)
