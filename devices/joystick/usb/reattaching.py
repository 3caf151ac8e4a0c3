"""Giving a stick's interface back to Linux's own driver, by a process of its own: the duty of a guardian.

It is done there, and not by the driver itself, for two reasons: a driver that is killed cannot; and the kernel, before
it takes a stick, talks to it, for half a minute if the stick does not answer, and nobody should wait for that.

This file is run isolated from everything else: it may use the standard library only. Numbers are those of
linux/usbdevice_fs.h.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from collections.abc import Callable

PATIENCE = 5.0
"""How long it is tried while somebody has the interface [s]: of a process that has just died the kernel tidies up."""

PAUSE = 5e-3
"""Between two tries [s]."""

_CALL = struct.Struct("@iiP")
"""Interface, what is meant for it, and no data."""

_INTERFACE_CALL = 3 << 30 | _CALL.size << 16 | ord("U") << 8 | 18
_CONNECT = ord("U") << 8 | 23


def reattach(device: int, interface: int) -> None:
    """Let the kernel's driver take an interface of an open device.

    Raises
    ------
    OSError
        If the stick is gone, or somebody else has taken the interface.
    """
    import fcntl

    latest = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.ioctl(device, _INTERFACE_CALL, _CALL.pack(interface, _CONNECT, 0))
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > latest:
                raise
        time.sleep(PAUSE)


def prepare(words: list[str]) -> Callable[[], int]:
    """Return the guardian's duty; `words` are the device's file and the number of the interface.

    The file is opened now: another stick may get the same name once this one is gone.
    """
    device, interface = os.open(words[0], os.O_RDWR), int(words[1])

    def act() -> int:
        reattach(device, interface)
        return 0

    return act
