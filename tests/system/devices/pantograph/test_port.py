"""A pantograph without Python: through its port the same bits as by ``read`` and ``write``, and the same ends."""

import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from devices.common import driver as drivers
from devices.emulators.hapi.board import HapiBoard
from devices.pantograph.mechanisms import MECHANISMS
from haptics import Coulomb, MasslessImpedance, Servo, Trace
from haptics.clock import Clock, WallClock
from haptics.errors import DeviceFault
from haptics.parts import run_part
from haptics.ports import port_of
from haptics.records import Status
from haptics.servo.system_kernels import AVAILABLE
from tests.devices.pantograph.boards import driven, driver, holding, wait_until

pytestmark = [
    pytest.mark.wall_clock,
    pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here"),
]

PERIOD = 1e-3


# --- the same bits ----------------------------------------------------------------------------------------------------


class Turned(Clock):
    """A clock that a test turns; a tick is a little late."""

    def start(self):
        self.tick, self.origin_ns = 0, (7_000_000_000, 0)

    def elapsed(self):
        return self.time + 1e-4

    def instant(self):
        return 7.0 + self.elapsed()


def by_methods(device, clock, command, share):
    state = device.read()
    sample = *state.position, *state.velocity, state.time
    device.compensate(share)
    device.write(command)
    return sample


def by_port(device, clock, command, share):
    port = port_of(device)
    record, place = port.record[0], port.record.ctypes.data
    run_part(port.take, place, clock.time, clock.elapsed())
    sample = *record["position"], *record["velocity"], record["time"]
    record["assistance"] = share
    run_part(port.give, place, *command)
    assert not record["fault"]
    return sample


def moved(serve, board, monkeypatch, own_file):
    """Have angles come in as from arms that turn; return samples and torques."""
    clock, mechanism = Turned(PERIOD), MECHANISMS["gen-1"]
    clock.start()
    monkeypatch.setattr(drivers, "time", SimpleNamespace(perf_counter=clock.instant))
    monkeypatch.setattr(drivers, "WallClock", Turned)  # what the compiled loop follows
    rows, random = [], np.random.default_rng(4)
    with driven(board, clock, friction_parameters=own_file) as device:
        exchange = device._opened()
        exchange.stop()
        left, right = np.degrees(mechanism.linkage.joints([mechanism.centre]))[0]
        for tick in range(600):
            clock.tick = tick if tick < 400 else tick - 300  # and is started afresh
            turn = 8.0 * np.sin(0.02 * tick)
            if tick % 3 != 2:
                exchange.samples.publish(clock.instant() - 1e-3, left + turn, right - 0.5 * turn)
            sample = serve(device, clock, random.uniform(-1.0, 1.0, 2), random.uniform(-0.1, 1.1))
            left_torque, right_torque, given = exchange.torques.read()
            rows.append((*sample, left_torque, right_torque, given))
    return np.array(rows)


def test_through_its_port_it_measures_and_pushes_alike(board, monkeypatch, tmp_path):
    own_file = tmp_path / "own.toml"
    axis = "[joint.{0}.friction]\nmodel = 'coulomb-viscous'\ncoulomb_force_n = 0.4\nviscosity_ns_per_m = 0.1\n"
    own_file.write_text(axis.format("x") + axis.format("y"))
    runs = []
    for serve in (by_methods, by_port):
        with monkeypatch.context() as patch:
            runs.append(moved(serve, board, patch, str(own_file)))
        wait_until(lambda: board._away)
    assert np.ptp(runs[0][:, :2], axis=0).min() > 2e-3
    assert np.abs(runs[0][:, 5:7]).max() > 0.01
    for column in (4, 7):  # times: a clock of whole nanoseconds
        np.testing.assert_allclose(runs[0][:, column], runs[1][:, column], rtol=0.0, atol=2e-9)
        runs[0][:, column] = runs[1][:, column] = 0.0
    assert runs[0].tobytes() == runs[1].tobytes()


# --- runs without Python ----------------------------------------------------------------------------------------------


