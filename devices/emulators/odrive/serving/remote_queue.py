"""A queue of two endpoints of a drive in another process (`devices.arm.motors.usb.queue.Queue`).

It has a connection for each direction, on which requests are served one after the other: packets out as the drive takes
them, and as many requests for packets in as there are transfers under way. What is submitted at once goes there at
once, and so do the requests in place of those that were answered: the other process is woken once for all of them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence

from devices.arm.motors.native.wire import PACKET
from devices.arm.motors.usb.pipes import WRITE_TIMEOUT
from devices.arm.motors.usb.queue import Done
from devices.emulators.odrive.serving import packets

SILENCE = 30
"""An emulator that answers nothing for so long is gone [s]; no time limit of a transfer is longer."""

FAREWELL = 0.2
"""What waits to go out when the queue is closed is waited for so long [s]."""

WAITING = 48
"""So many requests for packets in wait there. New ones are sent when half of them are used up: that wakes the other
process, and it does nothing else."""

_LAST = b"", bytes((packets.CALL,))
"""Answers after which there are no others: none at all, and that to the question with which a queue is closed."""


class Wire:
    """A connection to an emulator, which ends with it."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", SILENCE, 0))
        self.socket.connect(address)

    def __del__(self) -> None:
        self.socket.close()


class RemoteQueue:
    """See `devices.arm.motors.usb.queue.Queue`.

    Parameters
    ----------
    address : str
        Where the other process is reached.
    handle : int
        The device, which is open there.
    interface, out, inward : int
        Number of the interface, which is claimed, and its endpoints out and in.
    """

    def __init__(self, address: str, handle: int, interface: int, out: int, inward: int) -> None:
        milliseconds = round(WRITE_TIMEOUT * 1e3)
        self._head = packets.OUT_HEAD.pack(packets.OUT, handle, out, interface, milliseconds)
        self._request = packets.IN_REQUEST.pack(packets.IN, handle, inward, interface, 0, PACKET)
        self._wires = Wire(address), Wire(address)  # which end with the queue
        self._in, self._out = (wire.socket for wire in self._wires)
        self._ready = select.poll()
        for wire in (self._in, self._out):
            self._ready.register(wire, select.POLLIN)
        self._came: deque[Done] = deque()
        self._wanted, self._under_way = WAITING, 0
        self._set_off()

    def _set_off(self) -> None:
        """Have as many transfers in under way as there should be."""
        missing, self._under_way = self._wanted - self._under_way, self._wanted
        try:
            _send(self._in, missing * [self._request])
        except OSError as error:
            self._came.append(Done(False, error.errno or errno.EIO, b""))

    def submit(self, *data: bytes) -> None:
        """Have packets sent."""
        _send(self._out, [self._head + packet for packet in data])

    def wait(self, timeout: float) -> Done | None:
        """Return what came next."""
        if not self._came:
            self._look(timeout)
        return self._came.popleft() if self._came else None

    def restart(self, outward: bool, clear: Callable[[], None]) -> None:
        """Clear an endpoint; what failed there before that has been answered by then."""
        clear()
        self._look(0.0)
        kept = [done for done in self._came if done.outward != outward or done.error != errno.EPIPE]
        self._came.clear()
        self._came.extend(kept)
        self._wanted = WAITING
        self._set_off()

    def close(self) -> None:
        """Wait until the packets have gone out, which are served in front of anything else on their wire."""
        with contextlib.suppress(OSError):
            _send(self._out, [bytes((packets.CALL,)) + b'["stalled"]'])
            waiting = select.poll()
            waiting.register(self._out, select.POLLIN)
            latest = time.monotonic() + FAREWELL
            while waiting.poll(max(1e3 * (latest - time.monotonic()), 0.0)):
                if any(answer[:1] in _LAST for answer in packets.apart(self._out.recv(packets.LONGEST))):
                    break
        for wire in (self._in, self._out):
            wire.close()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _look(self, timeout: float) -> None:
        """Take all answers that are there, and wait for one for `timeout` [s] at most."""
        for number, _ in self._ready.poll(1e3 * timeout):
            with contextlib.suppress(BlockingIOError):
                while self._take(outward=number == self._out.fileno()):
                    pass
        if self._under_way <= self._wanted // 2:
            self._set_off()

    def _take(self, *, outward: bool) -> bool:
        """Take the answers in a packet; tell whether there may be more."""
        try:
            packet = (self._out if outward else self._in).recv(packets.LONGEST, socket.MSG_DONTWAIT)
        except ConnectionError:
            packet = b""
        for answer in packets.apart(packet):
            number = packets.ANSWER.unpack_from(answer)[1] if answer else errno.ENODEV
            self._came.append(Done(outward, number, answer[packets.ANSWER.size :]))
            if not outward:
                self._under_way -= 1
                self._wanted -= number != 0  # what failed is not tried again until the endpoint is cleared
        return bool(packet)


def _send(wire: socket.socket, requests: Sequence[bytes]) -> None:
    """Send requests, as soon as there is room for them; if the other process is gone, so is the drive."""
    for packet in packets.together(requests):
        _send_packet(wire, packet)


def _send_packet(wire: socket.socket, packet: bytes) -> None:
    try:
        try:
            wire.send(packet, socket.MSG_DONTWAIT)
        except BlockingIOError:
            if not select.select((), (wire,), (), WRITE_TIMEOUT)[1]:
                raise
            wire.send(packet, socket.MSG_DONTWAIT)
    except BlockingIOError:
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
    except OSError:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from None
