"""Checks of USB devices, udev rules, libusb, serial ports and CAN interfaces."""

import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.doctor import ports, usb
from apps.doctor.child import NoAnswer
from apps.doctor.ports import can_bus, can_interfaces
from apps.doctor.usb import FAMILIES, SEAT, access, named, names, parse, read_rules, rules
from apps.plugged import describe, survey
from devices import BACKENDS
from devices.common.bus import RULES_FILE, Node
from haptics.errors import DeviceOpenError
from tests.apps.doctor.machines import ROOT, expect, machine, usb_serial

BOARD = "1209:ffb0"
GROUPS = "root:x:0:\ndialout:x:20:ada,grace\nodd line\nempty::\n"
NET = "/sys/class/net/"
TAGGED = 'ATTRS{idVendor}=="1209", TAG+="uaccess"'
BUS = {f"{usb.DEVICES}/usb1/idVendor": "1d6b\n"}
"""The root hub of a machine with USB and no device."""

HIDRAW = "1-2:1.2/0003:1209:FFB0.0001/hidraw/hidraw3/dev"
STICK = {"idVendor": "1209\n", "idProduct": "ffb0\n", "busnum": "1\n", "devnum": "7\n", HIDRAW: "247:3\n"}
JOYSTICK = {
    **{f"{usb.DEVICES}/1-2/{name}": text for name, text in STICK.items()},
    **{"/dev/bus/usb/001/007": "", "/dev/hidraw3": ""},
}
SENSOR = usb_serial("1-3", "04d8:000a", "ttyACM0")


# --- devices ---------------------------------------------------------------------------------------------------------


def test_plugged_devices_are_found_with_their_device_files(tmp_path):
    found = usb.plugged(machine(tmp_path, {**JOYSTICK, **SENSOR, **BUS}))
    assert [(device.family.name, device.identity, [path.name for path in device.files]) for device in found] == [
        ("openffboard", BOARD, ["007", "hidraw3"]),
        ("optoforce", "04d8:000a", ["ttyACM0"]),
    ]


def test_plugged_device_without_access_is_a_problem(tmp_path):
    finding = usb.udev(machine(tmp_path, {**JOYSTICK, **SENSOR}), lambda path: "hidraw" not in path.name)
    expect(finding, "problem", f"openffboard ({BOARD})", "doctor --udev", RULES_FILE, "udevadm")
    assert "optoforce" not in finding.found


def test_plugged_device_without_device_files_is_a_problem(tmp_path):
    files = {name: text for name, text in SENSOR.items() if "tty" not in name}
    expect(usb.udev(machine(tmp_path, files)), "problem", "modprobe")
    expect(usb.udev(machine(tmp_path, {**files, "/.dockerenv": ""}, ROOT)), "problem", "start the container")


def test_missing_rules_are_noted(tmp_path):
    loud = BUS | {RULES_FILE: rules().replace('"ffb0"', '"FFB0"')}
    expect(usb.udev(machine(tmp_path / "a", JOYSTICK, ROOT)), "ok", "openffboard")
    expect(usb.udev(machine(tmp_path / "b")), "ok", "no USB")
    expect(usb.udev(machine(tmp_path / "c", BUS)), "note", "any of our devices")
    expect(usb.udev(machine(tmp_path / "d", BUS | {RULES_FILE: rules()})), "ok", "rules open all")
    expect(usb.udev(machine(tmp_path / "e", loud)), "note", "openffboard", "capital letters")


def test_libusb_of_the_drivers_is_named(monkeypatch):
    files = ("/usr/lib/libusb-1.0.so.0", "/venv/libusb_package/libusb-1.0.so")
    found = [SimpleNamespace(lib=SimpleNamespace(_name=file)) for file in files]
    monkeypatch.setattr(usb, "libusb_backend", Mock(side_effect=[*found, DeviceOpenError("no libusb was found")]))
    assert [usb.load_libusb()["source"] for _ in range(3)] == ["the system", "libusb-package", None]


