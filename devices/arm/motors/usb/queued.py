"""Pipes with many transfers in flight at once: packets waiting to be sent, and several pending reads.

With one transfer at a time, a round of the native protocol takes one transfer time per packet. With a queue it takes a
single round trip. `write` does not wait until a packet is sent; a later `read` reports a failure.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from devices.arm.motors.usb.libusb_queue import queues_of_libusb
from devices.arm.motors.usb.pipes import A_PACKET, AN_ANSWER, Pipes, Unsent, failure_of
from devices.arm.motors.usb.queue import NoQueue, Queue
from devices.common.bus import Trouble

MakeQueue = Callable[[int, int, int], Queue]
"""Makes a queue from the number of an interface and its endpoints out and in."""


class QueuedPipes(Pipes):
    """Open drive whose packets are queued, created by `best_pipes`.

    A stalled pipe is cleared. If it stalls again before data arrive, that is a failure.

    Parameters
    ----------
    device : usb.core.Device
        The device.
    interface : usb.core.Interface
        Its native interface, claimed.
    make : callable
        Makes the queue.
    """

    transfers = "queued"

    def __init__(self, device: Any, interface: Any, make: MakeQueue) -> None:
        super().__init__(device, interface)
        self._queue = make(self._number, self._out, self._in)
        self._restarted: set[bool] = set()

    def write(self, *data: bytes) -> None:
        """Queue packets to be sent; raise `TransferError` on failure."""
        try:
            self._queue.submit(*data)
        except OSError as error:
            raise failure_of(error, A_PACKET) from error

    def read(self, timeout: float) -> bytes | None:
        """Return the next packet, None after `timeout` [s].

        Raises
        ------
        Unsent
            If a packet was not sent.
        TransferError
            If receiving fails.
        """
        done = self._queue.wait(timeout)
        if done is None:
            return None
        if not done.error:
            self._restarted.clear()
            return done.data
        error = OSError(done.error, os.strerror(done.error))
        failure = failure_of(error, A_PACKET if done.outward else AN_ANSWER)
        if failure.trouble is Trouble.STALL and done.outward not in self._restarted:
            self._restart(done.outward)
            if not done.outward:
                return None
            # other queued packets were lost with it, but the pipe works again
            raise Unsent(str(failure), Trouble.TIMEOUT)
        if done.outward:
            raise Unsent(str(failure), failure.trouble)
        raise failure

    def _restart(self, outward: bool) -> None:
        self._restarted.add(outward)
        address, what = (self._out, A_PACKET) if outward else (self._in, AN_ANSWER)
        try:
            self._queue.restart(outward, lambda: self.device.clear_halt(address))
        except OSError as error:
            raise failure_of(error, what) from error

    def close(self) -> None:
        """Send the queued packets, and release the interface."""
        try:
            self._queue.close()
        finally:
            super().close()


def best_pipes(device: Any, interface: Any) -> Pipes:
    """Return queued pipes of an open device if available, else plain pipes with the reason in `transfers`."""
    try:
        return QueuedPipes(device, interface, _queues_of(device))
    except NoQueue as reason:
        pipes = Pipes(device, interface)
        pipes.transfers = f"{Pipes.transfers}: {reason}"
        return pipes


def _queues_of(device: Any) -> MakeQueue:
    """Return a function that makes queues for a device, provided by its backend or else by libusb."""
    own: Callable[[Any], MakeQueue] | None = getattr(device.backend, "queues_of", None)
    return own(device) if own is not None else queues_of_libusb(device)