UNHURRIED = 5e-3
"""Period where board, driver and loop share one process [s]: at 1 kHz they need most of a processor."""


def run(board, tmp_path, act, seconds=3.0):
    """Render on the board by the wall's clock and do something after 60 ticks; return the servo and what was said."""
    clock = WallClock(UNHURRIED)
    device = driver(board, clock, keep_alive=0.01)
    trace, exchanges, ended = Trace.create(tmp_path / "trace", capacity=8192), [], threading.Event()
    servo = Servo(device, MasslessImpedance(Coulomb(0.5), 300.0, 2.0, period=UNHURRIED), trace, clock=clock)

    def later():
        while trace.count < 60:
            if ended.wait(1e-3):
                return
        act(exchanges[0])

    other, said = threading.Thread(target=later), ""

    def note():
        exchanges.append(device._opened())
        other.start()

    try:
        servo.run(seconds, opened=note)
    except DeviceFault as fault:
        said = str(fault)
    ended.set()
    other.join()
    assert servo.compiled
    return servo, said


def test_a_run_without_python_is_over_without_torque(board, tmp_path):
    servo, said = run(board, tmp_path, lambda exchange: None, 1.0)
    assert said == ""
    assert (servo.trace.since(0)["sample_age"] < servo.device.spec.max_sample_age).mean() > 0.9
    assert len(board.firmware.log) > 150, "the thread is woken, and does not just look now and then"
    assert board.torques == (0.0, 0.0)


def test_a_thread_that_was_killed_ends_the_run_with_its_words(board, tmp_path):
    def kill(exchange):
        def die(torques):
            exchange._line.exchange = talk
            raise OSError(5, "Input/output error")

        talk, exchange._line.exchange = exchange._line.exchange, die

    servo, said = run(board, tmp_path, kill)
    assert "the board is gone (Input/output error); its motors may still have their last torque" in said
    assert servo.trace.since(0)["time"][-1] < 1.5
    assert board.torques == (0.0, 0.0)


def test_a_thread_that_stands_still_makes_old_samples_and_those_no_force(board, tmp_path):
    going_on = threading.Event()

    def stall(exchange):
        def wait(torques):
            going_on.wait(10.0)
            return talk(torques)

        talk, exchange._line.exchange = exchange._line.exchange, wait
        threading.Timer(0.3, going_on.set).start()

    servo, said = run(board, tmp_path, stall)
    rows = servo.trace.since(0)
    assert "no usable sample since tick" in said
    assert "was too old" in said
    assert (rows["status"][-10:] & int(Status.STALE) != 0).all()
    assert not rows["command"][-10:].any()
    assert board.torques == (0.0, 0.0)


def test_angles_of_no_such_linkage_end_a_run_in_words():
    clock = WallClock(PERIOD)
    with HapiBoard("2diy", hand=holding([0.0, 0.0])) as board, driven(board, clock, mechanism="2diy") as device:
        exchange = device._opened()
        exchange.stop()
        port, good = port_of(device), exchange.samples.read()
        exchange.samples.publish(time.perf_counter(), 90.0, 90.0)
        run_part(port.take, port.record.ctypes.data, 0.0, 0.0)
        assert port.record["fault"][0]
        exchange.samples.publish(*good)
        with pytest.raises(DeviceFault, match=r"angles of 90\.0 and 90\.0 degrees are impossible for a 2diy"):
            device.read()


def test_a_tick_that_has_died_leaves_no_torque_on_though_the_thread_lives(board):
    clock = WallClock(PERIOD)
    with driven(board, clock) as device:
        clock.start()
        port = port_of(device)

        def pushed():
            place = port.record.ctypes.data
            run_part(port.take, place, clock.elapsed(), clock.elapsed())
            run_part(port.give, place, 0.3, 0.2)
            os.eventfd_write(port.wake, 1)
            return any(board.torques)

        wait_until(pushed)
        wait_until(lambda: not any(board.torques))
        assert not device._opened().failure
