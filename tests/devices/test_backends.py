"""Registry of device backends and plugins, and the stability limits of their data sheets."""

import json
import subprocess
import sys

import numpy as np
import pytest

import devices
from apps.cli import main
from devices.common.settings import ESTIMATORS, VelocitySettings, velocity_lag
from devices.common.velocity import VelocityEstimator
from haptics.clock import Clock
from haptics.design import Coupling, Handle, count_jump, stiffness_limit
from haptics.device import Causality
from haptics.elements.models import MasslessImpedance
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.friction.laws import Coulomb
from tests.plugins import install

__all__ = ["install"]  # a fixture


def test_listing_devices_does_not_import_numba():
    code = (
        "import sys, devices, devices.virtual.hands.registry\n"
        "devices.describe_backends(); devices.virtual.hands.registry.hand_settings('mouse')\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_unknown_backend_is_rejected_with_a_suggestion():
    with pytest.raises(ConfigurationError, match=r"'virtual-joystik'.*Did you mean 'virtual-joystick'.*virtual-arm"):
        devices.create_device("virtual-joystik")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mass": -1.0}, r"device\.mass = -1\.0: must be .* at least 0\.01 kg"),
        ({"seed": 1.5}, r"device\.seed = 1\.5: must be a whole number"),
        ({"velocity_window": 2.5}, r"device\.velocity_window = 2\.5: must be a whole number"),
        ({"delay": 0.00015}, r"device\.delay = 0\.00015 s: must be a multiple of device\.substep"),
        ({"delay": 0.05}, r"device\.delay = 0\.05 s: .*at most 0\.0255 s"),
        ({"mass": 0.01, "hand": {"damping": 50.0}}, r"device\.mass = 0\.01 kg is too light .*smaller substep"),
        ({"substep": 1e-3, "delay": 0.0}, r"device\.mass = 0\.2 kg is too light"),
        ({"hand": "mouse"}, r"hand = 'mouse': must be a table"),
        ({"hand": {"name": "foot"}}, r"unknown hand 'foot'.*minimum-jerk"),
        ({"hand": {"stifness": 1.0}}, r"Did you mean 'hand.stiffness'"),
        ({"log": 3}, r"device\.log = 3: must be a file"),
    ],
)
def test_invalid_joystick_settings_are_rejected(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("virtual-joystick", settings)


# --- plugins ----------------------------------------------------------------------------------------------------------


OWN = [info.name for info in devices._KNOWN]

GOOD = """
from devices import BackendInfo
from haptics.device import Causality

GOOD = BackendInfo("good", Causality.IMPEDANCE, "somebody's", "good_driver:Good", virtual=True)
ABSENT = BackendInfo("absent", Causality.ADMITTANCE, "somebody's", "no_such_sdk:Absent")
MISNAMED = BackendInfo("other", Causality.ADMITTANCE, "somebody's", "good_driver:Good")
"""

DRIVER = "from devices.virtual.joystick import VirtualJoystick as Good"


@pytest.fixture
def plugins(install):
    places = {"good": "good_info:GOOD", "absent": "good_info:ABSENT", "broken": "broken_info:BROKEN"}
    places |= {"misnamed": "good_info:MISNAMED", "number": "good_info:__name__", "arm": "good_info:GOOD"}
    entries = {f"haptics.devices {name}": place for name, place in places.items()}
    install("goods", "2.0", entries, good_info=GOOD, good_driver=DRIVER, broken_info="import a_closed_sdk")


@pytest.mark.usefixtures("plugins")
def test_plugin_backends_follow_the_own_ones():
    assert list(devices.BACKENDS) == [*OWN, "absent", "good"]
    assert devices.BACKENDS["good"].package == "goods 2.0"
    assert devices.BACKENDS["arm"].package == ""
    assert devices.is_virtual("good")
    assert devices.create_device("good").spec.causality is Causality.IMPEDANCE


@pytest.mark.usefixtures("plugins")
def test_invalid_plugins_are_reported():
    said = {words.split("'")[1]: words for words in devices.refused_plugins()}
    assert set(said) == {"arm", "broken", "misnamed", "number"}
    assert "there is another device of that name" in said["arm"]
    assert "cannot be imported (ModuleNotFoundError: No module named 'a_closed_sdk')" in said["broken"]
    assert "needed are this name" in said["misnamed"]
    assert "must be a devices.BackendInfo" in said["number"]
    with pytest.raises(ConfigurationError, match="a_closed_sdk"):
        devices.create_device("broken")
    with pytest.raises(ConfigurationError, match=r"unknown device 'goood'\. Did you mean 'good'"):
        devices.create_device("goood")
    with pytest.raises(DeviceOpenError, match=r"^absent: its driver .* in the package goods 2\.0 cannot be imported"):
        devices.create_device("absent")


@pytest.mark.usefixtures("plugins")
def test_devices_command_lists_plugins_and_refusals(capsys):
    assert main(["devices", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {row["name"]: row["package"] for row in answer["devices"]}["good"] == "goods 2.0"
    assert len(answer["refused"]) == 4
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    assert "from goods 2.0" in out
    assert out.count("left out: ") == 4
    assert main(["run", "--device", "broken", "--headless"]) == 2
    assert "a_closed_sdk" in capsys.readouterr().err


# --- stability limits -------------------------------------------------------------------------------------------------


LETS_GO = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


def swings_up(device, element, clock, ticks):
    """Kick the handle with 1 mm/s, render `element` and return True if its oscillation grows."""
    device._record["handle_velocity"][0, 0] = 1e-3
    path = np.zeros(ticks)
    for tick in range(ticks):
        device.write(-element.step(device.read().velocity))
        path[tick] = device.handle[0]
        clock.wait(clock.tick + 1)
    third, last = np.array_split(path, 4)[2:]
    return bool(np.ptp(last) > np.ptp(third))


@pytest.mark.parametrize(("mass", "damping", "delay"), [(0.2, 1.0, 0.5e-3), (0.2, 0.0, 2e-3), (0.05, 0.2, 0.3e-3)])
@pytest.mark.parametrize("window", [1, 3])
def test_joystick_becomes_unstable_at_the_advised_stiffness(mass, damping, delay, window):
    clock = Clock(1e-3)
    own = {"mass": mass, "damping": damping, "delay": delay, "resolution": 0.0}
    own |= {"velocity_estimator": "difference", "velocity_window": window}
    for share, buzzes in ((0.9, False), (1.1, True)):
        device = devices.open_device("virtual-joystick", {"hand": LETS_GO, **own}, clock=clock)
        handle = Handle.of(device.spec)
        assert handle is not None
        element = MasslessImpedance(Coulomb(1e9), share * stiffness_limit(handle, 8.0), 8.0)
        assert swings_up(device, element, clock, 1200) is buzzes


def largest_force(settings, resolution, counts):
    """Return the largest force that a contact, stuck for ever, answers the encoder's `counts` with [N]."""
    estimator = VelocityEstimator(resolution, 1e-3, settings)
    element = MasslessImpedance(Coulomb(1e9), 6000.0, 10.0)
    return max(
        element.step(estimator.update(1e-3 * tick, count * resolution, 0.0).copy())[0]
        for tick, count in enumerate(counts)
    )


@pytest.mark.parametrize(("name", "window"), [("difference", 2), ("difference", 5), *((one, 1) for one in ESTIMATORS)])
def test_count_jump_bounds_every_estimator_and_matches_the_difference(name, window):
    settings = VelocitySettings(velocity_estimator=name, velocity_window=window)
    handle = Handle(0.2, resolution=20e-6, velocity_lag=velocity_lag(settings, 20e-6, 1e-3))
    jump, bound = largest_force(settings, 20e-6, [0] * 50 + [1] * 50), count_jump(Coupling(6000.0, 10.0), handle)
    assert 0.0 < jump <= bound * (1.0 + 1e-9)
    assert name != "difference" or jump == pytest.approx(bound)
