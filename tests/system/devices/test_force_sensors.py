"""Force sensors of the arm: a wire in memory; ATI, OnRobot and OptoForce over sockets and terminals."""

import contextlib
import math
import queue
import re
import socket
import time

import numpy as np
import pytest

from devices.arm.device import make_sensor
from devices.arm.sensors import force_sensor, optoforce, rdt
from devices.arm.sensors.force_sensor import ForceSensor, Health, Sample, SensorSettings
from devices.arm.sensors.optoforce import SPEEDS, OptoForceSettings, OptoForceWire
from devices.arm.sensors.rdt import ATI_FILTERS
from devices.emulators import optoforce as optoforce_emulator
from devices.emulators.optoforce import OptoForceUnit
from devices.emulators.rdt import ADDRESS, Program, RdtBox
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.devices.arm.sensor_rigs import LOAD, load, wait_until

# --- a wire in memory ------------------------------------------------------------------------------------------------

PATIENT = {"patience": 1.0}


class Line:
    """A wire that repeats a load unless it is silent; a test can queue other loads."""

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

    def poll(self, patience):
        if self.error is not None:
            raise self.error
        time.sleep(1e-3)
        if self.silent:
            return None
        now = time.perf_counter()
        load = self.load if self.loads.empty() else self.loads.get()
        return Sample(load, now, now if self.measured is None else self.measured, self.health, self.words)

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


def test_latest_force_has_its_age(line, sensor):
    sensor.open()
    first = sensor.latest()
    np.testing.assert_array_equal(first.wrench, LOAD)
    assert first.health is Health.OK
    assert first.words == ""
    assert 0.0 <= first.age <= 1.0
    line.load = tuple(2.0 * number for number in LOAD)
    wait_until(lambda: sensor.latest().wrench[0] == line.load[0])


def test_sensor_opens_once_and_closes(line, sensor):
    for use in (sensor.latest, sensor.tare):
        with pytest.raises(DeviceFault, match="the sensor is not open: call open"):
            use()
    sensor.open()
    sensor.open()
    assert line.calls == ["open"]
    sensor.close()
    assert line.calls[-1] == "close"
    with pytest.raises(DeviceFault, match="is not open"):
        sensor.latest()


@pytest.mark.parametrize("error", [DeviceFault("it is gone: plug it in."), RuntimeError("it is gone: plug it in.")])
def test_error_of_the_reader_is_a_fault(line, sensor, error):
    sensor.open()
    line.error = error
    with pytest.raises(DeviceFault, match=r"^the sensor failed: it is gone: plug it in\.$"):
        wait_until(lambda: sensor.latest() is None)
    wait_until(lambda: bool(sensor._lost[0]))  # the flag of the compiled loop


def test_reopened_sensor_has_no_earlier_fault_or_force(line, sensor, monkeypatch):
    sensor.open()
    line.error = DeviceFault("it is gone.")
    wait_until(lambda: bool(sensor._lost[0]))
    sensor.close()
    line.error, seen = None, []
    poll = line.poll
    monkeypatch.setattr(
        line, "poll", lambda patience: seen.append((sensor._lost[0], *sensor._readings.read())) or poll(patience)
    )
    sensor.open()
    assert seen[0][:3] == (0.0, -math.inf, 1.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"silent": True}, r"check its cable\."),
        ({"health": Health.FAULT, "words": "overloaded: take the load away"}, "overloaded: take the load away"),
    ],
    ids=["silent", "overloaded"],
)
def test_sensor_without_a_valid_force_does_not_open(line, sensor, monkeypatch, changes, words):
    monkeypatch.setattr(force_sensor, "START_TIMEOUT", 0.02)
    vars(line).update(changes)
    with pytest.raises(DeviceOpenError, match=f"the sensor sends no usable force: {words}"):
        sensor.open()
    assert line.calls == ["open", "close"]


