"""Inverse3 and pantograph: ends of runs and of the driver, and their ports in the compiled loop."""

import contextlib
import json
import os
import signal
import subprocess
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import devices
from devices.common import driver as drivers
from devices.common.plane import APPROACH
from devices.emulators import inverse3
from devices.inverse3 import exchange
from devices.pantograph.mechanisms import MECHANISMS
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.clock import Clock, WallClock, cancelled_by
from haptics.device import port_of
from haptics.errors import DeviceFault, OpeningCancelled
from haptics.jit import run_part
from haptics.recording.replay import verify
from haptics.servo.kernels import AVAILABLE
from tests.devices.inverse3 import services
from tests.devices.inverse3.figures import session, sliding
from tests.devices.pantograph import boards
from tests.devices.pantograph.boards import wait_until
from tests.processes import program

pytestmark = pytest.mark.wall_clock
needs_the_compiled_loop = pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here")

PERIOD = 1e-3


@pytest.fixture(params=["inverse3", "pantograph"])
def rig(request):
    """A driver and its counterpart.

    `force` and `forces` are the present force and all forces of the counterpart; it is `left` when the driver or its
    guardian has ended the conversation, and `free` when it can be opened again.
    """
    if request.param == "inverse3":
        server = request.getfixturevalue("server")
        (one,) = server.service.devices
        return SimpleNamespace(
            name=request.param,
            settings={"address": server.address, "watchdog": 0.4, "reply_timeout": 1.0},
            driver=partial(services.driver, server),
            driven=partial(services.driven, server),
            never_ready=lambda: server.faults.set("uncalibrated") or services.driver(server, patience=60.0),
            force=lambda: one.commanded,
            forces=lambda: [entry.commanded for entry in list(one.log)],
            step_of_exchange=lambda device: (exchange, "find_reading"),
            left=lambda: server.closed[-1:] == ["EOFError: closed with 03e8"],
            free=lambda: bool(server.closed),
        )
    board = request.getfixturevalue("board")
    return SimpleNamespace(
        name=request.param,
        settings={"port": board.port, "at_home": True, "hold": 0.05},
        driver=partial(boards.driver, board),
        driven=partial(boards.driven, board),
        never_ready=lambda: boards.driver(board, hold=10.0),
        force=lambda: board.firmware.torques,
        forces=lambda: [entry.torques for entry in list(board.firmware.log)],
        step_of_exchange=lambda device: (device._opened(), "transfer"),
        left=lambda: board.firmware.device is None,
        free=lambda: board._away,
    )


def push(rig, device):
    """Command a force until the counterpart has one."""

    def pushed():
        device.read()
        device.write(np.array((0.5, 0.3)))
        return any(rig.force())

    wait_until(pushed)


# --- removal of the force --------------------------------------------------------------------------------------------


def test_watchdog_removes_the_force_without_commands(rig):
    with rig.driven() as device:
        for _ in range(2):
            push(rig, device)
            wait_until(lambda: not any(rig.force()))


def test_closing_and_errors_of_the_caller_remove_the_force(rig):
    with rig.driven() as device:
        push(rig, device)
    assert not any(rig.force())
    wait_until(lambda: rig.left() and rig.free())
    with pytest.raises(ZeroDivisionError), rig.driver() as device:
        push(rig, device)
        _ = 1 / 0
    assert not any(rig.force())
    wait_until(rig.left)


@pytest.mark.parametrize("polls", [0, 3])
def test_cancelled_opening_ends_at_once_without_a_force(rig, polls):
    asked = []

    def cancelled():
        asked.append(time.monotonic())
        return len(asked) > polls

    with pytest.raises(OpeningCancelled), cancelled_by(cancelled):
        rig.never_ready().open()
    assert time.monotonic() - asked[polls] < 5.0
    assert len(asked) == polls + 1  # the cleanup is not cancelled
    assert not any(any(force) for force in rig.forces())
    wait_until(rig.free)


