"""Another program that pushes with a stick until it is ended: ``python -m tests.usb.driven TRANSPORT``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from devices.joystick.descriptor import parse_descriptor
from devices.joystick.families import family_of
from devices.joystick.finding import connect
from devices.joystick.session import PidSession, Playbook
from devices.joystick.streaming import InputLayout, Streaming
from devices.joystick.transport import Transport
from devices.joystick.usages import X, Y

KEPT_DURATION = 0.2
"""Duration of a constant effect [s]."""

LEVELS = 0.25, -0.125
"""What the other program pushes with, as parts of full scale of the two effects."""


@contextmanager
def packaged_libusb() -> Iterator[None]:
    """Let the driver find no libusb of the system's, so that it takes the one that is a Python package."""
    with patch("ctypes.util.find_library", return_value=None):
        yield


@contextmanager
def streaming(transport: Transport, keep_alive: float = 0.05) -> Iterator[Streaming]:
    """Set a stick up, start the driver's two threads, and end both orderly; a command counts for `keep_alive` [s]."""
    link = transport.link
    descriptor, family = parse_descriptor(link.descriptor), family_of(link.vendor_id, link.product_id)
    session = PidSession(transport, Playbook(descriptor, family), family, KEPT_DURATION)
    session.start()
    threads = Streaming(transport, session, InputLayout(descriptor, X, Y), keep_alive)
    threads.start(10.0)
    yield threads
    threads.stop()
    session.stop()


def main() -> None:
    with packaged_libusb(), streaming(connect("", "", sys.argv[1])) as threads:
        while threads.fault is None:
            threads.command(*LEVELS)
            time.sleep(5e-3)


if __name__ == "__main__":
    main()
