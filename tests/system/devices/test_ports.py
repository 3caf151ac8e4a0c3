"""Inverse3 and pantograph in the compiled loop: ports give the bits of `read` and `write`, and runs end alike."""

import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from devices.common import driver as drivers
from devices.emulators.hapi.board import HapiBoard
from devices.inverse3.kernels import APPROACH
from devices.pantograph.mechanisms import MECHANISMS
from haptics import Coulomb, MasslessImpedance, Servo, Trace
from haptics.clock import Clock, WallClock
from haptics.errors import DeviceFault
from haptics.parts import run_part
from haptics.ports import port_of
from haptics.recording.replay import verify
from haptics.records import Status
from haptics.servo.kernels import AVAILABLE
from tests.devices.inverse3 import services
from tests.devices.inverse3.figures import session, sliding
from tests.devices.pantograph import boards
from tests.devices.pantograph.boards import wait_until

pytestmark = [
    pytest.mark.wall_clock,
    pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here"),
]

PERIOD = 1e-3


class ManualClock(Clock):
    """A clock that a test advances; ticks are a little late."""

    def start(self):
        self.tick, self.origin_ns = 0, (7_000_000_000, 0)

    def elapsed(self):
        return self.time + 1e-4

    def instant(self):
        return 7.0 + self.elapsed()


@pytest.fixture
def clock(monkeypatch):
    clock = ManualClock(PERIOD)
    clock.start()
    monkeypatch.setattr(drivers, "time", SimpleNamespace(perf_counter=clock.instant))
    monkeypatch.setattr(drivers, "WallClock", ManualClock)  # the clock of the compiled loop
    return clock


def run_with(servo, act, ready, seconds):
    """Run the servo and call `act` in a thread once it is `ready`; return the fault, or an empty text."""
    ended, message = threading.Event(), ""

    def later():
        while not ready():
            if ended.wait(1e-3):
                return
        act()

    other = threading.Thread(target=later)
    try:
        servo.run(seconds, opened=other.start)
    except DeviceFault as fault:
        message = str(fault)
    ended.set()
    other.join()
    assert servo.compiled
    return message


def by_methods(device, clock, command, share):
    """Run a tick by `read`, `compensate` and `write`; return the sample as numbers, its time last."""
    state = device.read()
    channels = () if state.channels is None else state.channels
    sample = *state.position, *state.velocity, *channels, state.buttons, state.time
    device.compensate(share)
    device.write(command)
    return sample


def by_port(device, clock, command, share):
    """Run a tick by the functions that the compiled loop calls; return the same."""
    port = port_of(device)
    record, place = port.record[0], port.record.ctypes.data
    run_part(port.read_part, place, clock.time, clock.elapsed())
    channels = record["channels"][: len(() if device._state.channels is None else device._state.channels)]
    sample = *record["position"], *record["velocity"], *channels, int(record["buttons"]), record["time"]
    record["assistance"] = share
    run_part(port.write_part, place, *command)
    assert not record["fault"]
    return sample


def run_ticks(serve, device, clock, publish, output, share=None):
    """Run 600 ticks with a new state in two of three; return samples and outputs."""
    rows, random = [], np.random.default_rng(4)
    exchange = device._opened()
    exchange.stop()
    for tick in range(600):
        clock.tick = tick if tick < 400 else tick - 300  # the clock is started again
        if tick % 3 != 2:
            publish(exchange, tick, clock.instant() - 1e-3)
        assistance = random.uniform(-0.1, 1.1) if share is None else share
        sample = serve(device, clock, random.uniform(-1.0, 1.0, 2), assistance)
        rows.append((*sample, *output(exchange)))
    return np.array(rows)


def inverse3_rows(serve, server, clock, own_file, share=None):
    """Move the cursor in space; return samples and forces."""

    def publish(exchange, tick, instant):
        place = 0.03 * np.sin(0.02 * tick) * np.array((1.0, 0.3, -0.5))
        exchange.samples.publish(instant, *place, *(10.0 * place), *(12.0 * place))

    settings = {"friction_parameters": own_file, "plane": "xz", "origin": (0.0, 0.01, 0.0)}
    with services.driven(server, clock, **settings) as device:
        return run_ticks(serve, device, clock, publish, lambda exchange: exchange.forces.read(), share)


