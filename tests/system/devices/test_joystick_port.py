"""The joystick in the compiled loop: its port gives the bits of `read` and `write`, and runs end alike."""

import os
import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from devices.common import driver
from devices.common.kernels import NOT_FINITE
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.stick import emulated_stick
from devices.faults import FaultyDevice, parse_fault
from devices.joystick.streaming import STUCK
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.clock import Clock, WallClock
from haptics.device import DEAD_MAN_BUTTON, port_of
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.jit import run_part
from haptics.records import Status
from haptics.servo.kernels import AVAILABLE
from tests.devices.felt import FRICTION, write_own_friction
from tests.devices.joystick.doubles import STILL
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step
from tests.system.devices.test_ports import by_methods, by_port

pytestmark = [
    pytest.mark.usefixtures("compiled_stick"),
    pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here"),
]

TICKS = 1500
MOVES = {"name": "minimum-jerk", "points": [[-0.02, -0.01], [0.02, 0.01]], "rest": 0.1}


def pushed(serve, folder, monkeypatch):
    """Push a stick under friction compensation, in step with its bus; return samples, force and handle."""
    own = Path(write_own_friction(folder / "own.toml"))
    plain = EmulatedPidJoystick({"emulated": True})
    own.write_text(own.read_text().replace("virtual-joystick", f"pid-joystick {plain.spec.identity}"))
    backend = emulated_stick("openffboard", hand=MOVES, period=0.0, friction=FRICTION)
    stick, random, rows = backend.units[0], np.random.default_rng(3), []
    with monkeypatch.context() as patch:
        put_in_step(stick.time, patch)
        patch.setattr(driver, "WallClock", BusClock)  # the clock of the compiled loop
        clock = BusClock(FRAME, stick.time)
        device = EmulatedPidJoystick({"emulated": True, "friction_parameters": str(own)}, clock=clock, backend=backend)
        with device:
            clock.start()
            for tick in range(TICKS):
                clock.wait(tick if tick < TICKS - 200 else tick + 3)  # some ticks are missed
                device._opened().step()
                command = -8.0 * device._state.velocity + random.uniform(-1.0, 1.0, 2)
                sample = serve(device, clock, command, random.uniform(-0.1, 1.1))
                device._opened().wake.call()
                rows.append((*sample, *stick.force, *stick.handle))
    return np.array(rows)


def test_port_gives_the_bits_of_read_and_write(tmp_path, monkeypatch):
    runs = [pushed(serve, tmp_path, monkeypatch) for serve in (by_methods, by_port)]
    assert np.ptp(runs[1][:, :2], axis=0).min() > 5e-3
    assert np.abs(runs[1][:, 6:8]).max() > 1.0
    # the compiled clock counts whole nanoseconds
    np.testing.assert_allclose(runs[0][:, 5], runs[1][:, 5], rtol=0.0, atol=2e-9)
    runs[0][:, 5] = runs[1][:, 5] = 0.0
    assert runs[0].tobytes() == runs[1].tobytes()


@pytest.mark.parametrize(("button", "word"), [(0, 0b1010), (1, 0b1011), (2, 0b1010), (31, 0b1010)])
def test_dead_man_button_comes_before_those_of_the_stick(button, word):
    device = EmulatedPidJoystick({"emulated": True, "hand": STILL})
    device.open()
    try:
        device._opened().stop()
        device._record["dead_man_button"] = button
        device._opened().reports.publish(0.0, 0.0, 0b101, 0.0, time.perf_counter())
        assert device.read().buttons == word
        assert word & DEAD_MAN_BUTTON == (button == 1)
    finally:
        device.close()


# --- availability of the port ----------------------------------------------------------------------------------------


def test_port_exists_for_the_wall_clock_only():
    clock = WallClock(1e-3)
    with pytest.raises(DeviceOpenError, match=r"open\(\)"):
        port_of(EmulatedPidJoystick({"emulated": True, "hand": STILL}, clock=clock))
    with EmulatedPidJoystick({"emulated": True, "hand": STILL}, clock=clock) as device:
        assert port_of(device) is not None
        assert port_of(FaultyDevice(device, [parse_fault("dropout@1")], clock)) is None
    for other in (None, Clock(1e-3)):
        with EmulatedPidJoystick({"emulated": True, "hand": STILL}, clock=other) as device:
            assert port_of(device) is None


# --- compiled runs ---------------------------------------------------------------------------------------------------

# Least force of model C in these runs [N].
FORCE = 1.5


