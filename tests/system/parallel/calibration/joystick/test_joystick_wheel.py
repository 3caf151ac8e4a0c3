"""Long computations for the topic of tests/calibration/joystick/test_joystick_wheel.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from devices.emulators.pid.profiles.known import PROFILES
from haptics.errors import ConfigurationError
from tests.calibration.benches import attempt, bench, near
from tests.calibration.joystick.test_joystick_wheel import METRES, NEWTONS, WHEEL


def test_a_wheel_whose_firmware_has_the_descriptor_of_a_stick_is_one_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disguised = replace(PROFILES["openffboard"], handle=PROFILES[WHEEL].handle)
    monkeypatch.setitem(PROFILES, "disguised", disguised)
    own = attempt(bench("disguised"), tmp_path / "wheel").parameters
    near(own.axes.counts_to_m, disguised.truths()["axes"]["counts_to_m"], METRES)
    near(own.force.newton_to_level, disguised.truths()["force"]["newton_to_level"], NEWTONS)
    with pytest.raises(ConfigurationError, match="are those at"):
        attempt(bench("disguised"), tmp_path / "stick", rim_radius=None, travel_x=0.2, travel_y=0.16)
