"""The command ``haptics devices``: connected devices, their force rates, and missing requirements."""

import json
import shlex
import subprocess
import sys

import pytest

from apps import plugged
from apps.cli import main
from apps.doctor import usb
from apps.doctor.machine import Machine, program
from apps.doctor.ports import haply_service, maker_libraries
from apps.doctor.usb import rules, unknown_sticks
from apps.plugged import describe, survey
from apps.settings.config import parse_assignment
from devices.emulators.native import compiler
from devices.emulators.pid.profiles import read_hex
from devices.emulators.pid.stick import EmulatedStick, EmulatedUsbBackend, emulated_stick
from devices.joystick.usb.finding import hidraw_sticks
from haptics.errors import DeviceOpenError
from tests.apps.doctor.machines import expect, machine, usb_serial, write_files

STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
MOUSE = bytes.fromhex(
    "0501 0902 a101 0901 a100 0509 1901 2903 1500 2501 9503 7501 8102 9501 7505 8103 0501 0930 0931 1581 257f 7508 9502"
    "8106 c0 c0"
)


def hidraw(root, number, identity, name, descriptor):
    """Add the files of a connected HID device to `root`."""
    vendor, product = identity.split(":")
    place = f"/sys/devices/usb1/1-{number}"
    device = f"{place}/1-{number}:1.0/0003:{vendor.upper()}:{product.upper()}.0001"
    uevent = f"HID_ID=0003:0000{vendor.upper()}:0000{product.upper()}\nHID_NAME={name}\nHID_UNIQ=S{number}\n"
    own = {"uevent": uevent, "report_descriptor": descriptor, f"hidraw/hidraw{number}/dev": "247:0"}
    bus = {"idVendor": vendor, "idProduct": product, "busnum": "1", "devnum": str(number)}
    for where, direction, interval in (("81", "in", "1ms"), ("02", "out", "4ms")):
        end = {"direction": direction, "type": "Interrupt", "interval": interval}
        bus |= {f"1-{number}:1.0/ep_{where}/{key}": value for key, value in end.items()}
    write_files(root, {f"{device}/{key}": value for key, value in own.items()})
    write_files(root, {f"{place}/{key}": value for key, value in bus.items()})
    write_files(root, {f"/dev/hidraw{number}": "", f"/dev/bus/usb/001/{number:03}": ""})
    node = root / f"sys/class/hidraw/hidraw{number}"
    node.mkdir(parents=True)
    (node / "device").symlink_to(root / device.lstrip("/"))
    (root / "sys/bus/usb/devices").mkdir(parents=True, exist_ok=True)
    (root / f"sys/bus/usb/devices/1-{number}").symlink_to(root / place.lstrip("/"))
    return root


@pytest.fixture
def no_libusb(monkeypatch):
    def missing():
        raise DeviceOpenError("no libusb was found: install it.")

    monkeypatch.setattr("devices.common.bus.libusb_backend", missing)


@pytest.mark.parametrize(("profile", "rate"), [("openffboard", 500.0), ("sidewinder-ff2", 125.0), ("arduino", 500.0)])
def test_stick_is_described_with_the_rate_of_its_bus(tmp_path, profile, rate):
    (one,) = survey(tmp_path, emulated_stick(profile, hand=STILL)).found
    assert (one.backend, one.speaks_pid, one.missing) == ("pid-joystick", True, ())
    assert (one.vector_rate_hz, one.out_rate_hz) == pytest.approx((rate, 2.0 * rate))
    vendor, product = one.identity.split(":")
    assert f'ATTR{{idVendor}}=="{vendor}", ATTR{{idProduct}}=="{product}"' in one.udev_rules
    assert "calibrate joystick" in one.next


def test_wheel_stick_and_adapter_are_distinguished(tmp_path, no_libusb):
    hidraw(tmp_path, 3, "1209:ffb0", "FFBoard wheel", read_hex("openffboard_wheel.hex"))
    hidraw(tmp_path, 4, "1209:ffb0", "FFBoard stick", read_hex("openffboard.hex"))
    found = survey(tmp_path)
    assert [(one.motors, one.port) for one in found.of("pid-joystick")] == [(1, "1-3"), (2, "1-4")]
    wheel, stick = (line for line in describe(found).splitlines() if "(1209:ffb0)" in line)
    assert "pid-joystick, a wheel (one axis with a motor)" in wheel
    assert "wheel" not in stick
    assert [one.vector_rate_hz for one in found.of("pid-joystick")] == pytest.approx([250.0, 125.0])
    assert ["--rim-radius" in one.next for one in found.of("pid-joystick")] == [True, False]
    hidraw(tmp_path / "adapter", 3, "03eb:204e", "adapt-ffb-joy", read_hex("sidewinder_ff2.hex"))
    (adapter,) = survey(tmp_path / "adapter").found  # it needs a pause after every report
    assert (adapter.out_rate_hz, adapter.vector_rate_hz) == pytest.approx((1.0 / 6e-3, 0.5 / 6e-3))


