"""Strokes with sines for an arm: within its limits, blind to dry friction, and right about the age of samples."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from apps.cli import main
from calibration.motions import Mover
from calibration.servo.motion import Excitation, measure_servo, path
from haptics.errors import ConfigurationError

SHORT = Excitation(lowest=4.0, cycles=2, strokes=2)


@pytest.mark.parametrize("excitation", [SHORT, Excitation(effort=0.8), Excitation(lowest=0.5), Excitation(lowest=10.0)])
@pytest.mark.parametrize("device", ["virtual-arm", "arm"])
def test_the_arm_is_asked_for_no_more_than_it_may_do(device: str, excitation: Excitation) -> None:
    spec = Mover.of(device, {"emulated": True} if device == "arm" else {}).spec
    along = path(excitation, spec, 1e-3)
    speed = np.gradient(along, 1e-3)
    assert np.abs(speed).max() <= excitation.effort * spec.max_speed * (1.0 + 1e-9)
    assert np.abs(np.gradient(speed, 1e-3)).max() <= excitation.effort * spec.max_acceleration * 1.01
    assert np.abs(along).max() <= 0.65 * spec.workspace_max[1]


def test_it_never_turns_back_while_it_is_measured() -> None:
    spec = Mover.of("virtual-arm", {}).spec
    speed = np.gradient(path(SHORT, spec, 1e-3), 1e-3)
    stroke = len(speed) // SHORT.strokes
    for number in range(SHORT.strokes):
        inside = speed[number * stroke + 150 : (number + 1) * stroke - 150]
        assert (inside * (-1) ** number > 0.2 * np.abs(inside).max()).all()


def test_too_little_acceleration_for_the_strokes_is_refused() -> None:
    spec = replace(Mover.of("virtual-arm", {}).spec, max_acceleration=1.0)
    with pytest.raises(ConfigurationError, match=r"servo\.effort"):
        path(SHORT, spec, 1e-3)


def test_a_device_that_is_told_forces_has_no_servo(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no position servo"):
        measure_servo(Mover.of("virtual-joystick", {}), SHORT, tmp_path / "run")


def test_what_was_found_goes_into_the_settings_of_a_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "servo.toml"
    arguments = ["calibrate", "servo", "--device=virtual-arm", "--set=servo.lowest=4", "--set=servo.strokes=2"]
    assert main([*arguments, f"--out={out}", f"--record={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert "data sheet: 50 Hz" in said
    device = tomllib.loads(out.read_text())["device"]
    assert set(device) == {"delay", "servo_frequency", "servo_damping_ratio"}
    spec = Mover.of("arm", {"emulated": True, **device}).spec
    assert (spec.delay or 2e-3, spec.servo_frequency) == (device["delay"] or 2e-3, device["servo_frequency"])


def test_without_a_measurement_an_arm_states_no_servo() -> None:
    spec = Mover.of("arm", {"emulated": True}).spec
    assert (spec.delay, spec.servo_frequency) == (2e-3, None)
