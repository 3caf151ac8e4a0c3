"""The Inverse3 driver on an emulated service in this process: runs, opening, faults and the guardian."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import devices
from devices.emulators import websocket as wire
from devices.emulators.inverse3 import CENTRE, InverseServer
from devices.emulators.wire_faults import DELAYS
from devices.inverse3.exchange import MOST_OPEN, ServiceExchange
from devices.inverse3.websocket import Connection, parse_address
from haptics import Coulomb, MasslessImpedance, Servo, Trace
from haptics.clock import WallClock, cancelled_by
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.records import Status
from haptics.servo.kernels import AVAILABLE
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

pytestmark = pytest.mark.wall_clock  # threads of this process exchange messages in real time


class TestInverse3(DeviceContract):
    name = "inverse3"

    @pytest.fixture(autouse=True)
    def at_a_service(self, server):
        self.settings = {"address": server.address, **PATIENT}

    def test_samples_are_fresh(self, device):
        wait_until(lambda: 0.0 <= device._clock.elapsed() - device.read().time <= device.spec.max_sample_age)


# --- an ordinary run -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plane", ["xy", "xz", "yz"])
def test_position_and_force_are_those_of_the_plane(plane):
    axes = ["xyz".index(letter) for letter in plane]
    one = emulated(plane=plane, filters=transparent())
    with InverseServer([one]) as server, driven(server, plane=plane) as device:
        for force in ((0.0, 0.0), (2.0, 0.0), (0.0, -3.0)):
            exercise(device, 0.3, force)
            np.testing.assert_allclose([one.commanded[axis] for axis in axes], force, atol=1e-6)
            where = [one.handle.position[axis] for axis in axes]
            np.testing.assert_allclose(device.read().position, where, atol=1e-4)
            np.testing.assert_allclose(where, np.array(force) / 400.0, atol=1e-3)  # the hand's grip gives way


@pytest.mark.parametrize(
    ("preset", "origin", "sign"),
    [("arm_front_centered", (0.01, -0.02, 0.0), 1.0), ("arm_front", (0.01, CENTRE[1] - 0.02, CENTRE[2]), 1.0),
     ("led_front_centered", (0.01, -0.02, 0.0), -1.0)],
)  # fmt: skip
def test_origin_and_preset_transform_position_and_force(preset, origin, sign):
    one = emulated(hand=holding((0.02, 0.01)))
    with InverseServer([one]) as server, driven(server, preset=preset, origin=origin) as device:
        exercise(device, 0.2, (0.0, 0.0))
        assert one.preset == preset
        where = sign * np.array(one.handle.position[:2]) - (0.01, -0.02)
        np.testing.assert_allclose(device.read().position, where, atol=1e-4)
        exercise(device, 0.1, (1.0, 0.5))
        np.testing.assert_allclose(one.commanded[:2], sign * np.array((1.0, 0.5)), atol=1e-6)


def test_named_device_is_driven_and_the_other_left_alone():
    one, other = emulated("049D", hand=holding((0.02, 0.0))), emulated("04A0", hand=holding((-0.02, 0.0)))
    with InverseServer([one, other]) as server:
        for chosen, left, name in ((one, other, "049D"), (other, one, other.uuid)):
            with driven(server, device_id=name) as device:
                exercise(device, 0.1, (1.0, 0.0))
                assert chosen.commanded == pytest.approx((1.0, 0.0, 0.0))
                assert device.read().position[0] == pytest.approx(chosen.handle.position[0], abs=1e-3)
            assert not any(any(entry.commanded) for entry in list(left.log))
            one.log.clear()
            other.log.clear()


def test_force_removed_by_the_service_is_a_channel():
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


# --- the third axis --------------------------------------------------------------------------------------------------


def test_third_axis_is_held_near_the_plane_with_a_bounded_force():
    one = emulated(filters=transparent())
    with InverseServer([one]) as server, driven(server, hold_stiffness=300.0, hold_force=1.0) as device:
        exercise(device, 0.4, (0.0, 0.0), share=0.0)
        fallen = one.handle.position[2]
        assert fallen < -5e-3, "the safe output holds nothing"
        assert one.commanded[2] == 0.0
        wait_until(lambda: exercise(device, 0.05, (0.0, 0.0), share=1.0) or abs(one.handle.position[2]) < 1.5e-3)
        exercise(device, 0.3, (0.0, 0.0), share=1.0)
        assert one.handle.position[2] == pytest.approx(-0.3 / 300.0, abs=2e-4)  # the spring yields
        assert one.commanded[2] == pytest.approx(0.3, abs=0.05)
        log = list(one.log)  # a snapshot
        told = np.array([entry.commanded[2] for entry in log])
        speed = np.array([entry.velocity[2] for entry in log])
        assert told.max() <= 1.0
        assert np.abs(speed[told > 0.0]).max() < 0.15, "it is brought back slowly"


# --- opening ---------------------------------------------------------------------------------------------------------


def test_closed_port_is_no_service():
    with InverseServer([emulated()]) as server:
        address = server.address
    with pytest.raises(DeviceNotFoundError, match=r"no Haply service answers at 127\.0\.0\.1:.*device\.emulated=true"):
        devices.create_device("inverse3", {"address": address}).open()


@pytest.mark.parametrize(("answer", "words"), [
    (None, r"200 OK'; is this the Haply service"), (b"[" * 50_000, "no JSON"),
    (b'{"inverse3": 3}', "no list of devices"), (inventory().encode(), "the service says nothing"),
], ids=["HTTP server", "nested brackets", "wrong type", "inventory only"])  # fmt: skip
def test_other_server_is_no_service(answer, words):
    def act(line):
        head = received_head(line)[:-4]
        if answer is None:
            line.sendall(b"HTTP/1.1 200 OK\r\n\r\n<html>")
            return
        line.sendall(wire.greeting(head) + wire.frame(wire.TEXT, answer))
        while line.recv(4096):
            pass

    with answering(act) as address, pytest.raises(DeviceOpenError, match=words):
        devices.create_device("inverse3", {"address": address, "patience": 0.2}).open()


@pytest.mark.parametrize(("fault", "words"), [("no-power", "has no power"), ("uncalibrated", "is not calibrated")])
def test_device_that_is_not_ready_times_out(server, fault, words):
    (one,) = server.service.devices
    server.faults.set(fault)
    with pytest.raises(DeviceOpenError, match=f"049D {words}"):
        driver(server, patience=0.2).open()
    assert not any(any(entry.commanded) for entry in list(one.log))
    server.faults.clear()
    with driven(server):
        pass


def test_device_that_becomes_ready_is_waited_for(server):
    server.faults.set("uncalibrated")
    asked = []

    def calibrates():
        asked.append(1)
        if len(asked) == 5:
            server.faults.clear()
        return False

    with cancelled_by(calibrates), driven(server):
        assert len(asked) > 5


def test_minverse_has_its_own_workspace():
    with InverseServer([emulated(kind="minverse")]) as server, driven(server, kind="minverse") as device:
        assert device.spec.workspace_max == (0.028, 0.028)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"address": "localhost"}, r"device\.address = 'localhost': must be an address ws://HOST:PORT"),
        ({"address": "wss://localhost:10001"}, r"device\.address"),
        ({"plane": "zz"}, r"device\.plane = 'zz': must be two different axes"),
        ({"origin": [0.0, 0.0]}, r"device\.origin = \[0\.0, 0\.0\]: must be three numbers"),
        ({"origin": [0.0, 0.0, float("nan")]}, r"device\.origin"),
        ({"origin": [0.0, 0.0, 0.6]}, r"each at most 0\.5 m"),
        ({"hold_stiffness": 2000.0}, r"device\.hold_stiffness = 2000\.0: .*at most 1000 N/m"),
        ({"hold_force": 6.0}, r"device\.hold_force = 6\.0: .*at most 5 N"),
        ({"max_force": 11.0}, r"device\.max_force = 11\.0: .*at most 10 N"),
    ],
)
def test_wrong_setting_is_named(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("inverse3", settings)


# --- faults that a run survives --------------------------------------------------------------------------------------


def age(device):
    return device._clock.elapsed() - device.read().time


@pytest.mark.parametrize("fault", ["delay-1ms", "delay-5ms", "delay-20ms"])
def test_late_answer_is_an_old_sample(server, fault):
    (one,) = server.service.devices
    with driven(server) as device:
        exercise(device)
        server.faults.set(fault)
        exercise(device, 0.3, (1.0, 0.0))
        assert device._opened().samples.read()[0] > 0.0
        assert min(age(device) for _ in range(50)) >= 0.0
        wait_until(lambda: age(device) >= DELAYS[fault])
        server.faults.clear()
        wait_until(lambda: exercise(device, 0.02, (0.5, 0.0)) or age(device) < device.spec.max_sample_age)
        assert one.commanded[0] == pytest.approx(0.5)


def conversation(server):
    """Return a connection and the exchange over it, which has its first sample."""
    connection = Connection(parse_address(server.address), 5.0)
    while not connection.receive(1.0):
        pass
    settings = SimpleNamespace(keep_alive=2e-3, watchdog=60.0)
    exchange = ServiceExchange(connection, "049D", settings, reply_timeout=60.0)
    assert exchange.come_to_rest()
    return connection, exchange


def test_stalled_service_gets_no_queue_of_forces_but_always_the_zero(server):
    connection, exchange = conversation(server)
    (one,) = server.service.devices
    server.faults.set("dropout")  # forces are taken, nothing is answered
    one.log.clear()
    exchange.start()
    for k in range(200):
        exchange.commands.publish(1.0 + 1e-3 * k, 0.0, 0.0, time.perf_counter())
        exchange.wake.call()
        time.sleep(1e-3)
    assert len(one.log) <= MOST_OPEN + 1
    assert one.commanded[0] >= 1.0
    exchange.commands.publish(0.0, 0.0, 0.0, time.perf_counter())
    exchange.wake.call()
    wait_until(lambda: one.commanded == (0.0, 0.0, 0.0))
    exchange.stop()
    connection.close(0.5)


def test_an_answer_to_no_message_is_left_alone(server):
    connection, exchange = conversation(server)
    text = server.service.receive("{}", 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "receive", lambda timeout: [text])
        assert exchange._receive(0.0) == (None, "")
    connection.close(0.5)


# --- faults that end a run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fault", "words"), [
    ("unplug", "the device 049D is no longer there"),
    ("no-power", "the device 049D has no power: plug in its power supply"),
    ("uncalibrated", "the device 049D is not calibrated"), ("hang-up", "the service has hung up"),
    ("close", r"the service has closed the connection \(code 1001, 'going away'\)"),
    ("dropout", r"the service did not answer within 0\.2 s"), ("nonsense", "something that is no JSON"),
    ("not-utf8", "a text is not UTF-8"), ("giant", "4611686018427387904 bytes"),
])  # fmt: skip
def test_fault_ends_the_run_with_its_reason_and_no_force(server, fault, words):
    (one,) = server.service.devices
    device = driver(server, reply_timeout=0.2)
    device.open()
    exercise(device, 0.05, (1.0, 0.5))
    assert any(one.commanded)
    server.faults.set(fault)
    with pytest.raises(DeviceFault, match=f"inverse3: .*{words}.*; the service lets go of a force"):
        wait_until(lambda: exercise(device, 0.02, (1.0, 0.5)))
    if fault not in {"hang-up", "close"}:
        wait_until(lambda: one.commanded == (0.0, 0.0, 0.0))
    if fault in {"no-power", "uncalibrated"}:
        server.faults.clear()
        device.close()  # the trouble has passed, and the service confirms
    else:
        with pytest.raises(DeviceFault, match=r"the force could not be set to 0 \("):
            device.close()
    device.close()


@pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here")
def test_stalled_service_makes_old_samples_and_no_force(server, tmp_path):
    clock = WallClock(5e-3)
    device = driver(server, clock, reply_timeout=2.0)
    (one,) = server.service.devices
    trace = Trace.create(tmp_path / "trace", capacity=8192)
    servo = Servo(device, MasslessImpedance(Coulomb(0.5), 300.0, 2.0, clock.period), trace, clock=clock)
    threading.Timer(0.8, lambda: server.faults.set("dropout")).start()
    with pytest.raises(DeviceFault, match="no usable sample since tick"):
        servo.run(20.0)
    assert servo.compiled
    rows = trace.since(0)
    assert (rows["status"][-10:] & int(Status.STALE) != 0).all()
    assert not rows["command"][-10:].any()
    assert one.commanded == (0.0, 0.0, 0.0)


def test_timed_faults_start_at_the_first_force_of_every_driver():
    with InverseServer([emulated(hand=holding())], ["delay-20ms@0.2+0.2"]) as server:
        for _ in range(2):
            with driven(server) as device:
                time.sleep(0.3)
                wait_until(lambda device=device: age(device) < 0.02)
                wait_until(lambda device=device: exercise(device, 5e-3) or age(device) >= 0.02)
                wait_until(lambda device=device: exercise(device, 0.02) or age(device) < 0.01)


def test_command_that_is_not_finite_never_reaches_the_service(server):
    (one,) = server.service.devices
    with driven(server) as device:
        exercise(device)
        with pytest.raises(DeviceFault, match="finite"):
            device.write(np.array((np.nan, 0.0)))
        exercise(device)
        assert np.isfinite([entry.commanded for entry in list(one.log)]).all()
