"""Two pipes of an ODrive's USB interface, with one transfer at a time in each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from devices.common.bus import TransferError, Trouble, trouble_of
from devices.joystick.usb.listing import text

AGAIN = "switch its supply off and on, start again"
"""Remedy for a drive that does not respond properly."""

WRITE_TIMEOUT = 0.04
"""Timeout of a packet out [s]."""

PACKET = 64
"""Maximum length of a packet [byte]."""

A_PACKET, AN_ANSWER = "a packet", "an answer"
"""Names of the data in each direction, for messages."""

_IN = 0x80
_DRAIN = 5
_MOST_STALE = 64


class Unsent(TransferError):
    """A queued packet was not sent, which is detected after `write` has returned."""


class Pipes:
    """Open drive, created by `devices.arm.motors.usb.finding.open_drive`.

    One thread may write while another reads.

    Parameters
    ----------
    device : usb.core.Device
        The device.
    interface : usb.core.Interface
        Its native interface, claimed.

    Attributes
    ----------
    device : usb.core.Device
        The device.
    serial : str
        Its serial number.
    transfers : str
        Description of the transfer mode.
    """

    transfers = "one at a time"

    def __init__(self, device: Any, interface: Any) -> None:
        self.serial: str = text(device, device.iSerialNumber)
        self.device, self._number = device, interface.bInterfaceNumber
        self._out, self._in = (
            next(e.bEndpointAddress for e in interface if e.bEndpointAddress & _IN == direction)
            for direction in (0, _IN)
        )

    def write(self, *data: bytes) -> None:
        """Send packets in order; raise `TransferError` on failure."""
        milliseconds = round(WRITE_TIMEOUT * 1e3)
        for packet in data:
            self._persist(self._out, A_PACKET, partial(self.device.write, self._out, packet, milliseconds))

    def read(self, timeout: float) -> bytes | None:
        """Return the next packet, None after `timeout` [s]; raise `TransferError` on failure."""
        milliseconds = max(round(timeout * 1e3), 1)
        try:
            return bytes(self._persist(self._in, AN_ANSWER, lambda: self.device.read(self._in, PACKET, milliseconds)))
        except TransferError as error:
            if error.trouble is Trouble.TIMEOUT:
                return None
            raise

    def _persist(self, address: int, what: str, transfer: Callable[[], Any]) -> Any:
        """Return the result of `transfer`; if the pipe has stalled, clear it and retry once."""
        try:
            try:
                return transfer()
            except OSError as error:
                if trouble_of(error) is not Trouble.STALL:
                    raise
            self.device.clear_halt(address)
            return transfer()
        except OSError as error:
            raise failure_of(error, what) from error

    def drain(self) -> int:
        """Read the packets that an earlier run has left in the drive; return their number."""
        for count in range(_MOST_STALE):
            if self.read(_DRAIN * 1e-3) is None:
                return count
        return _MOST_STALE

    def close(self) -> None:
        """Release the interface."""
        import usb.util

        with contextlib.suppress(OSError):
            usb.util.release_interface(self.device, self._number)
        with contextlib.suppress(OSError):
            usb.util.dispose_resources(self.device)


def failure_of(error: OSError, what: str) -> TransferError:
    """Return the error for a failed transfer, with the remedy."""
    trouble = trouble_of(error)
    how = {
        Trouble.UNPLUGGED: "the drive was unplugged, or lost its power: plug it in, home it and start again",
        Trouble.TIMEOUT: f"the drive did not take {what} in time: {AGAIN}",
        Trouble.STALL: f"the drive refused {what} (stall): {AGAIN}",
        Trouble.BROKEN: f"{what} was lost ({error.strerror or error}): check cable and hub",
    }[trouble]
    return TransferError(f"{how}.", trouble)