def test_tare_is_the_mean_without_the_weight(line):
    sensor = ForceSensor(line, SensorSettings(tare_samples=20, handle_mass=0.5, **PATIENT))
    sensor.open()
    for k in range(200):
        line.loads.put(tuple(number + (0.1 if k % 2 else -0.1) for number in LOAD))
    wait_until(lambda: line.loads.qsize() < 200)
    sensor.tare()
    weight = sensor._mounting.record["handle"][0] @ sensor._mounting.gravity()
    assert np.linalg.norm(weight[:3]) == pytest.approx(0.5 * 9.80665)
    assert np.abs(sensor._mounting.record["offset"][0] + weight - LOAD).max() < 0.09
    sensor.close()


def test_tare_with_a_hand_on_the_handle_is_refused(line):
    sensor = ForceSensor(line, SensorSettings(tare_samples=20, tare_spread=1.0, **PATIENT))
    sensor.open()
    for k in range(1000):
        line.loads.put((0.1 * k, *LOAD[1:]))
    with pytest.raises(DeviceOpenError, match="let go of the handle"):
        sensor.tare()
    sensor.close()


def test_tare_ends_with_the_fault_of_the_sensor(line, sensor):
    sensor.open()
    line.silent = True
    with pytest.raises(DeviceFault, match="check its cable"):
        sensor.tare()


def test_tare_does_not_count_repeated_measurements(line):
    sensor = ForceSensor(line, SensorSettings(tare_samples=10))
    sensor.open()
    line.measured = time.perf_counter()
    with pytest.raises(DeviceFault, match="has sent no usable force"):
        sensor.tare()
    sensor.close()


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
def test_wrong_setting_is_named(table, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make_sensor(table)


# --- emulated sensors ------------------------------------------------------------------------------------------------

SATURATED = 0x80020000
# Sensitivity report of the sensor of the real recording.
OMD45 = [[7925, 300], [8641, 300], [6049, 2000]]
HEX = [[20000, 200]] * 3 + [[20000, 4]] * 3


@contextlib.contextmanager
def opened(kind, address, **settings):
    """Yield an open sensor that tolerates the pauses of a busy machine."""
    sensor = make_sensor({"name": kind, "patience": 1.0, **address, **settings})
    sensor.open()
    try:
        yield sensor
    finally:
        sensor.close()


def unit_with(sensitivity=OMD45):
    return OptoForceUnit(load, [counts / full for counts, full in sensitivity])


def opened_unit(unit, sensitivity=OMD45, **settings):
    return opened("optoforce", {"port": unit.port, "sensitivity": sensitivity}, **settings)


@contextlib.contextmanager
def rig_of(name, **settings):
    """Yield an emulated sensor and its open driver."""
    if name == "ati":
        with RdtBox(load) as box, opened("ati", box.web_address, **settings) as sensor:
            yield box, sensor
    else:
        with unit_with() as unit, opened_unit(unit, **settings) as sensor:
            yield unit, sensor


def shows_the_load(sensor):
    """Return whether the force is the load, to half a count of the OptoForce sensor."""
    rough = isinstance(sensor._settings, OptoForceSettings)
    error = np.abs(sensor.latest().wrench - ((*LOAD[:3], 0.0, 0.0, 0.0) if rough else LOAD))
    return bool((error <= (np.array((0.02, 0.02, 0.17, 0.0, 0.0, 0.0)) if rough else 1e-6)).all())


@contextlib.contextmanager
def counting(sensor, **least):
    """Run the block, then wait until the counters have grown by at least `least`."""
    before = dict(sensor.tally)
    yield
    wait_until(lambda: all(sensor.tally[name] >= before[name] + count for name, count in least.items()))


@pytest.fixture(scope="module")
def rig(request):
    """One emulated sensor and its driver for all tests that restore its faults."""
    with rig_of(request.param) as rig:
        yield rig


@pytest.fixture
def running(rig):
    return rig[1]


@pytest.fixture
def faults(rig):
    program = rig[0].program
    yield program.faults
    program.faults = type(program.faults)()


# --- every sensor ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rig", "fault", "counted"), [
    ("ati", "lost", {"lost": 4}), ("ati", "duplicated", {"duplicated": 4}),
    ("ati", "reordered", {"late": 4, "lost": 4}), ("ati", "truncated", {"malformed": 4, "lost": 4}),
    ("optoforce", "lost", {"lost": 4}), ("optoforce", "truncated", {"lost": 4, "damaged": 4}),
    ("optoforce", "inserted", {"lost": 4, "damaged": 4}), ("optoforce", "damaged", {"lost": 4, "skipped": 4}),
    ("optoforce", "duplicated", {"duplicated": 4}),
], indirect=["rig"], scope="module")  # fmt: skip
def test_faulty_records_are_counted_and_dropped(running, faults, fault, counted):
    with counting(running, received=10, **counted):
        setattr(faults, fault, 4)
    wait_until(lambda: shows_the_load(running))
    assert running.latest().health is Health.OK
    assert running.tally.get("restarted", 0) == 0


