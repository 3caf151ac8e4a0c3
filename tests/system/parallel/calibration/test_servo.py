"""Identification of the position servo of an arm, and its settings file."""

import tomllib

import numpy as np

from apps.cli import main
from calibration.motions import Mover
from tests.calibration.test_servo import PERIOD, found, reference


def test_an_arm_that_is_no_second_order_servo_is_doubted():
    time = PERIOD * np.arange(8000)
    fit = found(time, 0.5 * reference(time), time, knows=True)
    assert fit.residual > 0.15
    assert "no servo of second order" in fit.warnings[0]


def test_the_measured_servo_is_written_as_settings(tmp_path, capsys):
    out = tmp_path / "servo.toml"
    arguments = ["calibrate", "servo", "--device=virtual-arm", "--set=servo.lowest=4", "--set=servo.strokes=2"]
    assert main([*arguments, f"--out={out}", f"--record={tmp_path}"]) == 0
    assert "data sheet: 50 Hz" in capsys.readouterr().out
    device = tomllib.loads(out.read_text())["device"]
    assert set(device) == {"delay", "servo_frequency", "servo_damping_ratio"}
    spec = Mover.of("arm", {"emulated": True, **device}).spec
    assert (spec.delay or 2e-3, spec.servo_frequency) == (device["delay"] or 2e-3, device["servo_frequency"])
    unmeasured = Mover.of("arm", {"emulated": True}).spec
    assert (unmeasured.delay, unmeasured.servo_frequency) == (2e-3, None)
