"""The whole driver over a real socket, against the emulated service and its moving handle."""

import numpy as np
import pytest

import devices
from devices.emulators.inverse3.server import InverseServer
from devices.emulators.inverse3.service import CENTRE
from haptics.clock import WallClock, cancelled_by
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError, OpeningCancelled
from tests.contract import DeviceContract
from tests.devices.inverse3.documented import inventory
from tests.devices.inverse3.services import (
    PATIENT,
    answering,
    driven,
    driver,
    emulated,
    exercise,
    holding,
    received_head,
    transparent,
    wait_until,
)

pytestmark = pytest.mark.wall_clock  # driver and service exchange by the wall's clock, in threads of their own


class TestInverse3(DeviceContract):
    name = "inverse3"

    @pytest.fixture(autouse=True)
    def at_a_service(self, server):
        self.settings = {"address": server.address, **PATIENT}

    def test_samples_are_fresh(self, device):
        wait_until(lambda: 0.0 <= device._clock.elapsed() - device.read().time <= device.spec.max_sample_age)


# --- an ordinary run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plane", ["xy", "xz", "yz"])
def test_position_and_force_are_those_of_the_plane(plane):
    axes = ["xyz".index(letter) for letter in plane]
    one = emulated(plane=plane, filters=transparent())
    with InverseServer([one]) as server, driven(server, plane=plane) as device:
        for force in ((0.0, 0.0), (2.0, 0.0), (0.0, -3.0)):
            exercise(device, 0.3, force)
            np.testing.assert_allclose([one.told[axis] for axis in axes], force, atol=1e-6)
            where = [one.handle.position[axis] for axis in axes]
            np.testing.assert_allclose(device.read().position, where, atol=1e-4)
            np.testing.assert_allclose(where, np.array(force) / 400.0, atol=1e-3)  # the hand's grip gives way


@pytest.mark.parametrize(
    ("preset", "origin", "sign"),
    [("arm_front_centered", (0.01, -0.02, 0.0), 1.0), ("arm_front", (0.01, CENTRE[1] - 0.02, CENTRE[2]), 1.0),
     ("led_front_centered", (0.01, -0.02, 0.0), -1.0)],
)  # fmt: skip
def test_the_middle_is_where_it_is_wanted_however_the_device_stands(preset, origin, sign):
    one = emulated(hand=holding((0.02, 0.01)))
    with InverseServer([one]) as server, driven(server, preset=preset, origin=origin) as device:
        exercise(device, 0.2, (0.0, 0.0))
        assert one.preset == preset
        where = sign * np.array(one.handle.position[:2]) - (0.01, -0.02)
        np.testing.assert_allclose(device.read().position, where, atol=1e-4)
        exercise(device, 0.1, (1.0, 0.5))
        np.testing.assert_allclose(one.told[:2], sign * np.array((1.0, 0.5)), atol=1e-6)


def test_of_two_devices_the_one_that_is_named_is_driven_and_the_other_left_alone():
    one, other = emulated("049D", hand=holding((0.02, 0.0))), emulated("04A0", hand=holding((-0.02, 0.0)))
    with InverseServer([one, other]) as server:
        with pytest.raises(DeviceOpenError, match=r"device\.device_id: 049D, 04A0"):
            driver(server).open()
        for chosen, left, name in ((one, other, "049D"), (other, one, other.uuid)):
            with driven(server, device_id=name) as device:
                exercise(device, 0.1, (1.0, 0.0))
                assert chosen.told == pytest.approx((1.0, 0.0, 0.0))
                assert device.read().position[0] == pytest.approx(chosen.handle.position[0], abs=1e-3)
            assert not any(any(entry.told) for entry in list(left.log))
            one.log.clear()
            other.log.clear()


def test_what_the_service_takes_away_is_a_channel():
    one = emulated()
    one.filters.scale = 0.5
    with InverseServer([one]) as server, driven(server) as device:
        exercise(device, 0.3, (2.0, -1.0))
        wait_until(lambda: device.write(np.array((2.0, -1.0))) or abs(device.read().channels[2] - 1.0) < 0.02)
        height, hold, *rest = device.read().channels
        np.testing.assert_allclose(rest, (1.0, -0.5, 1.0, -0.5), atol=0.02)
        assert hold == 0.0 and height < 0.0
    names = [name for name, _, _ in device.spec.channels]
    assert names == ["height", "hold_force", "service_force", "taken_force"]


# --- the third axis ------------------------------------------------------------------------------------------------


