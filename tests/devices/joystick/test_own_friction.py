"""A stick with friction of its own, through the whole driver and in step with the bus: found, made up for, felt."""

from pathlib import Path

import pytest

from devices import create_device
from devices.emulated.joystick import EmulatedPidJoystick
from haptics.errors import ConfigurationError
from tests.devices.felt import FRICTION

pytestmark = pytest.mark.usefixtures("compiled")


def test_a_file_of_another_stick_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text("[provenance]\ndevice = 'pid-joystick emulated another (1209:ffb0)'\n[joint.x]\n")
    with pytest.raises(ConfigurationError, match="is of the device 'pid-joystick emulated another"):
        EmulatedPidJoystick({"emulated": True, "friction_parameters": str(path)})


def test_a_real_stick_cannot_be_given_friction() -> None:
    with pytest.raises(ConfigurationError, match="only an emulated stick"):
        create_device("pid-joystick", {"friction": FRICTION})