@pytest.mark.parametrize(("rig", "status", "words"), [
    ("ati", SATURATED, "saturated"), ("optoforce", 0x0080, "overloaded in Fz: take the load away (status 0x0080)"),
], indirect=["rig"], scope="module")  # fmt: skip
def test_overloaded_sensor_gives_no_force(running, faults, status, words):
    faults.status = status
    wait_until(lambda: running.latest().health is Health.FAULT)
    reading = running.latest()
    np.testing.assert_array_equal(reading.wrench, np.zeros(6))
    assert words in reading.words
    wait_until(lambda: running.latest().age > reading.age)
    faults.status = 0
    wait_until(lambda: running.latest().health is Health.OK)
    assert shows_the_load(running)


@pytest.mark.parametrize(
    ("name", "fault", "value", "message"),
    [
        ("ati", "status", SATURATED, "no usable force for .*: saturated: take the load away"),
        ("ati", "status", 0x84000000, "program memory is corrupt"),
        ("ati", "stalled", True, "it sends one measurement again and again: switch it off and on"),
        ("ati", "mute", True, "nothing comes from 127.0.0.1: check its power and network cable"),
        ("optoforce", "status", 0x0400, "no usable force for .*: no sensor at the DAQ unit: check the cable"),
        ("optoforce", "mute", True, "nothing comes from it: check its cable, plug it in anew"),
        ("optoforce", "raw", (1, 2, 3, 4, 5, 6), "it sends 6 values and device.sensor.sensitivity has 3"),
    ],
)
def test_lasting_fault_of_the_sensor_is_a_fault(name, fault, value, message):
    with rig_of(name, patience=0.25) as (emulator, sensor):
        setattr(emulator.program.faults, fault, value)
        with pytest.raises(DeviceFault, match=message):
            wait_until(lambda: sensor.latest() is None)


@pytest.mark.parametrize(("name", "lost"), [("ati", 0), ("ati", 3), ("optoforce", 0), ("optoforce", 2)])
def test_close_stops_the_stream_though_commands_get_lost(name, lost, monkeypatch):
    monkeypatch.setattr(optoforce, "ANSWER", 0.05)
    with rig_of(name) as (emulator, sensor):
        assert emulator.program.streaming
        emulator.program.faults.deaf = lost
        sensor.close()
        assert not emulator.program.streaming
        sensor.open()
        wait_until(lambda: shows_the_load(sensor))


# --- sensors on the network ------------------------------------------------------------------------------------------


def test_commands_are_the_published_examples():
    with socket.socket(type=socket.SOCK_DGRAM) as far_end, socket.socket(type=socket.SOCK_DGRAM) as own:
        far_end.bind((ADDRESS, 0))
        own.connect(far_end.getsockname())
        for command, code in ((rdt.START, "0002"), (rdt.STOP, "0000")):
            rdt._send(own, command)
            assert far_end.recv(64) == bytes.fromhex(f"1234{code}00000000")