def pantograph_rows(serve, board, clock, own_file):
    """Turn the arms; return samples and torques."""
    mechanism = MECHANISMS["gen-1"]
    left, right = np.degrees(mechanism.linkage.joints([mechanism.centre]))[0]

    def publish(exchange, tick, instant):
        turn = 8.0 * np.sin(0.02 * tick)
        exchange.samples.publish(instant, left + turn, right - 0.5 * turn)

    with boards.driven(board, clock, friction_parameters=own_file) as device:
        rows = run_ticks(serve, device, clock, publish, lambda exchange: exchange.torques.read())
    wait_until(lambda: board._away)
    return rows


@pytest.mark.parametrize(
    ("rows_of", "fixture", "time_columns", "outputs", "least"),
    [(inverse3_rows, "server", (11, 15), slice(12, 15), 0.1), (pantograph_rows, "board", (5, 8), slice(6, 8), 0.01)],
    ids=["inverse3", "pantograph"],
)
def test_port_gives_the_bits_of_read_and_write(
    rows_of, fixture, time_columns, outputs, least, clock, tmp_path, request
):
    own_file = tmp_path / "own.toml"
    axis = "[joint.{0}.friction]\nmodel = 'coulomb-viscous'\ncoulomb_force_n = 0.4\nviscosity_ns_per_m = 0.1\n"
    own_file.write_text(axis.format("x") + axis.format("y"))
    counterpart = request.getfixturevalue(fixture)
    runs = []
    for serve in (by_methods, by_port):
        clock.start()
        runs.append(rows_of(serve, counterpart, clock, str(own_file)))
    assert np.ptp(runs[0][:, :2], axis=0).min() > 2e-3
    assert np.ptp(runs[0][:, outputs], axis=0).min() > least
    for column in time_columns:  # the compiled clock counts whole nanoseconds
        np.testing.assert_allclose(runs[0][:, column], runs[1][:, column], rtol=0.0, atol=2e-9)
        runs[0][:, column] = runs[1][:, column] = 0.0
    assert runs[0].tobytes() == runs[1].tobytes()


# --- Inverse3 --------------------------------------------------------------------------------------------------------


def test_inverse3_channels_are_given_in_the_plane(server, clock):
    rows = inverse3_rows(by_port, server, clock, "", share=0.0)
    x, z, height, hold, given_x, given_z, taken_x, taken_z = rows[:, [0, 1, 4, 5, 6, 7, 8, 9]].T
    np.testing.assert_allclose(given_x, 10.0 * x, atol=1e-12)
    np.testing.assert_allclose(given_z, 10.0 * z, atol=1e-12)
    np.testing.assert_allclose((taken_x, taken_z), (2.0 * x, 2.0 * z), atol=1e-12)
    np.testing.assert_allclose(height, 0.3 * x - 0.01, atol=1e-12)
    assert not hold.any() and not rows[:, 13].any(), "no force out of the plane in the safe output"


def test_inverse3_force_out_of_the_plane_is_a_bounded_spring_that_starts_relaxed(server, clock):
    with services.driven(server, clock, hold_stiffness=200.0, hold_damping=0.0, hold_force=1.5) as device:
        exchange = device._opened()
        exchange.stop()
        forces = []
        for tick in range(1000):
            clock.tick = tick
            exchange.samples.publish(clock.instant(), 0.0, 0.0, -0.02, *[0.0] * 6)
            by_methods(device, clock, np.zeros(2), 0.0 if tick < 10 else 1.0)
            forces.append(exchange.forces.read()[2])
    forces = np.array(forces)
    assert not forces[:10].any()
    expected = np.minimum(200.0 * APPROACH * PERIOD * np.arange(1, 991), 1.5)
    np.testing.assert_allclose(forces[10:], expected, atol=1e-9)


def test_inverse3_session_slides_at_its_friction_and_replays_bit_for_bit(tmp_path):
    answer, recording = session(tmp_path, 3.0, "--set", "hand.tremor=0", "--set", "hand.rest=0")
    assert answer["lost_ticks"] == 0
    assert verify(recording).mismatches == 0
    found = sliding(recording.rows)
    assert found["ticks"] > 200
    assert found["commanded_n"] == pytest.approx(3.0, rel=1e-6)
    assert found["given_n"] == pytest.approx(3.0, rel=0.01)


