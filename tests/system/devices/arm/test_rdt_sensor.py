"""The drivers of sensors on the network, over real sockets, against the emulated box with all its faults."""

import contextlib
import re
import socket
import struct
import time

import numpy as np
import pytest

from devices.arm.sensors import rdt
from devices.arm.sensors.ati import AtiSettings, AtiWire
from devices.arm.sensors.onrobot import OnRobotSettings
from devices.arm.sensors.rdt import COMMAND
from devices.arm.sensors.rdt_web import FILTERS, FORCE_UNITS, TORQUE_UNITS, WebPages
from devices.arm.sensors.wire import Health
from devices.emulators.rdt.box import ADDRESS, RdtBox
from devices.emulators.rdt.program import Faults, Program
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.devices.arm.sensor_rigs import LOAD, load, wait_until

SATURATED = 0x80020000


@contextlib.contextmanager
def opened(kind, address, **settings):
    """Give an open sensor, patient with a busy machine."""
    sensor = kind(**{"patience": 1.0, **address, **settings}).build()
    sensor.open()
    try:
        yield sensor
    finally:
        sensor.close()


@pytest.fixture(scope="module")
def shared():
    """One box for all tests that leave it as it was, or put it back."""
    with RdtBox(load) as box:
        yield box


@pytest.fixture(scope="module")
def running(shared):
    """The driver, streaming from that box."""
    with opened(AtiSettings, shared.web_address, filter=73.0) as sensor:
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


# --- commands and pages ----------------------------------------------------------------------------------------------


def test_commands_are_the_published_examples():
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far_end,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own,
    ):
        far_end.bind((ADDRESS, 0))
        own.connect(far_end.getsockname())
        for command, text in (
            (rdt.START, "1234000200000000"),
            (rdt.ZERO, "1234004200000000"),
            (rdt.STOP, "1234000000000000"),
        ):
            rdt._send(own, command)
            assert far_end.recv(64) == bytes.fromhex(text)
    assert COMMAND.size == 8


def test_the_box_is_set_up_and_streams(shared, running):
    assert shared.program.settings["comrdtrate"] == "1000"
    assert shared.program.settings["setuserfilter"] == str(FILTERS[73]) == "4"
    reading = running.latest()
    assert reading.health is Health.OK
    np.testing.assert_allclose(reading.wrench, LOAD, atol=1e-6)


def test_only_what_is_different_is_set():
    asked = []
    with RdtBox(load) as box:
        page = box.program.page
        box.program.page = lambda path: (asked.append(path), page(path))[1]
        pages = WebPages(ADDRESS, box.web_address["web_port"])
        pages.set_up(1000, 0.0)
        assert [path for path in asked if "cgi" in path] == ["/comm.cgi?comrdtrate=1000"]
        asked.clear()
        pages.set_up(1000, 0.0)
        assert asked == ["/netftapi2.xml"]


UNITS = [
    ("lbf", "lbf-in", 4.4482216152605, 4.4482216152605 * 0.0254),
    ("klbf", "lbf-ft", 4448.2216152605, 4.4482216152605 * 0.3048),
    ("N", "Nmm", 1.0, 1e-3),
    ("kN", "kN-m", 1e3, 1e3),
    ("kgf", "kgf-cm", 9.80665, 9.80665e-2),
]


@pytest.mark.parametrize(("force_unit", "torque_unit", "newton", "newton_metre"), UNITS)
def test_whatever_the_box_counts_in_the_driver_gives_newtons(force_unit, torque_unit, newton, newton_metre):
    units = {"force_unit": force_unit, "torque_unit": torque_unit, "newton": newton, "newton_metre": newton_metre}
    with RdtBox(load, **units) as box, opened(AtiSettings, box.web_address) as sensor:
        np.testing.assert_allclose(sensor.latest().wrench, LOAD, atol=1e-6 * max(newton, newton_metre))


def test_units_agree_with_each_other():
    assert FORCE_UNITS["klbf"] == pytest.approx(1000.0 * FORCE_UNITS["lbf"])
    assert TORQUE_UNITS["lbf-ft"] == pytest.approx(12.0 * TORQUE_UNITS["lbf-in"])
    assert TORQUE_UNITS["lbf-in"] == pytest.approx(FORCE_UNITS["lbf"] * 0.0254)
    assert TORQUE_UNITS["kgf-cm"] == pytest.approx(FORCE_UNITS["kgf"] * 0.01)


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
def test_a_box_that_cannot_be_used_is_refused_with_the_reason(page, message):
    """A table is what the box says whatever it is told."""
    with RdtBox(load) as box:
        fixed = page
        if isinstance(page, dict):
            program = Program(load)
            program.settings.update({"comrdtrate": "1000", **page})
            fixed = program.page("/netftapi2.xml")
        box.program.page = lambda path: fixed if "xml" in path else ""
        with pytest.raises(DeviceOpenError, match=re.escape(message)):
            AtiSettings(**box.web_address).build().open()
        assert not box.program.streaming


