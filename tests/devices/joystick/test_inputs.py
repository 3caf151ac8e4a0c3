"""Where the position is: of several devices in one, that of the one with the effects, and never a change."""

from __future__ import annotations

import struct

import pytest

from devices.emulators.pid.profiles.known import PROFILES
from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import parse_descriptor
from devices.joystick.inputs import InputLayout
from haptics.errors import DeviceOpenError

STICK = PROFILES["openffboard"]
NUMBER = 9
"""Of the report of what is there besides the stick."""

BUTTONS = "0509 1901 2903 1500 2501 9503 7501 8102 9501 7505 8103"
RELATIVE, ABSOLUTE = "8106", "8102"


def besides(application: str, flags: str) -> bytes:
    """Return another device with buttons and the axes X and Y, in a report of its own."""
    axes = f"0501 0930 0931 1581 257f 7508 9502 {flags}"
    return bytes.fromhex(f"0501 09{application} a101 0901 a100 85{NUMBER:02x} {BUTTONS} {axes} c0 c0")


MOUSE, POINTER, JOYSTICK, GAMEPAD = "02", "01", "04", "05"
OTHERS = {
    "a mouse": besides(MOUSE, RELATIVE),
    "a mouse with places": besides(MOUSE, ABSOLUTE),
    "a pointer": besides(POINTER, ABSOLUTE),
    "a pad with knobs that turn for ever": besides(GAMEPAD, RELATIVE),
    "another stick, without motors": besides(JOYSTICK, ABSOLUTE),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("first", [True, False])
def test_the_position_is_that_of_the_application_with_the_effects(other: str, first: bool) -> None:
    own = STICK.report_descriptor
    layout = InputLayout(parse_descriptor(OTHERS[other] + own if first else own + OTHERS[other]), use.X, use.Y)
    assert layout.report.id == 1
    assert layout.ranges == ((-32767, 32767), (-32767, 32767))
    assert layout.buttons == 31
    sample = layout.sample(STICK.input(1234, -4321, 5), 7.0)
    assert (sample.x, sample.y, sample.buttons) == (1234, -4321, 5)
    assert not layout.is_position(bytes((NUMBER, 0, 1, 1)))


def test_of_relative_and_absolute_fields_in_one_report_the_absolute_ones_count() -> None:
    relative = bytes.fromhex("0501 0930 0931 1581 257f 7508 9502 8106")
    own = STICK.report_descriptor
    head = own.index(b"\x85\x01") + 2
    mixed = own[:head] + relative + own[head:]
    layout = InputLayout(parse_descriptor(mixed), use.X, use.Y)
    report = STICK.input(1234, -4321, 0)
    sample = layout.sample(report[:1] + struct.pack("<bb", 3, -3) + report[1:], 0.0)
    assert (sample.x, sample.y) == (1234, -4321)


@pytest.mark.parametrize("other", list(OTHERS)[:4])
def test_a_device_whose_stick_measures_nothing_is_refused(other: str) -> None:
    own = STICK.report_descriptor.replace(bytes.fromhex("09300931"), bytes.fromhex("09380938"), 1)
    with pytest.raises(DeviceOpenError, match="no input report with the axes 0x00010030 and 0x00010031"):
        InputLayout(parse_descriptor(OTHERS[other] + own), use.X, use.Y)


def test_a_position_beside_the_effects_in_an_application_of_its_own_will_do() -> None:
    effects = bytes.fromhex("050f 0901 a101") + STICK.report_descriptor[6:] + b""
    without = effects.replace(bytes.fromhex("09300931"), bytes.fromhex("09380938"), 1)
    layout = InputLayout(parse_descriptor(OTHERS["another stick, without motors"] + without), use.X, use.Y)
    assert layout.report.id == NUMBER


def test_a_wheel_has_one_axis_and_the_other_count_is_zero() -> None:
    layout = InputLayout(parse_descriptor(STICK.report_descriptor), use.X)
    sample = layout.sample(STICK.input(1234, -4321, 0), 0.0)
    assert (sample.x, sample.y) == (1234, 0)
    assert layout.ranges == ((-32767, 32767),)
