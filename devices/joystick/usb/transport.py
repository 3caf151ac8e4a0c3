"""Interface of a transport of reports to a stick and back, and its errors.

Report bytes begin with the report's number. A transport is used by two threads at once, one that reads and one that
writes; everything else happens before they start or after they have ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from devices.common.bus.transfers import GONE, TransferError, Trouble, trouble_of

WRITE_TIMEOUT = 0.04
"""For an output report [s]: of a device that takes none for twice as long the run is told within 100 ms."""

AGAIN = "unplug it, plug it in and start again"
"""What to do with a stick that does not do as it should."""


def failure(error: OSError, what: str, gone: Collection[int] = GONE, after_stall: str = "") -> TransferError:
    """Return what is raised when `what` (a report, a request) has failed; `after_stall` says what to do if refused."""
    trouble = trouble_of(error, gone)
    how = {
        Trouble.UNPLUGGED: "the stick was unplugged, or lost its power: plug it in and start again",
        Trouble.TIMEOUT: f"the stick did not answer {what} in time: {AGAIN}",
        Trouble.STALL: f"the stick refused {what} (stall)" + (f": {after_stall}" if after_stall else ""),
        Trouble.BROKEN: f"{what} failed ({error.strerror or error}): check cable and hub",
    }[trouble]
    return TransferError(f"{how}.", trouble)


@dataclass(frozen=True)
class Link:
    """What is known of a connected stick.

    Attributes
    ----------
    vendor_id, product_id : int
        USB identity.
    serial, name : str
        Empty where the device has none.
    descriptor : bytes
        The report descriptor.
    in_interval, out_interval : float
        Shortest time between two input reports and between two output reports [s].
    out_endpoint : bool
        Whether output reports have a pipe of their own.
    port : str
        The USB port, ``1-2.3``: the bus and the ports of the hubs; empty if it is not known.
    bcd_device : int or None
        The number of its firmware in its device descriptor, None if it is not known.
    """

    vendor_id: int
    product_id: int
    serial: str
    name: str
    descriptor: bytes
    in_interval: float
    out_interval: float
    out_endpoint: bool
    port: str = ""
    bcd_device: int | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the report descriptor, hexadecimal."""
        return hashlib.sha256(self.descriptor).hexdigest()

    def __str__(self) -> str:
        identity = f"({self.vendor_id:04x}:{self.product_id:04x})"
        return " ".join(filter(None, (self.name, identity, self.serial and f"serial {self.serial}")))


class Transport(Protocol):
    """An open connection to a stick; every method but ``close`` raises `TransferError`."""

    @property
    def link(self) -> Link:
        """What is known of the stick."""
        ...

    def get_feature(self, report_id: int, length: int) -> bytes:
        """Return a feature report of `length` bytes, its number included."""
        ...

    def get_input(self, report_id: int, length: int) -> bytes:
        """Ask for an input report of `length` bytes, its number included; not every device can be asked."""
        ...

    def set_feature(self, report: bytes) -> None:
        """Send a feature report."""
        ...

    def write(self, report: bytes) -> None:
        """Send an output report and wait until the device has it, for `WRITE_TIMEOUT` at most."""
        ...

    def read(self, timeout: float) -> bytes | None:
        """Return the next input report; None if there was none for `timeout` [s]."""
        ...

    def close(self) -> None:
        """Give the stick back to the operating system, whatever state it is in; a second call does nothing.

        It does not take longer than a fraction of a second, even if the stick or the system does.
        """
        ...