def test_box_gets_changed_settings_only():
    asked = []
    with RdtBox(load) as box:
        page = box.program.page
        box.program.page = lambda path: (asked.append(path), page(path))[1]
        for _ in range(2):
            with opened("ati", box.web_address, filter=73.0):
                assert box.program.settings["comrdtrate"] == "1000"
                assert box.program.settings["setuserfilter"] == str(ATI_FILTERS[73]) == "4"
    assert len([path for path in asked if "cgi" in path]) == 2


@pytest.mark.parametrize(("force_unit", "torque_unit", "newton", "newton_metre"), [
    ("lbf", "lbf-in", 4.4482216152605, 4.4482216152605 * 0.0254),
    ("klbf", "lbf-ft", 4448.2216152605, 4.4482216152605 * 0.3048), ("N", "Nmm", 1.0, 1e-3), ("kN", "kN-m", 1e3, 1e3),
    ("kgf", "kgf-cm", 9.80665, 9.80665e-2),
])  # fmt: skip
def test_units_of_the_box_are_converted_to_newtons(force_unit, torque_unit, newton, newton_metre):
    units = {"force_unit": force_unit, "torque_unit": torque_unit, "newton": newton, "newton_metre": newton_metre}
    with RdtBox(load, **units) as box, opened("ati", box.web_address) as sensor:
        np.testing.assert_allclose(sensor.latest().wrench, LOAD, atol=1e-6 * max(newton, newton_metre))


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (None, "answered 404 Not Found to /netftapi2.xml: is it an ATI Net F/T or Axia?"),
        ("a printer", "what 127.0.0.1 sends for netftapi2.xml cannot be read"),
        ("<netft/>", "says comrdtrate = 'nothing', which must be a number"),
        ({"scfgfu": "pond"}, "says scfgfu = 'pond', an unknown unit: choose one of"),
        ({"scfgtu": ""}, "says scfgtu = '', an unknown unit"),
        ({"cfgcpf": "0"}, "says cfgcpf = '0', which must be a number"),
        ({"cfgcpt": "-5"}, "cfgcpt = -5 counts to a unit of force and of torque"),
        ({"cfgcpf": "nan"}, "says cfgcpf = 'nan', which must be a number"),
        ({"comrdtrate": "7000"}, "sends 7000 records a second, but was set to 1000"),
        ({"setuserfilter": "1"}, "did not take the filter at 0 Hz"),
    ],
)
def test_invalid_page_of_the_box_is_refused(page, message):
    """A table has the settings that the box claims to have."""
    with RdtBox(load) as box:
        fixed = page
        if isinstance(page, dict):
            program = Program(load)
            program.settings.update({"comrdtrate": "1000", **page})
            fixed = program.page("/netftapi2.xml")
        box.program.page = lambda path: fixed if "xml" in path else ""
        with pytest.raises(DeviceOpenError, match=re.escape(message)):
            make_sensor({"name": "ati", **box.web_address}).open()
        assert not box.program.streaming


def test_absent_box_is_reported():
    with RdtBox(load) as box, socket.socket() as taken:
        taken.bind((ADDRESS, 0))  # bound, not listening
        settings = {"name": "ati", **box.web_address, "web_port": taken.getsockname()[1]}
        with pytest.raises(DeviceOpenError, match=r"cannot be reached .*: check its power and network cable"):
            make_sensor(settings).open()


@pytest.mark.parametrize("address", ["256.256.256.256", "a..b", "x" * 300])
def test_invalid_address_is_reported(address):
    with pytest.raises(DeviceNotFoundError, match=f"the force sensor at {re.escape(address)} "):
        make_sensor({"name": "onrobot-hex", "address": address}).open()


def test_axia_sensors_have_other_status_bits():
    with RdtBox(load, product="Ethernet Axia") as box, opened("ati", box.web_address) as sensor:
        box.program.faults.status = 0xC0000000
        wait_until(lambda: sensor.latest().health is Health.FAULT)
        assert "force or torque is out of range" in sensor.latest().words


