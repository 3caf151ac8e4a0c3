"""The driver of OptoForce sensors over a real pseudo-terminal, against the emulated unit with all its faults."""

import contextlib
import re

import numpy as np
import pytest

from devices.arm.sensors import optoforce
from devices.arm.sensors.optoforce import FILTERS, SPEEDS, OptoForceSettings, OptoForceWire
from devices.arm.sensors.optoforce_frames import Frame
from devices.arm.sensors.wire import Health
from devices.emulators.optoforce.port import OptoForceUnit
from devices.emulators.optoforce.program import Faults, Program
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.devices.arm.sensor_rigs import LOAD, load, wait_until

OMD45 = [[7925, 300], [8641, 300], [6049, 2000]]
"""Sensitivity report of the sensor of the real recording."""
HEX = [[20000, 200]] * 3 + [[20000, 4]] * 3


def unit_with(sensitivity):
    return OptoForceUnit(load, [counts / full for counts, full in sensitivity])


@contextlib.contextmanager
def opened(unit, sensitivity=OMD45, **settings):
    """Give an open sensor, patient with a busy machine."""
    sensor = OptoForceSettings(**{"port": unit.port, "sensitivity": sensitivity, "patience": 1.0, **settings}).build()
    sensor.open()
    try:
        yield sensor
    finally:
        sensor.close()


@pytest.fixture(scope="module")
def shared():
    with unit_with(OMD45) as unit:
        yield unit


@pytest.fixture(scope="module")
def running(shared):
    with opened(shared) as sensor:
        yield sensor


@pytest.fixture
def faults(shared):
    yield shared.program.faults
    shared.program.faults = Faults()


@contextlib.contextmanager
def counting(sensor, **least):
    """Do what is inside, then wait until the tally has grown by at least so much."""
    before = dict(sensor.tally)
    yield
    wait_until(lambda: all(sensor.tally[name] >= before[name] + count for name, count in least.items()))


def shows_the_load(sensor):
    """Tell whether the force is the load, to half a count of each axis."""
    return bool((np.abs(sensor.latest().wrench[:3] - LOAD[:3]) <= [0.02, 0.02, 0.17]).all())


def test_the_first_measurement_of_the_real_recording_in_newtons():
    wire = OptoForceWire(OptoForceSettings(sensitivity=OMD45))
    sample = wire._sample(Frame(11626, 0, (-9, -5, 7)), "", 0.0)
    np.testing.assert_allclose(sample.wrench, [-0.3407, -0.1736, 2.3144, 0, 0, 0], atol=5e-5)


def test_three_axes(running):
    reading = running.latest()
    assert reading.health is Health.OK
    assert shows_the_load(running)
    np.testing.assert_array_equal(reading.wrench[3:], np.zeros(3))


def test_six_axes():
    with unit_with(HEX) as unit, opened(unit, HEX) as sensor:
        np.testing.assert_allclose(sensor.latest().wrench, LOAD, atol=5e-3)


@pytest.mark.parametrize(("rate", "cutoff"), [(1000, 500), (333, 0), (100, 1.5)])
def test_rate_and_filter_are_set(rate, cutoff):
    with unit_with(OMD45) as unit, opened(unit, rate=rate, filter=cutoff):
        assert (unit.program.period, unit.program.cutoff) == (SPEEDS[rate], FILTERS[cutoff])


@pytest.mark.parametrize(
    ("fault", "counted"),
    [
        ("lose", {"lost": 3, "received": 10}),
        ("truncate", {"lost": 3, "damaged": 3, "received": 10}),
        ("insert", {"lost": 3, "damaged": 3, "received": 10}),
        ("damage", {"lost": 3, "skipped": 3, "received": 10}),
        ("duplicate", {"duplicated": 3, "received": 10}),
    ],
)
def test_what_goes_wrong_is_counted_and_the_force_goes_on(running, faults, fault, counted):
    with counting(running, **counted):
        setattr(faults, fault, 3)
    wait_until(lambda: shows_the_load(running))
    assert running.latest().health is Health.OK


def test_late_frames_come_at_once_and_all_of_them(running, faults):
    before = running.tally["lost"]
    with counting(running, received=60):
        faults.delays.extend([1e-3, 5e-3, 20e-3])
    assert running.tally["lost"] == before


def test_headers_inside_of_frames_are_nothing_but_numbers(running, faults):
    before = running.tally["damaged"]
    with counting(running, received=20):
        faults.raw = (-22009, 2058, -22009)  # aa07 080a aa07
    expected = [count * full / counts for count, (counts, full) in zip(faults.raw, OMD45, strict=True)]
    np.testing.assert_allclose(running.latest().wrench[:3], expected)
    assert running.tally["damaged"] == before


