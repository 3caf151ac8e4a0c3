"""Guardian process that reattaches a stick's interface to Linux's driver.

A separate process is used for two reasons: a driver that is killed cannot reattach; and before the kernel attaches its
driver, it communicates with the stick, for half a minute if the stick does not answer, which must not block the run.

This file runs isolated from the project and may use the standard library only. Numbers are from linux/usbdevice_fs.h.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from collections.abc import Callable

PATIENCE = 5.0
"""Retry time while another process has the interface [s]; the kernel cleans up killed processes late."""

PAUSE = 5e-3
"""Pause between two attempts [s]."""

_CALL = struct.Struct("@iiP")  # interface, request code, and no data

_INTERFACE_CALL = 3 << 30 | _CALL.size << 16 | ord("U") << 8 | 18
_CONNECT = ord("U") << 8 | 23


def reattach(device: int, interface: int) -> int:
    """Attach the kernel's driver to an interface of an open device; return the exit status 0.

    Raises
    ------
    OSError
        If the stick was removed, or another process has claimed the interface.
    """
    import fcntl

    latest = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.ioctl(device, _INTERFACE_CALL, _CALL.pack(interface, _CONNECT, 0))
            return 0
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > latest:
                raise
        time.sleep(PAUSE)


def prepare(words: list[str]) -> Callable[[], int]:
    """Return the action of the guardian; `words` are the device file and the interface number.

    The file is opened now, because another stick may get the same name after this one is removed.
    """
    device, interface = os.open(words[0], os.O_RDWR), int(words[1])
    return lambda: reattach(device, interface)
