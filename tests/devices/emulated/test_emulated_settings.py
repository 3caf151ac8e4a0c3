"""Settings of emulated devices, which the registry adds to those of their drivers."""

import pytest

import devices
from haptics.errors import ConfigurationError

EMULATED = [info.name for info in devices.describe_backends() if info.emulated]
NOUNS = {
    "pantograph": "pantograph",
    "pid-joystick": "stick",
    "inverse3": "Inverse3",
    "forcedimension": "Force Dimension device",
    "touch": "Touch",
    "falcon": "Falcon",
    "arm": "arm",
}
FAULTS = {name: "motors.unplug@1" if name == "arm" else "unplug@1" for name in NOUNS}


def test_every_real_driver_has_an_emulated_device():
    assert EMULATED == [info.name for info in devices.describe_backends() if not info.virtual] == list(NOUNS)


@pytest.mark.parametrize("name", EMULATED)
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"wire_faults": None}, "device.wire_faults = .*: only an emulated {noun} has an emulated wire"),
        ({"hand": {"name": "minimum-jerk"}}, "device.hand: only an emulated {noun} has a hand .*device.emulated=true"),
        ({"emulated": "yes"}, "device.emulated = 'yes': must be true or false"),
        ({"emulate": True}, "unknown setting 'device.emulate'. Did you mean 'device.emulated'"),
        ({"seed": -1}, "device.seed = -1: must be"),
    ],
)
def test_real_device_rejects_settings_of_the_emulation(name, setting, words):
    own = {"wire_faults": [FAULTS[name]]} if "wire_faults" in setting else setting
    with pytest.raises(ConfigurationError, match=words.format(noun=NOUNS[name])):
        devices.create_device(name, own)


@pytest.mark.parametrize("name", EMULATED)
def test_emulation_can_be_switched_off(name):
    real = devices.create_device(name, {"emulated": False, "seed": 3})
    assert "emulated" not in real.spec.identity
    assert type(real) is type(devices.create_device(name))
    emulated = devices.create_device(name, {"emulated": True, "seed": 3, "wire_faults": [FAULTS[name]]})
    assert "emulated" in emulated.spec.identity
    assert isinstance(emulated, type(real))


@pytest.mark.parametrize("name", EMULATED)
def test_invalid_emulation_settings_are_rejected_before_opening(name):
    for own, words in (
        ({"wire_faults": ["flood@1"]}, "unknown fault of the wire in 'flood@1'"),
        ({"wire_faults": [f"{FAULTS[name]}+0"]}, "must last longer than 0 s"),
        ({"wire_faults": [f"{FAULTS[name]}0 s"]}, "must have the form NAME@SECONDS"),
        ({"hand": {"name": "foot"}}, "unknown hand 'foot'"),
        ({"hand": 3}, "hand = 3: must be a table"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            devices.create_device(name, {"emulated": True, **own})
