"""A queue of two endpoints of a drive in another process (`devices.arm.motors.usb.queue.Queue`).

It has a connection for each direction, on which requests are served one after the other: packets out as the drive takes
them, and as many requests for packets in as there are transfers under way.
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
from collections.abc import Callable

from devices.arm.motors.usb.pipes import WRITE_TIMEOUT
from devices.arm.motors.usb.queue import AHEAD, Done
from devices.arm.motors.wire import PACKET
from devices.emulators.odrive.serving import packets

SILENCE = 30
"""An emulator that answers nothing for so long is gone [s]; no time limit of a transfer is longer."""

FAREWELL = 0.2
"""What waits to go out when the queue is closed is waited for so long [s]."""


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
        self._under_way = 0
        self._set_off()

    def _set_off(self) -> None:
        """Have as many transfers in under way as there should be."""
        while self._under_way < AHEAD:
            self._under_way += 1
            self._read_next()

    def _read_next(self) -> None:
        try:
            _send(self._in, self._request)
        except OSError as error:
            self._came.append(Done(False, error.errno or errno.EIO, b""))

    def submit(self, packet: bytes) -> None:
        """Have a packet sent."""
        _send(self._out, self._head + packet)

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
        self._set_off()

    def close(self) -> None:
        """Wait until the packets have gone out, which are served in front of anything else on their wire."""
        with contextlib.suppress(OSError):
            _send(self._out, bytes((packets.CALL,)) + b'["stalled"]')
            waiting = select.poll()
            waiting.register(self._out, select.POLLIN)
            latest = time.monotonic() + FAREWELL
            while waiting.poll(max(1e3 * (latest - time.monotonic()), 0.0)):
                if self._out.recv(packets.LONGEST)[:1] in {b"", bytes((packets.CALL,))}:
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

    def _take(self, *, outward: bool) -> bool:
        """Take an answer; tell whether there may be more."""
        try:
            answer = (self._out if outward else self._in).recv(packets.LONGEST, socket.MSG_DONTWAIT)
        except ConnectionError:
            answer = b""
        number = packets.ANSWER.unpack_from(answer)[1] if answer else errno.ENODEV
        self._came.append(Done(outward, number, answer[packets.ANSWER.size :]))
        if not outward and number:
            self._under_way -= 1
        elif not outward:
            self._read_next()
        return bool(answer)


def _send(wire: socket.socket, request: bytes) -> None:
    """Send a request, as soon as there is room for it; if the other process is gone, so is the drive."""
    try:
        try:
            wire.send(request, socket.MSG_DONTWAIT)
        except BlockingIOError:
            if not select.select((), (wire,), (), WRITE_TIMEOUT)[1]:
                raise
            wire.send(request, socket.MSG_DONTWAIT)
    except BlockingIOError:
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
    except OSError:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from None