def test_a_box_that_is_not_there(shared):
    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))  # nobody listens
        settings = AtiSettings(**{**shared.web_address, "web_port": taken.getsockname()[1]})
        with pytest.raises(DeviceOpenError, match=r"cannot be reached .*: check its power and network cable"):
            settings.build().open()


@pytest.mark.parametrize("address", ["256.256.256.256", "a..b", "x" * 300])
def test_an_address_that_is_none(address):
    with pytest.raises(DeviceNotFoundError, match=f"the force sensor at {re.escape(address)} "):
        OnRobotSettings(address=address).build().open()


# --- what goes wrong on the wire -------------------------------------------------------------------------------------


def test_lost_records_are_counted_and_the_force_goes_on(running, faults):
    with counting(running, lost=7, received=5):
        faults.lose = 7
    assert running.latest().health is Health.OK


def test_duplicates_are_dropped(running, faults):
    with counting(running, duplicated=4, received=5):
        faults.duplicate = 4
    np.testing.assert_allclose(running.latest().wrench, LOAD, atol=1e-6)


def test_records_out_of_order_are_dropped(running, faults):
    with counting(running, late=4, lost=4, received=5):
        faults.swap = 4
    assert running.tally["restarted"] == 0


def test_cut_records_are_dropped(running, faults):
    with counting(running, malformed=3, lost=3, received=5):
        faults.truncate = 3
    np.testing.assert_allclose(running.latest().wrench, LOAD, atol=1e-6)


def test_late_records_come_all_the_same(running, faults):
    with counting(running, received=50):
        faults.delays.extend([1e-3, 5e-3, 20e-3])
    wait_until(lambda: running.latest().age < 20e-3)


def test_a_latched_condition_is_a_warning(running, faults):
    faults.status = 0x80010000
    wait_until(lambda: running.latest().health is Health.WARNING)
    reading = running.latest()
    np.testing.assert_allclose(reading.wrench, LOAD, atol=1e-6)
    assert "a monitored condition was met" in reading.words


def test_saturation_takes_the_force_away_until_it_is_over(running, faults):
    faults.status = SATURATED
    wait_until(lambda: running.latest().health is Health.FAULT)
    reading = running.latest()
    np.testing.assert_array_equal(reading.wrench, np.zeros(6))
    assert "saturated" in reading.words
    faults.status = 0
    wait_until(lambda: running.latest().health is Health.OK)
    np.testing.assert_allclose(running.latest().wrench, LOAD, atol=1e-6)


@pytest.mark.parametrize(
    ("fault", "value", "message"),
    [
        ("status", SATURATED, "no usable force for .*: saturated: take the load away"),
        ("status", 0x84000000, "program memory is corrupt"),
        ("stalled", True, "it sends one measurement again and again: switch it off and on"),
        ("mute", True, "nothing comes from 127.0.0.1: check its power and network cable"),
    ],
)
def test_what_lasts_is_a_fault_with_its_remedy(fault, value, message):
    with RdtBox(load) as box, opened(AtiSettings, box.web_address, patience=0.25) as sensor:
        setattr(box.program.faults, fault, value)
        with pytest.raises(DeviceFault, match=message):
            wait_until(lambda: sensor.latest() is None)


def test_axia_sensors_have_bits_of_their_own():
    with RdtBox(load, product="Ethernet Axia") as box, opened(AtiSettings, box.web_address) as sensor:
        box.program.faults.status = 0xC0000000
        wait_until(lambda: sensor.latest().health is Health.FAULT)
        assert "force or torque is out of range" in sensor.latest().words


def test_a_stream_that_somebody_begins_anew_goes_on_and_may_come_in_bundles():
    with RdtBox(load) as box, opened(AtiSettings, box.web_address) as sensor:
        with counting(sensor, received=50):
            pass
        with counting(sensor, received=50, restarted=1):
            box.program.command(bytes.fromhex("1234000300000000"), time.monotonic())
        np.testing.assert_allclose(sensor.latest().wrench, LOAD, atol=1e-6)
        assert sensor.tally["malformed"] == 0


