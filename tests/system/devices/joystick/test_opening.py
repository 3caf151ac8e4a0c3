"""What may be in the way when a stick is taken, which way it is reached, and sticks that are unlike the usual ones."""

import dataclasses
import errno
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import usb.core

from devices.emulators.pid import emulated_stick
from devices.emulators.pid.profiles.known import PROFILES
from devices.emulators.pid.transfers import fail
from devices.emulators.pid.usb_backend import EmulatedUsbBackend
from devices.joystick.device import PidJoystick
from devices.joystick.usb import finding, hidraw, usb_transport
from devices.joystick.usb import listing as usb_listing
from devices.joystick.usb.finding import connect, find_sticks, usb_sticks
from haptics.errors import DeviceNotFoundError, DeviceOpenError
from tests.devices.joystick.doubles import STILL, FakeTransport, make
from tests.system.devices.joystick.test_hidraw import plug

pytestmark = [
    pytest.mark.wall_clock,
    pytest.mark.usefixtures("compiled"),
]  # a stick in this process

MOUSE = bytes.fromhex(
    "05010902a1010901a100050919012903150025019503750181029501750581030501093009311581257f750895028106c0c0"
)


def refusing(number: int) -> Callable[..., Any]:
    return lambda *_: fail(number)


def untouched(backend: EmulatedUsbBackend) -> bool:
    stick = backend.sticks[0]
    return not stick.owners and stick.profile.interface in stick.drivers and not stick.force.any()


# --- taking the interface ------------------------------------------------------------------------------------------


def unconfigured(backend: EmulatedUsbBackend, monkeypatch: pytest.MonkeyPatch, refusal: int = 0) -> list[int]:
    """Let no configuration be chosen, and note which ones are."""
    chosen: list[int] = []
    choose, there = backend.set_configuration, backend.get_configuration

    def set_configuration(handle: Any, value: int) -> None:
        if refusal:
            fail(refusal)
        chosen.append(value)
        choose(handle, value)

    monkeypatch.setattr(backend, "get_configuration", lambda handle: there(handle) if chosen else 0)
    monkeypatch.setattr(backend, "set_configuration", set_configuration)
    return chosen


def test_a_stick_without_a_configuration_is_given_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    device, stick = make()
    stick.drivers.clear()  # there is nothing yet that a driver could have
    chosen = unconfigured(device.backend, monkeypatch)
    with device:
        assert np.isfinite(device.read().position).all()
    assert chosen == [1]


def test_a_configuration_that_is_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    device, _ = make()
    monkeypatch.setattr(device.backend, "set_configuration", lambda *_: pytest.fail("that resets the stick"))
    with device:
        device.read()


def test_a_configuration_that_cannot_be_chosen_means_that_somebody_has_the_stick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device, _ = make()
    unconfigured(device.backend, monkeypatch, errno.EBUSY)
    with pytest.raises(DeviceOpenError, match="held by another program"):
        device.open()
    assert untouched(device.backend)


def test_a_run_that_fails_between_detaching_and_claiming_gives_the_stick_back(monkeypatch: pytest.MonkeyPatch) -> None:
    device, stick = make()

    def claim(handle: Any, number: int) -> None:
        assert number not in stick.drivers
        fail(errno.EIO)

    monkeypatch.setattr(device.backend, "claim_interface", claim)
    with pytest.raises(DeviceOpenError, match=r"could not be opened \(Input/output error\): unplug it"):
        device.open()
    assert untouched(device.backend)


