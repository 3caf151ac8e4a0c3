"""Choosing a joystick and its parameters, and the wheel, a device with one dimension."""

import contextlib
import math
import struct
import time
from typing import ClassVar

import numpy as np
import pytest
from hidtools.hid import ReportDescriptor

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.profiles import PROFILES
from devices.emulators.pid.stick import EmulatedStick, EmulatedUsbBackend, emulated_stick
from devices.joystick.device import PidJoystick
from devices.joystick.parameters import build_parameters, format_parameters
from devices.joystick.usb.finding import choose, usb_sticks
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError
from haptics.files import parse_toml
from tests.contract import DeviceContract
from tests.devices.joystick.doubles import STILL, FakeTransport, make, session
from tests.system.devices.test_joystick import command, released

pytestmark = pytest.mark.usefixtures("compiled_stick")


# --- choosing a stick ------------------------------------------------------------------------------------------------


def two(*serials):
    return EmulatedUsbBackend(*(EmulatedStick("openffboard", hand=STILL, serial=serial) for serial in serials))


def test_two_sticks_are_driven_at_once_by_serial_number():
    backend, both = two("A1", "B2"), []
    with contextlib.ExitStack() as stack:
        for stick in backend.units:
            settings = {"emulated": True, "serial": stick.serial}
            device = EmulatedPidJoystick(settings, backend=EmulatedUsbBackend(stick))
            device.backend = backend
            both.append(stack.enter_context(device))
        for _ in range(30):
            both[0].write(np.array((2.0, 0.0)))
            both[1].write(np.array((0.0, -3.0)))
            time.sleep(1e-3)
        np.testing.assert_allclose(backend.units[0].force, (2.0, 0.0), atol=0.02)
        np.testing.assert_allclose(backend.units[1].force, (0.0, -3.0), atol=0.03)


@pytest.mark.parametrize("serials", [("", ""), ("A1", "A1"), ("A1", "")])
def test_sticks_without_distinct_serial_numbers_are_chosen_by_port(serials):
    found = usb_sticks(two(*serials))
    assert [stick.port for stick in found] == ["1-1", "1-2"]
    with pytest.raises(DeviceOpenError, match=r"at port 1-1.*at port 1-2.*Choose one with device\.port\."):
        choose(found, "1209:ffb0", "")
    assert choose(found, "1209:ffb0", "", "1-2") is found[1]
    assert choose(found, "", serials[0], "1-1") is found[0]
    with pytest.raises(DeviceNotFoundError, match=r"no stick 1209:ffb0 at port 1-3 is plugged in; there is .*port 1-1"):
        choose(found, "1209:ffb0", "", "1-3")


def test_stick_at_the_port_of_the_settings_is_opened(tmp_path):
    backend = two("", "")
    known, _ = make()
    path = stored(known, tmp_path, 'serial = "EMULATED0001"', 'serial = ""')
    for port, taken, other in (("1-2", 1, 0), ("1-1", 0, 1)):
        with PidJoystick({"parameters": path, "port": port}, backend=backend):
            assert backend.units[taken].owners
            assert not backend.units[other].owners
    with pytest.raises(DeviceOpenError, match=r"device\.port"):
        PidJoystick({"parameters": path}, backend=backend).open()


def test_message_names_the_sticks_that_are_plugged_in():
    with pytest.raises(DeviceOpenError, match=r"serial A1.*serial B2.*device\.serial"):
        choose(usb_sticks(two("A1", "B2")), "1209:ffb0", "")
    with pytest.raises(DeviceNotFoundError, match=r"045e:001b.*there is .*1209:ffb0\) serial A1"):
        choose(usb_sticks(two("A1")), "045e:001b", "")
    with pytest.raises(DeviceNotFoundError, match="no force-feedback stick is plugged in"):
        choose([], "045e:001b", "")


@pytest.mark.parametrize("profile", PROFILES)
def test_found_stick_has_its_identity_and_intervals(profile):
    backend = emulated_stick(profile, hand=STILL)
    (found,) = usb_sticks(backend)
    truth = backend.units[0].truths["device"]
    assert found.identity == f"{truth['vendor_id']:04x}:{truth['product_id']:04x}"
    assert (found.serial, found.name) == (truth["serial"], truth["name"])
    assert (found.in_interval, found.out_interval) == (truth["in_interval_s"], truth["out_interval_s"])
    assert found.speaks_pid
    assert found.missing == ()
    assert backend.units[0].drivers, "finding detaches no driver"


