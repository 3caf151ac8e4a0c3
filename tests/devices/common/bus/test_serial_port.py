"""Finding a USB serial device in the system's list of terminals."""

import re

import pytest

from devices.common.bus.serial_port import find_port, open_port
from haptics.errors import DeviceNotFoundError, DeviceOpenError

IDENTITIES = {"04d8:000a"}


def plug_in(system, name, vendor, product):
    usb = system / "usb" / name
    (usb / "interface").mkdir(parents=True)
    (usb / "idVendor").write_text(f"{vendor}\n")
    (usb / "idProduct").write_text(f"{product}\n")
    (system / name).mkdir()
    (system / name / "device").symlink_to(usb / "interface")


def test_the_only_one_is_found_among_others(tmp_path):
    plug_in(tmp_path, "ttyACM0", "2341", "804d")
    plug_in(tmp_path, "ttyACM1", "04D8", "000A")
    (tmp_path / "ttyACM2").mkdir()  # of no USB device
    assert find_port(IDENTITIES, "sensor", "device.port", tmp_path) == "/dev/ttyACM1"


def test_none_is_told_from_several(tmp_path):
    with pytest.raises(
        DeviceNotFoundError, match=r"no sensor is plugged in\. Plug it in, or name its port: device\.port="
    ):
        find_port(IDENTITIES, "sensor", "device.port", tmp_path)
    plug_in(tmp_path, "ttyACM1", "04d8", "000a")
    plug_in(tmp_path, "ttyACM7", "04d8", "000a")
    with pytest.raises(DeviceOpenError, match=re.escape("choose one, device.port=/dev/ttyACM1 or /dev/ttyACM7.")):
        find_port(IDENTITIES, "sensor", "device.port", tmp_path)


@pytest.mark.parametrize("name", ["", "a\0b", "folder"])
def test_what_is_no_port_is_refused_in_words(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises((DeviceNotFoundError, DeviceOpenError), match=r"device\.port|cannot be opened"):
        open_port(name and str(tmp_path / name), "device.port", 0)