@pytest.mark.parametrize("step", ["detach_kernel_driver", "claim_interface"])
def test_a_stick_that_goes_while_it_is_opened_is_said_so(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device, stick = make()
    act = getattr(device.backend, step)

    def pulled(handle: Any, number: int) -> None:
        stick.unplug()
        act(handle, number)

    monkeypatch.setattr(device.backend, step, pulled)
    with pytest.raises(DeviceOpenError, match="was unplugged while it was being opened"):
        device.open()


def test_systems_without_kernel_drivers_have_none_to_take_it_from(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> bool:
        raise NotImplementedError

    device, stick = make()
    stick.drivers.clear()
    for name in ("is_kernel_driver_active", "detach_kernel_driver", "attach_kernel_driver"):
        monkeypatch.setattr(device.backend, name, missing)
    with device:
        assert np.isfinite(device.read().position).all()
    assert not stick.owners


def test_a_run_that_has_the_stick_by_hidraw_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "hidraw0"
    node.touch()
    device, _ = make()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(usb_transport, "Guard", lambda *_: pytest.fail("nothing may be begun"))
    monkeypatch.setattr(hidraw, "node_of_interface", lambda *_: node)
    other = hidraw.open_locked(node)
    try:
        (found,) = usb.core.find(find_all=True, backend=device.backend)
        with pytest.raises(DeviceOpenError, match=rf"held by another program.*fuser -v {node}"):
            usb_transport.open_usb(found, real=True)
    finally:
        os.close(other)
    assert untouched(device.backend)


# --- which way -----------------------------------------------------------------------------------------------------


def by_hidraw(monkeypatch: pytest.MonkeyPatch, root: Path) -> FakeTransport:
    """Let hidraw show a stick, whose transport is returned."""
    plug(root)
    transport = FakeTransport("sidewinder-ff2")
    monkeypatch.setattr(finding.hidraw, "HidrawTransport", lambda node: transport)
    sticks = finding.hidraw_sticks
    monkeypatch.setattr(finding, "hidraw_sticks", lambda *_: sticks(root))
    return transport


LISTINGS: dict[str, Exception] = {
    "there is no libusb": DeviceOpenError("no libusb"),
    "there is no USB": usb.core.USBError("Input/output error", -1, errno.EIO),
    "a bus cannot be read": OSError(errno.EACCES, "Permission denied"),
    "pyusb is missing": ImportError("No module named 'usb'"),
}


@pytest.mark.parametrize("error", LISTINGS.values(), ids=LISTINGS)
def test_where_libusb_lists_nothing_hidraw_does(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise error

    monkeypatch.setattr(usb_listing, "libusb", broken)
    transport = by_hidraw(monkeypatch, tmp_path)
    assert connect("045e:001b", "42") is transport
    assert [stick.name for stick in find_sticks(root=tmp_path)] == ["SideWinder"]
    with pytest.raises(DeviceOpenError):
        connect("045e:001b", "42", "usb")


def test_where_libusb_may_not_open_a_stick_hidraw_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = emulated_stick("sidewinder-ff2", hand=STILL, serial="42", faults=["no-permission@0"])
    monkeypatch.setattr(usb_listing, "libusb", lambda: backend)
    transport = by_hidraw(monkeypatch, tmp_path)
    assert connect("045e:001b", "42") is transport


def test_where_neither_way_does_it_is_that_of_libusb_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = emulated_stick("openffboard", hand=STILL, faults=["no-permission@0"])
    monkeypatch.setattr(usb_listing, "libusb", lambda: backend)
    monkeypatch.setattr(finding, "hidraw_sticks", lambda *_: [])
    with pytest.raises(DeviceOpenError, match="may not be opened"):
        connect("1209:ffb0", "")
    with pytest.raises(DeviceNotFoundError, match="no force-feedback stick"):
        connect("1209:ffb0", "", "hidraw")


def test_a_bus_that_cannot_be_listed_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = emulated_stick("openffboard", hand=STILL)
    monkeypatch.setattr(backend, "enumerate_devices", refusing(errno.EIO))
    with pytest.raises(DeviceOpenError, match=r"USB devices cannot be listed .*doctor libusb"):
        usb_sticks(backend)


# --- sticks that are unlike the usual ones -------------------------------------------------------------------------


@pytest.fixture
def piped() -> Any:
    """A SideWinder that takes its output reports by the control pipe only."""
    name = "piped"
    plain = dataclasses.replace(PROFILES["sidewinder-ff2"], out_endpoint=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, name, plain)
        backend = emulated_stick(name, hand=STILL)
        yield backend


def test_a_stick_without_a_pipe_for_output_is_told_by_requests(piped: EmulatedUsbBackend, tmp_path: Path) -> None:
    from devices.joystick.parameters import build_parameters, write_parameters

    (stick,) = piped.sticks
    path = tmp_path / "stick.toml"
    write_parameters(path, build_parameters(stick.truths))
    with PidJoystick({"parameters": str(path)}, backend=piped) as device:
        link = device._streaming._transport.link  # type: ignore[union-attr]
        assert (link.out_endpoint, link.out_interval) == (False, 1e-3)
        assert device.spec.delay == pytest.approx(3e-3)
        for _ in range(50):
            device.read()
            device.write(np.array((2.0, -1.0)))
            time.sleep(1e-3)
        np.testing.assert_allclose(stick.force, (2.0, -1.0), atol=0.06)
    assert untouched(piped)
    assert len(stick.received("free")) == 2


def test_a_device_of_the_class_that_plays_no_forces_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = emulated_stick("openffboard", hand=STILL)
    monkeypatch.setattr(backend.sticks[0].firmware, "report_descriptor", MOUSE)
    (device,) = usb.core.find(find_all=True, backend=backend)
    with pytest.raises(DeviceOpenError, match="1209:ffb0 has no interface that plays forces"):
        usb_transport.open_usb(device, real=False)
    assert untouched(backend)


def test_of_two_interfaces_of_the_class_the_one_with_forces_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    device, stick = make()
    tried: list[int] = []
    candidate, describe = usb_transport.is_candidate, usb_transport.report_descriptor

    class Keys:
        """The stick's own interface under the number of another one, which comes first."""

        def __init__(self, own: Any) -> None:
            self._own, self.bInterfaceNumber = own, 1

        def __getattr__(self, name: str) -> Any:
            return getattr(self._own, name)

        def __iter__(self) -> Any:
            return iter(self._own)

    def interfaces(found: Any) -> Any:
        (own,) = filter(candidate, usb.core.Device.get_active_configuration(found))
        return [Keys(own), own]

    def described(found: Any, interface: Any) -> bytes:
        tried.append(interface.bInterfaceNumber)
        return MOUSE if interface.bInterfaceNumber == 1 else describe(found, interface)

    class Composite:
        def __init__(self, found: Any) -> None:
            self._found = found

        def get_active_configuration(self) -> Any:
            return interfaces(self._found)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._found, name)

    monkeypatch.setattr(usb_transport, "report_descriptor", described)
    (found,) = usb.core.find(find_all=True, backend=device.backend)
    transport = usb_transport.open_usb(Composite(found), real=False)
    assert tried == [1, stick.profile.interface]
    assert set(stick.owners) == {stick.profile.interface}, "the other one was let go"
    transport.close()
    assert {1, stick.profile.interface} <= stick.drivers