def test_an_overload_takes_the_force_away_until_it_is_over(running, faults):
    faults.status = 0x0080
    wait_until(lambda: running.latest().health is Health.FAULT)
    reading = running.latest()
    np.testing.assert_array_equal(reading.wrench, np.zeros(6))
    assert reading.words == "overloaded in Fz: take the load away (status 0x0080)"
    faults.status = 0
    wait_until(lambda: running.latest().health is Health.OK)
    assert shows_the_load(running)


def test_one_faulty_frame_among_others_is_not_overlooked():
    frames = Program(load, [1.0] * 3)
    wire = OptoForceWire(OptoForceSettings(sensitivity=[[1, 1]] * 3))
    frames.faults.status = 0x0080
    data = frames.due(0.0)
    frames.faults.status = 0
    data += frames.due(0.01) + frames.due(0.02)
    wire._receive = lambda patience: wire._decoder.feed(data)
    assert wire.look(0.0).health is Health.FAULT


@pytest.mark.parametrize(
    ("fault", "value", "message"),
    [
        ("status", 0x0400, "no usable force for .*: no sensor at the DAQ unit: check the cable between them"),
        ("mute", True, "nothing comes from it: check its cable, plug it in anew"),
        (
            "raw",
            (1, 2, 3, 4, 5, 6),
            "it sends 6 values and device.sensor.sensitivity has 3: use the sensitivity report",
        ),
    ],
)
def test_what_lasts_is_a_fault_with_its_remedy(fault, value, message):
    with unit_with(OMD45) as unit, opened(unit, patience=0.25) as sensor:
        setattr(unit.program.faults, fault, value)
        with pytest.raises(DeviceFault, match=message):
            wait_until(lambda: sensor.latest() is None)


def test_a_cable_that_is_pulled_out():
    with unit_with(OMD45) as unit, opened(unit) as sensor:
        unit.unplug()
        with pytest.raises(DeviceFault, match=r"failed: it is gone \(.*\): check its cable and plug it in anew"):
            wait_until(lambda: sensor.latest() is None)


def test_zero_is_the_sensors_own():
    with unit_with(OMD45) as unit, opened(unit) as sensor:
        assert shows_the_load(sensor)
        sensor.zero()
        np.testing.assert_array_equal(sensor.latest().wrench, np.zeros(6))


@pytest.mark.parametrize("lost", [0, 2])
def test_close_stops_the_stream_even_if_commands_get_lost(lost, monkeypatch):
    monkeypatch.setattr(optoforce, "ANSWER", 0.05)
    with unit_with(OMD45) as unit:
        with opened(unit) as sensor:
            assert unit.program.streaming
            unit.program.faults.deaf = lost
        assert not unit.program.streaming
        sensor.close()  # and may be called again
        with opened(unit) as again:
            assert shows_the_load(again)


def test_a_unit_that_does_not_answer_is_refused(monkeypatch):
    monkeypatch.setattr(optoforce, "ANSWER", 0.02)
    with unit_with(OMD45) as unit:
        unit.program.faults.deaf = 100
        with pytest.raises(DeviceOpenError, match="does not answer: nothing comes from it"), opened(unit):
            pass


def test_settings_that_are_not_taken_say_so(monkeypatch):
    with unit_with(OMD45) as unit:
        refusal = bytes.fromhex("aa0050010300fe")
        monkeypatch.setattr(unit.program, "due", lambda now: refusal)
        with pytest.raises(DeviceOpenError, match="does not take its settings"), opened(unit):
            pass


def test_two_sessions_cannot_share_a_sensor(shared, running):
    with (
        pytest.raises(DeviceOpenError, match=r"another (session|program).* has it open"),
        opened(shared),
    ):
        pass
    wait_until(lambda: shows_the_load(running))


@pytest.mark.parametrize(
    ("port", "error", "message"),
    [
        (
            "/dev/ttyACM99",
            DeviceNotFoundError,
            "there is no /dev/ttyACM99: plug the device in, or leave device.sensor.port",
        ),
        (
            "/dev/null",
            DeviceOpenError,
            "/dev/null cannot be opened: it is no serial port: choose another device.sensor.port",
        ),
    ],
)
def test_a_port_that_cannot_be_used(port, error, message):
    with pytest.raises(error, match=re.escape(message)):
        OptoForceSettings(port=port, sensitivity=OMD45).build().open()