def test_error_of_the_thread_ends_the_run(rig, monkeypatch):
    device = rig.driver()
    device.open()
    push(rig, device)

    def fail(*_):
        monkeypatch.undo()
        raise ZeroDivisionError("an unexpected error")

    monkeypatch.setattr(*rig.step_of_exchange(device), fail)
    with pytest.raises(DeviceFault, match=r"failed \(ZeroDivisionError: an unexpected error\); report this"):
        wait_until(lambda: push(rig, device))
    wait_until(lambda: not any(rig.force()))
    device.close()


def test_lost_guardian_ends_the_run(rig):
    device = rig.driver()
    device.open()
    push(rig, device)
    device._opened().guard._process.kill()
    with pytest.raises(DeviceFault, match="the guardian process has ended: it set the force to 0"):
        wait_until(lambda: push(rig, device))
    if rig.name == "pantograph":
        device.close()  # the board keeps its torques until then
    wait_until(lambda: not any(rig.force()))
    device.close()


HOST = """
import json, sys, time, numpy as np, devices
device = devices.open_device(sys.argv[1], json.loads(sys.argv[2]))
print("open", flush=True)
while True:
    device.read()
    device.write(np.array((0.5, 0.3)))
    time.sleep(1e-3)
"""


@contextlib.contextmanager
def host(rig):
    """Drive the counterpart in another process; yield that once there is a force."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with program("-c", HOST, rig.name, json.dumps(rig.settings), **pipes) as process:
        assert process.stdout.readline() == "open\n"
        wait_until(lambda: any(rig.force()))
        yield process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_killed_or_stopped_host_leaves_no_force(rig, number, monkeypatch):
    monkeypatch.setattr(inverse3, "IDLE_AFTER", 3600.0)  # the service keeps its last force, as the board does
    with host(rig) as process:
        process.send_signal(number)
        wait_until(lambda: not any(rig.force()))
        wait_until(rig.left)
        if number == signal.SIGSTOP:
            process.send_signal(signal.SIGCONT)
            _, words = process.communicate(timeout=services.LONG)
            assert f"DeviceFault: {rig.name}: the guardian process has ended" in words
            wait_until(lambda: not any(rig.force()))


@pytest.mark.parametrize("rig", ["pantograph"], indirect=True)
def test_killed_host_that_is_out_of_step_leaves_no_torque(rig, board):
    with host(rig) as process:
        process.send_signal(signal.SIGSTOP)
        board.lose_request_byte = 7
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: board.lose_request_byte is None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: not any(rig.force()))
        wait_until(rig.left)


# --- emulators in another process ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "identity"), [("inverse3", "emulated 049D"), ("pantograph", "gen-1, emulated")])
def test_emulator_runs_in_its_own_process_and_ends_with_the_device(name, identity, tmp_path):
    log = tmp_path / "log.npy"
    settings = {"emulated": True, "hand": boards.holding((0.01, 0.0)), "seed": 3, "period": PERIOD, "log": str(log)}
    with devices.create_device(name, settings, clock=WallClock(PERIOD)) as device:
        assert device.spec.identity == identity

        def is_where_the_hand_holds_it():
            device.write(np.array((0.0, 0.1)))
            return np.allclose(device.read().position, (0.01, 0.1 / 400.0), atol=0.1e-3)

        wait_until(is_where_the_hand_holds_it)
    rows = np.load(log)
    rows = rows[rows["monotonic_ns"] > 0]
    np.testing.assert_array_equal(rows["command"][0], (0.0, 0.1))
    np.testing.assert_array_equal(rows["command"][-1], (0.0, 0.0))


@pytest.mark.parametrize(
    ("name", "fault", "unsafe"),
    [
        ("inverse3", "the device 049D is no longer there", "inverse3: the force could not be set to 0 ("),
        ("pantograph", "the board is gone", "pantograph: the force could not be set to 0 ("),
    ],
)
def test_unplugged_run_reports_the_unconfirmed_safe_output(name, fault, unsafe, trace):
    clock = WallClock(PERIOD)
    settings = {"emulated": True, "wire_faults": ["unplug@0.5"], "reply_timeout": 0.5, "watchdog": 1.0}
    device = devices.create_device(name, settings, clock=clock)
    servo = Servo(device, MasslessImpedance(Coulomb(0.5), 600.0, 2.0), trace, clock=clock)
    with pytest.raises(DeviceFault) as caught:
        servo.run(20.0)
    first, second = str(caught.value).split(" It could not be left safe: ")
    assert fault in first
    assert second.startswith(unsafe)
    assert trace.since(0)["time"][-1] < 10.0


# --- ports -----------------------------------------------------------------------------------------------------------


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
        return run_ticks(serve, device, clock, publish, lambda exchange: exchange.commands.read(), share)


def pantograph_rows(serve, board, clock, own_file):
    """Turn the arms; return samples and torques."""
    mechanism = MECHANISMS["gen-1"]
    left, right = np.degrees(mechanism.linkage.joints([mechanism.centre]))[0]

    def publish(exchange, tick, instant):
        turn = 8.0 * np.sin(0.02 * tick)
        exchange.samples.publish(instant, left + turn, right - 0.5 * turn)

    with boards.driven(board, clock, friction_parameters=own_file) as device:
        rows = run_ticks(serve, device, clock, publish, lambda exchange: exchange.commands.read())
    wait_until(lambda: board._away)
    return rows


@needs_the_compiled_loop
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


@needs_the_compiled_loop
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
            forces.append(exchange.commands.read()[2])
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


@needs_the_compiled_loop
def test_dead_loop_leaves_no_force_though_the_thread_lives(rig):
    clock = WallClock(PERIOD)
    with rig.driven(clock) as device:
        clock.start()
        port = port_of(device)
        place = port.record.ctypes.data

        def pushed():
            run_part(port.read_part, place, clock.elapsed(), clock.elapsed())
            run_part(port.write_part, place, 0.3, 0.2)
            os.eventfd_write(port.wake, 1)
            return any(rig.force())

        wait_until(pushed)
        wait_until(lambda: not any(rig.force()))
        assert not device._opened().failure


# --- pantograph ------------------------------------------------------------------------------------------------------

# Period where board, driver and loop share one process [s]: at 1 kHz they need most of a processor.
UNHURRIED = 5e-3


@needs_the_compiled_loop
@pytest.mark.wall_clock
def test_pantograph_compiled_run_ends_without_torque(board, trace):
    clock = WallClock(UNHURRIED)
    device = boards.driver(board, clock, keep_alive=0.01)
    servo = Servo(device, MasslessImpedance(Coulomb(0.5), 300.0, 2.0, period=UNHURRIED), trace, clock=clock)
    servo.run(1.0)
    assert servo.compiled
    assert (trace.since(0)["sample_age"] < device.spec.max_sample_age).mean() > 0.9
    assert len(board.firmware.log) > 150, "every command wakes the thread"
    assert board.firmware.torques == (0.0, 0.0)


@needs_the_compiled_loop
def test_pantograph_impossible_angles_are_a_fault():
    clock = WallClock(PERIOD)
    still = boards.holding([0.0, 0.0])
    with boards.new_board("2diy", hand=still) as board, boards.driven(board, clock, mechanism="2diy") as device:
        exchange = device._opened()
        exchange.stop()
        port, good = port_of(device), exchange.samples.read()
        exchange.samples.publish(time.perf_counter(), 90.0, 90.0)
        run_part(port.read_part, port.record.ctypes.data, 0.0, 0.0)
        assert port.record["fault"][0]
        exchange.samples.publish(*good)
        with pytest.raises(DeviceFault, match=r"angles of 90\.0 and 90\.0 degrees are impossible for a 2diy"):
            device.read()
