"""Backend for pyusb with emulated drives: like the backend of the sticks, with bulk endpoints.

A bulk transfer does not wait for a frame. A drive accepts no native packet while a reply is unread.
"""

from __future__ import annotations

import array
import errno
import math
from typing import Any, cast

from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.pid.stick import EmulatedStick
from devices.emulators.pid.transfers import fail
from devices.emulators.pid.usb_backend import EmulatedUsbBackend

_NAK = 1e-3
"""Maximum interval between retries of a transfer for which the drive is not ready [s]."""


class EmulatedOdriveBackend(EmulatedUsbBackend):
    """Backend, for the argument ``backend`` of `usb.core.find`.

    Parameters
    ----------
    *boards : EmulatedOdrive
        Drives on the bus.
    latency : float
        Duration of every transfer [s].

    Attributes
    ----------
    boards : tuple of EmulatedOdrive
        Drives on the bus.
    """

    def __init__(self, *boards: EmulatedOdrive, latency: float = 0.0) -> None:
        super().__init__(*cast(tuple[EmulatedStick, ...], boards))  # it has all attributes that the bus uses
        self.boards = boards
        self._latency = latency

    def reset_device(self, dev_handle: Any) -> None:
        """Reset the port and discard pending replies; firmware and motors keep running."""
        board = dev_handle.stick
        with board.lock:
            faults = self.advance(dev_handle)
            board.halted.clear()
            board.flush()
            if "reset-comes-anew" in faults:
                board.come_anew()
                fail(errno.ENODEV)

    def bulk_write(self, dev_handle: Any, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
        """Write a packet as soon as the drive accepts it."""
        board, payload = dev_handle.stick, bytes(data)
        self._travel(dev_handle)
        latest = self._latest(board, timeout)
        with board.changed:
            while not self.try_out(dev_handle, ep, intf, payload):
                self._wait(board, latest)
        return len(payload)

    def bulk_read(self, dev_handle: Any, ep: int, intf: int, buff: array.array[int], timeout: int) -> int:
        """Read a packet as soon as the drive has one."""
        board = dev_handle.stick
        latest = self._latest(board, timeout)
        with board.changed:
            while (answer := self.try_in(dev_handle, ep, intf)) is None:
                self._wait(board, latest)
        self._travel(dev_handle)
        if len(answer) > len(buff):
            fail(errno.EOVERFLOW)
        buff[: len(answer)] = array.array("B", answer)
        return len(answer)

    # --- non-blocking transfers --------------------------------------------------------------------------------------

    def try_out(self, handle: Any, endpoint: int, interface: int, packet: bytes) -> bool:
        """Write a packet; return False if the drive does not accept it at present."""
        board = handle.stick
        with board.changed:
            faults = self._ready_for(handle, endpoint, interface)
            if "write-error" in faults:
                fail(errno.EIO)
            if "nak" in faults or board.busy(endpoint):
                return False
            board.out(endpoint, packet, faults)
            return True

    def try_in(self, handle: Any, endpoint: int, interface: int) -> bytes | None:
        """Return the pending packet, None if there is no packet."""
        board = handle.stick
        with board.changed:
            faults = self._ready_for(handle, endpoint, interface)
            if "read-error" in faults:
                fail(errno.EIO)
            packet: bytes | None = None if "nak" in faults else board.poll_in(endpoint)
            return packet

    def delay(self, handle: Any) -> float:
        """Return the present additional duration of a transfer [s]."""
        board = handle.stick
        return float(board.faults.delay(board.now)) + self._latency

    # --- private -----------------------------------------------------------------------------------------------------

    def _travel(self, handle: Any) -> None:
        super()._travel(handle)
        if self._latency:
            handle.stick.time.wait_until(handle.stick.time.now() + self._latency)

    def _latest(self, board: EmulatedOdrive, timeout: int) -> float:
        return board.time.now() + timeout * 1e-3 if timeout else math.inf

    def _wait(self, board: EmulatedOdrive, latest: float) -> None:
        """Wait for a change, with the lock released; raise a timeout after `latest`."""
        remaining = latest - board.time.now()
        if remaining <= 0.0:
            fail(errno.ETIMEDOUT)
        board.changed.wait(min(remaining, _NAK))
