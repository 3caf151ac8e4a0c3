"""An emulated drive below real libusb, by umockdev (``python -m tests.system.usb.drive LIBRARY``).

The drive's own time stands still: it is about transfers, not about motors.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from devices.arm.motors.native.drive import Drive
from devices.arm.motors.native.endpoints import parse_table
from devices.arm.motors.native.line import Line
from devices.arm.motors.native.wire import request
from devices.arm.motors.rounds import NativeRounds
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.usb import libusb_queue, pipes, queued
from devices.arm.motors.usb.finding import open_drive
from devices.arm.motors.usb.pipes import Pipes
from devices.arm.motors.usb.queue import NoQueue
from devices.common.bus.transfers import TransferError
from devices.emulators.child import come_first
from devices.emulators.odrive.board import ENDPOINT_IN, ENDPOINT_OUT, EmulatedOdrive
from devices.emulators.times import FreeTime
from tests.system.usb.bus import FRAME, TO_HOST, Bus, Transfer
from tests.system.usb.driven import packaged_libusb
from tests.system.usb.stage import play
from tests.system.usb.umockdev import FOLDER, loaded
from tests.system.usb.usbfs import UsbDeviceFiles

ROUNDS = 20
SLOW = 0.01
"""What every transfer takes on a slow bus [s]: much longer than umockdev does."""

VOLTAGE = 2
"""The endpoint of the supply's voltage."""


class DriveBus(Bus):
    """Carries transfers to a drive, which takes no native request while an answer was not read.

    Attributes
    ----------
    latency : float
        A transfer is over at the earliest so long after it was submitted [s].
    deaf : bool
        Whether nothing can be taken back.
    """

    def __init__(self, board: Any) -> None:
        self.latency, self.deaf = 0.0, False
        self._submitted: dict[int, float] = {}
        super().__init__(board)

    def submit(self, transfer: Transfer) -> None:
        """Queue a transfer."""
        with self.lock:
            self._submitted[id(transfer)] = time.monotonic()
            super().submit(transfer)

    def cancel(self, transfer: Transfer) -> bool:
        """Take a transfer back, if that works."""
        return not self.deaf and super().cancel(transfer)

    def reset(self) -> None:
        """Reset the port: what waits to be read is gone."""
        super().reset()
        self.stick.flush()  # type: ignore[attr-defined]

    def _serve(self) -> None:
        with self.lock:
            while self.connected:
                before = len(self.log)
                for endpoint, queue in self._waiting.items():
                    self._run(endpoint, queue, time.monotonic(), self.stick.catch_up())
                if len(self.log) == before:
                    self.lock.wait(FRAME if any(self._waiting.values()) else None)

    def _exchange(self, transfer: Transfer) -> bytes | None:
        board: Any = self.stick
        if transfer.endpoint == 0:
            return self._control(transfer)
        if time.monotonic() < self._submitted[id(transfer)] + self.latency:
            return None
        if transfer.endpoint & TO_HOST:
            found: bytes | None = board.poll_in(transfer.endpoint)
            return found
        if board.busy(transfer.endpoint):
            return None
        board.out(transfer.endpoint, transfer.data, board.catch_up() - {"short"})  # which the wire does
        return transfer.data


@dataclass
class Stage:
    """A drive and its plug."""

    stick: EmulatedOdrive
    plug: UsbDeviceFiles

    @property
    def bus(self) -> DriveBus:
        """The wire."""
        assert isinstance(self.plug.bus, DriveBus)
        return self.plug.bus


class Counted:
    """Counts what libusb has allocated and freed."""

    def __init__(self) -> None:
        self.allocated = self.freed = 0

    def watch(self, functions: libusb_queue.Functions) -> None:
        allocate, free = functions.allocate, functions.free

        def allocating(count: int) -> Any:
            self.allocated += 1
            return allocate(count)

        def freeing(address: int) -> None:
            self.freed += 1
            free(address)

        functions.allocate, functions.free = allocating, freeing