def test_force_stays_the_newest_at_7_khz():
    """The force is the number of the measurement: a reader of one record at a time would fall behind."""
    with RdtBox(lambda: (1e-3 * box.program.measurement, 0, 0, 0, 0, 0)) as box:
        with opened("ati", box.web_address, rate=7000) as sensor:
            with counting(sensor, received=3000):
                pass
            box.program.faults.stalled = True  # the last measurement is the newest, and it must get through
            wait_until(lambda: sensor.latest().wrench[0] == pytest.approx(1e-3 * box.program.measurement))
            assert sensor.tally["late"] == sensor.tally["duplicated"] == 0


def test_lost_start_command_is_repeated(monkeypatch):
    monkeypatch.setattr(rdt, "RETRY", 0.02)
    with RdtBox(load) as box:
        box.program.faults.deaf = 3
        with opened("ati", box.web_address) as sensor:
            assert sensor.latest().health is Health.OK
            assert box.program.faults.deaf == 0


def test_box_that_never_starts_is_refused_and_stopped(monkeypatch):
    monkeypatch.setattr(rdt, "RETRY", 0.01)
    with RdtBox(load) as box:
        box.program.faults.mute = True
        with pytest.raises(DeviceOpenError, match=r"does not start to send: nothing comes from 127\.0\.0\.1"):
            make_sensor({"name": "ati", **box.web_address}).open()
        assert box.program.commands.count((2, 0)) == rdt.ATTEMPTS
        wait_until(lambda: not box.program.streaming)


def test_hex_has_its_own_commands_and_scale():
    with RdtBox(load, is_hex=True) as box:
        with opened("onrobot-hex", box.address, filter=150.0, rate=500) as sensor:
            np.testing.assert_allclose(sensor.latest().wrench, LOAD, atol=1e-4)
            assert set(box.program.commands) == {(0x81, 2), (0x82, 2), (0x02, 0)}
        assert not box.program.streaming
        assert box.program.settings["comrdtrate"] == "500"


# --- OptoForce -------------------------------------------------------------------------------------------------------


def test_unit_gives_six_axes():
    with unit_with(HEX) as unit, opened_unit(unit, HEX) as sensor:
        np.testing.assert_allclose(sensor.latest().wrench, LOAD, atol=5e-3)


@pytest.mark.parametrize(("rate", "cutoff"), [(1000, 500), (333, 0), (100, 1.5)])
def test_unit_gets_rate_and_filter(rate, cutoff):
    with unit_with() as unit, opened_unit(unit, rate=rate, filter=cutoff):
        assert (unit.program.period, unit.program.cutoff) == (SPEEDS[rate], optoforce.FILTERS[cutoff])


def test_one_faulty_frame_among_others_is_reported():
    frames = optoforce_emulator.Program(load, [1.0] * 3)
    wire = OptoForceWire(OptoForceSettings(sensitivity=[[1, 1]] * 3))
    frames.faults.status = 0x0080
    data = b"".join(frames.due(0.0))
    frames.faults.status = 0
    data += b"".join((*frames.due(0.01), *frames.due(0.02)))
    wire._receive = lambda patience: wire._decoder.feed(data)
    assert wire.poll(0.0).health is Health.FAULT


def test_unplugged_unit_is_a_fault():
    with rig_of("optoforce") as (unit, sensor):
        unit.unplug()
        with pytest.raises(DeviceFault, match=r"failed: it is gone \(.*\): check its cable and plug it in anew"):
            wait_until(lambda: sensor.latest() is None)


def test_unit_that_does_not_answer_is_refused(monkeypatch):
    monkeypatch.setattr(optoforce, "ANSWER", 0.02)
    with unit_with() as unit:
        unit.program.faults.deaf = 100
        with pytest.raises(DeviceOpenError, match="does not answer: nothing comes from it"), opened_unit(unit):
            pass


def test_unit_that_refuses_its_settings_is_reported(monkeypatch):
    with unit_with() as unit:
        monkeypatch.setattr(unit.program, "due", lambda now: [bytes.fromhex("aa0050010300fe")])
        with pytest.raises(DeviceOpenError, match="does not take its settings"), opened_unit(unit):
            pass