def test_the_third_axis_is_held_near_the_plane_with_a_bounded_force():
    one = emulated(filters=transparent())
    with InverseServer([one]) as server, driven(server, hold_stiffness=300.0, hold_force=1.0) as device:
        exercise(device, 0.4, (0.0, 0.0), share=0.0)
        fallen = one.handle.position[2]
        assert fallen < -5e-3, "nobody holds it while the output is the safe one"
        assert one.told[2] == 0.0
        wait_until(lambda: exercise(device, 0.05, (0.0, 0.0), share=1.0) or abs(one.handle.position[2]) < 1.5e-3)
        exercise(device, 0.3, (0.0, 0.0), share=1.0)
        assert one.handle.position[2] == pytest.approx(-0.3 / 300.0, abs=2e-4)  # it sags as the spring lets it
        assert one.told[2] == pytest.approx(0.3, abs=0.05)
        log = list(one.log)  # the emulator's thread goes on
        told = np.array([entry.told[2] for entry in log])
        speed = np.array([entry.velocity[2] for entry in log])
        assert told.max() <= 1.0
        assert np.abs(speed[told > 0.0]).max() < 0.15, "it is brought back slowly"


def test_a_third_axis_of_no_stiffness_is_free():
    one = emulated(filters=transparent())
    with InverseServer([one]) as server, driven(server, hold_stiffness=0.0, hold_damping=0.0) as device:
        exercise(device, 0.3, (1.0, 0.0), share=1.0)
        assert one.told == pytest.approx((1.0, 0.0, 0.0))


# --- the force goes away ---------------------------------------------------------------------------------------------


def test_the_force_is_taken_away_when_commands_stay_out_though_the_process_lives(server):
    (one,) = server.service.devices
    with driven(server, watchdog=0.3) as device:
        for _ in range(2):
            device.write(np.array((1.0, 0.5)))
            wait_until(lambda: any(one.told))
            wait_until(lambda: not any(one.told))


def test_closing_takes_the_force_away_and_closes_the_connection(server):
    (one,) = server.service.devices
    with driven(server) as device:
        exercise(device, 0.05, (1.0, 0.5), share=1.0)
        assert any(one.told)
    assert one.told == (0.0, 0.0, 0.0)
    wait_until(lambda: server.closed)
    assert server.closed == ["EOFError: closed with 03e8"]


def test_errors_of_the_caller_leave_no_force_either(server):
    (one,) = server.service.devices
    with pytest.raises(ZeroDivisionError), driver(server) as device:
        device.write(np.array((1.0, 0.5)))
        wait_until(lambda: any(one.told))
        _ = 1 / 0
    assert one.told == (0.0, 0.0, 0.0)


# --- opening ---------------------------------------------------------------------------------------------------------


def test_nobody_at_the_port_is_no_service():
    with InverseServer([emulated()]) as server:
        address = server.address
    with pytest.raises(DeviceNotFoundError, match=r"no Haply service answers at 127\.0\.0\.1:.*device\.emulated=true"):
        devices.create_device("inverse3", {"address": address}).open()


def test_something_else_at_the_port_is_no_service():
    def act(line):
        received_head(line)
        line.sendall(b"HTTP/1.1 200 OK\r\n\r\n<html>")

    with answering(act) as address, pytest.raises(DeviceOpenError, match=r"200 OK'; is this the Haply service"):
        devices.create_device("inverse3", {"address": address}).open()


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("power_supply", "has no power"),
        ("calibrated", "is not calibrated"),
        ("ready", "is not ready"),
        ("started", "has not been started"),
    ],
)
def test_a_device_that_is_not_ready_is_waited_for_only_so_long(word, words):
    one = emulated()
    faults = {"power_supply": "no-power", "calibrated": "uncalibrated"}
    with InverseServer([one]) as server:
        server.faults.set(*filter(None, [faults.get(word)]))
        one.status[word] = False
        with pytest.raises(DeviceOpenError, match=f"049D {words}"):
            driver(server, patience=0.2).open()
        assert not any(any(entry.told) for entry in list(one.log))
        server.faults.clear()
        one.status[word] = True
        with driven(server):
            pass


def test_a_device_that_gets_ready_is_waited_for(server):
    server.faults.set("uncalibrated")
    asked = []

    def calibrates():
        asked.append(1)
        if len(asked) == 5:
            server.faults.clear()
        return False

    with cancelled_by(calibrates), driven(server):
        assert len(asked) > 5


