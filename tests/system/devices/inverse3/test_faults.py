"""What the driver makes of a service that answers late, in pieces or nonsense, and of a device that goes away."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import devices
from devices.emulators.inverse3.faults import WIRE_FAULTS
from devices.emulators.inverse3.server import InverseServer
from devices.emulators.wire_faults import DELAYS
from devices.inverse3 import exchange as exchanges
from devices.inverse3.connection import Connection
from devices.inverse3.exchange import MOST_OPEN, Exchange
from devices.inverse3.handshake import parse_address
from haptics import Coulomb, MasslessImpedance, Servo, Trace
from haptics.clock import WallClock
from haptics.errors import DeviceFault
from haptics.records import Status
from haptics.servo.system_kernels import AVAILABLE
from tests.devices.inverse3.services import driven, driver, emulated, exercise, holding, wait_until
from tests.processes import ROOT

pytestmark = pytest.mark.wall_clock  # driver and service exchange by the wall's clock, in threads of their own


def age(device):
    return device._clock.elapsed() - device.read().time


# --- what costs nothing, or time only ------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["half", "fragments"])
def test_answers_in_pieces_are_answers(server, fault):
    with driven(server) as device:
        exercise(device)
        server.faults.set(fault)
        exercise(device, 0.3, (1.0, 0.0))
        wait_until(lambda: exercise(device, 0.02, (1.0, 0.0)) or age(device) < 0.02)
        assert device.read().position[0] == pytest.approx(1.0 / 400.0, abs=1e-3)


@pytest.mark.parametrize("fault", ["delay-1ms", "delay-5ms", "delay-20ms"])
def test_a_late_answer_is_an_old_sample_and_no_fault(server, fault):
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
        assert one.told[0] == pytest.approx(0.5)


class Awake:
    """A guardian that never minds."""

    def beat(self):
        return True


def conversation(server):
    """Return a connection and the exchange over it, which has its first sample."""
    connection = Connection(parse_address(server.address), 5.0)
    while not connection.receive(1.0):
        pass
    exchange = Exchange(connection, Awake(), "049D", pause=2e-3, watchdog=60.0, reply_timeout=60.0)
    exchange.first_sample()
    return connection, exchange


def test_forces_do_not_queue_up_behind_a_service_that_stands_still_but_none_always_gets_through(server):
    connection, exchange = conversation(server)
    (one,) = server.service.devices
    server.faults.set("dropout")  # forces are taken, nothing is answered
    one.log.clear()
    exchange.start()
    for k in range(200):
        exchange.forces.publish(1.0 + 1e-3 * k, 0.0, 0.0, time.perf_counter())
        exchange.wake.call()
        time.sleep(1e-3)
    assert len(one.log) <= MOST_OPEN + 1
    assert one.told[0] >= 1.0
    exchange.forces.publish(0.0, 0.0, 0.0, time.perf_counter())
    exchange.wake.call()
    wait_until(lambda: one.told == (0.0, 0.0, 0.0))
    exchange.stop()
    connection.close(0.5)


def test_an_answer_to_no_message_is_left_alone(server):
    connection, exchange = conversation(server)
    before = exchange.samples.read()
    assert exchange._take_in([server.service.receive("{}", 0.1)]) == ""
    assert exchange.samples.read() == before
    connection.close(0.5)


# --- what ends a run -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("unplug", "the device 049D is no longer there"),
        ("no-power", "the device 049D has no power: plug in its power supply"),
        ("uncalibrated", "the device 049D is not calibrated"),
        ("hang-up", "the service has hung up"),
        ("close", r"the service has closed the connection \(code 1001, 'going away'\)"),
        ("dropout", r"the service did not answer within 0\.2 s"),
        ("nonsense", "something that is no JSON"),
        ("not-utf8", "a text is not UTF-8"),
        ("giant", "4611686018427387904 bytes"),
    ],
)
def test_what_cannot_go_on_says_why_and_leaves_no_force(server, fault, words):
    (one,) = server.service.devices
    device = driver(server, reply_timeout=0.2)
    device.open()
    exercise(device, 0.05, (1.0, 0.5))
    assert any(one.told)
    server.faults.set(fault)
    with pytest.raises(DeviceFault, match=f"inverse3: .*{words}.*; the service lets go of a force"):
        wait_until(lambda: exercise(device, 0.02, (1.0, 0.5)))
    if fault not in {"hang-up", "close"}:
        wait_until(lambda: one.told == (0.0, 0.0, 0.0))
    if fault in {"no-power", "uncalibrated"}:
        server.faults.clear()
        device.close()  # the trouble has passed, and the service confirms
    else:
        with pytest.raises(DeviceFault, match=r"the force could not be set to 0 \("):
            device.close()
    device.close()


def test_any_error_of_the_thread_ends_the_run_in_words(server, monkeypatch):
    (one,) = server.service.devices
    device = driver(server)
    device.open()
    exercise(device, 0.05, (1.0, 0.5))

    def die(text, device_id):
        raise ZeroDivisionError("nobody thought of that")

    monkeypatch.setattr(exchanges, "find_reading", die)
    with pytest.raises(DeviceFault, match=r"failed \(ZeroDivisionError: nobody thought of that\); report this"):
        wait_until(lambda: exercise(device, 0.02, (1.0, 0.5)))
    wait_until(lambda: one.told == (0.0, 0.0, 0.0))
    monkeypatch.undo()
    device.close()


def test_a_run_that_is_unplugged_reaches_the_safe_output_and_says_that_it_could_not_be_confirmed(tmp_path):
    clock, settings = WallClock(1e-3), {"emulated": True, "wire_faults": ["unplug@0.5"], "reply_timeout": 0.5}
    device = devices.create_device("inverse3", settings, clock=clock)
    trace = Trace.create(tmp_path / "trace", capacity=8192)
    servo = Servo(device, MasslessImpedance(Coulomb(0.5), 600.0, 2.0), trace, clock=clock)
    with pytest.raises(DeviceFault) as caught:
        servo.run(20.0)
    first, second = str(caught.value).split(" It could not be left safe: ")
    assert "the device 049D is no longer there" in first
    assert second.startswith("inverse3: the force could not be set to 0 (")
    assert trace.since(0)["time"][-1] < 10.0


@pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here")
def test_a_service_that_stands_still_makes_old_samples_and_those_no_force(server, tmp_path):
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
    assert one.told == (0.0, 0.0, 0.0)


def test_a_driver_that_was_silent_for_too_long_says_that_the_guardian_has_acted(server):
    (one,) = server.service.devices
    device = driver(server)
    device.open()
    exercise(device, 0.05, (1.0, 0.5))
    device._opened()._guard._process.kill()
    with pytest.raises(DeviceFault, match="the guardian process is gone: this process was silent for too long"):
        wait_until(lambda: exercise(device, 0.02, (1.0, 0.5)))
    wait_until(lambda: one.told == (0.0, 0.0, 0.0))
    device.close()


# --- a driver that dies --------------------------------------------------------------------------------------------

DYING = """
import sys, time, numpy as np, devices
device = devices.open_device("inverse3", {{"address": "{address}", "watchdog": 0.4, "reply_timeout": 1.0}})
print("open", flush=True)
while True:
    device.read()
    device.write(np.array((1.0, 0.5)))
    time.sleep(1e-3)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_the_guardian_takes_the_force_away_when_the_driver_is_killed_or_stopped(server, how, monkeypatch):
    import subprocess
    import sys

    from devices.emulators.inverse3 import service

    monkeypatch.setattr(service, "IDLE_AFTER", 3600.0)  # a service that would never let go by itself
    (one,) = server.service.devices
    code = DYING.format(address=server.address)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            wait_until(lambda: any(one.told))
            os.kill(process.pid, how)
            wait_until(lambda: one.told == (0.0, 0.0, 0.0))
            wait_until(lambda: server.closed)
            assert server.closed == ["EOFError: closed with 03e8"]
        finally:
            process.kill()