def test_hidraw_descriptor_belongs_to_the_same_port(tmp_path, monkeypatch):
    """Both devices have one identity, and libusb cannot read descriptors that the kernel driver owns."""
    wheel, stick = (EmulatedStick("openffboard", hand=STILL, serial=serial) for serial in ("W", "S"))
    bus = EmulatedUsbBackend(wheel, stick)  # at the ports 1-1 and 1-2
    monkeypatch.setattr("devices.common.bus.libusb_backend", lambda: bus)
    hidraw(tmp_path, 2, "1209:ffb0", "FFBoard", read_hex("openffboard.hex"))
    hidraw(tmp_path, 1, "1209:ffb0", "FFBoard", read_hex("openffboard_wheel.hex"))
    found = {one.serial: (one.motors, one.port) for one in survey(tmp_path).of("pid-joystick")}
    assert found == {"W": (1, "1-1"), "S": (2, "1-2")}


@pytest.mark.parametrize(
    ("serials", "ported"), [(("", ""), 2), (("A1", "A1"), 2), (("A1", ""), 1), (("A1", "B2"), 0), (("",), 0)]
)
def test_suggested_command_names_the_port_where_the_serial_number_is_ambiguous(tmp_path, serials, ported):
    sticks = (EmulatedStick("openffboard", hand=STILL, serial=serial) for serial in serials)
    found = survey(tmp_path, EmulatedUsbBackend(*sticks))
    text = describe(found)
    assert "500 forces per second over usb" in text
    if serials == ("A1", "B2"):
        assert "serial A1" in text and "device.serial=B2" in text
    named = [one for one in found.of("pid-joystick") if "device.port" in one.next]
    assert len(named) == ported
    for one in named:
        words = [word for word in shlex.split(one.next, comments=False) if word.startswith("device.port=")]
        assert list(map(parse_assignment, words)) == [("device", "port", one.port)] * 2, "both commands"


HOSTILE = ["X$(touch ran)", "X`touch ran`", "'; touch ran #", '"; touch ran; "', "a\\b", "0001", "true", "x y", "[1]"]


