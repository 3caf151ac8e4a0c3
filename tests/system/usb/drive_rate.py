"""Rounds per second of real libusb with a drive behind `fast_usbfs.c` (``python -m tests.system.usb.drive_rate``)."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from devices.emulators.child import come_first
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.times import FreeTime
from tests.system.usb.drive import DriveBus, Stage, one_at_a_time, play_rounds, talking
from tests.system.usb.stage import play
from tests.system.usb.umockdev import FOLDER
from tests.system.usb.usbfs import UsbDeviceFiles

DURATION = 1.0
"""Of a measurement [s]."""


def rates(stage: Stage) -> Any:
    """Return the rounds a second with a queue and without."""
    found = []
    for way in (nullcontext, one_at_a_time):
        with way(), talking(stage) as (pipes, _, rounds):
            play_rounds(rounds, 50)
            count, start = 0, time.perf_counter()
            while time.perf_counter() < start + DURATION:
                play_rounds(rounds, 10)
                count += 10
            found.append((pipes.transfers, count / (time.perf_counter() - start)))
    return found


def main() -> None:
    come_first()
    board: Any = EmulatedOdrive(time=FreeTime())
    stage: Any = Stage(board, UsbDeviceFiles(Path(os.environ[FOLDER]), board, DriveBus))
    play(stage, (rates,))


if __name__ == "__main__":
    main()