def test_found_stick_without_permission_names_the_remedy():
    (found,) = usb_sticks(emulated_stick("openffboard", hand=STILL, faults=["no-permission@0"]))
    assert found.serial is None
    assert "haptics doctor udev" in found.missing[0]


# --- parameters ------------------------------------------------------------------------------------------------------


def stored(device, folder, old="", new=""):
    """Write the parameters of the device with one text replaced; return the path."""
    text = format_parameters(device.parameters)
    assert old in text
    path = folder / "stick.toml"
    path.write_text(text.replace(old, new) if old else text)
    return str(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('serial = ""', 'serial = "OTHER"', "OTHER"),
        ("dead_man_button = 0", "dead_man_button = 9", r"handle\.dead_man_button = 9: the stick has 8 buttons"),
    ],
)
def test_stick_is_released_when_its_parameters_are_of_another_stick(tmp_path, old, new, message):
    device, stick = make(profile="sidewinder-ff2")
    with pytest.raises((ConfigurationError, DeviceNotFoundError), match=message):
        PidJoystick({"parameters": stored(device, tmp_path, old, new)}, backend=device.backend).open()
    assert released(stick)


def test_serial_number_other_than_that_of_the_parameters_is_refused(tmp_path):
    device, _ = make()
    with pytest.raises(ConfigurationError, match=r"device\.serial = 'X'.*EMULATED0001"):
        PidJoystick({"parameters": stored(device, tmp_path), "serial": "X"}, backend=device.backend)


def test_dead_man_button_is_that_of_the_parameters(tmp_path):
    device, _ = make()
    path = stored(device, tmp_path, "dead_man_button = 0", "dead_man_button = 1")
    held = EmulatedPidJoystick({"emulated": True, "parameters": path, "hand": {"name": "minimum-jerk"}})
    assert held.spec.dead_man == "button"
    assert device.spec.dead_man == "none"
    with held:
        time.sleep(0.05)
        assert held.read().buttons & 1 == 1
        assert held.read().buttons & 2 == 2


# --- the wheel: one axis with a motor, one dimension along its rim ---------------------------------------------------

WHEEL = "openffboard-wheel"
PROFILE = PROFILES[WHEEL]


class TestEmulatedWheel(DeviceContract):
    name = "pid-joystick"
    settings: ClassVar = {"emulated": True, "emulator": WHEEL, "hand": STILL}


# --- the emulated wheel: facts of the open firmware ------------------------------------------------------------------


def test_wheel_reports_have_the_length_of_the_descriptor():
    parsed = ReportDescriptor.from_bytes(PROFILE.report_descriptor)
    outputs = {number: report.size for number, report in parsed.output_reports.items()}
    assert {number: 1 + layout.form.size for number, layout in PROFILE.outputs.items()} == outputs
    assert outputs[1] == 18
    assert parsed.input_reports[1].size == len(PROFILE.input(0, 0, 0)) == 25


def test_wheel_has_900_degrees_16_bits_and_9_newton_metres():
    own, truth = PROFILE.handle, PROFILE.truths()
    assert own.half_width == pytest.approx(own.rim_radius * math.radians(450.0))
    assert truth["axes"]["counts_to_m"][0][0] * 65534 == pytest.approx(2.0 * own.half_width)
    assert truth["force"]["max_force_n"] * own.rim_radius == pytest.approx(9.0)
    assert truth["device"]["product_id"] == 0xFFB0


@pytest.mark.parametrize(
    ("axes", "direction", "part"), [(2, 27000, 1.0), (2, 9000, -1.0), (2, 0, 0.0), (1, 36000, 1.0), (0, 27000, 0.0)]
)
def test_wheel_direction_enable_is_the_second_bit(axes, direction, part):
    assert PROFILE.direction({"axes": axes, "direction": direction}) == pytest.approx((part, 0.0), abs=1e-12)


# --- reports to the wheel --------------------------------------------------------------------------------------------


