"""Control iterations of the emulated drive in kernels: many in a call, and properties by name beside them."""

import math
import struct
from typing import Any

import pytest

from devices.arm.body import ArmBody
from devices.common.workspace import Workspace
from devices.emulators.arm.plant import ArmPlant
from devices.emulators.odrive.axis import CLOSED_LOOP
from devices.emulators.odrive.firmware import Firmware
from devices.emulators.odrive.plant import Flywheels, Plant
from devices.emulators.odrive.text import TextProtocol
from tests.devices.arm.odrive_rig import IDS, alone

ROOM = Workspace((-0.2, -0.15), (0.2, 0.15))


def flywheels() -> Plant:
    plant = Flywheels()
    plant.speeds = (0.3, -0.2)
    return plant


def arm() -> Plant:
    plant = ArmPlant(ArmBody(), (100.0, -80.0), ROOM, {"name": "minimum-jerk", "pause": 0.0})
    plant.begin()
    return plant


def story(plant: Plant, pieces: list[int]) -> list[Any]:
    """What is true after each piece of 100 iterations, in calls of so many."""
    inside, told = Firmware(plant, 1), []
    for axis in inside.axes:
        axis.values |= {"config.watchdog_timeout": 0.05, "controller.config.vel_limit": 50.0}
        axis.request(CLOSED_LOOP)
        axis.values["controller.input_pos"] += 0.05
        axis.values["config.enable_watchdog"] = True
    for _ in range(6):  # the watchdogs expire in the middle
        for count in pieces:
            inside.iterate(count)
        told += [*plant.angles, *plant.speeds, *(value for axis in inside.axes for value in axis.values.values())]
    assert 0x800 in told
    return told


@pytest.mark.parametrize("make", [flywheels, arm])
def test_it_makes_no_difference_how_many_are_made_up_for_in_a_call(make: Any) -> None:
    one_by_one = story(make(), [1] * 100)
    assert story(make(), [100]) == one_by_one
    assert story(make(), [3, 13, 1, 64, 19]) == one_by_one


def test_off_and_on_again_it_has_its_settings_and_nothing_else() -> None:
    inside, plant = alone()
    axis = inside.axes[0]
    axis.values |= {"controller.config.pos_gain": 33.0, "config.watchdog_timeout": 0.25, "config.enable_watchdog": True}
    axis.feed()
    plant.speeds = (1.0, 0.0)
    axis.request(CLOSED_LOOP)
    inside.iterate(400)
    axis.fail(0x40, "encoder", 0x4)
    axis.values["controller.input_vel"] = 3.0
    inside.switch_on()
    inside.iterate()
    fresh, _ = alone()
    fresh.iterate()
    expected = dict(fresh.axes[0].values) | {"controller.config.pos_gain": 33.0, "config.watchdog_timeout": 0.25}
    expected |= {name: axis.values[name] for name in expected if name.startswith("encoder.")}
    assert {name: axis.values[name] for name in expected} == expected
    assert axis.values["encoder.pos_estimate"] == pytest.approx(0.0, abs=1e-3)
    assert axis.values.get("encoder.error", 0) == 0


@pytest.mark.parametrize(("timeout", "left"), [(math.inf, True), (math.nan, False), (-1.0, False), (1e30, True)])
def test_a_time_limit_that_is_none_stops_no_emulator(timeout: float, left: bool) -> None:
    inside, _ = alone()
    axis = inside.axes[0]
    axis.values |= {"config.watchdog_timeout": timeout, "config.enable_watchdog": True}
    axis.feed()
    inside.iterate(100)
    assert (axis.values["error"] == 0) == left


def test_what_is_too_large_for_the_wire_is_sent_as_far_as_it_goes() -> None:
    inside, plant = alone()
    plant.angles = (1e6, 0.0)
    inside.iterate(8)
    request = struct.pack("<HHH", 0x81, IDS["axis0.encoder.shadow_count"] | 0x8000, 4)
    answer = inside.handle(request + struct.pack("<H", inside.checksum))
    assert answer is not None
    assert struct.unpack("<i", answer[2:])[0] == (round(1e6 * 8192) + 2**31) % 2**32 - 2**31
    inside.axes[0].values["controller.input_vel"] = 1e300
    request = struct.pack("<HHH", 0x81, IDS["axis0.controller.input_vel"] | 0x8000, 4)
    assert inside.handle(request + struct.pack("<H", inside.checksum)) == b"\x81\x80" + struct.pack("<f", math.inf)


def test_a_property_has_one_value_whoever_asks() -> None:
    inside, _ = alone()
    list(TextProtocol(inside).take(b"w axis1.controller.input_vel 0.75\nw axis1.motor.error 18446744073709551615\n"))
    assert inside.axes[1].values["motor.error"] == 2**64 - 1
    request = struct.pack("<HHH", 0x81, IDS["axis1.controller.input_vel"] | 0x8000, 4)
    assert inside.handle(request + struct.pack("<H", inside.checksum)) == b"\x81\x80" + struct.pack("<f", 0.75)
    with pytest.raises(KeyError):
        del inside.axes[1].values["controller.input_vel"]
