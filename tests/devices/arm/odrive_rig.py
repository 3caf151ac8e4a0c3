"""An emulated drive and the stage that drives it.

With the fixture `stepped`, drive, stage, sleeps and time limits of the test use a stepped time
(`tests.devices.stepped_time`).
"""

import time
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np
import pytest

from devices.arm.motors import CanStage, OdriveStage, can_bus, can_stage, native, odrive, stage, usb
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.stage import give_motors
from devices.emulators.odrive.axis import STEP, Flywheels
from devices.emulators.odrive.board import EmulatedOdrive, EmulatedOdriveBackend
from devices.emulators.odrive.can import CanBus, CanSimple
from devices.emulators.odrive.endpoints import rows
from devices.emulators.odrive.firmware import Firmware
from haptics.errors import DeviceFault
from haptics.jit import kernel
from tests.devices.arm.sensor_rigs import wait_until
from tests.devices.stepped_time import LOOK, SteppedTime, settle

PERIOD = 1e-3
# An answer after this time counts as lost [s].
LATE = 2.5e-3
# Timeout for events that occur soon on an idle machine [s].
PATIENCE = 10.0

# What of the stages looks at the time.
LIVE_BY_IT = (odrive, native, stage, usb, can_bus, can_stage)

HOME = np.array((0.25, -0.5))
IDS = {row.path: row.number for row in rows()}
NAMES = {row.number: row.path for row in rows()}


class Place:
    """Time of the present test (None: wall time), its drives, and the protocol of its stages."""

    time: SteppedTime | None = None
    boards: tuple[EmulatedOdrive, ...] = ()
    protocol = "native"


@contextmanager
def living_by(own, modules=()):
    """Let a stage and `modules` live by this time, and wait for answers by it."""

    def wait(ticket, timeout):
        begin = own.now()
        while not ticket._done.acquire(timeout=LOOK) and own.now() < begin + timeout:
            if own.now() > begin + LATE:
                own.await_until(begin + timeout)
        own.await_until(None)
        return ticket.reply

    with own.seen_by((*LIVE_BY_IT, *modules)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(native.Ticket, "wait", wait)
        yield


class BusPort:
    """An interface in the same process (like `devices.arm.motors.can_bus.SocketPort`).

    Parameters
    ----------
    bus : CanBus
        The bus, used by this port only.
    """

    def __init__(self, bus):
        self._bus = bus
        self._waiting = deque()
        self._closed = False

    def send(self, frame):
        """Send a frame."""
        self._bus.send(frame)
        with self._bus.board.changed:
            self._bus.board.changed.notify_all()

    def receive(self, timeout):
        """Return the next frame, or None after `timeout` [s] of the bus time."""
        board = self._bus.board
        latest = board.time.now() + timeout
        while not self._waiting:
            self._waiting.extend(self._bus.poll())
            if self._closed or (not self._waiting and board.time.now() >= latest):
                return None
            if not self._waiting:
                with board.changed:
                    board.changed.wait(LOOK)
        return self._waiting.popleft()

    def close(self):
        """Close the port and end a pending receive."""
        self._closed = True


def make(latency=0.0, demands=None, **settings):
    """Return a stage on USB and its drive."""
    board = EmulatedOdrive(time=Place.time)
    Place.boards = (*Place.boards, board)
    own = OdriveSettings(**{"protocol": Place.protocol} | settings)
    backend = EmulatedOdriveBackend(board, latency=latency)
    return OdriveStage(own, far_end=backend, demands=demands), board


def make_on_can(watchdog=0.5, version=(0, 5, 6), **settings):
    """Return a stage on a CAN bus, and its drive, which was set up for it: with watchdogs and rates."""
    board = EmulatedOdrive(time=Place.time)
    Place.boards = (*Place.boards, board)
    for axis in board.inside.axes:
        axis.values.update({"config.watchdog_timeout": watchdog, "config.enable_watchdog": True})
    drive = CanSimple(board.inside, version=version)
    bus = CanBus(board, drive)
    own = OdriveSettings(protocol="can", watchdog=watchdog, **settings)
    return CanStage(own, far_end=lambda: BusPort(bus)), board, drive


@contextmanager
def armed(make_stage=make, **settings):
    """Yield a stage that holds its motors at home, and its drive; close it at the end, also after a fault."""
    stage, *drive = make_stage(**{"watchdog": 0.5, "reply_timeout": 0.1} | settings)
    stage.open()
    try:
        stage.home(HOME)
        stage.arm()
        yield stage, *drive
    finally:
        drive[0].faults.clear()
        with suppress(DeviceFault):  # a fault of the test
            stage.close()


armed_on_can = partial(armed, make_on_can)


@kernel
def give(motors, instant):
    """Pass the command of the (1,) array `motors` to the drive's thread, as a tick does."""
    return give_motors(motors[0], instant)


def tick(stage, angles, speeds=None, torques=(0.0, 0.0)):
    """Command angles, by default with the speed since the last tick; return a copy of the latest angles."""
    wake, streaming = stage.wake, stage._streaming
    change = np.subtract(angles, getattr(streaming, "told", angles))
    streaming.told = angles
    stage.record["command"][0, :6] = *angles, *(change / PERIOD if speeds is None else speeds), *torques
    if not give(stage.record, time.perf_counter()):
        raise DeviceFault("the command must be finite, and not that far")
    wake.call()
    return stage.read_angles().copy()


def run(stage, duration, command=lambda _: HOME):
    """Tick for a while; return the angles."""
    start, angles = time.perf_counter(), []
    while (now := time.perf_counter() - start) < duration:
        angles.append(tick(stage, command(now)))
        go_on(stage)
    return angles


def go_on(stage):
    """Advance by one tick; in stepped time, also wait for stage and drive."""
    own, stream = Place.time, stage._streaming
    if own is None or stream is None:
        time.sleep(PERIOD)
        return

    def done():
        return bool(stream.failure) or stream.answer.requested >= own.now()

    with own.by_hand() as step:
        step()
        settle(done, lambda: own.awaited or any(board.faults.at(board.now) for board in Place.boards))


def operations(board):
    """Return the names and payloads of all writes and calls that the drive received."""
    told = [(NAMES.get(int.from_bytes(packet[2:4], "little") & 0x7FFF, ""), packet) for packet in board.inside.received]
    functions = {row.path for row in rows() if row.kind == "function"}
    return [(name, packet[6:-2]) for name, packet in told if name and (len(packet) > 8 or name in functions)]


def states(board):
    with board.lock:
        board.catch_up()
        return [axis.values["current_state"] for axis in board.inside.axes]


def until(board, state):
    """Wait until both axes are in a state."""
    wait_until(lambda: states(board) == [state, state], PATIENCE)


def alone(**loads):
    """Return a drive without a bus and its plant; only `let_go_by` advances its time."""
    plant = Flywheels(**loads)
    return Firmware(plant, 1), plant


def let_go_by(inside, duration):
    for _ in range(round(duration / STEP)):
        inside.iterate()
