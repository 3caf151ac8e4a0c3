"""A wheel: one axis with a motor, driven as one dimension along its rim."""

from __future__ import annotations

import math
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hidtools.hid import ReportDescriptor

import devices
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.profiles.known import PROFILES
from devices.joystick.device import PidJoystick
from devices.joystick.parameters import build_parameters, format_parameters, parse_parameters, write_parameters
from haptics.errors import ConfigurationError, DeviceOpenError
from tests.contract import DeviceContract
from tests.devices.joystick.doubles import STILL, FakeTransport, make, session

pytestmark = pytest.mark.usefixtures("compiled")

WHEEL = "openffboard-wheel"
PROFILE = PROFILES[WHEEL]


class TestEmulatedWheel(DeviceContract):
    name = "pid-joystick"
    settings: ClassVar[dict[str, Any]] = {"emulated": True, "emulator": WHEEL, "hand": STILL}


# --- what is emulated: the facts of the open firmware --------------------------------------------------------------


def test_the_reports_are_as_long_as_the_descriptor_says() -> None:
    parsed = ReportDescriptor.from_bytes(PROFILE.report_descriptor)
    outputs = {number: report.size for number, report in parsed.output_reports.items()}
    assert {layout.number: layout.size for layout in PROFILE.outputs} == outputs
    assert outputs[1] == 18
    assert parsed.input_reports[1].size == len(PROFILE.input(0, 0, 0)) == 25


def test_its_rim_has_the_size_and_the_force_of_a_wheel_of_900_degrees_and_16_bits() -> None:
    own, truth = PROFILE.handle, PROFILE.truths()
    assert own.half_width == pytest.approx(own.rim_radius * math.radians(450.0))
    assert truth["axes"]["counts_to_m"][0][0] * 65534 == pytest.approx(2.0 * own.half_width)
    assert truth["force"]["max_force_n"] * own.rim_radius == pytest.approx(9.0)
    assert truth["device"]["product_id"] == 0xFFB0


@pytest.mark.parametrize(
    ("axes", "direction", "part"), [(2, 27000, 1.0), (2, 9000, -1.0), (2, 0, 0.0), (1, 36000, 1.0), (0, 27000, 0.0)]
)
def test_its_direction_enable_is_the_second_bit(axes: int, direction: int, part: float) -> None:
    assert PROFILE.direction({"axes": axes, "direction": direction}) == pytest.approx((part, 0.0), abs=1e-12)


# --- what is sent ----------------------------------------------------------------------------------------------------


def as_the_kernel(direction: int) -> str:
    """Return Set Effect as hid-pidff fills it in for a constant force that lasts for ever, field by field.

    Direction enable alone, the direction rescaled from 16 bits to the field's range and cut off, gain full, everything
    else 0. Of a wheel the bits are: X, direction enable, six of padding.
    """
    ever, times, gain, button, enable = 0xFFFF, (0, 0, 0), 255, 0, 1 << 1
    return struct.pack(
        "<BBBH3HBBBHH", 1, 1, 1, ever, *times, gain, button, enable, direction * 36000 // 0xFFFF, 0
    ).hex()


FROM_LEFT = 0xC000


def test_one_effect_in_one_place_of_the_pool_with_the_bytes_of_the_kernel() -> None:
    transport = FakeTransport(WHEEL)
    playing = session(transport, duration=math.inf, count=1)
    playing.start()
    effect = as_the_kernel(FROM_LEFT)
    assert transport.sent == [
        *("0c08", "0c04", "0c01", "0dff", "get 19 5"),
        *("set 11010000", "get 18 5", "05010000", effect),
        "0a010101",
    ]
    assert playing.blocks == [1]
    transport.sent.clear()
    playing.stop()
    assert transport.sent == ["05010000", "0a010300", "0b01", "0c02"]


def test_room_for_one_effect_is_enough_and_none_is_not() -> None:
    transport = FakeTransport(WHEEL)
    transport.pool_answers = [bytes((9, 0, 1, 1))]
    session(transport, count=1).start()
    transport.pool_answers = [bytes((9, 0, 0, 1))]
    with pytest.raises(DeviceOpenError, match="0 effects at once; its force takes 1"):
        session(transport, count=1).start()


# --- the device ------------------------------------------------------------------------------------------------------


def command(device: PidJoystick, force: tuple[float, float], seconds: float = 0.1) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        device.read()
        device.write(np.array(force))
        time.sleep(1e-3)