# --- faults by name and time ---------------------------------------------------------------------------------------


def test_faults_by_name_and_time_count_from_the_first_force_and_anew_for_every_driver():
    with InverseServer([emulated(hand=holding())], ["delay-20ms@0.2+0.2"]) as server:
        for _ in range(2):
            with driven(server) as device:
                time.sleep(0.3)
                wait_until(lambda device=device: age(device) < 0.02)
                wait_until(lambda device=device: exercise(device, 5e-3) or age(device) >= 0.02)
                wait_until(lambda device=device: exercise(device, 0.02) or age(device) < 0.01)


def test_every_fault_is_on_the_page_and_every_delay_has_its_length():
    page = (ROOT / "docs" / "inverse3.md").read_text()
    for name, description in WIRE_FAULTS.items():
        assert f"| `{name}` | {description} |" in page
    assert {name for name in WIRE_FAULTS if name.startswith("delay-")} <= set(DELAYS)


def test_commands_that_are_not_finite_never_reach_the_service(server):
    (one,) = server.service.devices
    with driven(server) as device:
        exercise(device)
        with pytest.raises(DeviceFault, match="finite"):
            device.write(np.array((np.nan, 0.0)))
        exercise(device)
        assert np.isfinite([entry.told for entry in list(one.log)]).all()
