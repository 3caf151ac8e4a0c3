"""USB devices that are plugged in or may be, libusb, and serial ports."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from apps.doctor.checks import serial, usb
from apps.doctor.checks.udev import rules
from apps.doctor.child import NoAnswer
from devices.common.bus.udev import RULES_FILE
from devices.joystick.usb import listing as usb_listing
from haptics.errors import DeviceOpenError
from tests.apps.doctor.machines import ROOT, expect, machine


def joystick(place: str = "1-2") -> dict[str, str]:
    folder = f"{usb.DEVICES}/{place}"
    return {
        f"{folder}/idVendor": "1209\n",
        f"{folder}/idProduct": "ffb0\n",
        f"{folder}/busnum": "1\n",
        f"{folder}/devnum": "7\n",
        f"{folder}/{place}:1.2/0003:1209:FFB0.0001/hidraw/hidraw3/dev": "247:3\n",
        "/dev/bus/usb/001/007": "",
        "/dev/hidraw3": "",
    }


def sensor(place: str = "1-3") -> dict[str, str]:
    folder = f"{usb.DEVICES}/{place}"
    return {
        f"{folder}/idVendor": "04d8\n",
        f"{folder}/idProduct": "000a\n",
        f"{folder}/{place}:1.0/tty/ttyACM0/dev": "166:0\n",
        "/dev/ttyACM0": "",
    }


def test_plugged_devices_are_found_with_the_files_their_drivers_open(tmp_path: Path) -> None:
    found = usb.plugged(machine(tmp_path, {**joystick(), **sensor(), f"{usb.DEVICES}/usb1/idVendor": "1d6b\n"}))
    assert [(device.family.name, device.identity) for device in found] == [
        ("openffboard", "1209:ffb0"),
        ("optoforce", "04d8:000a"),
    ]
    assert [path.name for path in found[0].files] == ["007", "hidraw3"]
    assert [path.name for path in found[1].files] == ["ttyACM0"]


def test_a_plugged_device_that_may_not_be_opened_is_a_problem(tmp_path: Path) -> None:
    here = machine(tmp_path, {**joystick(), **sensor()})
    finding = usb.udev(here, lambda path: "hidraw" not in path.name)
    expect(finding, "problem", "openffboard (1209:ffb0)", "doctor --udev", RULES_FILE, "udevadm")
    assert "optoforce" not in finding.found


def test_a_plugged_device_without_files(tmp_path: Path) -> None:
    files = {name: text for name, text in sensor().items() if "tty" not in name}
    expect(usb.udev(machine(tmp_path, files)), "problem", "modprobe")
    expect(usb.udev(machine(tmp_path, {**files, "/.dockerenv": ""}, ROOT)), "problem", "start the container")


def test_root_needs_no_rules(tmp_path: Path) -> None:
    expect(usb.udev(machine(tmp_path, joystick(), ROOT)), "ok", "openffboard")


def test_rules_that_are_missing_are_noted_only_where_there_is_usb(tmp_path: Path) -> None:
    expect(usb.udev(machine(tmp_path / "a")), "ok", "no USB")
    expect(usb.udev(machine(tmp_path / "b", {f"{usb.DEVICES}/usb1/idVendor": "1d6b"})), "note", "any of our devices")


def test_with_our_rules_all_is_well(tmp_path: Path) -> None:
    here = machine(tmp_path, {RULES_FILE: rules(), f"{usb.DEVICES}/usb1/idVendor": "1d6b"})
    expect(usb.udev(here), "ok", "rules open all")
    assert usb.without_rule(here) == []


def test_capital_letters_in_a_rule_are_pointed_out(tmp_path: Path) -> None:
    loud = rules().replace('"ffb0"', '"FFB0"')
    here = machine(tmp_path, {RULES_FILE: loud, f"{usb.DEVICES}/usb1/idVendor": "1d6b"})
    expect(usb.udev(here), "note", "openffboard", "capital letters")


def test_libusb_loads_as_the_drivers_load_it(tmp_path: Path) -> None:
    expect(usb.libusb(machine(tmp_path)), "ok", "libusb")


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("libusb-1.0.so.0", "the system"),
        ("/usr/lib/libusb-1.0.so.0", "the system"),
        ("/venv/site-packages/libusb_package/libusb-1.0.so", "libusb-package"),
    ],
)
def test_the_libusb_that_the_drivers_get_is_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch, file: str, source: str
) -> None:
    monkeypatch.setattr(usb_listing, "libusb", lambda: SimpleNamespace(lib=SimpleNamespace(_name=file)))
    assert usb.load_libusb() == {"source": source}


def test_where_the_drivers_get_no_libusb_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> NoReturn:
        raise DeviceOpenError("no libusb was found: install it.")

    monkeypatch.setattr(usb_listing, "libusb", missing)
    assert usb.load_libusb() == {"source": None}


def test_without_libusb(tmp_path: Path) -> None:
    expect(usb.libusb(machine(tmp_path), lambda: {"source": None}), "problem", "libusb-1.0-0")
    expect(usb.libusb(machine(tmp_path, system="darwin"), lambda: {"source": None}), "problem", "pip install")

    def broken() -> dict[str, Any]:
        raise NoAnswer("No module named 'usb'")

    expect(usb.libusb(machine(tmp_path), broken), "problem", "No module named 'usb'", "pip install")


GROUPS = "root:x:0:\ndialout:x:20:ada,grace\nodd line\nempty::\n"


@pytest.mark.parametrize(
    ("user", "groups", "name", "severity", "word"),
    [
        (ROOT, {0}, "root", "ok", "root"),
        (1000, {20}, "ada", "ok", "may open"),
        (1000, {1000}, "ada", "note", "login began before"),
        (1000, {1000}, "alan", "note", "usermod -aG dialout"),
    ],
)
def test_the_group_of_the_serial_ports(
    tmp_path: Path, user: int, groups: set[int], name: str, severity: str, word: str
) -> None:
    here = machine(tmp_path, {"/etc/group": GROUPS}, user, groups=frozenset(groups))
    expect(serial.serial_ports(here, lambda: name), severity, word)


def test_a_system_without_such_a_group(tmp_path: Path) -> None:
    expect(serial.serial_ports(machine(tmp_path), lambda: "ada"), "ok", "no group")
    arch = machine(tmp_path, {"/etc/group": "uucp:x:14:\n"})
    expect(serial.serial_ports(arch, lambda: "ada"), "note", "uucp")


def test_modem_manager(tmp_path: Path) -> None:
    expect(serial.modem_manager(machine(tmp_path, {"/proc/1/comm": "systemd\n"})), "ok")
    running = machine(tmp_path, {"/proc/77/comm": "ModemManager\n"})
    expect(serial.modem_manager(running), "note", "doctor --udev")
    told = machine(tmp_path, {RULES_FILE: rules()})
    expect(serial.modem_manager(told), "ok", "alone")