@pytest.mark.parametrize("serial", HOSTILE)
def test_serial_number_is_quoted_for_the_shell(tmp_path, serial):
    found = survey(tmp_path, EmulatedUsbBackend(EmulatedStick("openffboard", hand=STILL, serial=serial)))
    (one,) = found.found
    assert one.serial == serial
    line = one.next.replace(program(), "printf '%s\\n'", 1)
    done = subprocess.run(["sh", "-c", line], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert parse_assignment(done.stdout.splitlines()[-1]) == ("device", "serial", serial)


def test_device_texts_are_shown_without_control_characters(tmp_path):
    """A line break in a name could add a udev rule."""
    sly = 'X\x1b[2J\x07\u202e\r"'
    found = survey(tmp_path, EmulatedUsbBackend(EmulatedStick("openffboard", hand=STILL, serial=sly)))
    (one,) = found.found
    assert one.serial == 'X[2J"'
    hidraw(tmp_path, 3, "1209:abcd", "Stick\r\x1b]0;owned\x07\x85RUN+=x", read_hex("openffboard.hex"))
    (stick,) = hidraw_sticks(tmp_path)
    assert stick.name == "Stick]0;ownedRUN+=x"
    (family,) = unknown_sticks(Machine(root=tmp_path))
    assert all(line.isprintable() for line in rules([family]).split("\n"))
    assert len([line for line in rules([family]).split("\n") if "RUN+=x" in line and not line.startswith("#")]) == 0


def test_inaccessible_device_is_listed_with_its_udev_rule(tmp_path):
    found = survey(tmp_path, emulated_stick("openffboard", hand=STILL, faults=["no-permission@0"]))
    (one,) = found.found
    assert one.serial is None
    assert 'TAG+="uaccess"' in one.missing[0] and 'ATTR{idProduct}=="ffb0"' in one.missing[0]
    assert found.missing("pid-joystick") == list(one.missing)
    text = describe(found)
    assert "missing: " in text and "/etc/udev/rules.d/70-haptics.rules" in text


def test_hidraw_devices_are_listed_without_libusb(tmp_path, no_libusb):
    hidraw(tmp_path, 3, "1209:abcd", "Home-made stick", read_hex("openffboard.hex"))
    hidraw(tmp_path, 4, "046d:c077", "A mouse", MOUSE)
    found = survey(tmp_path)
    stick, mouse = found.found
    assert (stick.name, stick.serial, stick.transport, stick.speaks_pid) == ("Home-made stick", "S3", "hidraw", True)
    assert stick.vector_rate_hz == pytest.approx(125.0)
    assert (mouse.backend, mouse.speaks_pid) == ("", False)
    assert found.missing("pid-joystick") == []
    assert not found.result()["libusb"]
    text = describe(found)
    assert "no libusb was found" in text and "without force feedback: A mouse" in text
    here = machine(tmp_path)
    (one,) = usb.plugged(here)
    assert (one.identity, one.family.backend, one.family.title) == ("1209:abcd", "pid-joystick", "Home-made stick")
    assert [path.name for path in one.files] == ["003", "hidraw3"]
    expect(usb.udev(here, lambda path: False), "problem", "1209:abcd", "doctor --udev")


def test_survey_without_devices_or_without_pyusb(tmp_path, monkeypatch):
    found = survey(tmp_path, EmulatedUsbBackend())
    assert found.found == ()
    assert "device.emulated=true" in found.missing("pid-joystick")[0]
    assert "hAPI board" in found.missing("pantograph")[0]
    assert "nothing that a driver here can use" in describe(found)
    monkeypatch.setitem(sys.modules, "usb.backend.libusb1", None)
    found = survey(tmp_path)
    assert found.found == ()
    assert "doctor libusb" in describe(found)
    assert "doctor libusb" in " ".join(found.missing("pid-joystick"))


def test_pantograph_board_is_found_with_its_port(tmp_path, monkeypatch):
    write_files(tmp_path, usb_serial("1-5", "2341:804d", "ttyACM7"))
    found = survey(tmp_path, EmulatedUsbBackend())
    (board,) = found.of("pantograph")
    assert board.nodes == (str(tmp_path / "dev/ttyACM7"),)
    assert "Haply" in board.name
    assert found.missing("pantograph") == []
    assert 'SUBSYSTEM=="tty"' in board.udev_rules
    monkeypatch.setattr(plugged, "openable", lambda path: False)
    (board,) = survey(tmp_path, EmulatedUsbBackend()).found
    assert "ttyACM7: permission denied" in board.missing[0]
    assert "ID_MM_DEVICE_IGNORE" in board.missing[0] and "udevadm control --reload" in board.missing[0]


LISTENS = (
    "  sl  local_address rem_address   st tx_queue rx_queue\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n"
    "   1: {} 00000000:0000 {} 00000000:00000000 00:00000000\n"
)


@pytest.mark.parametrize("table", ["tcp", "tcp6"])
@pytest.mark.parametrize(("local", "state", "there"), [("0100007F:2711", "0A", True), ("0100007F:2711", "01", False),
                                                       ("27110000:2710", "0A", False)])  # fmt: skip
def test_inverse3_service_is_found_by_its_port(tmp_path, table, local, state, there):
    """Port 10001 is 2711 in hexadecimal; state 0A listens."""
    files = {f"/proc/net/{table}": LISTENS.format(local, state)}
    found = survey(write_files(tmp_path, files), EmulatedUsbBackend())
    assert [one.name for one in found.of("inverse3")] == ["Haply service"] * there
    assert ("no Haply service was seen at port 10001" in " ".join(found.missing("inverse3"))) != there
    assert ("Haply service (port 10001)" in describe(found)) == there
    expect(haply_service(machine(tmp_path)), "ok", "listened at" if there else "no Haply service was seen")


def test_doctor_finds_the_libraries_of_makers(tmp_path, monkeypatch):
    sdk = tmp_path / "sdk"
    sdk.mkdir()
    monkeypatch.setenv("FDSDK", str(sdk))
    monkeypatch.delenv("OPENHAPTICS", raising=False)
    monkeypatch.setattr(compiler, "find_compiler", lambda: ["cc"])
    found = expect(
        maker_libraries(machine(tmp_path)), "note", "has no libdrd.so", "touch needs the OpenHaptics toolkit"
    )
    assert found.fix.startswith("unset FDSDK")
    (sdk / "libdrd.so.3").write_bytes(b"")
    expect(maker_libraries(machine(tmp_path)), "ok", f"forcedimension: {sdk / 'libdrd.so.3'}")
    monkeypatch.setattr(compiler, "find_compiler", list)
    assert expect(maker_libraries(machine(tmp_path)), "note", "no C compiler").fix.endswith("apt install gcc libc6-dev")


def test_touch_needs_the_library_of_its_maker(tmp_path, monkeypatch):
    write_files(tmp_path, usb_serial("1-5", "2988:0302", "ttyACM2"))
    (found,) = survey(tmp_path, EmulatedUsbBackend()).of("touch")
    assert found.missing[0].startswith(
        "the OpenHaptics toolkit is not installed, or not found: install it from its maker"
    )
    (tmp_path / "libHD.so.3.4").write_bytes(b"")
    monkeypatch.setenv("OPENHAPTICS", str(tmp_path))
    (found,) = survey(tmp_path, EmulatedUsbBackend()).of("touch")
    assert found.missing == () and "run --device touch" in found.next


def test_arm_needs_a_drive_and_no_usb_sensor(tmp_path):
    sensor = usb_serial("1-6", "04d8:000a", "ttyACM3")
    drive = usb_serial("1-5", "1209:0d32", "ttyACM4", serial="2065339F304B\n", busnum="1", devnum="5")
    found = survey(write_files(tmp_path, sensor), EmulatedUsbBackend())
    assert [one.name for one in found.of("arm")] == ["OptoForce / OnRobot force sensor"]
    assert "no ODrive is plugged in" in found.missing("arm")[0]
    found = survey(write_files(tmp_path, {**drive, "/dev/bus/usb/001/005": ""}), EmulatedUsbBackend())
    assert found.missing("arm") == []
    (one,) = (one for one in found.of("arm") if one.identity == "1209:0d32")
    assert one.serial == "2065339F304B"
    assert "run --device arm" in one.next and one.next in describe(found)
    assert 'ENV{ID_MM_DEVICE_IGNORE}="1"' in one.udev_rules


def test_force_dimension_device_needs_the_sdk_of_its_maker(tmp_path, monkeypatch):
    place = "/sys/bus/usb/devices/1-3"
    about = {"idVendor": "1451", "idProduct": "0402", "busnum": "1", "devnum": "7", "serial": "1234"}
    files = {f"{place}/{name}": f"{value}\n" for name, value in about.items()} | {"/dev/bus/usb/001/007": ""}
    monkeypatch.setenv("FDSDK", str(tmp_path / "nowhere"))
    found = survey(write_files(tmp_path, files), EmulatedUsbBackend())
    assert [one.serial for one in found.of("forcedimension")] == ["1234"]
    (missing,) = found.missing("forcedimension")
    assert missing.startswith("FDSDK = ") and "it must be the folder of the Force Dimension SDK" in missing
    sdk = tmp_path / "nowhere" / "lib" / "release" / "lin-x86_64-gcc"
    sdk.mkdir(parents=True)
    (sdk / "libdrd.so.3.16.0").touch()
    found = survey(tmp_path, EmulatedUsbBackend())
    assert found.missing("forcedimension") == []
    assert "run --device forcedimension" in describe(found)


def test_devices_command_reports_devices_and_missing_requirements(capsys):
    assert main(["devices", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert isinstance(answer["plugged"], list)
    assert isinstance(answer["libusb"], bool)
    rows = {row["name"]: row for row in answer["devices"]}
    assert rows["virtual-joystick"]["missing"] == []
    assert bool(rows["pid-joystick"]["missing"]) == (not any(one["speaks_pid"] for one in answer["plugged"]))


def test_falcon_is_found_by_its_identity_with_the_next_command(tmp_path):
    place = "/sys/bus/usb/devices/1-4"
    files = {"idVendor": "0403", "idProduct": "cb48", "serial": "F1", "busnum": "1", "devnum": "7"}
    write_files(tmp_path, {f"{place}/{name}": text for name, text in files.items()} | {"/dev/bus/usb/001/007": ""})
    (one,) = survey(tmp_path, EmulatedUsbBackend()).of("falcon")
    assert (one.name, one.serial, one.missing) == ("Novint Falcon", "F1", ())
    assert "run --device falcon --model C --set device.firmware=FILE" in one.next
    assert 'ATTR{idProduct}=="cb48"' in one.udev_rules