def test_a_device_in_use_is_not_shared():
    one = emulated()
    one.status["in_use"] = True
    with InverseServer([one]) as server, pytest.raises(DeviceOpenError, match="049D is in use by another program"):
        driver(server).open()


def test_a_minverse_says_so():
    with InverseServer([emulated(kind="minverse")]) as server:
        with pytest.raises(DeviceOpenError, match=r"set device\.kind=minverse"):
            driver(server).open()
        with driven(server, kind="minverse") as device:
            assert device.spec.workspace_max == (0.028, 0.028)


@pytest.mark.parametrize("looks", [0, 3])
def test_an_opening_that_is_called_off_ends_at_once_and_pushes_nothing(server, looks):
    (one,) = server.service.devices
    server.faults.set("uncalibrated")
    asked = []

    def called_off():
        asked.append(1)
        return len(asked) > looks

    with pytest.raises(OpeningCancelled), cancelled_by(called_off):
        driver(server, patience=60.0).open()
    assert not any(any(entry.told) for entry in list(one.log))
    wait_until(lambda: server.closed)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"address": "localhost"}, r"device\.address = 'localhost': must be an address ws://HOST:PORT"),
        ({"address": "wss://localhost:10001"}, r"device\.address"),
        ({"plane": "zx"}, r"device\.plane = 'zx': must be one of xy, xz, yz"),
        ({"origin": [0.0, 0.0]}, r"device\.origin = \[0\.0, 0\.0\]: must be three numbers"),
        ({"origin": [0.0, 0.0, float("nan")]}, r"device\.origin"),
        ({"origin": [0.0, 0.0, 0.6]}, r"each at most 0\.5 m"),
        ({"hold_stiffness": 2000.0}, r"device\.hold_stiffness = 2000\.0: .*at most 1000 N/m"),
        ({"hold_force": 6.0}, r"device\.hold_force = 6\.0: .*at most 5 N"),
        ({"max_force": 11.0}, r"device\.max_force = 11\.0: .*at most 10 N"),
    ],
)
def test_wrong_settings_are_named_with_what_is_allowed(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("inverse3", settings)


def test_a_hostile_inventory_opens_nothing():
    from devices.emulators.inverse3 import wire

    for text, words in ((b"[" * 50_000, "no JSON"), (b'{"inverse3": 3}', "no list of devices")):

        def act(line, text=text):
            line.sendall(wire.greeting(received_head(line)[:-4]) + wire.frame(wire.TEXT, text))
            line.recv(100)

        with answering(act) as address, pytest.raises(DeviceOpenError, match=words):
            devices.create_device("inverse3", {"address": address}).open()


def test_a_service_that_says_no_more_than_the_inventory_is_waited_for_only_so_long():
    from devices.emulators.inverse3 import wire

    def act(line):
        line.sendall(wire.greeting(received_head(line)[:-4]) + wire.frame(wire.TEXT, inventory().encode()))
        while line.recv(4096):
            pass

    with answering(act) as address, pytest.raises(DeviceOpenError, match="the service says nothing"):
        devices.create_device("inverse3", {"address": address, "patience": 0.2}).open()


# --- the service in a process of its own -----------------------------------------------------------------------------


def test_emulated_service_runs_in_its_own_process_and_ends_with_the_device(tmp_path):
    log = tmp_path / "log.npy"
    settings = {"emulated": True, "hand": holding((0.01, 0.0)), "seed": 3, "period": 1e-3, "log": str(log)}
    with devices.create_device("inverse3", settings, clock=WallClock(1e-3)) as device:
        assert device.spec.identity == "emulated 049D"

        def is_where_the_hand_holds_it():
            device.write(np.array((0.0, 0.1)))
            return np.allclose(device.read().position, (0.01, 0.1 / 400.0), atol=0.1e-3)

        wait_until(is_where_the_hand_holds_it)
    rows = np.load(log)
    rows = rows[rows["monotonic_ns"] > 0]
    np.testing.assert_array_equal(rows["command"][0], (0.0, 0.1))
    np.testing.assert_array_equal(rows["command"][-1], (0.0, 0.0))


def test_hand_that_cannot_be_made_is_named_by_the_emulated_service():
    hand = {"name": "minimum-jerk", "points": [[0.0, 0.0], [0.5, 0.0]]}
    with pytest.raises(ConfigurationError, match=r"hand\.points"):
        devices.create_device("inverse3", {"emulated": True, "hand": hand}).open()