def test_missing_libusb_is_a_problem(tmp_path):
    def broken():
        raise NoAnswer("No module named 'usb'")

    here = machine(tmp_path)
    expect(usb.libusb(here), "ok", "libusb")
    expect(usb.libusb(here, lambda: {"source": None}), "problem", "libusb-1.0-0")
    expect(usb.libusb(machine(tmp_path, system="darwin"), lambda: {"source": None}), "problem", "pip install")
    expect(usb.libusb(here, broken), "problem", "No module named 'usb'", "pip install")


@pytest.mark.parametrize(("file", "user", "groups", "name", "severity", "word"), [
    (GROUPS, ROOT, {0}, "root", "ok", "root"), (GROUPS, 1000, {20}, "ada", "ok", "may open"),
    (GROUPS, 1000, {1000}, "ada", "note", "login began before"),
    (GROUPS, 1000, {1000}, "alan", "note", "usermod -aG dialout"), (None, 1000, {1000}, "ada", "ok", "no group"),
    ("uucp:x:14:\n", 1000, {1000}, "ada", "note", "uucp"),
])  # fmt: skip
def test_group_of_the_serial_ports(tmp_path, file, user, groups, name, severity, word):
    here = machine(tmp_path, {"/etc/group": file} if file else {}, user, groups=frozenset(groups))
    expect(ports.serial_ports(here, lambda: name), severity, word)


def test_modem_manager_is_noted_unless_the_rules_exclude_it(tmp_path):
    running = {"/proc/77/comm": "ModemManager\n"}
    expect(ports.modem_manager(machine(tmp_path / "a", {"/proc/1/comm": "systemd\n"})), "ok")
    expect(ports.modem_manager(machine(tmp_path / "b", running)), "note", "doctor --udev")
    expect(ports.modem_manager(machine(tmp_path / "c", running | {RULES_FILE: rules()})), "ok", "alone")


# --- CAN -------------------------------------------------------------------------------------------------------------


def interfaces(root, **given):
    """Make interfaces of these types and flags; those with a ``v`` are virtual."""
    files = {}
    for name, (kind, flags) in given.items():
        files |= {f"{NET}{name}/type": f"{kind}\n", f"{NET}{name}/flags": f"{flags:#x}\n"}
        if not name.startswith("v"):
            files[f"{NET}{name}/device/uevent"] = ""
    machine(root, files)
    return root


def test_can_interfaces_are_found_by_their_type(tmp_path):
    root = interfaces(tmp_path, eth0=(1, 0x1003), can1=(280, 0x40081), vcan0=(280, 0x80), lo=(772, 0x9))
    (root / NET[1:] / "odd").mkdir()
    found = [(one.name, one.up, one.real) for one in can_interfaces(machine(root))]
    assert found == [("can1", True, True), ("vcan0", False, False)]


def test_can_interface_that_is_down_is_noted_with_its_bit_rate(tmp_path):
    root = interfaces(tmp_path / "a", can0=(280, 0x80), vcan0=(280, 0x80))
    found = expect(can_bus(machine(root)), "note", "can0, vcan0", "can0 up type can bitrate 1000000")
    assert found.fix.splitlines()[1].endswith("ip link set vcan0 up")
    expect(can_bus(machine(tmp_path / "b")), "ok", "no CAN interface")
    expect(can_bus(machine(interfaces(tmp_path / "c", can0=(280, 0x81)))), "ok", "are up: can0")


def test_devices_command_names_can_interfaces_and_their_setup(tmp_path):
    text = describe(survey(interfaces(tmp_path, can0=(280, 0x80)), backend=None))
    assert "CAN interface (can0): arm" in text
    assert "missing: it is down: " in text and "ip link set can0 up type can bitrate 1000000" in text
    found = survey(interfaces(tmp_path, can0=(280, 0x81)), backend=None)
    assert not found.missing("arm")
    assert "--set device.motors.protocol=can --set device.motors.interface=can0" in describe(found)


# --- udev rules ------------------------------------------------------------------------------------------------------


def opens(text, identity=BOARD, node=Node.HIDRAW, name="70-mine.rules"):
    return access({name: parse(text)}, identity, node).open_to(["people"])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_own_rules_open_exactly_the_device_files_of_their_family(family):
    text = rules([family])
    files = {Path(RULES_FILE).name: parse(text)}
    for other in FAMILIES:
        for identity in other.identities:
            for node in Node:
                wanted = other is family and node in family.nodes
                assert access(files, identity, node).tagged == wanted
                assert access(files, identity, node).open_to(["haptics"]) == wanted
    assert ("ID_MM_DEVICE_IGNORE" in text) == (Node.TTY in family.nodes)
    assert 'ATTR{power/control}="on"' in text


