"""The joystick driver on an emulated stick in this process: forces, faults of the bus, opening, real time."""

import dataclasses
import errno
import os
import re
import sys
import time
from typing import ClassVar

import libusb_package
import numpy as np
import pytest
import usb.backend.libusb1
import usb.core

import devices
from devices.common import bus
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.profiles import PROFILES
from devices.emulators.pid.stick import emulated_stick
from devices.emulators.usb_bus import fail
from devices.emulators.wire_faults import STICK_FAULTS, WireFaults
from devices.joystick.device import PidJoystick
from devices.joystick.parameters import build_parameters, write_parameters
from devices.joystick.streaming import SETTLED
from devices.joystick.usb import finding, hidraw, libusb
from devices.joystick.usb.finding import connect, hidraw_sticks, usb_sticks
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.contract import DeviceContract
from tests.devices.joystick.doubles import STICKS, STILL, FakeTransport, make
from tests.processes import until
from tests.system.devices.test_joystick_transport import plug

# The stick is emulated in real time by threads of this process.
pytestmark = [pytest.mark.wall_clock, pytest.mark.usefixtures("compiled_stick")]

MOUSE = bytes.fromhex(
    "05010902a1010901a100050919012903150025019503750181029501750581030501093009311581257f750895028106c0c0"
)


