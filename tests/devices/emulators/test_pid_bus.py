"""USB bus of the emulated sticks: enumeration, claims, frames, faults, reports and the effect pool."""

import contextlib
import errno
import math

import numpy as np
import pytest
import usb.core
import usb.util
from hidtools.hid import ReportDescriptor
from hypothesis import given
from hypothesis import strategies as st

from devices.emulators.pid import profiles
from devices.emulators.pid.stick import EmulatedStick, emulated_stick
from devices.emulators.usb_bus import FreeTime
from devices.emulators.wire_faults import STICK_FAULTS, parse_wire_fault
from haptics.errors import ConfigurationError
from tests.devices.emulators.pid_host import NO_HAND, PROFILES, SPRING, Host, push

every_profile = pytest.mark.parametrize("profile", PROFILES)
MOVED = push(0.5, 0.4)


@contextlib.contextmanager
def fails(number):
    """Expect a pyusb error with an errno."""
    with pytest.raises(usb.core.USBError) as caught:
        yield
    assert caught.value.errno == number
    assert isinstance(caught.value, usb.core.USBTimeoutError) == (number == errno.ETIMEDOUT)


def found(profile, **options):
    backend = emulated_stick(profile, hand=NO_HAND, period=0.0, **options)
    return usb.core.find(backend=backend), backend.units[0]


# --- enumeration


@every_profile
def test_stick_reports_its_identity(profile):
    device, stick = found(profile, serial="S/N 42")
    truths = stick.truths["device"]
    assert (device.idVendor, device.idProduct) == (truths["vendor_id"], truths["product_id"])
    assert usb.util.get_string(device, device.iProduct) == truths["name"]
    assert device.manufacturer
    assert device.serial_number == truths["serial"] == "S/N 42"
    assert (device.bus, device.port_numbers) == (1, (1,))
    assert found("sidewinder-ff2")[0].serial_number is None


@every_profile
def test_report_descriptor_has_the_announced_length(profile):
    host = Host(profile)
    kind, length = host.interface.extra_descriptors[6], host.interface.extra_descriptors[7:9]
    announced = int.from_bytes(bytes(length), "little")
    assert kind == 0x22
    data = host.device.ctrl_transfer(0x81, 6, 0x2200, host.number, 4096)
    assert len(data) == announced
    assert bytes(data) == host.stick.profile.report_descriptor
    assert len(host.device.ctrl_transfer(0x81, 6, 0x2200, host.number, 100)) == 100


def test_unknown_request_stalls():
    host = Host("openffboard")
    with fails(errno.EPIPE):
        host.device.ctrl_transfer(0xC0, 99, 0, 0, 8)
    with fails(errno.EPIPE):
        host.device.ctrl_transfer(0xA1, 1, 0x0399, host.number, 8)


# --- ownership of the interface


@every_profile
def test_interface_belongs_to_the_kernel_until_detached(profile):
    device, stick = found(profile)
    number = stick.profile.interface
    assert device.is_kernel_driver_active(number)
    with fails(errno.EBUSY):
        usb.util.claim_interface(device, number)
    with fails(errno.EBUSY):
        device.ctrl_transfer(0x81, 6, 0x2200, number, 8)
    device.detach_kernel_driver(number)
    with fails(errno.ENOENT):
        device.detach_kernel_driver(number)
    usb.util.claim_interface(device, number)
    with fails(errno.EBUSY):
        device.attach_kernel_driver(number)
    usb.util.release_interface(device, number)
    device.attach_kernel_driver(number)
    assert device.is_kernel_driver_active(number)


def test_configuration_is_busy_while_an_interface_is_claimed():
    device, stick = found("openffboard")
    with fails(errno.EBUSY):
        device.set_configuration()
    for number in range(3):
        device.detach_kernel_driver(number)
    device.set_configuration()
    assert stick.plugged


# --- frames


@pytest.mark.parametrize(("profile", "interval"), [("openffboard", 1), ("sidewinder-ff2", 4), ("arduino", 1)])
def test_write_waits_for_its_frame(profile, interval):
    host = Host(profile)
    begin = host.stick.firmware.frame
    for _ in range(50):
        host.out(13, 0xFF)
    host.stick.received("gain")
    assert 50 * interval - interval < host.stick.firmware.frame - begin <= 50 * interval + interval


@every_profile
def test_reads_and_writes_use_separate_frames(profile):
    host = Host(profile, hand=MOVED)
    host.read()
    begin = host.stick.firmware.frame
    for _ in range(20):
        host.read()
        host.out(13, 0xFF)
    host.stick.received("gain")
    passed = host.stick.firmware.frame - begin
    assert passed >= 20 * (4 if profile == "sidewinder-ff2" else 2) - 1


def test_long_report_is_sent_in_packets():
    host = Host("sidewinder-ff2")
    begin = host.stick.firmware.frame
    host.output.write(bytes([13, 0x80]).ljust(40, b"\x0d"))
    host.stick.wait(0.0)
    assert [fields["gain"] for fields in host.stick.received("gain")] == [0xFF, 0x80, 0x0D, 0x0D]
    assert host.stick.firmware.frame - begin >= 2 * 4


