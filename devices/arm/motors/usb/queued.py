"""Pipes with many transfers under way at once: packets that wait to go out, and several that may come in.

One after the other, a round of the native protocol takes as many times as long as a transfer as it has packets. Queued,
it takes the way there and back. Nobody waits for a packet to go out; what became of it is told by a later `read`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from devices.arm.motors.usb.libusb_queue import queues_of_libusb
from devices.arm.motors.usb.pipes import A_PACKET, AN_ANSWER, Pipes, Unsent, failure_of
from devices.arm.motors.usb.queue import NoQueue, Queue
from devices.common.bus.transfers import Trouble

MakeQueue = Callable[[int, int, int], Queue]
"""Makes a queue of the number of an interface and its endpoints out and in."""


class QueuedPipes(Pipes):
    """An open drive whose packets are queued; made by `best_pipes`.

    A pipe that has stalled is cleared; if it stalls again before anything came in, that is a failure.

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
        """Have packets sent; raises `TransferError` if that cannot be."""
        try:
            self._queue.submit(*data)
        except OSError as error:
            raise failure_of(error, A_PACKET) from error

    def read(self, timeout: float) -> bytes | None:
        """Return the next packet, None if there was none for `timeout` [s].

        Raises
        ------
        Unsent
            If a packet has not gone out.
        TransferError
            If nothing comes in any more.
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
            raise Unsent(str(failure), Trouble.TIMEOUT)  # others went with it, but the pipe works again
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
        """Let what was written go out, and give the interface back."""
        try:
            self._queue.close()
        finally:
            super().close()


def best_pipes(device: Any, interface: Any) -> Pipes:
    """Return pipes of an open device with a queue if its bus has one; else `transfers` of the pipes says why not."""
    try:
        return QueuedPipes(device, interface, _queues_of(device))
    except NoQueue as reason:
        pipes = Pipes(device, interface)
        pipes.transfers = f"{Pipes.transfers}: {reason}"
        return pipes


def _queues_of(device: Any) -> MakeQueue:
    """Return what makes queues of a device: its bus by its own means, or libusb."""
    own: Callable[[Any], MakeQueue] | None = getattr(device.backend, "queues_of", None)
    return own(device) if own is not None else queues_of_libusb(device)