def command(device, force, seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        device.read()
        device.write(np.array(force))
        time.sleep(1e-3)


def fault_of(device, force=0.5, seconds=2.0):
    """Use the device until it fails; return the message, or an empty text after `seconds`."""
    try:
        command(device, (force, 0.0), seconds)
    except DeviceFault as fault:
        return str(fault)
    return ""


def released(stick):
    return not stick.owners and stick.profile.interface in stick.drivers and not stick.force.any()


class TestEmulatedJoystick(DeviceContract):
    name = "pid-joystick"
    settings: ClassVar = {"emulated": True, "hand": STILL}


class TestEmulatedSidewinder(DeviceContract):
    name = "pid-joystick"
    settings: ClassVar = {"emulated": True, "emulator": "sidewinder-ff2", "hand": STILL}


# --- forces and data sheet -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", STICKS)
@pytest.mark.parametrize("direction", [(0.0, 1.0), (-0.6, -0.8)])
def test_force_at_the_handle_has_size_and_direction(profile, direction):
    device, stick = make(profile=profile)
    with device:
        wanted = 0.5 * device.spec.max_force * np.array(direction)
        command(device, wanted, 0.1)
        count = device.spec.max_force / 255.0
        np.testing.assert_allclose(stick.force, wanted, atol=0.01 * np.hypot(*wanted) + count)


def test_force_beyond_the_maximum_keeps_its_direction(opened):
    device, stick = opened
    command(device, (300.0, -400.0), 0.05)
    np.testing.assert_allclose(stick.force, device.spec.max_force * np.array((0.6, -0.8)), rtol=0.01)


def test_position_is_that_of_the_handle(opened):
    device, stick = opened
    time.sleep(0.02)
    np.testing.assert_allclose(device.read().position, stick.handle, atol=2.0 * device.spec.position_resolution)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"emulator": "wheel"}, r"device\.emulator = 'wheel'"),
        ({"transport": "bluetooth"}, r"device\.transport = 'bluetooth': must be one of auto, usb, hidraw"),
        ({"keep_alive": 0.12}, r"device\.keep_alive = 0\.12 s: must be at most half"),
        ({"force_duration": 0.3}, r"device\.force_duration = 0\.3: must be .* at most 0\.25 s"),
        ({"emulated": True, "transport": "hidraw"}, r"device\.transport = 'hidraw'"),
        ({"parameters": "/nowhere.toml"}, r"device\.parameters = '/nowhere\.toml': cannot be read"),
        ({"emulated": True, "wire_faults": "unplug@1"}, r"device\.wire_faults = 'unplug@1': must be a list of texts"),
        ({"emulated": True, "wire_faults": [1.0]}, r"device\.wire_faults = \[1\.0\]: must be a list of texts"),
    ],
)
def test_wrong_setting_is_named(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("pid-joystick", settings)


def test_simulated_hand_belongs_to_virtual_and_emulated_devices():
    assert devices.has_simulated_hand("virtual-arm")
    assert devices.has_simulated_hand("pid-joystick", {"emulated": True})
    assert not devices.has_simulated_hand("pid-joystick", {"emulated": False})
    assert not devices.has_simulated_hand("pid-joystick")


def test_data_sheet_includes_the_delay_of_bus_and_family():
    device, _ = make(profile="sidewinder-ff2")
    assert device.spec.delay == pytest.approx(9e-3)
    assert device.spec.watchdog == 0.2
    assert make(profile="openffboard")[0].spec.delay == pytest.approx(3e-3)
    adapter = dataclasses.replace(device.parameters.device, vendor_id=0x03EB, product_id=0x204E)
    device.parameters = dataclasses.replace(device.parameters, device=adapter)
    assert device.spec.delay == pytest.approx(1e-3 + 2.0 * (4e-3 + 2e-3)), "this family needs a pause"
    assert device.spec.max_force_rate == pytest.approx(2.0 * device.spec.max_force / 12e-3)


# --- faults of the bus -----------------------------------------------------------------------------------------------


BROKEN = r"failed \(Input/output error\): check cable and hub"


@pytest.mark.parametrize(
    ("fault", "words"),
    [("read-error", f"an input report {BROKEN}"), ("write-error", f"an output report {BROKEN}"), ("nak", "in time")],
)
def test_failed_transfer_is_a_fault_and_the_interface_is_released(fault, words):
    device, stick = make()
    device.open()
    stick.faults = WireFaults(STICK_FAULTS, [f"{fault}@{stick.now}+5"])
    assert re.search(words, fault_of(device))
    device.close()
    assert not stick.owners
    assert stick.profile.interface in stick.drivers


def test_halted_pipe_is_cleared(opened):
    device, stick = opened
    device.read()
    with stick.lock:
        stick.halted.add(0x83)
    command(device, (0.0, 0.0), 0.05)
    assert not stick.halted


@pytest.mark.parametrize("late", ["delay-1ms", "delay-5ms", "delay-20ms"])
def test_slow_bus_delays_force_and_position_only(late):
    device, stick = make(f"{late}@0")
    with device:
        command(device, (1.0, -2.0), 0.2)
        np.testing.assert_allclose(stick.force, (1.0, -2.0), atol=0.03)
        device.write(np.zeros(2))
        # It is coming to rest at the wall; until then readings are behind by the delay of the bus and the machine.
        until(lambda: np.abs(device.read().position - stick.handle).max() < 0.02, "it is somewhere else", 5.0)
    assert not stick.force.any()


@pytest.mark.parametrize(("fault", "words"), [
    ("stale-block-load", "refused a constant effect"), ("full-pool", "no room for another effect"),
    ("busy", r"held by another program.*fuser -v /dev/bus/usb/"),
])  # fmt: skip
def test_failed_opening_releases_the_stick_which_can_be_opened_at_once(fault, words):
    device, stick = make(f"{fault}@0")
    with pytest.raises(DeviceOpenError, match=words):
        device.open()
    assert released(stick)
    stick.faults = WireFaults(STICK_FAULTS, [])
    device.open()
    device.close()


def test_interface_of_a_dead_program_can_be_claimed_and_is_returned():
    device, stick = make()
    stick.drivers.discard(stick.profile.interface)
    stick.owners[stick.profile.interface] = object()
    with pytest.raises(DeviceOpenError, match="held by another program"):
        device.open()
    stick.owners.clear()
    device.open()
    device.close()
    assert stick.profile.interface in stick.drivers


def test_interface_that_was_just_returned_is_claimed_again(monkeypatch):
    device, stick = make()
    claim, claims = device.backend.claim_interface, []

    def late(handle, number):
        claims.append(number)
        if len(claims) == 1:
            stick.bind(number)
        claim(handle, number)

    monkeypatch.setattr(device.backend, "claim_interface", late)
    with device:
        assert len(claims) == 2
        assert stick.profile.interface not in stick.drivers
    assert stick.profile.interface in stick.drivers


def test_stick_that_is_plugged_in_again_can_be_opened_again():
    pulled, away = 0.5, 0.3
    device = EmulatedPidJoystick({"emulated": True, "hand": STILL, "wire_faults": [f"unplug@{pulled}+{away}"]})
    device.open()
    stick = device.backend.units[0]
    assert "the stick was unplugged" in fault_of(device, 1.0, pulled + away)
    device.close()
    with pytest.raises(DeviceNotFoundError, match="no force-feedback stick is plugged in"):
        device.open()
    time.sleep(max(pulled + away - stick.now, 0.0) + 0.01)
    with device:
        command(device, (1.0, 0.0), 0.05)
        np.testing.assert_allclose(stick.force, (1.0, 0.0), atol=0.02)
    assert not stick.force.any()


# --- a stick that falls silent or switches its motors off ------------------------------------------------------------


@pytest.mark.parametrize("profile", ["sidewinder-ff2", "openffboard"])
def test_moving_handle_without_reports_is_a_fault(profile):
    backend = emulated_stick(profile, hand={"name": "minimum-jerk", "tremor": 0.0})
    (stick,) = backend.units
    with EmulatedPidJoystick({"emulated": True, "emulator": profile}, backend=backend) as device:
        assert fault_of(device, 0.5, 0.15) == ""
        stick.faults.set("dropout")
        begun = time.perf_counter()
        assert "has stopped reporting the position of its handle" in fault_of(device, 0.5, 2.0)
        assert time.perf_counter() - begun < 1.0
    assert not stick.force.any()


def test_stick_suspended_by_the_bus_has_lost_its_effects_and_is_a_fault():
    device, stick = make()
    with device:
        assert fault_of(device, 0.5, 2.0 * SETTLED) == ""
        stick.suspend()
        assert "has switched its motors off" in fault_of(device, 0.5, 2.0)


# --- claiming the interface ------------------------------------------------------------------------------------------


def test_configuration_is_set_only_where_there_is_none(monkeypatch):
    device, stick = make()
    with monkeypatch.context() as patch:
        patch.setattr(device.backend, "set_configuration", lambda *_: pytest.fail("that resets the stick"))
        with device:
            device.read()
    stick.drivers.clear()  # drivers bind to a configuration
    chosen, current = [], device.backend.get_configuration
    monkeypatch.setattr(device.backend, "get_configuration", lambda handle: current(handle) if chosen else 0)
    monkeypatch.setattr(device.backend, "set_configuration", lambda handle, value: chosen.append(value))
    with device:
        assert np.isfinite(device.read().position).all()
    assert chosen == [1]


@pytest.mark.parametrize(("step", "number", "words"), [
    ("set_configuration", errno.EBUSY, "held by another program"),
    ("detach_kernel_driver", errno.ENODEV, "was unplugged while it was being opened"),
    ("claim_interface", errno.ENODEV, "was unplugged while it was being opened"),
    ("claim_interface", errno.EIO, r"could not be opened \(Input/output error\): unplug it"),
])  # fmt: skip
def test_failed_step_of_opening_returns_the_interface_to_the_kernel(step, number, words, monkeypatch):
    device, stick = make()
    if step == "set_configuration":
        monkeypatch.setattr(device.backend, "get_configuration", lambda handle: 0)
    monkeypatch.setattr(device.backend, step, lambda *_: fail(number))
    with pytest.raises(DeviceOpenError, match=words):
        device.open()
    assert released(stick)


def test_systems_without_kernel_drivers_are_supported(monkeypatch):
    def missing(*_):
        raise NotImplementedError

    device, stick = make()
    stick.drivers.clear()
    for name in ("is_kernel_driver_active", "detach_kernel_driver", "attach_kernel_driver"):
        monkeypatch.setattr(device.backend, name, missing)
    with device:
        assert np.isfinite(device.read().position).all()
    assert not stick.owners


def test_stick_that_another_program_drives_by_hidraw_is_left_alone(tmp_path, monkeypatch):
    node = tmp_path / "hidraw0"
    node.touch()
    device, stick = make()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(libusb, "Guard", lambda *_: pytest.fail("no guardian may be started"))
    monkeypatch.setattr(hidraw, "node_of_interface", lambda *_: node)
    other = hidraw.open_locked(node)
    try:
        (found,) = usb.core.find(find_all=True, backend=device.backend)
        with pytest.raises(DeviceOpenError, match=rf"held by another program.*fuser -v {node}"):
            libusb.open_usb(found, real=True)
    finally:
        os.close(other)
    assert released(stick)


# --- libusb or hidraw ------------------------------------------------------------------------------------------------


def test_missing_permission_is_one_line_with_the_command_that_prints_the_udev_rule():
    device, _ = make("no-permission@0")
    words = "stick 1209:ffb0 is there, but may not be opened .*: haptics doctor udev prints"
    with pytest.raises(DeviceOpenError, match=words) as error:
        device.open()
    assert "\n" not in str(error.value)


def test_libusb_is_that_of_the_system_or_of_the_package(monkeypatch):
    def provide(own, packaged):
        monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda *_, **__: own)
        monkeypatch.setattr(libusb_package, "get_libusb1_backend", lambda *_, **__: packaged)

    own, packaged = object(), object()
    provide(own, packaged)
    assert bus.libusb_backend() is own
    provide(None, packaged)
    assert bus.libusb_backend() is packaged
    provide(None, None)
    with pytest.raises(DeviceOpenError, match=r"apt-get install libusb-1\.0-0.*pip install libusb-package"):
        bus.libusb_backend()
    monkeypatch.setattr(finding, "hidraw_sticks", lambda root=None: [])
    with pytest.raises(DeviceOpenError, match=r"no libusb .*device\.transport = 'hidraw' does without"):
        PidJoystick().open()


