"""An emulated drive, the stage that drives it, and what the tests of both share.

Where a test has the fixture `stepped`, drive and stage live by a time of their own (`tests.devices.stepped_time`),
and so do sleeps and time limits of the test itself.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from devices.arm.motors import CanStage, OdriveStage, checks, rounds, streamed, streaming
from devices.arm.motors.can import checks as can_checks
from devices.arm.motors.can import line as can_line
from devices.arm.motors.can import rounds as can_rounds
from devices.arm.motors.native import line
from devices.arm.motors.streamed import StreamedStage
from devices.arm.motors.usb import finding, text
from devices.emulators.odrive.axis import STEP
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.odrive.can_simple import CanSimple
from devices.emulators.odrive.firmware import Firmware
from devices.emulators.odrive.plant import Flywheels
from devices.emulators.odrive.serving.can_bus import CanBus
from devices.emulators.odrive.table import rows
from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend
from haptics.device import Vector
from haptics.errors import DeviceFault
from tests.devices.stepped_time import LOOK, SteppedTime, settle

PERIOD = 1e-3
LATE = 2.5e-3
"""An answer that has not come after so long is lost, or its drive is slow [s]."""
PATIENCE = 10.0
"""For what happens soon, on a machine that has nothing else to do [s]."""

LIVE_BY_IT = (checks, line, rounds, streamed, streaming, text, finding, can_checks, can_line, can_rounds)
"""What of the stages looks at the time."""

HOME = np.array((0.25, -0.5))
IDS = {row.path: row.number for row in rows()}
NAMES = {row.number: row.path for row in rows()}


class Place:
    """The time that drives and stages of the present test live by (the wall's if there is none), the drives, and how
    stages talk to them."""

    time: SteppedTime | None = None
    boards: tuple[EmulatedOdrive, ...] = ()
    protocol = "native"


@contextmanager
def living_by(own: SteppedTime, modules: Iterable[Any] = ()) -> Iterator[None]:
    """Let a stage and `modules` live by this time, and wait for answers by it."""

    def wait(ticket: line.Ticket, timeout: float) -> bytes | None:
        begin = own.now()
        while not ticket._done.acquire(timeout=LOOK) and own.now() < begin + timeout:
            if own.now() > begin + LATE:
                own.await_until(begin + timeout)
        own.await_until(None)
        return ticket.reply

    with own.seen_by((*LIVE_BY_IT, *modules)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(line.Ticket, "wait", wait)
        yield


class BusPort:
    """An interface in the same process (`devices.arm.motors.can.port.Port`).

    Parameters
    ----------
    bus : CanBus
        What is behind it; no one else may use it.
    """

    def __init__(self, bus: CanBus) -> None:
        self._bus = bus
        self._waiting: deque[bytes] = deque()
        self._closed = False

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        self._bus.send(frame)
        with self._bus.board.changed:
            self._bus.board.changed.notify_all()

    def receive(self, timeout: float) -> bytes | None:
        """Return the next frame, None if there was none for `timeout` [s] of the bus's own time."""
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

    def close(self) -> None:
        """Give it back: whoever waits for a frame waits no more, for a time that is over stands still."""
        self._closed = True


def make_on_can(
    *faults: str, watchdog: float = 0.5, version: tuple[int, int, int] = (0, 5, 6), **settings: Any
) -> tuple[CanStage, EmulatedOdrive, CanSimple]:
    """A stage on a CAN bus, and its drive, which was set up for it: with watchdogs and rates."""
    board = EmulatedOdrive(faults=faults, time=Place.time)
    Place.boards = (*Place.boards, board)
    for axis in board.inside.axes:
        axis.values |= {"config.watchdog_timeout": watchdog, "config.enable_watchdog": True}
    drive = CanSimple(board.inside, version=version)
    bus = CanBus(board, drive)
    told = {"protocol": "can", "watchdog": watchdog} | settings
    return CanStage(told, period=PERIOD, port=lambda: BusPort(bus)), board, drive


def make(*faults: str, latency: float = 0.0, **settings: Any) -> tuple[OdriveStage, EmulatedOdrive]:
    settings = {"protocol": Place.protocol} | settings
    board = EmulatedOdrive(faults=faults, time=Place.time)
    Place.boards = (*Place.boards, board)
    return OdriveStage(settings, period=PERIOD, backend=EmulatedOdriveBackend(board, latency=latency)), board


@contextmanager
def armed(
    *faults: str, watchdog: float = 0.5, reply_timeout: float = 0.1, **settings: Any
) -> Iterator[tuple[OdriveStage, EmulatedOdrive]]:
    """A stage that holds its motors at home; closed at the end whatever has become of it."""
    stage, board = make(*faults, watchdog=watchdog, reply_timeout=reply_timeout, **settings)
    stage.open()
    try:
        stage.home(HOME)
        stage.arm()
        yield stage, board
    finally:
        board.faults.clear()
        with suppress(DeviceFault):  # after a fault, which is not what a test of another one is about
            stage.close()


def run(stage: StreamedStage, duration: float, command: Callable[[float], Vector] = lambda _: HOME) -> list[Vector]:
    """Tick for a while; return the angles."""
    start, angles = time.perf_counter(), []
    while (now := time.perf_counter() - start) < duration:
        angles.append(stage.tick(command(now)).copy())
        go_on(stage)
    return angles


def go_on(stage: StreamedStage) -> None:
    """Let a tick go by, and in a stepped time as much of the machine's as stage and drive need for it."""
    own, stream = Place.time, stage._streaming
    if own is None or stream is None:
        time.sleep(PERIOD)
        return

    def done() -> bool:
        return bool(stream.failure) or stream.sample.time >= own.now()

    with own.by_hand() as step:
        step()
        settle(done, lambda: own.awaited or any(board.faults.at(board.now) for board in Place.boards))


def operations(board: EmulatedOdrive) -> list[tuple[str, bytes]]:
    """What the drive was told: names of endpoints and payloads, reads and the table left out."""
    told = [(NAMES.get(int.from_bytes(packet[2:4], "little") & 0x7FFF, ""), packet) for packet in board.inside.received]
    functions = {row.path for row in rows() if row.kind == "function"}
    return [(name, packet[6:-2]) for name, packet in told if name and (len(packet) > 8 or name in functions)]


def states(board: EmulatedOdrive) -> list[int]:
    with board.lock:
        board.catch_up()
        return [axis.values["current_state"] for axis in board.inside.axes]


def states_at_looks(stage: StreamedStage, board: EmulatedOdrive) -> list[list[int]]:
    """Arm a stage and look once; return the states of the axes whenever the kernel for a sample was called."""
    seen, look_at = list[list[int]](), streamed.look_at
    with pytest.MonkeyPatch.context() as patch, stage:
        patch.setattr(streamed, "look_at", lambda record: (seen.append(states(board)), look_at(record)))
        stage.home(HOME)
        stage.arm()
        stage.look()
    return seen


def until(board: EmulatedOdrive, state: int) -> None:
    """Wait until both axes are in a state."""
    latest = time.monotonic() + PATIENCE
    while states(board) != [state, state]:
        assert time.monotonic() < latest
        time.sleep(2e-3)


def alone(**loads: Any) -> tuple[Firmware, Flywheels]:
    """A drive on no bus, whose time goes by in `let_go_by` only."""
    plant = Flywheels(**loads)
    return Firmware(plant, 1), plant


def let_go_by(inside: Firmware, duration: float) -> None:
    for _ in range(round(duration / STEP)):
        inside.iterate()
