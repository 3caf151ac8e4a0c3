"""What goes wrong when a transfer to a device fails, whatever the wire."""

from __future__ import annotations

import errno
from collections.abc import Collection
from enum import StrEnum

from haptics.errors import DeviceFault

GONE = frozenset((errno.ENODEV, errno.ESHUTDOWN, errno.ENOENT, errno.ENXIO))
"""What the system says of a device that is not there any more."""


class Trouble(StrEnum):
    """What kind of failure a transfer had."""

    UNPLUGGED = "unplugged"
    """The device is gone."""
    TIMEOUT = "timeout"
    """The device did not answer in time."""
    STALL = "stall"
    """The device refused the request."""
    BROKEN = "broken"
    """Anything else."""


class TransferError(DeviceFault):
    """A transfer failed.

    Attributes
    ----------
    trouble : Trouble
        In what way.
    """

    def __init__(self, message: str, trouble: Trouble = Trouble.BROKEN) -> None:
        super().__init__(message)
        self.trouble = trouble


def trouble_of(error: OSError, gone: Collection[int] = GONE) -> Trouble:
    """Return what kind of failure an error of the system is; `gone` are the numbers that stand for an unplugged one."""
    if error.errno in gone:
        return Trouble.UNPLUGGED
    return {errno.ETIMEDOUT: Trouble.TIMEOUT, errno.EPIPE: Trouble.STALL}.get(error.errno or 0, Trouble.BROKEN)
