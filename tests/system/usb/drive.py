"""Scenes of an emulated drive below real libusb (``python -m tests.system.usb.drive package|system``).

The time of the drive is frozen: the scenes test transfers, not motors.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from devices.arm.motors import usb as drive_usb
from devices.arm.motors.native import Drive, Line, parse_table, request
from devices.arm.motors.odrive import NativeRounds
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.usb import open_drive
from devices.common import usb_queue
from devices.common.bus import TransferError
from devices.common.usb_queue import NoQueue
from devices.emulators.child import raise_priority
from devices.emulators.odrive.board import ENDPOINT_IN, ENDPOINT_OUT, EmulatedOdrive
from devices.emulators.usb_bus import FreeTime
from tests.system.usb.bus import FRAME, TO_HOST, Bus
from tests.system.usb.scenes import named, packaged_libusb, play
from tests.system.usb.umockdev import FOLDER, UsbDeviceFiles

ROUNDS = 20
# Duration of a transfer on a slow bus [s], much longer than in umockdev.
SLOW = 0.01

# Endpoint of the voltage of the supply.
VOLTAGE = 2


class DriveBus(Bus):
    """Carries transfers to a drive, which takes no native request while an answer was not read.

    `latency` is the least duration of a transfer [s]; a `deaf` bus cancels nothing.
    """

    def __init__(self, board):
        self.latency, self.deaf = 0.0, False
        self._submitted: dict[int, float] = {}
        super().__init__(board)

    def submit(self, transfer):
        """Queue a transfer."""
        with self.lock:
            self._submitted[id(transfer)] = time.monotonic()
            super().submit(transfer)

    def cancel(self, transfer):
        """Cancel a transfer unless the bus is deaf."""
        return not self.deaf and super().cancel(transfer)

    def reset(self):
        """Reset the port and drop waiting answers."""
        super().reset()
        self.stick.flush()

    def _serve(self):
        with self.lock:
            while self.connected:
                before = len(self.log)
                for endpoint, queue in self._waiting.items():
                    self._run(endpoint, queue, time.monotonic(), self.stick.catch_up())
                if len(self.log) == before:
                    self.lock.wait(FRAME if any(self._waiting.values()) else None)

    def _exchange(self, transfer):
        board: Any = self.stick
        if transfer.endpoint == 0:
            return self._control(transfer)
        if time.monotonic() < self._submitted[id(transfer)] + self.latency:
            return None
        if transfer.endpoint & TO_HOST:
            found: bytes | None = board.pipe(transfer.endpoint).poll_in()
            return found
        faults = board.catch_up() - {"short"}  # a fault of the wire
        return transfer.data if board.pipe(transfer.endpoint).out(transfer.data, faults) else None


@dataclass
class Stage:
    """A drive, its plug, and the counts of the last connection."""

    stick: EmulatedOdrive
    plug: UsbDeviceFiles
    counts: dict[str, float] = field(default_factory=dict)

    @property
    def bus(self):
        return self.plug.bus


@contextmanager
def one_at_a_time():
    """Disable queues of transfers."""

    def none(_):
        raise NoQueue("not today")

    with patch.object(drive_usb, "queues_of_libusb", none):
        yield


@contextmanager
def connected(stage):
    """Open the drive for the block; count the transfers of libusb, and time the end [s]."""
    stage.counts = counts = {"allocated": 0, "freed": 0, "took": 0.0}
    make = usb_queue.Functions.__init__

    def count(self, library):
        make(self, library)
        allocate, free = self.allocate, self.free

        def allocating(number):
            counts["allocated"] += 1
            return allocate(number)

        def freeing(address):
            counts["freed"] += 1
            free(address)

        self.allocate, self.free = allocating, freeing

    with patch.object(usb_queue.Functions, "__init__", count):
        pipes = open_drive()
    line = Line(pipes)
    table = parse_table(stage.stick.inside.text)
    line.trailer = table.checksum
    settings = OdriveSettings(watchdog=1.0, reply_timeout=0.5)
    try:
        yield pipes, line, NativeRounds(Drive(line, table), settings)
    finally:
        start = time.monotonic()
        line.close()
        counts["took"] = time.monotonic() - start


def play_rounds(rounds, count=ROUNDS):
    """Send new commands in every round."""
    for number in range(count):
        rounds.exchange((*(0.01 * number + place for place in range(4)), number % 2, 0.0), alive=True)


def failure(action):
    """Return trouble and message of a failed action; empty if it did not fail."""
    try:
        action()
    except TransferError as error:
        return f"{error.trouble}: {error}"
    return ""


# --- the scenes ------------------------------------------------------------------------------------------------------


def opening(stage):
    """Open, read a value, close, with a queue and without."""
    with connected(stage) as (pipes, line, _):
        found = pipes.transfers, pipes.serial, struct.unpack("<f", line.operate(VOLTAGE, b"", 4))[0]
    counts = stage.counts
    with one_at_a_time(), connected(stage) as (pipes, line, _):
        other = pipes.transfers, struct.unpack("<f", line.operate(VOLTAGE, b"", 4))[0]
    return {"queued": found, "plain": other, **counts}


def speed(stage):
    """Return the duration of a round with a queue and without, in durations of a transfer.

    Time limits are longer here, because this bus takes a quarter of them even without faults.
    """
    found = []
    for way in (nullcontext, one_at_a_time):
        longer = {"attribute": "WRITE_TIMEOUT", "new": 1.0}
        with (
            way(),
            patch.object(drive_usb, **longer),
            patch.object(usb_queue, **longer),
            connected(stage) as (_, _, rounds),
        ):
            stage.bus.latency = SLOW
            start = time.perf_counter()
            play_rounds(rounds)
            found.append((time.perf_counter() - start) / ROUNDS / SLOW)
            stage.bus.latency = 0.0
    return found


def halted(stage):
    """Halt the endpoints once; return the failures of that round and the next ones."""
    with connected(stage) as (_, _, rounds):
        play_rounds(rounds, 2)
        with stage.stick.lock:
            stage.stick.halted.update({ENDPOINT_IN, ENDPOINT_OUT})
        first = failure(lambda: play_rounds(rounds, 1))
        rounds.invalidate()
        second = failure(lambda: play_rounds(rounds, 3))
        return {"first": first, "second": second, "halted": sorted(stage.stick.halted)}


def failing(stage, fault, rounds_after):
    """Set a lasting fault; return the failures, the time of closing [s], and the counts."""
    with connected(stage) as (_, _, rounds):
        play_rounds(rounds, 2)
        stage.stick.faults.set(fault)
        said = [failure(lambda: play_rounds(rounds, 1)) for _ in range(rounds_after)]
    return {"said": said, **stage.counts}


def overflow(stage):
    """Let the drive answer more than there is room for."""
    with connected(stage) as (_, _, rounds):
        play_rounds(rounds, 2)
        with patch.object(stage.stick.pipe(ENDPOINT_IN), "poll_in", lambda: bytes(65)):
            return failure(lambda: play_rounds(rounds, 1))


def unplugged(stage):
    """Unplug the drive during rounds, and plug it in again."""
    with connected(stage) as (_, _, rounds):
        stage.bus.latency = SLOW
        puller = threading.Timer(0.1, stage.plug.unplug)
        puller.start()
        said = failure(lambda: play_rounds(rounds, 1000))
        puller.join()
    counts = stage.counts
    stage.plug.plug()
    with connected(stage) as (_, _, rounds):
        again = failure(lambda: play_rounds(rounds))
    return {"said": said, "again": again, **counts}


def last_words(stage):
    """Close directly after the last packets; return the number of packets that arrived."""
    pipes = open_drive()
    stage.stick.inside.received.clear()
    stage.bus.latency = SLOW
    for number in range(4):
        pipes.write(request(number, VOLTAGE, b"", 0, stage.stick.inside.checksum, acknowledged=False))
    pipes.close()
    stage.bus.latency = 0.0
    return len(stage.stick.inside.received)


def kept(stage):
    """Close where the system cancels nothing; return the counts and the time of closing [s]."""
    with connected(stage) as (_, _, rounds):
        play_rounds(rounds, 2)
        stage.bus.deaf = True
    stage.bus.deaf = False
    return {**stage.counts, "kept": len(usb_queue._abandoned)}


def interrupted(stage):
    """Press Ctrl-C while the driver waits for an answer; return its latency [s], and the counts."""
    pressed = [0.0]

    def press():
        pressed[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    heard = 0.0
    with connected(stage) as (_, line, _):
        stage.stick.faults.set("lost-answer")
        timer = threading.Timer(0.1, press)
        timer.start()
        try:
            for _ in range(30):
                failure(lambda: line.operate(VOLTAGE, b"", 4))
        except KeyboardInterrupt:
            heard = time.monotonic() - pressed[0]
        timer.join()
    return {"heard": heard, **stage.counts}


# Faults, and the number of rounds that are played with each.
FAULTS = {"stall": 4, "nak": 2, "short": 4, "lost-answer": 2}
FAILING = [named(fault, partial(failing, fault=fault, rounds_after=count)) for fault, count in FAULTS.items()]
SCENES = (opening, speed, halted, *FAILING, overflow, unplugged, last_words, interrupted)


def main():
    raise_priority()  # as emulators do: the other end of a wire has another processor
    board: Any = EmulatedOdrive(time=FreeTime())
    stage: Any = Stage(board, UsbDeviceFiles(Path(os.environ[FOLDER]), board, DriveBus))
    with packaged_libusb() if sys.argv[1] == "package" else nullcontext():
        play(stage, (*SCENES, kept))  # the last one leaves transfers behind


if __name__ == "__main__":
    main()
