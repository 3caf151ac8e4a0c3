"""Which stick is meant, and whether its parameters are its own."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.profiles.known import PROFILES
from devices.emulators.pid.stick import EmulatedStick
from devices.emulators.pid.usb_backend import EmulatedUsbBackend
from devices.joystick.device import PidJoystick
from devices.joystick.parameters import format_parameters
from devices.joystick.usb.finding import choose, find_sticks, usb_sticks
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError
from tests.devices.joystick.doubles import STILL, make

pytestmark = pytest.mark.usefixtures("compiled")


def two(*serials: str) -> EmulatedUsbBackend:
    return EmulatedUsbBackend(*(EmulatedStick("openffboard", hand=STILL, serial=serial) for serial in serials))


def test_two_sticks_at_once_by_serial_number() -> None:
    backend = two("A1", "B2")
    both = [
        EmulatedPidJoystick({"emulated": True, "serial": serial}, backend=_only(backend, serial))
        for serial in ("A1", "B2")
    ]
    for device in both:
        device.backend = backend
        device.open()
    try:
        for _ in range(30):
            both[0].write(np.array((2.0, 0.0)))
            both[1].write(np.array((0.0, -3.0)))
            time.sleep(1e-3)
        np.testing.assert_allclose(backend.sticks[0].force, (2.0, 0.0), atol=0.02)
        np.testing.assert_allclose(backend.sticks[1].force, (0.0, -3.0), atol=0.03)
    finally:
        for device in both:
            device.close()


def _only(backend: EmulatedUsbBackend, serial: str) -> EmulatedUsbBackend:
    return EmulatedUsbBackend(*(stick for stick in backend.sticks if stick.serial == serial))


def test_several_sticks_that_could_be_meant_are_named() -> None:
    with pytest.raises(DeviceOpenError, match=r"serial A1.*serial B2.*device\.serial"):
        choose(usb_sticks(two("A1", "B2")), "1209:ffb0", "")


@pytest.mark.parametrize("serials", [("", ""), ("A1", "A1"), ("A1", "")])
def test_two_that_no_serial_number_tells_apart_are_told_by_port(serials: tuple[str, str]) -> None:
    found = usb_sticks(two(*serials))
    assert [stick.port for stick in found] == ["1-1", "1-2"]
    with pytest.raises(DeviceOpenError, match=r"at port 1-1.*at port 1-2.*Choose one with device\.port\."):
        choose(found, "1209:ffb0", "")
    assert choose(found, "1209:ffb0", "", "1-2") is found[1]
    assert choose(found, "", serials[0], "1-1") is found[0]
    with pytest.raises(DeviceNotFoundError, match=r"no stick 1209:ffb0 at port 1-3 is plugged in; there is .*port 1-1"):
        choose(found, "1209:ffb0", "", "1-3")


def test_the_stick_at_the_port_of_the_settings_is_the_one_that_is_opened(tmp_path: Path) -> None:
    backend = two("", "")
    known, _ = make()
    path = stored(known, tmp_path, one=('serial = "EMULATED0001"', 'serial = ""'))
    for port, taken, other in (("1-2", 1, 0), ("1-1", 0, 1)):
        with PidJoystick({"parameters": path, "port": port}, backend=backend):
            assert backend.sticks[taken].owners
            assert not backend.sticks[other].owners
    with pytest.raises(DeviceOpenError, match=r"device\.port"):
        PidJoystick({"parameters": path}, backend=backend).open()


def test_a_stick_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(DeviceNotFoundError, match=r"045e:001b.*there is .*1209:ffb0\) serial A1"):
        choose(usb_sticks(two("A1")), "045e:001b", "")
    with pytest.raises(DeviceNotFoundError, match="no force-feedback stick is plugged in"):
        choose([], "045e:001b", "")


@pytest.mark.parametrize("profile", PROFILES)
def test_found_sticks_say_what_they_are(profile: str) -> None:
    backend = emulated_stick(profile, hand=STILL)
    (found,) = find_sticks(backend)
    truth = backend.sticks[0].truths["device"]
    assert (found.vendor_id, found.product_id) == (truth["vendor_id"], truth["product_id"])
    assert (found.serial, found.name) == (truth["serial"], truth["name"])
    assert (found.in_interval, found.out_interval) == (truth["in_interval_s"], truth["out_interval_s"])
    assert found.speaks_pid
    assert found.missing == ()
    assert backend.sticks[0].drivers, "looking takes nothing away"


def test_what_is_missing_to_use_a_stick_is_said() -> None:
    (found,) = find_sticks(emulated_stick("openffboard", hand=STILL, faults=["no-permission@0"]))
    assert found.serial is None
    assert "idVendor" in found.missing[0]


# --- parameters ----------------------------------------------------------------------------------------------------


def stored(device: PidJoystick, folder: Path, **changes: Any) -> str:
    assert device.parameters is not None
    text = format_parameters(device.parameters)
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    path = folder / "stick.toml"
    path.write_text(text)
    return str(path)


def test_an_uncalibrated_stick_is_not_rendered_with() -> None:
    device = PidJoystick(backend=emulated_stick("openffboard", hand=STILL))
    assert device.spec.identity == "not calibrated"
    with pytest.raises(ConfigurationError, match=r"device\.parameters is missing.*haptics calibrate joystick"):
        device.open()


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('report_descriptor_sha256 = "', 'report_descriptor_sha256 = "0', "report descriptor"),
        ('serial = "EMULATED0001"', 'serial = "OTHER"', "OTHER"),
        ('serial = "EMULATED0001"', 'serial = ""', "serial is '' in the file and 'EMULATED0001' of the stick"),
        ("product_id = 0xffb0", "product_id = 0xffb1", "1209:ffb1"),
    ],
)
def test_parameters_of_another_stick_are_refused(tmp_path: Path, old: str, new: str, what: str) -> None:
    device, _ = make()
    path = stored(device, tmp_path, one=(old, new))
    if what == "report descriptor":
        Path(path).write_text(_shortened(Path(path).read_text()))
    other = PidJoystick({"parameters": path}, backend=device.backend)
    with pytest.raises((ConfigurationError, DeviceNotFoundError), match=what):
        other.open()
    stick = device.backend.sticks[0]
    assert not stick.owners


def _shortened(text: str) -> str:
    """Make the digest one digit shorter again, that is as long as it must be."""
    lines = [line[:-2] + '"' if line.startswith("report_descriptor_sha256") else line for line in text.splitlines()]
    return "\n".join(lines)


def test_a_serial_number_that_is_not_that_of_the_parameters_is_refused(tmp_path: Path) -> None:
    device, _ = make()
    with pytest.raises(ConfigurationError, match=r"device\.serial = 'X'.*EMULATED0001"):
        PidJoystick({"parameters": stored(device, tmp_path), "serial": "X"}, backend=device.backend)


def test_a_dead_mans_button_that_the_stick_lacks_is_refused(tmp_path: Path) -> None:
    device, stick = make(profile="sidewinder-ff2")
    path = stored(device, tmp_path, one=("dead_man_button = 0", "dead_man_button = 9"))
    with pytest.raises(ConfigurationError, match=r"handle\.dead_man_button = 9: the stick has 8 buttons"):
        PidJoystick({"parameters": path}, backend=device.backend).open()
    assert stick.profile.interface in stick.drivers
    path = stored(device, tmp_path, one=("dead_man_button = 0", "dead_man_button = 8"))
    with PidJoystick({"parameters": path}, backend=device.backend) as other:
        assert other.spec.dead_man == "button"


def test_dead_man_is_the_button_the_file_names(tmp_path: Path) -> None:
    device, _ = make()
    path = stored(device, tmp_path, one=("dead_man_button = 0", "dead_man_button = 1"))
    held = EmulatedPidJoystick({"emulated": True, "parameters": path, "hand": {"name": "minimum-jerk"}})
    assert held.spec.dead_man == "button"
    assert device.spec.dead_man == "none"
    with held:
        time.sleep(0.05)
        assert held.read().buttons & 1 == 1
        assert held.read().buttons & 2 == 2