def by_hidraw(monkeypatch, root):
    """Show a stick to hidraw; return its transport."""
    plug(root)
    transport = FakeTransport("sidewinder-ff2")
    monkeypatch.setattr(finding.hidraw, "HidrawTransport", lambda node: transport)
    sticks = finding.hidraw_sticks
    monkeypatch.setattr(finding, "hidraw_sticks", lambda *_: sticks(root))
    return transport


LISTINGS = {
    "no libusb": DeviceOpenError("no libusb"),
    "no USB": usb.core.USBError("Input/output error", -1, errno.EIO),
    "unreadable bus": OSError(errno.EACCES, "Permission denied"),
    "no pyusb": ImportError("No module named 'usb'"),
}


@pytest.mark.parametrize("error", LISTINGS.values(), ids=LISTINGS)
def test_hidraw_lists_sticks_where_libusb_fails(error, tmp_path, monkeypatch):
    def broken():
        raise error

    monkeypatch.setattr(bus, "libusb_backend", broken)
    transport = by_hidraw(monkeypatch, tmp_path)
    assert connect("045e:001b", "42") is transport
    assert [stick.name for stick in hidraw_sticks(tmp_path)] == ["SideWinder"]
    with pytest.raises(DeviceOpenError):
        connect("045e:001b", "42", "usb")