def run(trace, act, seconds=3.0):
    """Run model C on an emulated stick and call `act` with the device in a thread once there is a force."""
    clock, acted, ended, message = WallClock(1e-3), [0], threading.Event(), ""
    backend = emulated_stick("openffboard", hand={"name": "minimum-jerk"})
    device = EmulatedPidJoystick({"emulated": True}, clock=clock, backend=backend)
    servo = Servo(device, MasslessImpedance(Coulomb(2.0), 600.0, 2.0), trace, clock=clock)

    def act_once():
        while trace.count <= 150 or np.hypot(*trace.since(trace.count - 1)[0]["command"]) <= FORCE:
            if ended.wait(1e-3):
                return
        act(device)
        acted[0] = trace.count

    other = threading.Thread(target=act_once)
    try:
        servo.run(seconds, opened=other.start)
    except DeviceFault as fault:
        message = str(fault)
    ended.set()
    other.join()
    rows = trace.since(0)
    assert servo.compiled
    assert acted[0] > 0
    reacted = rows["time"][-1] - rows["time"][min(acted[0], len(rows)) - 1]
    return SimpleNamespace(device=device, stick=backend.units[0], message=message, rows=rows, reacted_within=reacted)


def unplug(device):
    device.backend.units[0].unplug()


def mute(device):
    device.backend.units[0].faults.set("nak")


def hang(device):
    """Hang the writer in a transfer, which it cannot report itself."""
    device._opened()._session.write = lambda report: time.sleep(4.0 * STUCK)


def kill_writer(device):
    session = device._opened()._session

    def die(report):
        session.write = write
        raise MemoryError("no room for a report")

    write, session.write = session.write, die


@pytest.mark.wall_clock
@pytest.mark.parametrize(("act", "words"), [
    (unplug, "the stick was unplugged, or lost its power"), (mute, "the stick did not answer an output report in time"),
    (hang, "the stick did not answer an output report in time"), (kill_writer, "no room for a report"),
])  # fmt: skip
def test_error_of_a_thread_ends_the_run_and_no_force_stays(trace, act, words):
    found = run(trace, act)
    assert re.match(rf"pid-joystick failed at tick \d+: {words}", found.message), found.message
    assert found.reacted_within < 0.2
    assert not found.stick.owners
    deadline = time.perf_counter() + found.device.settings.force_duration + 0.1
    while found.stick.force.any() and time.perf_counter() < deadline:
        time.sleep(1e-3)
    assert not found.stick.force.any()


@pytest.mark.wall_clock
def test_stalled_reader_makes_old_samples_and_no_force(trace):
    released = threading.Event()

    def stall(device):
        backend, read = device.backend, device.backend.intr_read
        backend.intr_read = lambda *request: released.wait(10.0) and read(*request)

    found = run(trace, stall)
    released.set()
    assert "no usable sample since tick" in found.message
    assert "was too old" in found.message
    stale = found.rows["status"] & int(Status.STALE) != 0
    assert stale[-50:].all()
    np.testing.assert_array_less(found.device.spec.max_sample_age, found.rows["sample_age"][stale])
    assert not found.rows["command"][-50:].any()
    assert not found.stick.force.any()


@pytest.mark.wall_clock
def test_dead_loop_leaves_no_force_though_the_threads_live():
    clock = WallClock(1e-3)
    backend = emulated_stick("openffboard", hand=STILL)
    device, stick = EmulatedPidJoystick({"emulated": True}, clock=clock, backend=backend), backend.units[0]
    with device:
        clock.start()
        port = port_of(device)
        place = port.record.ctypes.data
        while clock.elapsed() < 0.1:
            run_part(port.read_part, place, clock.elapsed(), clock.elapsed())
            run_part(port.write_part, place, 2.0, 0.0)
            os.eventfd_write(port.wake, 1)
            time.sleep(1e-3)
        assert np.hypot(*stick.force) > 1.0
        time.sleep(4.0 * device.settings.keep_alive)
        assert not stick.force.any()
        assert device._opened().fault is None


def test_command_that_is_not_finite_is_a_fault():
    with EmulatedPidJoystick({"emulated": True, "hand": STILL}, clock=WallClock(1e-3)) as device:
        port = port_of(device)
        run_part(port.write_part, port.record.ctypes.data, np.nan, 0.0)
        assert port.record["fault"][0] == NOT_FINITE
        device.read()  # a wrong command does not affect samples
        with pytest.raises(DeviceFault, match=r"was given the command \(nan, 0\)"):
            device.write(np.array((np.nan, 0.0)))
        device.write(np.zeros(2))


@pytest.mark.wall_clock
def test_compiled_run_renders_its_friction(trace):
    found = run(trace, lambda device: None, 1.0)
    forces = np.hypot(*found.rows["command"].T)
    assert found.message == ""
    assert FORCE < forces.max() <= 2.0 + 1e-9
    assert len(found.stick.received("constant")) > 150, "every command wakes the writer"
    assert (found.rows["sample_age"] < found.device.spec.max_sample_age).mean() > 0.9
    assert not found.stick.force.any()
    assert not found.stick.owners
