"""Another program that pushes with a stick until it is ended: ``python -m tests.usb.driven TRANSPORT``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from devices.joystick.opening import playing
from devices.joystick.usb.finding import connect

KEPT_DURATION = 0.2
"""Duration of a constant effect [s]."""

LEVELS = 0.25, -0.125
"""What the other program pushes with, as parts of full scale of the two effects."""


@contextmanager
def packaged_libusb() -> Iterator[None]:
    """Let the driver find no libusb of the system's, so that it takes the one that is a Python package."""
    with patch("ctypes.util.find_library", return_value=None):
        yield


def main() -> None:
    with packaged_libusb():
        stick = connect("", "", sys.argv[1])
    with playing(stick, KEPT_DURATION, KEPT_DURATION / 4, patience=10.0) as threads:
        while threads.fault is None:
            threads.levels.publish(*LEVELS, time.perf_counter())
            threads.wake.call()
            time.sleep(5e-3)


if __name__ == "__main__":
    main()