def test_hidraw_is_used_without_permission_for_libusb(tmp_path, monkeypatch):
    backend = emulated_stick("sidewinder-ff2", hand=STILL, serial="42", faults=["no-permission@0"])
    monkeypatch.setattr(bus, "libusb_backend", lambda: backend)
    transport = by_hidraw(monkeypatch, tmp_path)
    assert connect("045e:001b", "42") is transport


def test_message_is_that_of_libusb_where_neither_transport_works(monkeypatch):
    backend = emulated_stick("openffboard", hand=STILL, faults=["no-permission@0"])
    monkeypatch.setattr(bus, "libusb_backend", lambda: backend)
    monkeypatch.setattr(finding, "hidraw_sticks", lambda *_: [])
    with pytest.raises(DeviceOpenError, match="may not be opened"):
        connect("1209:ffb0", "")
    with pytest.raises(DeviceNotFoundError, match="no force-feedback stick"):
        connect("1209:ffb0", "", "hidraw")


def test_bus_that_cannot_be_listed_is_reported(monkeypatch):
    backend = emulated_stick("openffboard", hand=STILL)
    monkeypatch.setattr(backend, "enumerate_devices", lambda *_: fail(errno.EIO))
    with pytest.raises(DeviceOpenError, match=r"USB devices cannot be listed .*doctor libusb"):
        usb_sticks(backend)


