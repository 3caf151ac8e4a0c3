"""The emulated sticks against the tables: their reports, their pool, and what each family does in its own way."""

import subprocess
import sys

import numpy as np
import pytest
import usb.core
from hidtools.hid import ReportDescriptor
from hypothesis import given
from hypothesis import strategies as st

from devices.emulators.pid.profiles import known as profiles
from tests.devices.emulators.pid_host import PROFILES, SPRING, STOP, Host

every_profile = pytest.mark.parametrize("profile", PROFILES)
SUCCESS, FULL, ERROR = 1, 2, 3


@every_profile
def test_reports_are_as_long_as_the_descriptor_says(profile):
    """The layouts are tables, the descriptor is a file: an independent parser compares them."""
    stick = profiles.PROFILES[profile]
    parsed = ReportDescriptor.from_bytes(stick.report_descriptor)
    outputs = {number: report.size for number, report in parsed.output_reports.items()}
    assert {layout.number: layout.size for layout in stick.outputs} == outputs
    inputs = {number: report.size for number, report in parsed.input_reports.items()}
    assert inputs[1] == len(stick.input(0, 0, 0))
    assert inputs[2] == len(stick.state(0, False, 0))
    features = {number: report.size for number, report in parsed.feature_reports.items()}
    assert features == {stick.create: 4, stick.load: 5, stick.pool: 5}


@every_profile
@given(data=st.data())
def test_axes_and_buttons_are_where_the_descriptor_says(profile, data):
    stick = profiles.PROFILES[profile]
    limit = stick.handle.limit
    x, y = (data.draw(st.integers(-limit, limit)) for _ in range(2))
    buttons = data.draw(st.integers(0, 255))
    report = ReportDescriptor.from_bytes(stick.report_descriptor).input_reports[1]
    sent = list(stick.input(x, y, buttons))
    values = {field.usage: field.get_values(sent)[0] for field in report.fields if field.usage}
    assert (values[0x10030], values[0x10031]) == (x, y)
    assert [values[0x90001 + k] for k in range(8)] == [buttons >> k & 1 for k in range(8)]


# --- the pool


@every_profile
def test_every_effect_has_a_block_of_its_own_until_the_pool_is_full(profile):
    host = Host(profile)
    capacity = {"openffboard": 40, "sidewinder-ff2": 15, "arduino": 13}[profile]  # one of 16 is the centring spring
    blocks = [host.create() for _ in range(capacity)]
    assert len(set(blocks)) == capacity
    assert 0 not in blocks
    host.request_block(1)
    # An OpenFFBoard names an old block when the pool is full: the status is to be looked at first.
    assert host.block_load() == ((blocks[-1], FULL) if profile == "openffboard" else (0, FULL))
    host.out(11, blocks[2])
    assert host.create() == blocks[2]


@every_profile
def test_pool_report_says_that_the_device_manages_its_pool(profile):
    host = Host(profile)
    number = host.family.pool
    answer = host.device.ctrl_transfer(0xA1, 1, 0x300 | number, host.number, 5)
    assert answer[0] == number
    assert answer[3] == {"openffboard": 40, "sidewinder-ff2": 16, "arduino": 14}[profile]
    assert answer[4] & 1


@every_profile
@pytest.mark.parametrize("kind", [0, 13, 255])
def test_unknown_type_of_effect_is_an_error(profile, kind):
    host = Host(profile)
    host.request_block(kind)
    assert host.block_load()[1] == ERROR


def test_arduino_names_the_block_only_once():
    host = Host("arduino")
    host.request_block(1)
    assert host.block_load() == (1, SUCCESS)
    assert host.block_load() == (0, SUCCESS)


@every_profile
def test_full_pool_and_stale_answer_can_be_had_on_demand(profile):
    host = Host(profile)
    first = host.create()
    host.stick.faults.set("full-pool")
    host.request_block(1)
    assert host.block_load()[1] == FULL
    host.stick.faults.clear()
    second = host.create()
    host.stick.faults.set("stale-block-load")
    assert host.block_load()[0] not in {first + 2, second}
    host.stick.faults.clear()
    assert host.create() == second + 1