@pytest.mark.parametrize("force", [(20.0, 0.0), (-30.0, 500.0), (100.0, 0.0), (0.0, 40.0)])
def test_a_force_acts_along_the_rim_and_what_is_across_is_nothing(force: tuple[float, float]) -> None:
    device, stick = make(profile=WHEEL)
    with device:
        command(device, force, 0.05)
        limit = device.spec.max_force
        assert limit == pytest.approx(72.0)
        assert stick.force[0] == pytest.approx(min(force[0], limit), abs=limit / 255.0)
        assert stick.force[1] == 0.0
    assert len(stick.received("create")) == len(stick.received("free")) == 1
    assert {fields["block"] for fields in stick.received("constant")} == {1}


def test_its_place_is_the_way_along_the_rim_and_y_stays_zero() -> None:
    held = {"name": "minimum-jerk", "points": [[0.05, 0.02], [0.05, 0.021]], "tremor": 0.0, "rest_force": 0.0}
    with EmulatedPidJoystick({"emulated": True, "emulator": WHEEL, "hand": held}) as device:
        command(device, (0.0, 5.0), 0.1)
        stick, state = device.backend.sticks[0], device.read()
        angle = math.radians(450.0) * stick.firmware._plant.counts[0] / 32767
        assert state.position[0] == pytest.approx(PROFILE.handle.rim_radius * angle, abs=1e-9)
        assert state.position[0] == pytest.approx(0.05, abs=30e-6)
        assert state.position[1] == 0.0 == state.velocity[1]
        assert stick.handle[1] == 0.0


def test_a_hand_that_pulls_across_does_not_move_it_there() -> None:
    backend_hand = {"name": "scripted-force", "script": [[0.0, 0.0, 8.0]]}
    settings = {"emulated": True, "emulator": WHEEL, "hand": backend_hand}
    with EmulatedPidJoystick(settings) as device:
        command(device, (0.0, 0.0), 0.05)
        stick = device.backend.sticks[0]
        assert abs(stick.handle[1]) == 0.0
        assert np.array_equal(device.read().position, (0.0, 0.0))


def test_the_data_sheet_says_that_there_is_one_dimension() -> None:
    wheel, stick = (make(profile=profile)[0].spec for profile in (WHEEL, "openffboard"))
    assert (wheel.dimensions, stick.dimensions) == (1, 2)
    assert wheel.delay == pytest.approx(2e-3), "one report, not two"
    assert wheel.max_force_rate == pytest.approx(2.0 * wheel.max_force / 1e-3)
    assert wheel.workspace_max[0] == pytest.approx(PROFILE.handle.half_width)
    assert wheel.position_resolution == pytest.approx(30e-6, rel=0.01)


# --- its parameters --------------------------------------------------------------------------------------------------


def test_its_file_is_read_back_and_files_of_before_are_those_of_sticks() -> None:
    known = build_parameters(PROFILE.truths())
    text = format_parameters(known)
    assert parse_parameters(text, "wheel.toml") == known
    stick = format_parameters(build_parameters(PROFILES["openffboard"].truths()))
    before = "".join(line for line in stick.splitlines(True) if not line.startswith("rim_radius_m"))
    assert before != stick
    assert parse_parameters(before, "stick.toml") == parse_parameters(stick, "stick.toml")


@pytest.mark.parametrize(
    ("table", "changes", "words"),
    [
        ("axes", {"counts_to_m": ((1e-5, 0.0), (0.0, 1e-5))}, r"axes\.counts_to_m = .*a wheel \(axes\.rim_radius_m\)"),
        ("axes", {"counts_to_m": ((0.0, 0.0), (0.0, 0.0))}, r"axes\.counts_to_m"),
        ("force", {"newton_to_level": ((0.01, 0.01), (0.0, 0.0))}, r"force\.newton_to_level = .*has x only"),
        ("force", {"max_force_n": 80.0}, r"force\.max_force_n = 80: asks for 1\.11 times"),
        ("axes", {"rim_radius_m": 0.0}, r"axes\.counts_to_m = .* not all on one line"),
    ],
)
def test_a_file_that_mixes_wheel_and_stick_is_refused(table: str, changes: dict[str, Any], words: str) -> None:
    tables = PROFILE.truths()
    tables[table] = {**tables[table], **changes}
    with pytest.raises(ConfigurationError, match=words):
        build_parameters(tables)


def test_a_wheel_with_the_parameters_of_a_stick_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    device, stick = make(profile=WHEEL)
    assert device.parameters is not None
    other = build_parameters(PROFILES["openffboard"].truths())
    path = tmp_path / "stick.toml"
    write_parameters(path, replace(other, device=device.parameters.device))
    with pytest.raises(DeviceOpenError, match=r"is a wheel: one axis with a motor.*--rim-radius"):
        devices.create_device("pid-joystick", {"parameters": str(path), "emulated": True, "emulator": WHEEL}).open()
    assert not stick.received("create")
