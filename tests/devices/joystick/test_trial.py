"""A small push at the start where the firmware has changed, in step with the bus: wrong forces are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.stick import EmulatedStick
from devices.joystick import trial
from devices.joystick.parameters import Force, StickParameters, build_parameters, parse_parameters, write_parameters
from haptics.errors import DeviceOpenError
from tests.devices.joystick.doubles import STILL
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step

pytestmark = pytest.mark.usefixtures("compiled")

PROFILES = ("openffboard", "sidewinder-ff2", "arduino", "openffboard-wheel")
OTHER = 0x0113
"""A firmware that no emulated stick has."""


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., EmulatedStick]:
    """Open a stick with parameters that a test has changed; return the stick, which is closed again."""

    def open_it(
        profile: str, change: Callable[[StickParameters], StickParameters], hand: dict[str, Any] = STILL
    ) -> EmulatedStick:
        backend = emulated_stick(profile, hand=hand, period=0.0)
        (stick,) = backend.sticks
        put_in_step(stick.time, monkeypatch, trial)
        file = tmp_path / "stick.toml"
        write_parameters(file, change(build_parameters(stick.truths)))
        settings = {"emulated": True, "emulator": profile, "parameters": str(file), "hand": hand}
        with EmulatedPidJoystick(settings, clock=BusClock(FRAME, stick.time), backend=backend):
            pass
        return stick

    return open_it


def of_other_firmware(known: StickParameters, **changes: Any) -> StickParameters:
    return replace(known, device=replace(known.device, bcd_device=OTHER), **changes)


def pushed(stick: EmulatedStick) -> float:
    """Return the largest magnitude that was sent, in parts of full scale."""
    return max(abs(fields["magnitude"]) for fields in stick.received("constant")) / stick.profile.scales.constant


@pytest.mark.parametrize("profile", PROFILES)
def test_a_stick_with_the_firmware_of_its_calibration_is_not_pushed(profile: str, opened: Any) -> None:
    assert pushed(opened(profile, lambda known: known)) == 0.0


def test_a_file_that_does_not_name_the_firmware_is_one_of_before(opened: Any) -> None:
    stick = opened("openffboard", lambda known: replace(known, device=replace(known.device, bcd_device=None)))
    assert pushed(stick) == 0.0


@pytest.mark.parametrize("profile", PROFILES)
def test_other_firmware_with_the_same_force_goes_on_after_a_small_push(profile: str, opened: Any) -> None:
    stick = opened(profile, of_other_firmware)
    assert 0.01 < pushed(stick) < 0.25
    assert 1e-3 < np.hypot(*stick.handle) < 0.03
    assert not stick.force.any()


TURNS = {
    "x mirrored": ((-1.0, 0.0), (0.0, 1.0)),
    "y mirrored": ((1.0, 0.0), (0.0, -1.0)),
    "both mirrored": ((-1.0, 0.0), (0.0, -1.0)),
    "exchanged": ((0.0, 1.0), (1.0, 0.0)),
    "turned to the left": ((0.0, -1.0), (1.0, 0.0)),
    "turned to the right": ((0.0, 1.0), (-1.0, 0.0)),
    "exchanged and mirrored": ((0.0, -1.0), (-1.0, 0.0)),
}


@pytest.mark.parametrize("turn", TURNS)
def test_a_force_that_points_elsewhere_is_told(turn: str, opened: Any) -> None:
    def turned(known: StickParameters) -> StickParameters:
        level = np.array(known.force.newton_to_level) @ TURNS[turn]
        (a, b), (c, d) = level.tolist()
        force = Force(newton_to_level=((a, b), (c, d)), max_force_n=0.7 * known.force.max_force_n)
        return of_other_firmware(known, force=force)

    with pytest.raises(DeviceOpenError, match=r"bcdDevice 0x0113 then, 0x0100 now.* degrees off the direction"):
        opened("openffboard", turned)


def test_a_wheel_that_turns_the_other_way_is_told(opened: Any) -> None:
    def mirrored(known: StickParameters) -> StickParameters:
        level = -known.force.newton_to_level[0][0]
        return of_other_firmware(known, force=replace(known.force, newton_to_level=((level, 0.0), (0.0, 0.0))))

    with pytest.raises(DeviceOpenError, match=r"180 degrees off the direction"):
        opened("openffboard-wheel", mirrored)


@pytest.mark.parametrize(("factor", "right"), [(0.2, False), (0.6, True), (1.6, True), (5.0, False)])
def test_a_force_of_another_size_is_told(factor: float, right: bool, opened: Any) -> None:
    """The firmware is `factor` times as strong as its parameters say."""

    def stronger(known: StickParameters) -> StickParameters:
        rows = np.array(known.force.newton_to_level) * factor
        (a, b), (c, d) = rows.tolist()
        force = Force(newton_to_level=((a, b), (c, d)), max_force_n=known.force.max_force_n / max(factor, 1.0))
        return of_other_firmware(known, force=force)

    if right:
        opened("openffboard", stronger)
    else:
        with pytest.raises(DeviceOpenError, match=r"moved its handle .* mm, not about|did not move its handle"):
            opened("openffboard", stronger)


def test_a_handle_that_is_held_does_not_move_and_that_is_said(opened: Any) -> None:
    held = {"name": "minimum-jerk", "points": [[0.0, 0.0], [0.0, 1e-4]], "stiffness": 2000.0, "tremor": 0.0}
    with pytest.raises(DeviceOpenError, match=r"did not move its handle .*Leave the handle alone"):
        opened("openffboard", of_other_firmware, held)


def test_the_number_of_the_firmware_is_one() -> None:
    from devices.joystick.parameters import format_parameters
    from haptics.errors import ConfigurationError

    known = build_parameters(emulated_stick("openffboard", period=0.0).sticks[0].truths)
    text = format_parameters(known)
    assert "bcd_device = 0x0100" in text
    before = text.replace("bcd_device = 0x0100\n", "")
    assert parse_parameters(before, "f").device.bcd_device is None
    with pytest.raises(ConfigurationError, match=r"device\.bcd_device = 65536: must be a number from 0 to 0xffff"):
        parse_parameters(text.replace("0x0100", "0x10000"), "f")
