"""The table of backends: names, lazy imports, helpful refusals."""

import subprocess
import sys

import pytest

import devices
from haptics.clock import Clock
from haptics.errors import ConfigurationError, DeviceOpenError


def test_listing_and_naming_devices_needs_no_numba():
    code = (
        "import sys, devices, devices.virtual.hands.registry\n"
        "devices.describe_backends(); devices.virtual.hands.registry.hand_settings('mouse')\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_every_backend_is_described():
    assert [backend.name for backend in devices.describe_backends()] == list(devices.BACKENDS)


@pytest.mark.parametrize("name", devices.BACKENDS)
def test_every_backend_can_be_built(name):
    assert devices.create_device(name).spec.name == name


def test_open_device_opens_and_opening_again_changes_nothing():
    device = devices.open_device("virtual-joystick", {"seed": 2}, clock=Clock(1e-3))
    before = device.read().position.copy()
    device.open()
    assert (device.read().position == before).all()
    device.close()


def test_create_device_opens_nothing():
    with pytest.raises(DeviceOpenError):
        devices.create_device("virtual-arm").read()


def test_unknown_backend_is_refused_with_the_nearest_and_all_others():
    with pytest.raises(ConfigurationError, match=r"'virtual-joystik'.*Did you mean 'virtual-joystick'.*virtual-arm"):
        devices.create_device("virtual-joystik")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mass": -1.0}, r"device\.mass = -1\.0: must be .* at least 0\.01 kg"),
        ({"mass": "heavy"}, r"device\.mass = 'heavy'"),
        ({"seed": 1.5}, r"device\.seed = 1\.5: must be a whole number"),
        ({"velocity_window": 2.5}, r"device\.velocity_window = 2\.5: must be a whole number"),
        ({"velocity_window": 65}, r"device\.velocity_window = 65"),
        ({"velocity_window": 4}, r"device\.velocity_window = 4: only device\.velocity_estimator = 'difference'"),
        ({"velocity_estimator": "none"}, r"device\.velocity_estimator = 'none': must be one of difference, "),
        ({"velocity_estimator": "level-crossing", "resolution": 0.0}, r"needs an encoder"),
        ({"delay": 0.00015}, r"device\.delay = 0\.00015 s: must be a multiple of device\.substep"),
        ({"delay": 0.05}, r"device\.delay = 0\.05 s: .*at most 0\.0255 s"),
        ({"mass": 0.01, "hand": {"damping": 50.0}}, r"device\.mass = 0\.01 kg is too light .*smaller substep"),
        ({"substep": 1e-3, "delay": 0.0}, r"device\.mass = 0\.2 kg is too light"),
        ({"hand": "mouse"}, r"hand = 'mouse': must be a table"),
        ({"hand": {"name": "foot"}}, r"unknown hand 'foot'.*minimum-jerk"),
        ({"hand": {"stiffness": 3001.0}}, r"hand.stiffness = 3001\.0: .*at most 3000 N/m"),
        ({"hand": {"stifness": 1.0}}, r"Did you mean 'hand.stiffness'"),
        ({"log": 3}, r"device\.log = 3: must be a file"),
    ],
)
def test_wrong_setting_of_the_joystick_is_named_with_what_is_allowed(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("virtual-joystick", settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sensor": {"range": 0.0}}, r"device\.sensor\.range = 0\.0: .*greater than 0 N"),
        ({"servo": {"holds_weight": 1}}, r"device\.servo\.holds_weight = 1: must be true or false"),
        ({"arm": {"centre_y": 0.9}}, r"workspace"),
    ],
)
def test_wrong_setting_of_the_arm_is_named_with_what_is_allowed(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("virtual-arm", settings)