def test_wheel_gets_one_effect_with_the_bytes_of_the_kernel():
    transport = FakeTransport(WHEEL)
    playing = session(transport, duration=math.inf, count=1)
    playing.start()
    # Set Effect as hid-pidff fills it in: X and direction enable (bit 1), the direction cut off to the field's range
    effect = struct.pack("<BBBH3HBBBHH", 1, 1, 1, 0xFFFF, 0, 0, 0, 255, 0, 2, 0xC000 * 36000 // 0xFFFF, 0).hex()
    assert transport.sent == [
        *("0c08", "0c04", "0c01", "0dff", "get 19 5"),
        *("set 11010000", "get 18 5", "05010000", effect),
        "0a010101",
    ]
    assert playing.blocks == [1]
    transport.sent.clear()
    playing.stop()
    assert transport.sent == ["05010000", "0a010300", "0b01", "0c02"]


# --- the wheel as a device -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("force", [(20.0, 0.0), (-30.0, 500.0), (100.0, 0.0), (0.0, 40.0)])
def test_wheel_force_acts_along_the_rim(force):
    device, stick = make(profile=WHEEL)
    with device:
        command(device, force, 0.05)
        limit = device.spec.max_force
        assert limit == pytest.approx(72.0)
        assert stick.force[0] == pytest.approx(min(force[0], limit), abs=limit / 255.0)
        assert stick.force[1] == 0.0
    assert len(stick.received("create")) == len(stick.received("free")) == 1
    assert {fields["block"] for fields in stick.received("constant")} == {1}


def test_wheel_position_is_the_distance_along_the_rim():
    held = {"name": "minimum-jerk", "points": [[0.05, 0.02], [0.05, 0.021]], "tremor": 0.0, "rest_force": 0.0}
    with EmulatedPidJoystick({"emulated": True, "emulator": WHEEL, "hand": held}) as device:
        command(device, (0.0, 5.0), 0.1)
        stick, state = device.backend.units[0], device.read()
        angle = math.radians(450.0) * stick.firmware._plant.counts[0] / 32767
        assert state.position[0] == pytest.approx(PROFILE.handle.rim_radius * angle, abs=1e-9)
        assert state.position[0] == pytest.approx(0.05, abs=30e-6)
        assert state.position[1] == 0.0 == state.velocity[1]
        assert stick.handle[1] == 0.0


def test_wheel_data_sheet_has_one_dimension():
    wheel, stick = (make(profile=profile)[0].spec for profile in (WHEEL, "openffboard"))
    assert (wheel.dimensions, stick.dimensions) == (1, 2)
    assert wheel.delay == pytest.approx(2e-3), "one report, not two"
    assert wheel.max_force_rate == pytest.approx(2.0 * wheel.max_force / 1e-3)
    assert wheel.workspace_max[0] == pytest.approx(PROFILE.handle.half_width)
    assert wheel.position_resolution == pytest.approx(30e-6, rel=0.01)


# --- parameters of the wheel -----------------------------------------------------------------------------------------


def test_wheel_parameters_are_read_back_and_old_files_are_of_sticks():
    known = build_parameters(PROFILE.truths())
    text = format_parameters(known)
    assert build_parameters(parse_toml(text, "wheel.toml"), "wheel.toml") == known
    stick = format_parameters(build_parameters(PROFILES["openffboard"].truths()))
    before = "".join(line for line in stick.splitlines(True) if not line.startswith("rim_radius_m"))
    assert before != stick
    assert build_parameters(parse_toml(before, "stick.toml"), "stick.toml") == build_parameters(
        parse_toml(stick, "stick.toml"), "stick.toml"
    )


@pytest.mark.parametrize(
    ("table", "changes", "message"),
    [
        ("axes", {"counts_to_m": ((1e-5, 0.0), (0.0, 1e-5))}, r"axes\.counts_to_m = .*a wheel \(axes\.rim_radius_m\)"),
        ("axes", {"counts_to_m": ((0.0, 0.0), (0.0, 0.0))}, r"axes\.counts_to_m"),
        ("force", {"newton_to_level": ((0.01, 0.01), (0.0, 0.0))}, r"force\.newton_to_level = .*has x only"),
        ("force", {"max_force_n": 80.0}, r"force\.max_force_n = 80: asks for 1\.11 times"),
        ("axes", {"rim_radius_m": 0.0}, r"axes\.counts_to_m = .* not all on one line"),
    ],
)
def test_parameters_that_mix_wheel_and_stick_are_refused(table, changes, message):
    tables = PROFILE.truths()
    tables[table] = {**tables[table], **changes}
    with pytest.raises(ConfigurationError, match=message):
        build_parameters(tables)
