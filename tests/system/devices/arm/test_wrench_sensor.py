"""What every force sensor is to the arm, with a wire in memory."""

import math
import queue
import re
import time

import numpy as np
import pytest

from devices.arm.sensors import force_sensor
from devices.arm.sensors.choosing import SENSORS, make_sensor
from devices.arm.sensors.force_sensor import ForceSensor
from devices.arm.sensors.mounting import SensorSettings, turn
from devices.arm.sensors.wire import Health, Sample
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from tests.devices.arm.sensor_rigs import LOAD, wait_until

PATIENT = {"patience": 1.0}
NO_FORCE = (0.0,) * 6


class Line:
    """A wire of which a test decides what comes; a load comes again and again in between, while it is not silent."""

    name = "the sensor"
    silence = "check its cable."

    def __init__(self, load=LOAD):
        self.load, self.silent = load, False
        self.health, self.words = Health.OK, ""
        self.measured = None
        self.error = None
        self.calls = []
        self.tally = {}
        self.loads = queue.SimpleQueue()

    def open(self):
        self.calls.append("open")

    def look(self, patience):
        if self.error is not None:
            raise self.error
        time.sleep(1e-3)
        if self.silent:
            return None
        now = time.perf_counter()
        load = self.load if self.loads.empty() else self.loads.get()
        return Sample(load, now, now if self.measured is None else self.measured, self.health, self.words)

    def zero(self):
        self.calls.append("zero")

    def close(self):
        self.calls.append("close")


@pytest.fixture
def line():
    return Line()


@pytest.fixture
def sensor(line):
    sensor = ForceSensor(line, SensorSettings(**PATIENT))
    yield sensor
    sensor.close()


@pytest.fixture
def impatient(line):
    sensor = ForceSensor(line, SensorSettings())
    yield sensor
    sensor.close()


def test_the_newest_force_comes_with_its_age(line, sensor):
    sensor.open()
    first = sensor.latest()
    np.testing.assert_array_equal(first.wrench, LOAD)
    assert first.health is Health.OK
    assert first.words == ""
    assert 0.0 <= first.age <= 1.0
    line.load = tuple(2.0 * number for number in LOAD)
    wait_until(lambda: sensor.latest().wrench[0] == line.load[0])


def test_it_opens_once_and_closes_always(line, sensor):
    sensor.open()
    sensor.open()
    assert line.calls == ["open"]
    sensor.close()
    assert line.calls[-1] == "close"
    with pytest.raises(DeviceFault, match="is not open"):
        sensor.latest()


def test_a_sensor_that_is_not_open_says_so(sensor):
    with pytest.raises(DeviceFault, match="the sensor is not open: call open"):
        sensor.latest()
    with pytest.raises(DeviceFault, match="the sensor is not open: call open"):
        sensor.tare()


def test_silence_is_a_fault_with_its_remedy(line, impatient):
    impatient.open()
    line.silent = True
    with pytest.raises(DeviceFault, match=r"^the sensor has sent no usable force for \d+ ms: check its cable\.$"):
        wait_until(lambda: impatient.latest() is None)


def test_a_force_that_cannot_be_trusted_is_none_and_grows_old(line, sensor):
    sensor.open()
    line.health, line.words = Health.FAULT, "overloaded"
    wait_until(lambda: sensor.latest().health is Health.FAULT)
    reading = sensor.latest()
    np.testing.assert_array_equal(reading.wrench, NO_FORCE)
    assert reading.words == "overloaded"
    before = reading.age
    wait_until(lambda: sensor.latest().age > before)


def test_a_force_that_cannot_be_trusted_for_long_is_a_fault(line, impatient):
    impatient.open()
    line.health, line.words = Health.FAULT, "overloaded"
    with pytest.raises(DeviceFault, match=r"for \d+ ms: overloaded$"):
        wait_until(lambda: impatient.latest() is None)


def test_a_force_can_be_trusted_again(line, sensor):
    sensor.open()
    line.health = Health.FAULT
    wait_until(lambda: sensor.latest().health is Health.FAULT)
    line.health = Health.OK
    wait_until(lambda: sensor.latest().health is Health.OK)
    np.testing.assert_array_equal(sensor.latest().wrench, LOAD)


def test_the_same_measurement_again_and_again_grows_old(line, impatient):
    impatient.open()
    line.measured, line.health, line.words = time.perf_counter(), Health.WARNING, "it stands still"
    with pytest.raises(DeviceFault, match=r"for \d+ ms: it stands still$"):
        wait_until(lambda: impatient.latest() is None)


@pytest.mark.parametrize("error", [DeviceFault("it is gone: plug it in."), RuntimeError("it is gone: plug it in.")])
def test_what_ends_the_reader_is_a_fault(line, impatient, error):
    impatient.open()
    line.error = error
    with pytest.raises(DeviceFault, match=r"^the sensor failed: it is gone: plug it in\.$"):
        wait_until(lambda: impatient.latest() is None)
    wait_until(lambda: bool(impatient._lost[0]))  # which a tick without Python looks at


def test_opened_anew_it_is_not_lost_and_has_no_force_of_before(line, impatient, monkeypatch):
    impatient.open()
    line.error = DeviceFault("it is gone.")
    wait_until(lambda: bool(impatient._lost[0]))
    impatient.close()
    line.error, seen = None, []
    look = line.look
    monkeypatch.setattr(
        line, "look", lambda patience: seen.append((impatient._lost[0], *impatient._readings.read())) or look(patience)
    )
    impatient.open()
    assert seen[0][:3] == (0.0, -math.inf, 1.0)