@every_profile
def test_reset_frees_all_blocks(profile):
    host = Host(profile)
    first = [host.create() for _ in range(3)]
    host.control(4)
    assert [host.create() for _ in range(3)] == first


@every_profile
@given(data=st.binary(min_size=1, max_size=64))
def test_firmware_puts_up_with_any_bytes(profile, data):
    firmware = Host.fresh(profile).firmware
    firmware.out(firmware.profile.out_endpoint, data)
    for number in range(1, 4):
        firmware.control(0x21, 9, 0x300 | firmware.profile.create, firmware.profile.interface, bytes([0, number]))
        firmware.out(firmware.profile.out_endpoint, bytes([data[0], number]) + data)
        firmware.out(firmware.profile.out_endpoint, bytes([10, number, 1, 1]))
    for _ in range(5):
        firmware.step()
    assert np.all(np.isfinite(firmware.force))


@every_profile
def test_report_about_a_block_that_is_not_in_use_changes_nothing(profile):
    host = Host(profile)
    host.set_effect(9, 1, 270.0)
    host.magnitude(9, 1.0)
    host.play(9)
    host.settle()
    assert not host.stick.force.any()
    assert host.stick.received("constant") == [{"block": 9, "magnitude": host.family.full}]


# --- each in its own way


def test_device_control_of_openffboard_is_a_list_of_bits():
    host = Host("openffboard")
    host.constant(270.0, 0.5)
    host.out(12, 3)  # to a list of usages: stop all; here: enable and disable
    host.settle()
    assert not host.stick.force.any()
    host.out(12, 1)
    host.settle()
    assert host.stick.force.any()


def test_openffboard_needs_an_enable_after_stop_all_and_set_effect_is_one():
    host = Host("openffboard")
    block = host.constant(270.0, 0.5)
    host.control(3)
    host.play(block)
    host.settle()
    assert not host.stick.force.any()
    host.set_effect(block, 1, 270.0)
    host.settle()
    assert host.stick.force.any()


def test_arduino_takes_two_directions_where_axes_are_enabled():
    forces = []
    for axes in (4, 7):
        host = Host("arduino")
        block = host.create()
        host.output.write(bytes([1, block, 1, 0xFF, 0xFF, 0, 0, 0, 0, 255, 0, axes, 64, 0, 0, 0, 0, 0]))
        host.magnitude(block, 1.0)
        host.play(block)
        host.settle()
        forces.append(np.array(host.stick.truths["force"]["newton_to_level"]) @ host.stick.force)
    np.testing.assert_allclose(forces, [(-1.0, 0.0), (-1.0, 1.0)], atol=0.02)


@pytest.mark.parametrize(("profile", "gain"), [("openffboard", None), ("sidewinder-ff2", 0x55), ("arduino", None)])
def test_output_reports_on_the_control_pipe_are_a_matter_of_luck(profile, gain):
    host = Host(profile, start=False)
    host.device.ctrl_transfer(0x21, 9, 0x020D, host.number, b"\x0d\x55")
    gains = [fields["gain"] for fields in host.stick.received("gain")]
    assert gains == ([] if gain is None else [gain])


def test_sidewinder_has_its_spring_back_when_the_kernel_takes_it_again():
    host = Host("sidewinder-ff2")
    spring = host.stick.firmware.machine.pool.blocks[1]
    assert spring.kind == SPRING
    assert not spring.playing
    usb.util.release_interface(host.device, host.number)
    host.device.attach_kernel_driver(host.number)
    assert host.stick.firmware.machine.pool.blocks[1].playing


def test_start_solo_stops_the_others():
    host = Host("openffboard")
    first, second = host.constant(270.0, 0.5), host.constant(0.0, 0.5)
    host.play(second, 2)
    effects = host.stick.firmware.machine.pool.blocks
    assert [effects[block].playing for block in (first, second)] == [False, True]
    host.play(second, STOP)
    assert not effects[second].playing


def test_package_is_cheap_to_import():
    code = (
        "import sys, devices.emulators.pid; sys.exit(any(m in sys.modules for m in ('numba', 'usb', 'libusb_package')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
