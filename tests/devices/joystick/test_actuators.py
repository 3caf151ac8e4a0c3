"""How many axes have a motor: in firmware of one and of two axes, and what comes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from devices.emulators.pid.profiles.known import PROFILES
from devices.joystick.hid import usages as use
from devices.joystick.hid.actuators import actuated_axes
from devices.joystick.hid.descriptor import ReportDescriptor, ReportType, parse_descriptor
from devices.joystick.opening import playing
from devices.joystick.usb.listing import number_of_motors
from haptics.errors import DeviceOpenError
from tests.devices.joystick.doubles import FakeTransport
from tests.devices.joystick.firmware import FIRMWARE


@pytest.mark.parametrize("name", FIRMWARE)
def test_axes_with_a_motor_are_counted_and_measured_ones_are_not(name: str) -> None:
    firmware = FIRMWARE[name]
    parsed = parse_descriptor(firmware.descriptor)
    assert actuated_axes(parsed) == (use.X, use.Y)[: firmware.motors]
    assert number_of_motors(firmware.descriptor) == firmware.motors
    (position,) = (r for r in parsed.reports if r.type is ReportType.INPUT and r.field(use.X) is not None)
    assert position.field(use.Y) is not None, "all of them measure two axes and more"


def test_there_are_firmwares_of_both_kinds() -> None:
    assert len(FIRMWARE) == 11
    assert {firmware.motors for firmware in FIRMWARE.values()} == {1, 2}


def test_what_says_nothing_of_its_motors_is_not_counted() -> None:
    whole = parse_descriptor(FIRMWARE["Arduino wheel, two motors"].descriptor)
    kept = tuple(report for report in whole.reports if report.type is ReportType.INPUT)
    assert actuated_axes(ReportDescriptor(kept, whole.numbered)) == ()
    assert number_of_motors(b"\x05") is None


def test_padding_is_no_axis() -> None:
    whole = parse_descriptor(FIRMWARE["adapter for gameport sticks"].descriptor)
    reports = tuple(
        replace(report, fields=tuple(replace(f, constant=True) for f in report.fields)) for report in whole.reports
    )
    assert actuated_axes(ReportDescriptor(reports, whole.numbered)) == ()


def test_a_wheel_is_not_taken_for_a_stick_and_nothing_is_sent_to_it() -> None:
    transport = FakeTransport("openffboard")
    wheel = FIRMWARE["OpenFFBoard, one axis"].descriptor
    transport.link = replace(transport.link, descriptor=wheel)
    assert wheel != PROFILES["openffboard"].report_descriptor
    with pytest.raises(DeviceOpenError, match="is a wheel: one axis with a motor"), playing(transport, 0.2, 0.05):
        pytest.fail("it was taken")
    assert transport.sent == []
