"""Another program that pushes with a stick until it is ended: ``python -m tests.system.usb.driven TRANSPORT``."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from devices.joystick.opening import playing
from devices.joystick.streaming import ENDED
from devices.joystick.usb import hidraw, usb_transport
from devices.joystick.usb.finding import connect

KEPT_DURATION = 0.2
"""Duration of a constant effect [s]."""

PATIENCE = 10.0
"""How long a report is waited for, and until it is taken [s]."""

LEVELS = 0.25, -0.125
"""What the other program pushes with, as parts of full scale of the two effects."""


@contextmanager
def packaged_libusb() -> Iterator[None]:
    """Let the driver find no libusb of the system's, so that it takes the one that is a Python package."""
    with patch("ctypes.util.find_library", return_value=None):
        yield


def main() -> None:
    with contextlib.ExitStack() as patient:
        for module in (usb_transport, hidraw):  # a stick whose emulator has to wait for a processor is not given up
            patient.enter_context(patch.object(module, "WRITE_TIMEOUT", PATIENCE))
        with packaged_libusb():
            stick = connect("", "", sys.argv[1])
        with playing(stick, KEPT_DURATION, KEPT_DURATION / 4, patience=PATIENCE) as threads:
            while not threads.trouble[ENDED]:
                threads.levels.publish(*LEVELS, time.perf_counter())
                threads.wake.call()
                time.sleep(5e-3)
            sys.exit(f"the other program ended: {threads.fault}")


if __name__ == "__main__":
    main()