# --- input reports


def test_resting_stick_sends_only_keep_alive_reports():
    for profile, repeats in (("openffboard", True), ("sidewinder-ff2", False)):
        host = Host(profile)
        host.counts()
        host.stick.wait(0.2)
        for _ in range(3):
            host.counts()
        if repeats:
            assert host.read(timeout=110)[0] == 1
        else:
            with fails(errno.ETIMEDOUT):
                host.read(timeout=300)


def test_report_waits_in_the_device():
    host = Host("openffboard", hand=MOVED)
    host.counts()
    host.stick.wait(0.2)
    old, new = host.counts(), host.counts()
    assert abs(new[0] - old[0]) > 1000


def test_state_reports_use_the_input_endpoint():
    host = Host("sidewinder-ff2")
    block = host.constant(270.0, 0.1, duration=20)
    states = {report[2] for report in (host.read() for _ in range(60)) if report[0] == 2}
    assert states >= {block << 1 | 1, block << 1}  # playing, then stopped


# --- faults


@pytest.mark.parametrize("reading", [True, False])
def test_silent_stick_is_a_timeout(reading):
    host = Host("openffboard", hand=MOVED)
    host.stick.faults.set("nak")
    begin = host.stick.now
    with fails(errno.ETIMEDOUT):
        host.read(timeout=30) if reading else host.output.write(b"\x0d\x00", 30)
    assert host.stick.now - begin == pytest.approx(0.03, abs=2e-3)
    with fails(errno.ETIMEDOUT):
        host.device.ctrl_transfer(0xA1, 1, 0x0313, host.number, 5, 20)
    host.stick.faults.clear()
    host.read()
    host.out(13, 0x11)
    assert [fields["gain"] for fields in host.stick.received("gain")] == [0xFF, 0x11]


def test_halted_endpoint_needs_a_clear():
    host = Host("openffboard", hand=MOVED)
    host.stick.faults.set("stall")
    with fails(errno.EPIPE):
        host.read()
    host.stick.faults.clear()
    with fails(errno.EPIPE):
        host.read()
    host.out(13, 0x33)  # the other endpoint is not halted
    host.device.clear_halt(host.input.bEndpointAddress)
    assert host.read()[0] == 1


@pytest.mark.parametrize(
    ("fault", "reading", "writing"),
    [("read-error", errno.EIO, None), ("write-error", None, errno.EIO), ("dropout", errno.ETIMEDOUT, None)],
)
def test_some_faults_affect_one_direction(fault, reading, writing):
    host = Host("openffboard", hand=MOVED)
    host.stick.faults.set(fault)
    for number, action in ((reading, lambda: host.read(timeout=20)), (writing, lambda: host.out(13, 0x22))):
        with fails(number) if number else contextlib.nullcontext():
            action()
    assert (host.stick.received("gain")[-1] == {"gain": 0x22}) == (writing is None)


@pytest.mark.parametrize("delay", [1, 5, 20])
def test_delay_fault_extends_every_transfer(delay):
    host = Host("openffboard", hand=MOVED)
    host.stick.faults.set(f"delay-{delay}ms")
    for action in (host.read, lambda: host.out(13, 1), host.block_load):
        begin = host.stick.now
        action()
        assert delay * 1e-3 <= host.stick.now - begin <= (delay + 2) * 1e-3


@pytest.mark.parametrize(("profile", "forgets"), [("openffboard", True), ("sidewinder-ff2", False), ("arduino", False)])
def test_suspend_resets_some_firmware(profile, forgets):
    host = Host(profile)
    host.constant(270.0, 0.5)
    host.stick.suspend()
    host.settle()
    assert host.stick.force.any() != forgets


@every_profile
def test_port_reset_deletes_the_effects(profile):
    host = Host(profile)
    block = host.constant(270.0, 0.5)
    host.device.reset()
    host.play(block)
    assert block not in host.stick.firmware.machine.blocks


# --- names of faults and profiles


def test_every_fault_is_parsed():
    for name in STICK_FAULTS:
        fault = parse_wire_fault(f"{name}@1.5+0.25", STICK_FAULTS)
        assert [fault.covers(now) for now in (1.4, 1.5, 1.7, 1.8)] == [False, True, True, False]
        assert parse_wire_fault(f"{name}@2", STICK_FAULTS).covers(math.nextafter(math.inf, 0.0))


def test_invalid_names_are_rejected():
    with pytest.raises(ConfigurationError, match="sidewinder-ff2"):
        emulated_stick("sidewinder")
    with pytest.raises(ConfigurationError, match="period"):
        emulated_stick("arduino", period=2e-3)
    with pytest.raises(ConfigurationError, match="nak"):
        Host("arduino", start=False).stick.faults.set("nack")


# --- reports ----------------------------------------------------------------------------------------------------------


SUCCESS, FULL, ERROR = 1, 2, 3