def test_a_sensor_that_stays_silent_does_not_open(line, sensor, monkeypatch):
    monkeypatch.setattr(force_sensor, "FIRST", 0.02)
    line.silent = True
    with pytest.raises(DeviceOpenError, match=r"the sensor sends no usable force: check its cable\."):
        sensor.open()
    assert line.calls == ["open", "close"]


def test_a_sensor_without_a_sound_measurement_does_not_open(line, sensor, monkeypatch):
    monkeypatch.setattr(force_sensor, "FIRST", 0.02)
    line.health, line.words = Health.FAULT, "overloaded: take the load away"
    with pytest.raises(DeviceOpenError, match="the sensor sends no usable force: overloaded: take the load away"):
        sensor.open()


def test_a_tare_is_the_mean_without_the_weight(line):
    sensor = ForceSensor(line, SensorSettings(tare_samples=20, handle_mass=0.5, **PATIENT))
    sensor.open()
    for k in range(200):
        line.loads.put(tuple(number + (0.1 if k % 2 else -0.1) for number in LOAD))
    wait_until(lambda: line.loads.qsize() < 200)
    sensor.tare()
    weight = sensor._mounting.weight()
    assert np.linalg.norm(weight[:3]) == pytest.approx(0.5 * 9.80665)
    assert np.abs(sensor._mounting.record["offset"][0] + weight - LOAD).max() < 0.09
    sensor.close()


def test_a_tare_with_a_hand_on_the_handle_is_refused(line):
    sensor = ForceSensor(line, SensorSettings(tare_samples=20, tare_spread=1.0, **PATIENT))
    sensor.open()
    for k in range(1000):
        line.loads.put((0.1 * k, *LOAD[1:]))
    with pytest.raises(DeviceOpenError, match="let go of the handle"):
        sensor.tare()
    sensor.close()


def test_a_tare_ends_when_the_sensor_does(line, impatient):
    impatient.open()
    line.silent = True
    with pytest.raises(DeviceFault, match="check its cable"):
        impatient.tare()


def test_a_tare_does_not_take_one_measurement_for_many(line):
    sensor = ForceSensor(line, SensorSettings(tare_samples=10))
    sensor.open()
    line.measured = time.perf_counter()
    with pytest.raises(DeviceFault, match="has sent no usable force"):
        sensor.tare()
    sensor.close()


def test_a_zero_interrupts_the_reader_only(line, sensor):
    sensor.open()
    sensor.zero()
    assert line.calls == ["open", "zero"]
    np.testing.assert_array_equal(sensor.latest().wrench, LOAD)


def test_after_a_zero_the_weight_still_counts_in_other_poses(line):
    """The sensor has zeroed the weight of the handle away; in another pose it shows the difference."""
    sensor = ForceSensor(line, SensorSettings(handle_mass=2.0, handle_centre=(0.0, 0.0, 0.1), **PATIENT))
    upright, lying = turn(0, 0.3), turn(1, 1.2)
    sensor.open()
    line.load = NO_FORCE
    sensor.zero(upright)
    np.testing.assert_allclose(sensor.latest(upright).wrench, NO_FORCE, atol=1e-12)
    line.load = tuple(sensor._mounting.weight(lying) - sensor._mounting.weight(upright))
    wait_until(lambda: np.abs(sensor.latest(lying).wrench).max() < 1e-12)
    sensor.close()


def test_sensors_by_name():
    assert make_sensor({"name": "ati", "address": "10.0.0.2"}).name == "the ATI force sensor at 10.0.0.2"
    assert make_sensor({"name": "onrobot-hex"}).name == "the OnRobot force sensor at 192.168.1.1"
    assert make_sensor({"name": "optoforce", "sensitivity": [[100, 10]] * 3}).name == "the OptoForce sensor"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "atti"}, "unknown force sensor 'atti'. Did you mean 'ati'?"),
        ({}, "must be a table such as {name = 'ati'}"),
        (None, "must be a table such as {name = 'ati'}"),
        ({"name": "ati", "rates": 5}, "unknown setting 'device.sensor.rates'. Did you mean 'device.sensor.rate'?"),
        ({"name": "ati", "rate": 5}, "device.sensor.rate = 5: must be a whole number at least 100 Hz"),
        (
            {"name": "ati", "rate": 999.5},
            "device.sensor.rate = 999.5: must be a whole number at least 100 Hz and at most 7000 Hz.",
        ),
        ({"name": "ati", "address": ""}, "device.sensor.address = ''"),
        ({"name": "ati", "filter": 100}, "must be one of 0, 5, 8, 18, 35, 73, 152, 326, 838, 1500, 2000, 2500, 3000."),
        ({"name": "onrobot-hex", "filter": 100}, "device.sensor.filter = 100.0 Hz: must be one of 0, 1.5, 5, 15"),
        ({"name": "onrobot-hex", "rate": 300}, "its period must be a whole number of milliseconds"),
        ({"name": "optoforce"}, "from the sensitivity report of this very sensor"),
        ({"name": "optoforce", "sensitivity": [[7925, 300]] * 4}, "each of 3 or 6 axes"),
        ({"name": "optoforce", "sensitivity": [[7925, 0]] * 3}, "each of 3 or 6 axes"),
        ({"name": "optoforce", "sensitivity": [[7925, "N"]] * 3}, "each of 3 or 6 axes"),
        ({"name": "optoforce", "sensitivity": [[1, 1]] * 3, "rate": 500}, "must be one of 30, 100, 333, 1000."),
    ],
)
def test_wrong_settings_say_so(table, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make_sensor(table)


def test_every_sensor_takes_the_settings_of_all():
    assert all(issubclass(settings, SensorSettings) for settings in SENSORS.values())
