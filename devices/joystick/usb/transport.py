"""Properties of a connected stick, and errors of the transports to it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from devices.common import bus
from devices.common.bus import GONE, TransferError, Trouble, trouble_of

WRITE_TIMEOUT = 0.04
"""Timeout of an output report [s]. Two timeouts are reported to the run within 100 ms."""

AGAIN = "unplug it, plug it in and start again"
"""Remedy for a stick that does not respond as expected."""


def failure(error: OSError, transfer: str, gone: Collection[int] = GONE, after_stall: str = "") -> TransferError:
    """Return the error for a failed `transfer`, with the remedy `after_stall` if it was rejected."""
    trouble = trouble_of(error, gone)
    how = {
        Trouble.UNPLUGGED: "the stick was unplugged, or lost its power: plug it in and start again",
        Trouble.TIMEOUT: f"the stick did not answer {transfer} in time: {AGAIN}",
        Trouble.STALL: f"the stick refused {transfer} (stall)" + (f": {after_stall}" if after_stall else ""),
        Trouble.BROKEN: f"{transfer} failed ({error.strerror or error}): check cable and hub",
    }[trouble]
    return TransferError(f"{how}.", trouble)


class UsbIdentity:
    """Base class of descriptions of one USB device."""

    vendor_id: int
    product_id: int
    serial: str
    name: str

    @property
    def vid_pid(self) -> str:
        """``vendor:product`` in lower-case hexadecimal digits."""
        return f"{self.vendor_id:04x}:{self.product_id:04x}"

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, f"({self.vid_pid})", self.serial and f"serial {self.serial}")))


@dataclass(frozen=True)
class Link(UsbIdentity):
    """Properties of a connected stick.

    Attributes
    ----------
    vendor_id, product_id : int
        USB identity.
    serial, name : str
        Serial number and product name, empty if absent.
    descriptor : bytes
        Report descriptor.
    in_interval, out_interval : float
        Shortest time between two input reports and between two output reports [s].
    out_endpoint : bool
        Whether output reports have a separate pipe.
    port : str
        USB port, ``1-2.3``: bus and hub ports; empty if unknown.
    bcd_device : int or None
        Firmware number in the device descriptor, None if unknown.
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


# --- messages with instructions ---------------------------------------------------------------------------------------


def not_permitted(identity: str, node: str) -> str:
    """Return the message for a stick that the user has no permission to open."""
    return bus.not_permitted("stick", identity, node)


def busy(identity: str, node: str) -> str:
    """Return the message for a stick that another process has opened."""
    return (
        f"the stick {identity} is held by another program: another run, a game, or a tool of its maker. See which one "
        f"with: fuser -v {node}; end it and start again."
    )
