"""A stick without Python: through its port the same bits as by ``read`` and ``write``, and the same ends of a run."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.common import driver
from devices.common.driver_kernels import NOT_FINITE
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.faults import FaultyDevice, parse_fault
from devices.joystick.device import PidJoystick
from devices.joystick.streaming import STUCK
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.clock import Clock, WallClock
from haptics.device import DEAD_MAN_BUTTON
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.parts import run_part
from haptics.ports import Port, port_of
from haptics.records import Status
from haptics.servo.system_kernels import AVAILABLE
from haptics.trace import Trace
from tests.devices.felt import FRICTION, write_own_friction
from tests.devices.joystick.doubles import STILL
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step

pytestmark = [
    pytest.mark.usefixtures("compiled"),
    pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here"),
]

# --- the same bits ----------------------------------------------------------------------------------------------------

TICKS = 1500
MOVES = {"name": "minimum-jerk", "points": [[-0.02, -0.01], [0.02, 0.01]], "rest": 0.1}


class ByMethods:
    """Serves a device by ``read`` and ``write``."""

    def __init__(self, device: PidJoystick) -> None:
        self._device = device

    def take(self) -> tuple[Any, ...]:
        state = self._device.read()
        return (*state.position, *state.velocity, state.buttons, state.time)

    def give(self, command: np.ndarray, share: float) -> None:
        self._device.compensate(share)
        self._device.write(command)


class ByPort:
    """Serves it by what the compiled loop calls."""

    def __init__(self, device: PidJoystick) -> None:
        port = port_of(device)
        assert port is not None
        self._device, self._port, self._place = device, port, port.record.ctypes.data

    def take(self) -> tuple[Any, ...]:
        clock, record = self._device._clock, self._port.record[0]
        run_part(self._port.take, self._place, clock.time, clock.elapsed())
        assert not record["fault"]
        return (*record["position"], *record["velocity"], int(record["buttons"]), record["time"])

    def give(self, command: np.ndarray, share: float) -> None:
        self._port.record["assistance"] = share
        run_part(self._port.give, self._place, *command)
        self._device._opened().wake.call()
        assert not self._port.record["fault"][0]


def pushed(serve: type[ByMethods | ByPort], folder: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Push a stick under friction compensation, in step with its bus; return samples, force and handle."""
    own = Path(write_own_friction(folder / "own.toml"))
    plain = EmulatedPidJoystick({"emulated": True})
    own.write_text(own.read_text().replace("virtual-joystick", f"pid-joystick {plain.spec.identity}"))
    backend = emulated_stick("openffboard", hand=MOVES, period=0.0, friction=FRICTION)
    stick, random, rows = backend.sticks[0], np.random.default_rng(3), list[tuple[float, ...]]()
    with monkeypatch.context() as patch:
        put_in_step(stick.time, patch)
        patch.setattr(driver, "WallClock", BusClock)  # what the compiled loop follows
        clock = BusClock(FRAME, stick.time)
        device = EmulatedPidJoystick({"emulated": True, "friction_parameters": str(own)}, clock=clock, backend=backend)
        with device:
            clock.start()
            served = serve(device)
            for tick in range(TICKS):
                clock.wait(tick if tick < TICKS - 200 else tick + 3)  # some ticks are missed
                device._opened().step()  # type: ignore[attr-defined]
                sample = served.take()
                served.give(-8.0 * np.array(sample[2:4]) + random.uniform(-1.0, 1.0, 2), random.uniform(-0.1, 1.1))
                rows.append((*sample, *stick.force, *stick.handle))
    return np.array(rows)


