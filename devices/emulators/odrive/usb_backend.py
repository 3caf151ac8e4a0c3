"""A backend for pyusb behind which there are emulated drives: as that of the sticks, with bulk pipes.

A bulk transfer has no frame to wait for. A drive takes no native packet while it has an answer that was not read yet.
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
"""A transfer that the drive is not ready for is tried again after so long, or when that has changed [s]."""


class EmulatedOdriveBackend(EmulatedUsbBackend):
    """What `usb.core.find` takes as ``backend``.

    Parameters
    ----------
    *boards : EmulatedOdrive
        What is on the bus.
    latency : float
        Every transfer takes so long [s].

    Attributes
    ----------
    boards : tuple of EmulatedOdrive
        The same.
    """

    def __init__(self, *boards: EmulatedOdrive, latency: float = 0.0) -> None:
        super().__init__(*cast(tuple[EmulatedStick, ...], boards))  # of which it has all that the bus asks for
        self.boards = boards
        self._latency = latency

    def reset_device(self, dev_handle: Any) -> None:
        """Reset the port: what waits to be read is gone; the firmware and its motors go on."""
        board = dev_handle.stick
        with board.lock:
            faults = self.look(dev_handle)
            board.halted.clear()
            board.flush()
            if "reset-comes-anew" in faults:
                board.come_anew()
                fail(errno.ENODEV)

    def bulk_write(self, dev_handle: Any, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
        """Write a packet as soon as the drive takes it."""
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

    # --- without waiting ---------------------------------------------------------------------------------------------

    def try_out(self, handle: Any, endpoint: int, interface: int, packet: bytes) -> bool:
        """Write a packet; tell whether the drive took it."""
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
        """Return the packet that the drive has to be read, None if there is none."""
        board = handle.stick
        with board.changed:
            faults = self._ready_for(handle, endpoint, interface)
            if "read-error" in faults:
                fail(errno.EIO)
            packet: bytes | None = None if "nak" in faults else board.poll_in(endpoint)
            return packet

    def delay(self, handle: Any) -> float:
        """Return how long a transfer takes now [s]."""
        board = handle.stick
        return float(board.faults.delay(board.now)) + self._latency

    # --- inside ------------------------------------------------------------------------------------------------------

    def _travel(self, handle: Any) -> None:
        super()._travel(handle)
        if self._latency:
            handle.stick.time.wait_until(handle.stick.time.now() + self._latency)

    def _latest(self, board: EmulatedOdrive, timeout: int) -> float:
        return board.time.now() + timeout * 1e-3 if timeout else math.inf

    def _wait(self, board: EmulatedOdrive, latest: float) -> None:
        """Wait, with its lock let go, until something may have changed; raise a timeout if it is over."""
        remaining = latest - board.time.now()
        if remaining <= 0.0:
            fail(errno.ETIMEDOUT)
        board.changed.wait(min(remaining, _NAK))