def test_identities_are_well_formed_and_unambiguous():
    identities = [identity for family in FAMILIES for identity in family.identities]
    assert all(re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{4}", identity) for identity in identities)
    assert len(identities) == len(set(identities))


def test_families_are_found_by_identity_and_by_backend():
    (stick,) = named("1234:abcd")
    assert 'ATTR{idVendor}=="1234", ATTR{idProduct}=="abcd"' in rules([stick])
    assert named("045e:001b")[0].name == "sidewinder"
    assert {family.name for family in named("arm")} == {"odrive", "optoforce"}
    assert named("odrive")[0].identities[1] == "1209:0d32"
    assert named("1234:ABCD") == named("toaster") == ()
    assert set(names()) >= {family.backend for family in FAMILIES}
    assert not {family.backend for family in FAMILIES} & {name for name in BACKENDS if name.startswith("virtual")}


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ('KERNEL=="hidraw*", ATTRS{idVendor}=="1209", ATTRS{idProduct}=="ffb0", TAG+="uaccess"', True),
        ('KERNEL=="hidraw*", ATTRS{idVendor}=="1209", TAG+="uaccess"', True),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", ATTRS{idProduct}=="ffb*", MODE="0666"', True),
        ('ATTRS{idVendor}=="16c0|1209", ATTRS{idProduct}=="????", MODE:="666"', True),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", GROUP="people"', True),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", \\\n  ATTRS{idProduct}=="ffb0", \\\n  TAG+="uaccess"', True),
        ('SUBSYSTEM!="hidraw", GOTO="end"\nATTRS{idVendor}=="1209", TAG+="uaccess"\nLABEL="end"', True),
        ('SUBSYSTEM=="hidraw", GOTO="end"\nATTRS{idVendor}=="1209", TAG+="uaccess"\nLABEL="end"', False),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", GROUP="others", MODE="0660"', False),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", GROUP="people", MODE="0640"', False),
        ('SUBSYSTEM=="usb", ATTRS{idVendor}=="1209", TAG+="uaccess"', False),
        ('ATTR{idVendor}=="1209", ATTR{idProduct}=="ffb0", TAG+="uaccess"', False),
        ('ATTRS{idVendor}=="1209", ATTRS{idProduct}=="FFB0", TAG+="uaccess"', False),
        ('# ATTRS{idVendor}=="1209", TAG+="uaccess"', False),
        ('ATTRS{idVendor}=="1209", TAG+="uaccess"\nATTRS{idProduct}=="ffb0", TAG-="uaccess"', False),
        ('PROGRAM=="/bin/false", ATTRS{idVendor}=="1209", TAG+="uaccess"', False),
        ("", False),
    ],
)
def test_foreign_rules_are_interpreted(text, opened):
    assert opens(text) == opened


def test_tag_set_after_the_seat_rules_has_no_effect():
    assert opens(TAGGED, name="72-mine.rules")
    assert not opens(TAGGED, name="99-mine.rules")
    assert Path(RULES_FILE).name < SEAT
    assert RULES_FILE in rules()


@given(text=st.text(alphabet=st.sampled_from('ATRS{}idVendor"=+!:,\\\n #GOTO'), max_size=80))
def test_any_rules_text_can_be_parsed(text):
    for rule in parse(text):
        assert all(token.operator in {"==", "!=", "+=", "-=", ":=", "="} for token in rule)
    assert opens(text) in {True, False}


def test_rules_file_overrides_files_of_the_same_name_in_later_folders(tmp_path):
    files = {
        "/usr/lib/udev/rules.d/70-a.rules": TAGGED,
        "/etc/udev/rules.d/70-a.rules": "",
        "/lib/udev/rules.d/60-b.rules": "x",
    }
    found = machine(tmp_path, files)
    assert list(read_rules(found)) == ["60-b.rules", "70-a.rules"]
    assert not access(read_rules(found), BOARD, Node.HIDRAW).open_to([])