def test_through_its_port_it_measures_and_pushes_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_methods, by_port = (pushed(serve, tmp_path, monkeypatch) for serve in (ByMethods, ByPort))
    assert np.ptp(by_port[:, :2], axis=0).min() > 5e-3
    assert np.abs(by_port[:, 6:8]).max() > 1.0
    times = by_methods[:, 5], by_port[:, 5]
    np.testing.assert_allclose(*times, rtol=0.0, atol=2e-9, err_msg="a clock of whole nanoseconds")
    by_methods[:, 5] = by_port[:, 5] = 0.0
    assert by_methods.tobytes() == by_port.tobytes()


@pytest.mark.parametrize(("button", "word"), [(0, 0b1010), (1, 0b1011), (2, 0b1010), (31, 0b1010)])
def test_the_dead_mans_button_comes_before_those_of_the_stick(button: int, word: int) -> None:
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


# --- when there is a port ---------------------------------------------------------------------------------------------


def test_there_is_a_port_on_the_walls_clock_alone() -> None:
    clock = WallClock(1e-3)
    with pytest.raises(DeviceOpenError, match=r"open\(\)"):
        port_of(EmulatedPidJoystick({"emulated": True, "hand": STILL}, clock=clock))
    with EmulatedPidJoystick({"emulated": True, "hand": STILL}, clock=clock) as device:
        assert port_of(device) is not None
        assert port_of(FaultyDevice(device, [parse_fault("dropout@1")], clock)) is None
    for other in (None, Clock(1e-3)):
        with EmulatedPidJoystick({"emulated": True, "hand": STILL}, clock=other) as device:
            assert port_of(device) is None


# --- runs without Python ----------------------------------------------------------------------------------------------

FORCE = 1.5
"""What model C is driven to in these runs at least [N]."""


class Run:
    """A run of model C on an emulated stick that a hand moves; while there is a force, somebody does something."""

    def __init__(self, trace: Trace, act: Callable[[Run], object], seconds: float = 3.0) -> None:
        clock = WallClock(1e-3)
        self.backend = emulated_stick("openffboard", hand={"name": "minimum-jerk"})
        self.stick = self.backend.sticks[0]
        self.device = EmulatedPidJoystick({"emulated": True}, clock=clock, backend=self.backend)
        servo = Servo(self.device, MasslessImpedance(Coulomb(2.0), 600.0, 2.0), trace, clock=clock)
        self.acted_at, self.said, self._ended = 0, "", threading.Event()
        other = threading.Thread(target=self._act_on, args=(trace, act))
        try:
            servo.run(seconds, opened=lambda: self._note(other))
        except DeviceFault as fault:
            self.said = str(fault)
        self._ended.set()
        other.join()
        assert servo.compiled
        self.rows = trace.since(0)

    def _note(self, other: threading.Thread) -> None:
        self.streaming = self.device._opened()
        other.start()

    def _act_on(self, trace: Trace, act: Callable[[Run], object]) -> None:
        while not (trace.count > 150 and np.hypot(*trace.since(trace.count - 1)[0]["command"]) > FORCE):
            if self._ended.wait(1e-3):
                return
        act(self)
        self.acted_at = trace.count

    @property
    def reacted_within(self) -> float:
        """From the deed to the end of the ticks [s]."""
        return float(self.rows["time"][-1] - self.rows["time"][min(self.acted_at, len(self.rows)) - 1])


def unplug(run: Run) -> None:
    run.stick.unplug()


def mute(run: Run) -> None:
    run.stick.faults.set("nak")


def hang(run: Run) -> None:
    """Let the writer hang in a transfer: the one trouble that it cannot tell of itself."""
    run.streaming._session.write = lambda report: time.sleep(4.0 * STUCK)  # type: ignore[method-assign]


def kill_writer(run: Run) -> None:
    session = run.streaming._session

    def die(report: bytes) -> None:
        session.write = write  # type: ignore[method-assign]
        raise MemoryError("no room for a report")

    write, session.write = session.write, die  # type: ignore[method-assign]


