"""The whole driver on an emulated stick: the contract of a device, forces and positions, settings."""

import time
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

import devices
from devices.emulators.pid.stick import EmulatedStick
from devices.joystick.device import PidJoystick
from haptics.errors import ConfigurationError
from tests.contract import DeviceContract
from tests.devices.joystick.doubles import STICKS, STILL, make

pytestmark = [
    pytest.mark.wall_clock,
    pytest.mark.usefixtures("compiled"),
]  # a stick in this process


class TestEmulatedJoystick(DeviceContract):
    name = "pid-joystick"
    settings: ClassVar[dict[str, Any]] = {"emulated": True, "hand": STILL}


class TestEmulatedSidewinder(DeviceContract):
    name = "pid-joystick"
    settings: ClassVar[dict[str, Any]] = {"emulated": True, "emulator": "sidewinder-ff2", "hand": STILL}


# --- forces ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", STICKS)
@pytest.mark.parametrize("direction", [(0.0, 1.0), (-0.6, -0.8)])
def test_a_force_arrives_at_the_handle_in_size_and_direction(profile: str, direction: tuple[float, float]) -> None:
    device, stick = make(profile=profile)
    with device:
        wanted = 0.5 * device.spec.max_force * np.array(direction)
        end = time.perf_counter() + 0.1
        while time.perf_counter() < end:
            device.read()
            device.write(wanted)
            time.sleep(1e-3)
        count = device.spec.max_force / 255.0
        np.testing.assert_allclose(stick.force, wanted, atol=0.01 * np.hypot(*wanted) + count)


def test_more_force_than_there_is_keeps_its_direction(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        device.write(np.array((300.0, -400.0)))
        time.sleep(1e-3)
    np.testing.assert_allclose(stick.force, device.spec.max_force * np.array((0.6, -0.8)), rtol=0.01)


def test_position_is_that_of_the_handle(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    time.sleep(0.02)
    np.testing.assert_allclose(device.read().position, stick.handle, atol=2.0 * device.spec.position_resolution)


def test_a_host_that_goes_silent_leaves_no_force(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    for _ in range(20):
        device.write(np.array((2.0, 0.0)))
        time.sleep(1e-3)
    assert np.hypot(*stick.force) > 1.0
    time.sleep(device.settings.force_duration + device.settings.keep_alive)
    assert np.hypot(*stick.force) == 0.0


def test_nothing_is_left_playing_and_the_driver_is_back(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    for _ in range(20):
        device.write(np.array((2.0, 0.0)))
        time.sleep(1e-3)
    assert stick.profile.interface not in stick.drivers
    device.close()
    assert np.hypot(*stick.force) == 0.0
    assert stick.profile.interface in stick.drivers
    assert not stick.owners
    assert len(stick.received("free")) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"emulator": "wheel"}, r"device\.emulator = 'wheel'"),
        ({"transport": "bluetooth"}, r"device\.transport = 'bluetooth': must be one of auto, usb, hidraw"),
        ({"keep_alive": 0.12}, r"device\.keep_alive = 0\.12 s: must be at most half"),
        ({"force_duration": 0.3}, r"device\.force_duration = 0\.3: must be .* at most 0\.25 s"),
        ({"emulated": True, "transport": "hidraw"}, r"device\.transport = 'hidraw'"),
        ({"parameters": "/nowhere.toml"}, r"device\.parameters = '/nowhere\.toml': cannot be read"),
        ({"hand": {"name": "minimum-jerk"}}, r"device\.hand: only an emulated"),
        ({"emulated": True, "hand": {"name": "foot"}}, r"unknown hand 'foot'"),
        ({"seed": 0.5}, r"device\.seed = 0\.5"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("pid-joystick", settings)


def test_a_simulated_hand_is_that_of_a_virtual_or_an_emulated_device() -> None:
    assert devices.has_simulated_hand("virtual-arm")
    assert devices.has_simulated_hand("pid-joystick", {"emulated": True})
    assert not devices.has_simulated_hand("pid-joystick", {"emulated": False})
    assert not devices.has_simulated_hand("pid-joystick")


def test_the_data_sheet_tells_what_the_bus_costs() -> None:
    slow, fast = (make(profile=profile)[0].spec for profile in ("sidewinder-ff2", "openffboard"))
    assert slow.delay == pytest.approx(9e-3)
    assert fast.delay == pytest.approx(3e-3)
    assert slow.watchdog == 0.2


def test_the_pause_that_a_family_needs_is_in_the_delay() -> None:
    device, _ = make(profile="sidewinder-ff2")
    assert device.parameters is not None
    adapter = replace(device.parameters.device, vendor_id=0x03EB, product_id=0x204E)
    device.parameters = replace(device.parameters, device=adapter)
    assert device.spec.delay == pytest.approx(1e-3 + 2.0 * (4e-3 + 2e-3))
    assert device.spec.max_force_rate == pytest.approx(2.0 * device.spec.max_force / 12e-3)
