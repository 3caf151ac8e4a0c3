"""The bus of the emulated sticks: enumeration, who may have the interface, frames, and what goes wrong on the way."""

import errno
import math
import threading

import pytest
import usb.core
import usb.util

from devices.emulators.pid import emulated_stick
from devices.emulators.pid.faults import WIRE_FAULTS, parse_wire_fault
from devices.emulators.pid.stick import EmulatedStick
from devices.emulators.pid.usb_backend import EmulatedUsbBackend
from devices.emulators.times import FreeTime, WallTime
from haptics.errors import ConfigurationError
from tests.devices.emulators.pid_host import NO_HAND, PROFILES, START, Host, push

every_profile = pytest.mark.parametrize("profile", PROFILES)
MOVED = push(0.5, 0.4)


class Fails:
    """Expects an error of pyusb with a number of the system's."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> bool:
        assert isinstance(error, usb.core.USBError), f"expected {errno.errorcode[self.number]}, got {error!r}"
        assert error.errno == self.number
        assert isinstance(error, usb.core.USBTimeoutError) == (self.number == errno.ETIMEDOUT)
        return True


def found(profile, **options):
    backend = emulated_stick(profile, hand=NO_HAND, period=0.0, **options)
    return usb.core.find(backend=backend), backend.sticks[0]


# --- enumeration


@every_profile
def test_stick_says_who_it_is(profile):
    device, stick = found(profile, serial="S/N 42")
    truths = stick.truths["device"]
    assert (device.idVendor, device.idProduct) == (truths["vendor_id"], truths["product_id"])
    assert usb.util.get_string(device, device.iProduct) == truths["name"]
    assert device.manufacturer
    assert device.serial_number == truths["serial"] == "S/N 42"
    assert (device.bus, device.port_numbers) == (1, (1,))


def test_sidewinder_has_no_serial_number_of_its_own():
    device, _ = found("sidewinder-ff2")
    assert device.serial_number is None


@every_profile
def test_report_descriptor_has_the_length_that_is_announced(profile):
    host = Host(profile)
    kind, length = host.interface.extra_descriptors[6], host.interface.extra_descriptors[7:9]
    announced = int.from_bytes(bytes(length), "little")
    assert kind == 0x22
    data = host.device.ctrl_transfer(0x81, 6, 0x2200, host.number, 4096)
    assert len(data) == announced
    assert bytes(data) == host.stick.profile.report_descriptor
    assert len(host.device.ctrl_transfer(0x81, 6, 0x2200, host.number, 100)) == 100


def test_descriptors_are_of_the_known_length():
    lengths = [len(Host(profile, start=False).stick.profile.report_descriptor) for profile in PROFILES]
    assert lengths == [1215, 1343, 1283]


@every_profile
def test_configuration_read_over_the_wire_is_the_one_that_was_parsed(profile):
    device, _ = found(profile)
    data = device.ctrl_transfer(0x80, 6, 0x0200, 0, 1024)
    (configuration,) = device
    assert len(data) == configuration.wTotalLength
    assert [interface.bInterfaceNumber for interface in configuration] == list(range(configuration.bNumInterfaces))
    ends = [end.bEndpointAddress for interface in configuration for end in interface]
    assert len(set(ends)) == len(ends) == sum(interface.bNumEndpoints for interface in configuration)


def test_unknown_request_is_refused():
    host = Host("openffboard")
    with Fails(errno.EPIPE):
        host.device.ctrl_transfer(0xC0, 99, 0, 0, 8)
    with Fails(errno.EPIPE):
        host.device.ctrl_transfer(0xA1, 1, 0x0399, host.number, 8)


def test_two_sticks_are_told_apart_by_their_serial_numbers():
    time = FreeTime()
    sticks = [EmulatedStick("openffboard", hand=NO_HAND, serial=serial, time=time) for serial in ("A", "B")]
    backend = EmulatedUsbBackend(*sticks)
    devices = list(usb.core.find(find_all=True, backend=backend))
    assert [device.serial_number for device in devices] == ["A", "B"]
    assert devices[0].address != devices[1].address
    (one,) = usb.core.find(find_all=True, backend=backend, serial_number="B")
    one.detach_kernel_driver(2)
    usb.util.claim_interface(one, 2)
    one.write(0x02, b"\x0d\x40")
    assert [len(stick.received("gain")) for stick in sticks] == [0, 1]


# --- who may have the interface


@every_profile
def test_interface_is_the_kernels_until_it_is_detached_and_can_be_given_back(profile):
    device, stick = found(profile)
    number = stick.profile.interface
    assert device.is_kernel_driver_active(number)
    with Fails(errno.EBUSY):
        usb.util.claim_interface(device, number)
    with Fails(errno.EBUSY):
        device.ctrl_transfer(0x81, 6, 0x2200, number, 8)
    device.detach_kernel_driver(number)
    with Fails(errno.ENOENT):
        device.detach_kernel_driver(number)
    usb.util.claim_interface(device, number)
    with Fails(errno.EBUSY):
        device.attach_kernel_driver(number)
    usb.util.release_interface(device, number)
    device.attach_kernel_driver(number)
    assert device.is_kernel_driver_active(number)


def test_interface_of_another_program_is_busy_until_that_lets_go():
    host = Host("openffboard")
    other = usb.core.find(backend=host.backend)
    with Fails(errno.EBUSY):
        usb.util.claim_interface(other, host.number)
    usb.util.dispose_resources(host.device)
    usb.util.claim_interface(other, host.number)
    assert not other.is_kernel_driver_active(host.number)  # closing alone brings nobody back


def test_configuration_cannot_be_chosen_while_somebody_has_the_interface():
    device, stick = found("openffboard")
    with Fails(errno.EBUSY):
        device.set_configuration()
    for number in range(3):
        device.detach_kernel_driver(number)
    device.set_configuration()
    assert stick.plugged


def test_backend_wants_a_claim_before_a_transfer():
    host = Host("openffboard", start=False)
    usb.util.release_interface(host.device, host.number)
    handle = host.backend.open_device(next(host.backend.enumerate_devices()))
    with Fails(errno.EINVAL):
        host.backend.intr_write(handle, 0x02, host.number, b"\x0d\xff", 10)


def test_stick_may_be_forbidden_or_held_by_another_program():
    device, stick = found("openffboard", faults=["no-permission@0"])
    with Fails(errno.EACCES):
        device.is_kernel_driver_active(2)
    device, stick = found("openffboard")
    device.detach_kernel_driver(2)
    stick.faults.set("busy")
    with Fails(errno.EBUSY):
        usb.util.claim_interface(device, 2)
    stick.faults.clear("busy")
    usb.util.claim_interface(device, 2)


# --- frames


@pytest.mark.parametrize(("profile", "interval"), [("openffboard", 1), ("sidewinder-ff2", 4), ("arduino", 1)])
def test_every_write_waits_for_its_frame(profile, interval):
    host = Host(profile)
    begin = host.stick.firmware.frame
    for _ in range(50):
        host.out(13, 0xFF)
    host.stick.received("gain")
    assert 50 * interval - interval < host.stick.firmware.frame - begin <= 50 * interval + interval


@every_profile
def test_reading_and_writing_have_frames_of_their_own(profile):
    """What a single thread does one after the other takes two frames where the intervals are one."""
    host = Host(profile, hand=MOVED)
    host.read()
    begin = host.stick.firmware.frame
    for _ in range(20):
        host.read()
        host.out(13, 0xFF)
    host.stick.received("gain")
    passed = host.stick.firmware.frame - begin
    assert passed >= 20 * (4 if profile == "sidewinder-ff2" else 2) - 1


def test_long_report_goes_in_packets_each_in_its_frame():
    host = Host("sidewinder-ff2")
    begin = host.stick.firmware.frame
    host.output.write(bytes([13, 0x80]).ljust(40, b"\x0d"))
    host.stick.wait(0.0)
    assert [fields["gain"] for fields in host.stick.received("gain")] == [0xFF, 0x80, 0x0D, 0x0D]
    assert host.stick.firmware.frame - begin >= 2 * 4


def test_two_threads_read_and_write_at_once():
    host = Host("openffboard", hand=MOVED, time=WallTime())
    reports, writes = [], range(100)

    def read():
        while len(reports) < 100:
            reports.append(host.read())

    def write():
        for number in writes:
            host.out(13, number)

    threads = [threading.Thread(target=action) for action in (read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    assert [fields["gain"] for fields in host.stick.received("gain")][1:] == list(writes)
    places = [int.from_bytes(report[9:11], "little", signed=True) for report in reports if report[0] == 1]
    assert places == sorted(places)


# --- reports when there is something to say


def test_stick_at_rest_is_silent_but_for_its_sign_of_life():
    for profile, repeats in (("openffboard", True), ("sidewinder-ff2", False)):
        host = Host(profile)
        host.counts()
        host.stick.wait(0.2)
        for _ in range(3):
            host.counts()
        if repeats:
            assert host.read(timeout=110)[0] == 1
        else:
            with Fails(errno.ETIMEDOUT):
                host.read(timeout=300)


def test_idle_rate_of_the_host_is_obeyed():
    host = Host("sidewinder-ff2")
    for _ in range(3):
        host.counts()
    host.device.ctrl_transfer(0x21, 0x0A, 5 << 8, host.number)  # every 20 ms
    for _ in range(3):
        assert host.read(timeout=21)[0] == 1


def test_report_waits_in_the_device_until_it_is_fetched():
    host = Host("openffboard", hand=MOVED)
    host.counts()
    host.stick.wait(0.2)
    old, new = host.counts(), host.counts()
    assert abs(new[0] - old[0]) > 1000


def test_state_reports_come_on_the_same_endpoint():
    host = Host("sidewinder-ff2")
    block = host.constant(270.0, 0.1, duration=20)
    states = {report[2] for report in (host.read() for _ in range(60)) if report[0] == 2}
    assert states >= {block << 1 | 1, block << 1}  # it played, and then it did not


# --- what goes wrong


@pytest.mark.parametrize("reading", [True, False])
def test_silent_stick_is_a_timeout(reading):
    host = Host("openffboard", hand=MOVED)
    host.stick.faults.set("nak")
    begin = host.stick.now
    with Fails(errno.ETIMEDOUT):
        host.read(timeout=30) if reading else host.output.write(b"\x0d\x00", 30)
    assert host.stick.now - begin == pytest.approx(0.03, abs=2e-3)
    host.stick.faults.clear()
    host.read()
    host.out(13, 0x11)
    assert [fields["gain"] for fields in host.stick.received("gain")] == [0xFF, 0x11]


def test_request_to_a_silent_stick_is_a_timeout():
    host = Host("openffboard")
    host.stick.faults.set("nak")
    with Fails(errno.ETIMEDOUT):
        host.device.ctrl_transfer(0xA1, 1, 0x0313, host.number, 5, 20)


def test_dropout_leaves_the_way_out_open():
    host = Host("openffboard", hand=MOVED)
    host.stick.faults.set("dropout")
    with Fails(errno.ETIMEDOUT):
        host.read(timeout=20)
    host.out(13, 0x22)
    assert host.stick.received("gain")[-1] == {"gain": 0x22}


def test_halted_endpoint_stays_halted_until_it_is_cleared():
    host = Host("openffboard", hand=MOVED)
    host.stick.faults.set("stall")
    with Fails(errno.EPIPE):
        host.read()
    host.stick.faults.clear()
    with Fails(errno.EPIPE):
        host.read()
    host.out(13, 0x33)  # the other direction is not
    host.device.clear_halt(host.input.bEndpointAddress)
    assert host.read()[0] == 1


@pytest.mark.parametrize(("fault", "reads", "writes"), [("read-error", False, True), ("write-error", True, False)])
def test_error_of_one_direction_leaves_the_other(fault, reads, writes):
    host = Host("openffboard", hand=MOVED)
    host.stick.faults.set(fault)
    for works, action in ((reads, host.read), (writes, lambda: host.out(13, 0))):
        if works:
            action()
        else:
            with Fails(errno.EIO):
                action()


@every_profile
def test_short_report_is_half_a_report(profile):
    host = Host(profile, hand=MOVED)
    host.read()
    whole = len(host.read())
    host.stick.faults.set("short")
    assert len(host.read()) == whole // 2


def test_report_that_does_not_fit_is_an_overflow():
    host = Host("openffboard", hand=MOVED)
    with Fails(errno.EOVERFLOW):
        host.input.read(8)


@pytest.mark.parametrize("delay", [1, 5, 20])
def test_delay_makes_every_transfer_longer(delay):
    host = Host("openffboard", hand=MOVED)
    host.stick.faults.set(f"delay-{delay}ms")
    for action in (host.read, lambda: host.out(13, 1), host.block_load):
        begin = host.stick.now
        action()
        assert delay * 1e-3 <= host.stick.now - begin <= (delay + 2) * 1e-3


def test_unplugged_stick_is_gone_and_comes_back_as_another_device():
    host = Host("openffboard", hand=MOVED, faults=["unplug@0.5+1"])
    block = host.constant(270.0, 0.5)
    old = host.device
    address = old.address
    with Fails(errno.ENODEV):
        while True:
            host.read()
    assert host.stick.now == pytest.approx(0.5, abs=2e-3)
    with Fails(errno.ENODEV):
        host.out(13, 0)
    with Fails(errno.ENODEV):
        usb.util.claim_interface(old, 0)
    assert usb.core.find(backend=host.backend) is None
    host.stick.wait(1.1)
    with Fails(errno.ENODEV):
        host.read()
    usb.util.dispose_resources(old)  # the old one can still be let go
    host.open()
    assert host.device.address != address
    assert host.read()[0] == 1
    host.play(block, START)  # nothing is left of the effects
    host.settle()
    assert not host.stick.force.any()


def test_stick_may_come_back_under_its_old_address():
    host = Host("openffboard", start=False)
    address = host.stick.address
    host.stick.unplug()
    host.stick.plug(address)
    assert usb.core.find(backend=host.backend).address == address
    with Fails(errno.ENODEV):
        host.out(13, 0)


def test_unplugging_ends_a_read_that_waits():
    host = Host("openffboard", time=WallTime(), start=False)
    host.counts()
    ended = []

    def read():
        with Fails(errno.ENODEV):
            while True:
                host.read(timeout=0)
        ended.append(True)

    thread = threading.Thread(target=read)
    thread.start()
    host.stick.unplug()
    thread.join(10.0)
    assert ended


@pytest.mark.parametrize(("profile", "forgets"), [("openffboard", True), ("sidewinder-ff2", False), ("arduino", False)])
def test_sleep_of_the_bus_is_a_reset_to_some(profile, forgets):
    host = Host(profile)
    host.constant(270.0, 0.5)
    host.stick.suspend()
    host.settle()
    assert host.stick.force.any() != forgets


@every_profile
def test_reset_of_the_port_forgets_the_effects(profile):
    host = Host(profile)
    block = host.constant(270.0, 0.5)
    host.device.reset()
    host.play(block)
    assert block not in host.stick.firmware.machine.pool.blocks


# --- words


def test_every_fault_can_be_asked_for_by_name_and_time():
    for name in WIRE_FAULTS:
        fault = parse_wire_fault(f"{name}@1.5+0.25")
        assert [fault.covers(now) for now in (1.4, 1.5, 1.7, 1.8)] == [False, True, True, False]
        assert parse_wire_fault(f"{name}@2").covers(math.nextafter(math.inf, 0.0))


@pytest.mark.parametrize("text", ["", "stall", "stall@", "stall@x", "stall@-1", "stall@nan", "stall@1+0", "tsall@1"])
def test_wrong_fault_is_told_with_what_is_allowed(text):
    with pytest.raises(ConfigurationError, match="stall"):
        parse_wire_fault(text)


def test_wrong_words_are_told():
    with pytest.raises(ConfigurationError, match="sidewinder-ff2"):
        emulated_stick("sidewinder")
    with pytest.raises(ConfigurationError, match="period"):
        emulated_stick("arduino", period=2e-3)
    with pytest.raises(ConfigurationError, match="nak"):
        Host("arduino", start=False).stick.faults.set("nack")