@contextmanager
def counting() -> Iterator[Counted]:
    """Count what happens meanwhile."""
    counted = Counted()
    made = libusb_queue.Functions.__init__

    def make(self: libusb_queue.Functions, library: Any) -> None:
        made(self, library)
        counted.watch(self)

    with patch.object(libusb_queue.Functions, "__init__", make):
        yield counted


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let there be no queues."""

    def none(_: Any) -> Any:
        raise NoQueue("not today")

    with patch.object(queued, "_queues_of", none):
        yield


@contextmanager
def patient() -> Iterator[None]:
    """Let packets wait much longer than the driver does."""
    with patch.object(pipes, "WRITE_TIMEOUT", 1.0), patch.object(libusb_queue, "WRITE_TIMEOUT", 1.0):
        yield


@contextmanager
def talking(stage: Stage) -> Iterator[tuple[Pipes, Line, NativeRounds]]:
    """Open the drive, and close it again."""
    pipes = open_drive()
    line = Line(pipes)
    table = parse_table(stage.stick.inside.text)
    line.trailer = table.checksum
    settings = OdriveSettings(watchdog=1.0, reply_timeout=0.5)
    try:
        yield pipes, line, NativeRounds(Drive(line, table), settings)
    finally:
        line.close()


def play_rounds(rounds: NativeRounds, count: int = ROUNDS) -> None:
    """Tell the drive something new in every round."""
    for number in range(count):
        rounds.play((*(0.01 * number + place for place in range(4)), number % 2, 0.0), alive=True)


def failure(action: Callable[[], Any]) -> str:
    """Return how an action fails."""
    try:
        action()
    except TransferError as error:
        return f"{error.trouble}: {error}"
    return ""


# --- the scenes ------------------------------------------------------------------------------------------------------


def opening(stage: Stage) -> Any:
    """Open, read something, close; and without a queue."""
    with counting() as counted:
        with talking(stage) as (pipes, line, _):
            found = pipes.transfers, pipes.serial, struct.unpack("<f", line.operate(VOLTAGE, b"", 4))[0]
        with one_at_a_time(), talking(stage) as (pipes, line, _):
            other = pipes.transfers, struct.unpack("<f", line.operate(VOLTAGE, b"", 4))[0]
    return {"queued": found, "plain": other, "allocated": counted.allocated, "freed": counted.freed}


def wire(stage: Stage) -> Any:
    """Play the same rounds with a queue and without; return whether the same packets have come, and how many."""
    heard = []
    for way in (nullcontext, one_at_a_time):
        with way(), talking(stage) as (_, _, rounds):
            stage.stick.inside.received.clear()
            rounds._next_feed = float("inf")  # which goes by the clock
            play_rounds(rounds)
            heard.append(list(stage.stick.inside.received))
    return {"same": heard[0] == heard[1], "packets": len(heard[0])}


def speed(stage: Stage) -> Any:
    """Return how long a round takes with a queue and without, as parts of a transfer's time.

    No time limit is to be judged here, and on this bus a quarter of it is gone before anything was late.
    """
    found = []
    for way in (nullcontext, one_at_a_time):
        with way(), patient(), talking(stage) as (_, _, rounds):
            stage.bus.latency = SLOW
            start = time.perf_counter()
            play_rounds(rounds)
            found.append((time.perf_counter() - start) / ROUNDS / SLOW)
            stage.bus.latency = 0.0
    return found


def halted(stage: Stage) -> Any:
    """Halt the endpoints once; return how the round failed, and whether the next one works."""
    with talking(stage) as (_, _, rounds):
        play_rounds(rounds, 2)
        with stage.stick.lock:
            stage.stick.halted.update({ENDPOINT_IN, ENDPOINT_OUT})
        first = failure(lambda: play_rounds(rounds, 1))
        rounds.forget()
        second = failure(lambda: play_rounds(rounds, 3))
        return {"first": first, "second": second, "halted": sorted(stage.stick.halted)}


def failing(stage: Stage, fault: str, rounds_after: int = 4) -> Any:
    """Have something go wrong and stay so; return what is said, and whether all is free afterwards."""
    with counting() as counted:
        with talking(stage) as (_, _, rounds):
            play_rounds(rounds, 2)
            stage.stick.faults.set(fault)
            said = [failure(lambda: play_rounds(rounds, 1)) for _ in range(rounds_after)]
            start = time.monotonic()
        took = time.monotonic() - start
    return {"said": said, "took": took, "allocated": counted.allocated, "freed": counted.freed}


def stall(stage: Stage) -> Any:
    return failing(stage, "stall")


def silent(stage: Stage) -> Any:
    return failing(stage, "nak", 2)


def short(stage: Stage) -> Any:
    return failing(stage, "short")


def unanswered(stage: Stage) -> Any:
    return failing(stage, "lost-answer", 2)


def overflow(stage: Stage) -> Any:
    """Have the drive answer more than there is room for."""
    with talking(stage) as (_, _, rounds):
        play_rounds(rounds, 2)
        with patch.object(stage.stick, "poll_in", lambda _: bytes(65)):
            return failure(lambda: play_rounds(rounds, 1))


def unplugged(stage: Stage) -> Any:
    """Pull the plug in the middle of rounds, and put it in again."""
    with counting() as counted:
        with talking(stage) as (_, _, rounds):
            stage.bus.latency = SLOW
            puller = threading.Timer(0.1, stage.plug.unplug)
            puller.start()
            said = failure(lambda: play_rounds(rounds, 1000))
            puller.join()
            start = time.monotonic()
        took = time.monotonic() - start
    stage.plug.plug()
    with talking(stage) as (_, _, rounds):
        again = failure(lambda: play_rounds(rounds))
    return {"said": said, "took": took, "again": again, "allocated": counted.allocated, "freed": counted.freed}


def last_words(stage: Stage) -> Any:
    """Close right behind the last packets; return how many have arrived."""
    pipes = open_drive()
    stage.stick.inside.received.clear()
    stage.bus.latency = SLOW
    for number in range(4):
        pipes.write(request(number, VOLTAGE, b"", 0, stage.stick.inside.checksum, acknowledged=False))
    pipes.close()
    stage.bus.latency = 0.0
    return len(stage.stick.inside.received)


def kept(stage: Stage) -> Any:
    """Close where the system gives nothing back; return what was freed, and how long it took."""
    with counting() as counted:
        with talking(stage) as (_, _, rounds):
            play_rounds(rounds, 2)
            stage.bus.deaf = True
            start = time.monotonic()
        took = time.monotonic() - start
    stage.bus.deaf = False
    return {"allocated": counted.allocated, "freed": counted.freed, "kept": len(libusb_queue._kept), "took": took}


def interrupted(stage: Stage) -> Any:
    """Press Ctrl-C while an answer is waited for; return how long that took to be heard, and whether all is free."""
    pressed = [0.0]

    def press() -> None:
        pressed[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    heard = 0.0
    with counting() as counted:
        with talking(stage) as (_, line, _):
            stage.stick.faults.set("lost-answer")
            timer = threading.Timer(0.1, press)
            timer.start()
            try:
                for _ in range(30):
                    failure(lambda: line.operate(VOLTAGE, b"", 4))
            except KeyboardInterrupt:
                heard = time.monotonic() - pressed[0]
            timer.join()
    return {"heard": heard, "allocated": counted.allocated, "freed": counted.freed}


SCENES = (opening, wire, speed, halted, stall, silent, short, unanswered, overflow, unplugged, last_words, interrupted)


def main() -> None:
    come_first()  # as emulators do: at the far end of a wire is a processor of its own
    folder = Path(os.environ[FOLDER])
    board: Any = EmulatedOdrive(time=FreeTime())
    stage: Any = Stage(board, UsbDeviceFiles(folder, board, DriveBus))
    with packaged_libusb() if sys.argv[1] == "package" else nullcontext():
        play(stage, (*SCENES, loaded, kept))  # the last one leaves something behind


if __name__ == "__main__":
    main()
