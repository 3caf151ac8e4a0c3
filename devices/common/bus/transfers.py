"""Transfer errors of devices, independent of the bus."""

from __future__ import annotations

import errno
from collections.abc import Collection
from enum import StrEnum

from haptics.errors import DeviceFault

GONE = frozenset((errno.ENODEV, errno.ESHUTDOWN, errno.ENOENT, errno.ENXIO))
"""Error numbers of the system for a device that was unplugged."""


class Trouble(StrEnum):
    """Kind of a transfer failure."""

    UNPLUGGED = "unplugged"
    """The device was unplugged."""
    TIMEOUT = "timeout"
    """The device did not answer in time."""
    STALL = "stall"
    """The device rejected the request."""
    BROKEN = "broken"
    """Any other failure."""


class TransferError(DeviceFault):
    """Failed transfer.

    Attributes
    ----------
    trouble : Trouble
        Kind of the failure.
    """

    def __init__(self, message: str, trouble: Trouble = Trouble.BROKEN) -> None:
        super().__init__(message)
        self.trouble = trouble


def trouble_of(error: OSError, gone: Collection[int] = GONE) -> Trouble:
    """Classify a system error; `gone` contains the error numbers of an unplugged device."""
    if error.errno in gone:
        return Trouble.UNPLUGGED
    return {errno.ETIMEDOUT: Trouble.TIMEOUT, errno.EPIPE: Trouble.STALL}.get(error.errno or 0, Trouble.BROKEN)