def test_every_look_takes_all_that_waits_and_keeps_the_newest():
    """What a flood leaves in the socket while the reader is busy elsewhere."""
    with RdtBox(load) as box:
        wire = AtiWire(AtiSettings(**box.web_address))
        wire.open()
        box.program.faults.mute = True
        while wire.look(0.02) is not None:
            pass
        first = box.program.number + 1000
        for number in range(first, first + 200):
            counts = (number, 0, 0, 0, 0, 0)
            box._socket.sendto(struct.pack(">3I6i", number, number, 0, *counts), box._host)
        before = wire.tally["received"]
        sample = wire.look(1.0)
        assert sample.wrench[0] == pytest.approx(1e-6 * (first + 199))
        assert wire.tally["received"] == before + 200
        assert wire.look(0.0) is None
        wire.close()


def test_in_a_flood_of_7_khz_the_force_stays_the_newest():
    """The force says which measurement it is of; a reader that took one record a time would fall behind for ever."""
    with RdtBox(lambda: (1e-3 * box.program.measurement, 0, 0, 0, 0, 0)) as box:
        with opened(AtiSettings, box.web_address, rate=7000) as sensor:
            with counting(sensor, received=3000):
                pass
            box.program.faults.stalled = True  # the last measurement is the newest, and it must get through
            wait_until(lambda: sensor.latest().wrench[0] == pytest.approx(1e-3 * box.program.measurement))
            assert sensor.tally["late"] == sensor.tally["duplicated"] == 0


# --- beginning, zero, end --------------------------------------------------------------------------------------------


def test_a_lost_start_is_repeated(monkeypatch):
    monkeypatch.setattr(rdt, "RETRY", 0.02)
    with RdtBox(load) as box:
        box.program.faults.deaf = 3
        with opened(AtiSettings, box.web_address) as sensor:
            assert sensor.latest().health is Health.OK
            assert box.program.faults.deaf == 0


def test_a_box_that_never_starts_is_refused_and_left_stopped(monkeypatch):
    monkeypatch.setattr(rdt, "RETRY", 0.01)
    with RdtBox(load) as box:
        box.program.faults.mute = True
        with pytest.raises(DeviceOpenError, match=r"does not start to send: nothing comes from 127\.0\.0\.1"):
            AtiSettings(**box.web_address).build().open()
        assert box.program.commands.count((2, 0)) == rdt.ATTEMPTS
        wait_until(lambda: not box.program.streaming)


def test_zero_ends_the_stream_of_an_ati_box_and_the_driver_starts_it_again():
    with RdtBox(load) as box, opened(AtiSettings, box.web_address) as sensor:
        box.program.command(bytes.fromhex("1234004200000000"), 0.0)
        assert not box.program.streaming  # so says the box
        box.program.commands.clear()
        sensor.zero()
        assert box.program.streaming
        assert [command for command, _ in box.program.commands[:3]] == [rdt.ZERO, rdt.ZERO, rdt.START]
        np.testing.assert_allclose(sensor.latest().wrench, np.zeros(6), atol=1e-6)


@pytest.mark.parametrize("lost", [0, 3])
def test_close_stops_the_stream_even_if_commands_get_lost(lost):
    with RdtBox(load) as box:
        sensor = AtiSettings(**box.web_address).build()
        sensor.open()
        box.program.faults.deaf = lost
        sensor.close()
        assert not box.program.streaming
        sensor.close()  # and may be called again


def test_a_tare_over_the_wire(running, faults):
    running.tare()
    np.testing.assert_allclose(running.latest().wrench, np.zeros(6), atol=1e-6)
    running._mounting.offset = np.zeros(6)


def test_a_hex_has_its_own_commands_and_scale():
    with RdtBox(load, is_hex=True) as box:
        with opened(OnRobotSettings, box.address, filter=150.0, rate=500) as sensor:
            np.testing.assert_allclose(sensor.latest().wrench, LOAD, atol=1e-4)
            assert set(box.program.commands) == {(0x81, 2), (0x82, 2), (0x02, 0)}
            box.program.commands.clear()
            sensor.zero()
            assert set(box.program.commands) == {(0x42, 0xFF)}  # and no new start
            wait_until(lambda: not np.any(np.round(sensor.latest().wrench, 4)))
        assert not box.program.streaming
        assert box.program.rate == 500