def drive_until_forced(device, clock, forces):
    """Drive the device as a compiled loop does until there is a force; return when that has ended."""
    clock.start()
    port = port_of(device)
    place = port.record.ctypes.data

    def pushed():
        run_part(port.read_part, place, clock.elapsed(), clock.elapsed())
        run_part(port.write_part, place, 0.3, 0.2)
        os.eventfd_write(port.wake, 1)
        return any(forces())

    wait_until(pushed)
    wait_until(lambda: not any(forces()))


def test_dead_loop_leaves_no_force_though_the_thread_lives(server, board):
    clock = WallClock(PERIOD)
    (one,) = server.service.devices
    with services.driven(server, clock) as device:
        drive_until_forced(device, clock, lambda: one.told)
        assert not device._opened().failure
    clock = WallClock(PERIOD)
    with boards.driven(board, clock) as device:
        drive_until_forced(device, clock, lambda: board.torques)
        assert not device._opened().failure


# --- pantograph ------------------------------------------------------------------------------------------------------

# Period where board, driver and loop share one process [s]: at 1 kHz they need most of a processor.
UNHURRIED = 5e-3


def run(board, tmp_path, act, seconds=3.0):
    """Render on the board in real time and call `act` after 60 ticks; return the servo and the fault."""
    clock = WallClock(UNHURRIED)
    device = boards.driver(board, clock, keep_alive=0.01)
    trace = Trace.create(tmp_path / "trace", capacity=8192)
    servo = Servo(device, MasslessImpedance(Coulomb(0.5), 300.0, 2.0, period=UNHURRIED), trace, clock=clock)
    return servo, run_with(servo, lambda: act(device._opened()), lambda: trace.count >= 60, seconds)


def test_pantograph_compiled_run_ends_without_torque(board, tmp_path):
    servo, message = run(board, tmp_path, lambda exchange: None, 1.0)
    assert message == ""
    assert (servo.trace.since(0)["sample_age"] < servo.device.spec.max_sample_age).mean() > 0.9
    assert len(board.firmware.log) > 150, "every command wakes the thread"
    assert board.torques == (0.0, 0.0)


def test_pantograph_error_of_the_thread_ends_the_compiled_run(board, tmp_path):
    def kill(exchange):
        def die(torques):
            exchange._line.exchange = talk
            raise OSError(5, "Input/output error")

        talk, exchange._line.exchange = exchange._line.exchange, die

    servo, message = run(board, tmp_path, kill)
    assert "the board is gone (Input/output error); its motors may still have their last torque" in message
    assert servo.trace.since(0)["time"][-1] < 1.5
    assert board.torques == (0.0, 0.0)


def test_pantograph_stalled_thread_makes_old_samples_and_no_force(board, tmp_path):
    released = threading.Event()

    def stall(exchange):
        def wait(torques):
            released.wait(10.0)
            return talk(torques)

        talk, exchange._line.exchange = exchange._line.exchange, wait
        threading.Timer(0.3, released.set).start()

    servo, message = run(board, tmp_path, stall)
    rows = servo.trace.since(0)
    assert "no usable sample since tick" in message
    assert "was too old" in message
    assert (rows["status"][-10:] & int(Status.STALE) != 0).all()
    assert not rows["command"][-10:].any()
    assert board.torques == (0.0, 0.0)


def test_pantograph_impossible_angles_are_a_fault():
    clock = WallClock(PERIOD)
    still = boards.holding([0.0, 0.0])
    with HapiBoard("2diy", hand=still) as board, boards.driven(board, clock, mechanism="2diy") as device:
        exchange = device._opened()
        exchange.stop()
        port, good = port_of(device), exchange.samples.read()
        exchange.samples.publish(time.perf_counter(), 90.0, 90.0)
        run_part(port.read_part, port.record.ctypes.data, 0.0, 0.0)
        assert port.record["fault"][0]
        exchange.samples.publish(*good)
        with pytest.raises(DeviceFault, match=r"angles of 90\.0 and 90\.0 degrees are impossible for a 2diy"):
            device.read()
