"""Queue of two endpoints of a drive in another process (`devices.arm.motors.usb.queue.Queue`).

It has one connection per direction, on which requests are served in order: packets out as the drive accepts them, and
as many requests for packets in as there are transfers in flight. Packets submitted together are sent together, and so
are the replacements of answered requests, so that the other process wakes up once for all of them.
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

from devices.arm.motors.usb.pipes import PACKET, WRITE_TIMEOUT
from devices.arm.motors.usb.queue import Done
from devices.emulators.odrive.serving import packets

SILENCE = 30
"""Time without a reply after which an emulator is considered dead [s]; no timeout of a transfer is longer."""

FAREWELL = 0.2
"""Timeout for packets that are waiting to be sent when the queue is closed [s]."""

WAITING = 48
"""Number of pending requests for packets in. New ones are sent when half of them are used, because sending wakes the
other process.
"""

_LAST = b"", bytes((packets.CALL,))
"""Last replies on a connection: end of the connection, or the reply to the request that closes a queue."""


class Wire:
    """Connection to an emulator, closed with the object."""

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
        Address of the other process.
    handle : int
        Handle of the open device there.
    interface, out, inward : int
        Number of the claimed interface, and its endpoints out and in.
    """

    def __init__(self, address: str, handle: int, interface: int, out: int, inward: int) -> None:
        milliseconds = round(WRITE_TIMEOUT * 1e3)
        self._head = packets.OUT_HEAD.pack(packets.OUT, handle, out, interface, milliseconds)
        self._request = packets.IN_REQUEST.pack(packets.IN, handle, inward, interface, 0, PACKET)
        self._wires = Wire(address), Wire(address)  # closed with the queue
        self._in, self._out = (wire.socket for wire in self._wires)
        self._ready = select.poll()
        for wire in (self._in, self._out):
            self._ready.register(wire, select.POLLIN)
        self._came: deque[Done] = deque()
        self._wanted, self._under_way = WAITING, 0
        self._set_off()

    def _set_off(self) -> None:
        """Send the missing requests for transfers in."""
        missing, self._under_way = self._wanted - self._under_way, self._wanted
        try:
            _send(self._in, missing * [self._request])
        except OSError as error:
            self._came.append(Done(False, error.errno or errno.EIO, b""))

    def submit(self, *data: bytes) -> None:
        """Send packets."""
        _send(self._out, [self._head + packet for packet in data])

    def wait(self, timeout: float) -> Done | None:
        """Return the next result, None after `timeout` [s]."""
        if not self._came:
            self._read_replies(timeout)
        return self._came.popleft() if self._came else None

    def restart(self, outward: bool, clear: Callable[[], None]) -> None:
        """Clear an endpoint, and discard its earlier failures, which have been answered by then."""
        clear()
        self._read_replies(0.0)
        kept = [done for done in self._came if done.outward != outward or done.error != errno.EPIPE]
        self._came.clear()
        self._came.extend(kept)
        self._wanted = WAITING
        self._set_off()

    def close(self) -> None:
        """Wait until the packets are sent, which are served before any other request on their connection."""
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

    # --- private -----------------------------------------------------------------------------------------------------

    def _read_replies(self, timeout: float) -> None:
        """Read all available replies, waiting for the first one for at most `timeout` [s]."""
        for number, _ in self._ready.poll(1e3 * timeout):
            with contextlib.suppress(BlockingIOError):
                while self._process_packet(outward=number == self._out.fileno()):
                    pass
        if self._under_way <= self._wanted // 2:
            self._set_off()

    def _process_packet(self, *, outward: bool) -> bool:
        """Process the replies in a packet; return True if there may be more."""
        try:
            packet = (self._out if outward else self._in).recv(packets.LONGEST, socket.MSG_DONTWAIT)
        except ConnectionError:
            packet = b""
        for answer in packets.apart(packet):
            number = packets.ANSWER.unpack_from(answer)[1] if answer else errno.ENODEV
            self._came.append(Done(outward, number, answer[packets.ANSWER.size :]))
            if not outward:
                self._under_way -= 1
                self._wanted -= number != 0  # a failed transfer is not retried until the endpoint is cleared
        return bool(packet)


def _send(wire: socket.socket, requests: Sequence[bytes]) -> None:
    """Send requests as soon as there is space; raise `ENODEV` if the other process has ended."""
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
