"""The whole driver on an emulated stick when something goes wrong with USB."""

import itertools
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.stick import EmulatedStick
from devices.joystick.device import PidJoystick
from devices.joystick.usb import finding, usb_transport
from devices.joystick.usb import listing as usb_listing
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.clock import WallClock
from haptics.device import Device
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.trace import Trace
from tests.devices.joystick.doubles import STILL, make
from tests.processes import until

pytestmark = [
    pytest.mark.wall_clock,
    pytest.mark.usefixtures("compiled"),
]  # a stick in this process


def fault_of(device: Device, patience: float = 2.0) -> tuple[DeviceFault, float]:
    """Use the device until it fails; return what it says and how long that took [s]."""
    begun = time.perf_counter()
    while time.perf_counter() - begun < patience:
        try:
            device.read()
            device.write(np.array((0.5, 0.0)))
        except DeviceFault as fault:
            return fault, time.perf_counter() - begun
        time.sleep(1e-3)
    raise AssertionError("it never failed")


def test_unplugged_in_the_middle_it_fails_within_a_tenth_of_a_second(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    device.read()
    stick.unplug()
    fault, after = fault_of(device)
    assert "unplugged" in str(fault)
    assert after < 0.1
    begun = time.perf_counter()
    device.close()
    assert time.perf_counter() - begun < 1.0
    stick.plug()
    device.open()
    assert np.isfinite(device.read().position).all()


BROKEN = r"failed \(Input/output error\): check cable and hub"


@pytest.mark.parametrize(
    ("fault", "words"),
    [("read-error", f"an input report {BROKEN}"), ("write-error", f"an output report {BROKEN}"), ("nak", "in time")],
)
def test_a_transfer_that_fails_is_a_fault_and_the_interface_is_released(fault: str, words: str) -> None:
    device, stick = make()
    device.open()
    stick.faults = type(stick.faults)([f"{fault}@{stick.now}+5"])
    said, _ = fault_of(device)
    assert re.search(words, str(said))
    device.close()
    assert not stick.owners
    assert stick.profile.interface in stick.drivers


def test_a_halted_pipe_is_cleared(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    device.read()
    with stick.lock:
        stick.halted.add(0x83)
    for _ in range(50):
        device.read()
        device.write(np.zeros(2))
        time.sleep(1e-3)
    assert not stick.halted


def test_reports_that_are_cut_short_grow_old() -> None:
    device, stick = make()
    device.open()
    stick.faults = type(stick.faults)([f"short@{stick.now}+9"])
    clock = device._clock
    end = time.perf_counter() + 0.4
    ages = []
    while time.perf_counter() < end:
        ages.append(clock.elapsed() - device.read().time)
        time.sleep(5e-3)
    device.close()
    assert max(ages) > device.spec.max_sample_age


@pytest.mark.parametrize("late", ["delay-1ms", "delay-5ms", "delay-20ms"])
def test_a_slow_bus_is_no_failure_but_the_same_force_and_place_a_little_later(late: str) -> None:
    device, stick = make(f"{late}@0")
    with device:
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            device.read()
            device.write(np.array((1.0, -2.0)))
            time.sleep(1e-3)
        np.testing.assert_allclose(stick.force, (1.0, -2.0), atol=0.03)
        device.write(np.zeros(2))
        # It is coming to rest at the wall; until then what is read is behind by as much as the bus and the machine are.
        until(lambda: np.abs(device.read().position - stick.handle).max() < 0.02, "it is somewhere else", 5.0)
    assert not stick.force.any()


def test_a_block_load_that_tells_of_the_request_before_is_waited_for() -> None:
    device, stick = make("stale-block-load@0+0.1")
    with device:
        for _ in range(50):
            device.write(np.array((1.0, 2.0)))
            time.sleep(1e-3)
        np.testing.assert_allclose(stick.force, (1.0, 2.0), atol=0.02)


def test_a_block_load_that_is_never_renewed_is_said_so_and_nothing_is_left_behind() -> None:
    device, stick = make("stale-block-load@0")
    with pytest.raises(DeviceOpenError, match="refused a constant effect"):
        device.open()
    assert not stick.owners
    assert stick.profile.interface in stick.drivers
    assert not stick.force.any()


def test_after_a_run_that_failed_it_can_be_opened_at_once() -> None:
    device, stick = make("full-pool@0+0.5")
    with pytest.raises(DeviceOpenError, match="no room for another effect"):
        device.open()
    assert not stick.owners
    assert stick.profile.interface in stick.drivers
    time.sleep(max(0.5 - stick.now, 0.0) + 0.01)
    device.open()
    device.close()


def test_a_stick_another_program_holds_says_how_to_find_it() -> None:
    device, _ = make("busy@0")
    with pytest.raises(DeviceOpenError, match=r"held by another program.*fuser -v /dev/bus/usb/"):
        device.open()


def test_the_interface_of_a_run_that_died_is_held_until_that_is_gone() -> None:
    device, stick = make()
    stick.drivers.discard(stick.profile.interface)
    stick.owners[stick.profile.interface] = object()
    with pytest.raises(DeviceOpenError, match="held by another program"):
        device.open()
    stick.owners.clear()
    device.open()
    device.close()
    assert stick.profile.interface in stick.drivers, "what the dead run had taken is given back as well"


def test_an_interface_that_is_just_given_back_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    device, stick = make()
    claim, claims = device.backend.claim_interface, list[int]()

    def late(handle: Any, number: int) -> None:
        claims.append(number)
        if len(claims) == 1:
            stick.bind(number)
        claim(handle, number)

    monkeypatch.setattr(device.backend, "claim_interface", late)
    with device:
        assert len(claims) == 2
        assert stick.profile.interface not in stick.drivers
    assert stick.profile.interface in stick.drivers


def test_an_emulated_stick_has_no_guardian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb_transport, "Guard", lambda *_: pytest.fail("there is no kernel to give it back to"))
    device, _ = make()
    with device:
        device.read()


def test_a_dead_stick_is_a_fault_and_is_told_goodbye_once(
    opened: tuple[PidJoystick, EmulatedStick], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, stick = opened
    device.read()
    stick.faults.set("nak")
    said, _ = fault_of(device)
    assert "did not answer an output report in time" in str(said)
    write, reports = device.backend.intr_write, list[bytes]()

    def note(handle: Any, endpoint: int, interface: int, data: Any, timeout: int) -> int:
        reports.append(bytes(data))
        return int(write(handle, endpoint, interface, data, timeout))

    monkeypatch.setattr(device.backend, "intr_write", note)
    device.close()
    assert [report[0] for report in reports] == [5], "the first report of the end is no force; that will do"
    assert stick.profile.interface in stick.drivers


def test_without_permission_the_rule_for_this_very_stick_is_given() -> None:
    device, _ = make("no-permission@0")
    with pytest.raises(DeviceOpenError) as error:
        device.open()
    text = str(error.value)
    assert 'ATTR{idVendor}=="1209", ATTR{idProduct}=="ffb0"' in text
    assert "/etc/udev/rules.d/70-haptics.rules" in text
    assert 'TAG+="uaccess"' in text


def test_without_libusb_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import libusb_package
    import usb.backend.libusb1

    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda *_, **__: None)
    monkeypatch.setattr(libusb_package, "get_libusb1_backend", lambda *_, **__: None)
    with pytest.raises(DeviceOpenError, match=r"apt-get install libusb-1\.0-0.*pip install libusb-package"):
        usb_listing.libusb()
    monkeypatch.setattr(finding, "hidraw_sticks", lambda root=None: [])
    with pytest.raises(DeviceOpenError, match="no libusb"):
        PidJoystick().open()


def test_the_systems_libusb_comes_first_then_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import libusb_package
    import usb.backend.libusb1

    own, packaged = object(), object()
    monkeypatch.setattr(libusb_package, "get_libusb1_backend", lambda *_, **__: packaged)
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda *_, **__: own)
    assert usb_listing.libusb() is own
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda *_, **__: None)
    assert usb_listing.libusb() is packaged


def test_unplugged_in_a_run_it_ends_with_a_fault(trace: Trace) -> None:
    clock = WallClock(1e-3)
    backend = emulated_stick("openffboard", hand=STILL)
    device = EmulatedPidJoystick({"emulated": True}, clock=clock, backend=backend)
    stick = backend.sticks[0]
    pulled = itertools.count()

    def pull(_: Any) -> None:
        if next(pulled) == 100:
            stick.unplug()

    servo = Servo(device, MasslessImpedance(Coulomb(2.0), 300.0, 2.0), trace, clock=clock, before_tick=pull)
    with pytest.raises(DeviceFault, match=r"pid-joystick failed at tick 1\d\d: the stick was unplugged"):
        servo.run(1.0)
    assert not stick.owners