# --- unusual sticks --------------------------------------------------------------------------------------------------


def test_stick_without_an_output_pipe_gets_its_reports_by_requests(tmp_path, monkeypatch):
    monkeypatch.setitem(PROFILES, "piped", dataclasses.replace(PROFILES["sidewinder-ff2"], out_endpoint=0))
    backend = emulated_stick("piped", hand=STILL)
    (stick,) = backend.units
    path = tmp_path / "stick.toml"
    write_parameters(path, build_parameters(stick.truths))
    with PidJoystick({"parameters": str(path)}, backend=backend) as device:
        link = device._streaming._transport.link
        assert (link.out_endpoint, link.out_interval) == (False, 1e-3)
        assert device.spec.delay == pytest.approx(3e-3)
        command(device, (2.0, -1.0), 0.05)
        np.testing.assert_allclose(stick.force, (2.0, -1.0), atol=0.06)
    assert released(stick)
    assert len(stick.received("free")) == 2


def test_hid_device_without_forces_is_given_back(monkeypatch):
    backend = emulated_stick("openffboard", hand=STILL)
    monkeypatch.setattr(backend.units[0].firmware, "report_descriptor", MOUSE)
    (device,) = usb.core.find(find_all=True, backend=backend)
    with pytest.raises(DeviceOpenError, match="1209:ffb0 has no interface that plays forces"):
        libusb.open_usb(device, real=False)
    assert released(backend.units[0])


class Overlay:
    """An object with some attributes replaced."""

    def __init__(self, base, **changes):
        self._base = base
        self.__dict__.update(changes)

    def __getattr__(self, name):
        return getattr(self._base, name)

    def __iter__(self):
        return iter(self._base)


def test_interface_with_forces_is_chosen_from_two_of_the_class(monkeypatch):
    device, stick = make()
    tried = []
    candidate, describe = libusb.is_candidate, libusb.report_descriptor

    def interfaces():
        (own,) = filter(candidate, usb.core.Device.get_active_configuration(found))
        return [Overlay(own, bInterfaceNumber=1), own]

    def described(found, interface):
        tried.append(interface.bInterfaceNumber)
        return MOUSE if interface.bInterfaceNumber == 1 else describe(found, interface)

    monkeypatch.setattr(libusb, "report_descriptor", described)
    (found,) = usb.core.find(find_all=True, backend=device.backend)
    transport = libusb.open_usb(Overlay(found, get_active_configuration=interfaces), real=False)
    assert tried == [1, stick.profile.interface]
    assert set(stick.owners) == {stick.profile.interface}, "the other one is released"
    transport.close()
    assert {1, stick.profile.interface} <= stick.drivers
