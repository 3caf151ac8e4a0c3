"""Sums of sines for an arm: within its limits, and on an arm whose servo is known."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from apps.cli import main
from calibration.motions import Mover
from calibration.servo.motion import Excitation, measure_servo, path
from haptics.errors import ConfigurationError

SHORT = Excitation(lowest=1.0, cycles=2)


@pytest.mark.parametrize("excitation", [SHORT, Excitation(effort=0.8), Excitation(lowest=0.1)])
def test_the_arm_is_asked_for_no_more_than_it_may_do(excitation: Excitation) -> None:
    spec = Mover.of("virtual-arm", {}).spec
    along = path(excitation, spec, 1e-3)
    speed = np.gradient(along, 1e-3)
    assert along[0] == along[-1] == 0.0
    assert np.abs(speed).max() <= excitation.effort * spec.max_speed * (1.0 + 1e-9)
    assert np.abs(np.gradient(speed, 1e-3)).max() <= excitation.effort * spec.max_acceleration * (1.0 + 1e-9)
    assert np.abs(along).max() <= 0.25 * spec.workspace_max[1]


def test_the_delay_of_an_arm_is_found(tmp_path: Path) -> None:
    hand = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
    mover = Mover.of("virtual-arm", {"seed": 1, "hand": hand})
    found = measure_servo(mover, Excitation(cycles=2), tmp_path / "run")
    assert found.age == pytest.approx(0.0, abs=1e-6)
    assert found.delay < 2e-4  # its data sheet says none, and 50 Hz; a guard, as friction is no part of the model
    assert found.fit.frequency == pytest.approx(mover.spec.servo_frequency, rel=0.2)
    assert found.fit.warnings == ()


def test_a_device_that_is_told_forces_has_no_servo(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no position servo"):
        measure_servo(Mover.of("virtual-joystick", {}), SHORT, tmp_path / "run")


def test_what_was_found_goes_into_the_settings_of_a_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "servo.toml"
    arguments = ["calibrate", "servo", "--device=virtual-arm", "--set=servo.lowest=1", "--set=servo.cycles=2"]
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