@pytest.mark.wall_clock
@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (unplug, "the stick was unplugged, or lost its power"),
        (mute, "the stick did not answer an output report in time"),
        (hang, "the stick did not answer an output report in time"),
        (kill_writer, "no room for a report"),
    ],
)
def test_what_ends_a_thread_ends_the_run_with_its_words_and_no_force_stays(
    trace: Trace, deed: Callable[[Run], object], words: str
) -> None:
    run = Run(trace, deed)
    assert re.match(rf"pid-joystick failed at tick \d+: {words}", run.said), run.said
    assert run.acted_at > 0
    assert run.reacted_within < 0.2
    assert not run.stick.owners
    deadline = time.perf_counter() + run.device.settings.force_duration + 0.1
    while run.stick.force.any() and time.perf_counter() < deadline:
        time.sleep(1e-3)
    assert not run.stick.force.any()


@pytest.mark.wall_clock
def test_a_reader_that_stands_still_makes_old_samples_and_those_no_force(trace: Trace) -> None:
    going_on = threading.Event()

    def stall(run: Run) -> None:
        backend, read = run.backend, run.backend.intr_read
        backend.intr_read = lambda *told: going_on.wait(10.0) and read(*told)  # type: ignore[method-assign]

    run = Run(trace, stall)
    going_on.set()
    assert "no usable sample since tick" in run.said
    assert "was too old" in run.said
    stale = run.rows["status"] & int(Status.STALE) != 0
    assert stale[-50:].all()
    assert run.acted_at > 0
    np.testing.assert_array_less(run.device.spec.max_sample_age, run.rows["sample_age"][stale])
    assert not run.rows["command"][-50:].any()
    assert not run.stick.force.any()


@pytest.mark.wall_clock
def test_a_tick_that_has_died_leaves_no_force_on_though_the_threads_live() -> None:
    clock = WallClock(1e-3)
    backend = emulated_stick("openffboard", hand=STILL)
    device, stick = EmulatedPidJoystick({"emulated": True}, clock=clock, backend=backend), backend.sticks[0]
    with device:
        clock.start()
        port = port_of(device)
        assert port is not None
        play(port, clock, 0.1)
        assert np.hypot(*stick.force) > 1.0
        time.sleep(4.0 * device.settings.keep_alive)
        assert not stick.force.any()
        assert device._opened().fault is None, "nothing is wrong with the threads"


def play(port: Port, clock: WallClock, seconds: float) -> None:
    """Give 2 N through the port, as a loop without Python does, and wake the writer by the event alone."""
    place = port.record.ctypes.data
    while clock.elapsed() < seconds:
        run_part(port.take, place, clock.elapsed(), clock.elapsed())
        run_part(port.give, place, 2.0, 0.0)
        os.eventfd_write(port.wake, 1)
        time.sleep(1e-3)


def test_a_command_that_is_not_finite_is_a_fault_in_words(trace: Trace) -> None:
    with EmulatedPidJoystick({"emulated": True, "hand": STILL}, clock=WallClock(1e-3)) as device:
        port = port_of(device)
        assert port is not None
        run_part(port.give, port.record.ctypes.data, np.nan, 0.0)
        assert port.record["fault"][0] == NOT_FINITE
        device.read()  # what was wrong with a command is no matter of samples
        with pytest.raises(DeviceFault, match=r"was given the command \(nan, 0\)"):
            device.write(np.array((np.nan, 0.0)))
        device.write(np.zeros(2))


@pytest.mark.wall_clock
def test_a_run_goes_without_python_and_keeps_to_its_friction(trace: Trace) -> None:
    run = Run(trace, lambda run: None, 1.0)
    forces = np.hypot(*run.rows["command"].T)
    assert run.said == ""
    assert FORCE < forces.max() <= 2.0 + 1e-9
    assert len(run.stick.received("constant")) > 150, "the writer is woken, and does not just look now and then"
    assert (run.rows["sample_age"] < run.device.spec.max_sample_age).mean() > 0.9
    assert not run.stick.force.any()
    assert not run.stick.owners