@every_profile
def test_report_lengths_match_the_descriptor(profile):
    """The layouts are tables, the descriptor is a file: an independent parser compares them."""
    stick = profiles.PROFILES[profile]
    parsed = ReportDescriptor.from_bytes(stick.report_descriptor)
    outputs = {number: report.size for number, report in parsed.output_reports.items()}
    assert {number: 1 + layout.form.size for number, layout in stick.outputs.items()} == outputs
    inputs = {number: report.size for number, report in parsed.input_reports.items()}
    assert inputs[1] == len(stick.input(0, 0, 0))
    assert inputs[2] == len(stick.state(0, False, 0))
    features = {number: report.size for number, report in parsed.feature_reports.items()}
    assert features == {stick.create: 4, stick.load: 5, stick.pool: 5}


@every_profile
@given(data=st.data())
def test_axes_and_buttons_match_the_descriptor(profile, data):
    stick = profiles.PROFILES[profile]
    limit = stick.handle.limit
    x, y = (data.draw(st.integers(-limit, limit)) for _ in range(2))
    buttons = data.draw(st.integers(0, 255))
    report = ReportDescriptor.from_bytes(stick.report_descriptor).input_reports[1]
    sent = list(stick.input(x, y, buttons))
    values = {field.usage: field.get_values(sent)[0] for field in report.fields if field.usage}
    assert (values[0x10030], values[0x10031]) == (x, y)
    assert [values[0x90001 + k] for k in range(8)] == [buttons >> k & 1 for k in range(8)]


# --- pool of effects


@every_profile
def test_effects_get_blocks_until_the_pool_is_full(profile):
    host = Host(profile)
    capacity = {"openffboard": 40, "sidewinder-ff2": 15, "arduino": 13}[profile]  # one of 16 is the centring spring
    blocks = [host.create() for _ in range(capacity)]
    assert len(set(blocks)) == capacity
    assert 0 not in blocks
    host.request_block(1)
    # An OpenFFBoard reports an old block when the pool is full; only the status is valid.
    assert host.block_load() == ((blocks[-1], FULL) if profile == "openffboard" else (0, FULL))
    host.out(11, blocks[2])
    assert host.create() == blocks[2]
    number = host.family.pool
    pool = host.device.ctrl_transfer(0xA1, 1, 0x300 | number, host.number, 5)
    assert pool[0] == number
    assert pool[3] == capacity + (profile != "openffboard")
    assert pool[4] & 1
    if profile == "arduino":  # it reports a block once
        assert host.block_load() == (0, SUCCESS)


@every_profile
@pytest.mark.parametrize("kind", [0, 13, 255])
def test_unknown_effect_type_is_an_error(profile, kind):
    host = Host(profile)
    host.request_block(kind)
    assert host.block_load()[1] == ERROR


@every_profile
def test_reset_frees_all_blocks(profile):
    host = Host(profile)
    first = [host.create() for _ in range(3)]
    host.control(4)
    assert [host.create() for _ in range(3)] == first


@every_profile
@given(data=st.binary(min_size=1, max_size=64))
def test_firmware_survives_arbitrary_bytes(profile, data):
    firmware = EmulatedStick(profile, hand=NO_HAND, time=FreeTime()).firmware
    firmware.out(firmware.profile.out_endpoint, data)
    for number in range(1, 4):
        firmware.control(0x21, 9, 0x300 | firmware.profile.create, firmware.profile.interface, bytes([0, number]))
        firmware.out(firmware.profile.out_endpoint, bytes([data[0], number]) + data)
        firmware.out(firmware.profile.out_endpoint, bytes([10, number, 1, 1]))
    for _ in range(5):
        firmware.step()
    assert np.all(np.isfinite(firmware.level))


@every_profile
def test_report_for_an_unused_block_is_ignored(profile):
    host = Host(profile)
    host.set_effect(9, 1, 270.0)
    host.magnitude(9, 1.0)
    host.play(9)
    host.settle()
    assert not host.stick.force.any()
    assert host.stick.received("constant") == [{"block": 9, "magnitude": host.family.full}]


# --- differences between the families


def test_openffboard_device_control_is_a_bit_field():
    host = Host("openffboard")
    host.constant(270.0, 0.5)
    for bits, pushes in ((3, False), (1, True)):  # bits 0 and 1: enable, disable; as a number, 3 would stop all effects
        host.out(12, bits)
        host.settle()
        assert host.stick.force.any() == pushes


@pytest.mark.parametrize(("profile", "gain"), [("openffboard", None), ("sidewinder-ff2", 0x55), ("arduino", None)])
def test_output_reports_on_the_control_pipe_depend_on_the_firmware(profile, gain):
    host = Host(profile, start=False)
    host.device.ctrl_transfer(0x21, 9, 0x020D, host.number, b"\x0d\x55")
    gains = [fields["gain"] for fields in host.stick.received("gain")]
    assert gains == ([] if gain is None else [gain])


def test_sidewinder_spring_returns_with_the_kernel_driver():
    host = Host("sidewinder-ff2")
    spring = host.stick.firmware.machine.blocks[1]
    assert spring.kind == SPRING
    assert not spring.playing
    usb.util.release_interface(host.device, host.number)
    host.device.attach_kernel_driver(host.number)
    assert host.stick.firmware.machine.blocks[1].playing
