"""Client of the emulated bus, with its requests in order.

A transfer that has to wait (for a reply of the drive, or until the drive accepts a packet) is a generator, which is
resumed in every pass of the event loop. Invalid requests are refused. A client that does not read its replies is
disconnected.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections import deque
from collections.abc import Callable, Generator

from devices.emulators.odrive.serving import packets

MOST = 64
"""Maximum number of waiting requests."""

_CREDENTIALS = struct.Struct("3i")

Steps = Generator[float, None, bytes]
"""Transfer: yields times until which it waits, returns its data."""


class Connection:
    """Requests of one client thread, in order.

    Parameters
    ----------
    wire : socket.socket
        Socket of the client.
    perform : callable
        Returns the transfer of a request.
    """

    def __init__(self, wire: socket.socket, perform: Callable[[bytes], Steps]) -> None:
        wire.setblocking(False)
        self.wire = wire
        self.process: int = _CREDENTIALS.unpack(
            wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )[0]
        self.ended = False
        self._over = False
        self.until = float("inf")
        self._perform = perform
        self._waiting: deque[bytes] = deque()
        self._answers: list[bytes] = []
        self._steps: Steps | None = None
        self._turn = 0
        self._kind = packets.OUT

    @property
    def full(self) -> bool:
        """Whether the maximum number of requests is waiting."""
        return len(self._waiting) >= MOST

    def receive(self) -> None:
        """Receive requests, or detect the end of the connection."""
        while not self.full and not self._over:
            try:
                request = self.wire.recv(packets.LONGEST)
            except BlockingIOError:
                return
            except OSError:
                request = b""
            if request:
                self._waiting.extend(packets.apart(request))
            else:
                self._over = True

    def process_requests(self, now: float, turn: int) -> bool:
        """Process the requests as far as possible; return True if one was finished.

        `turn` is the number of finished transfers on all connections: a waiting transfer is retried if it has
        increased, or if its time has come. The connection ends after the last request, without completing a pending
        transfer.
        """
        finished = self._serve(now, turn)
        self.ended = self.ended or self._over
        return finished

    def _serve(self, now: float, turn: int) -> bool:
        if self._steps is not None and turn == self._turn and now < self.until:
            return False
        self._turn = turn
        finished = False
        while not self.ended:
            if self._steps is None:
                if not self._waiting:
                    self.until = float("inf")
                    break
                request = self._waiting.popleft()
                self._kind, self._steps = request[0], self._perform(request)
            if not self._advance(self._steps):
                break
            self._steps, finished = None, True
        return finished

    def _advance(self, steps: Steps) -> bool:
        """Resume a transfer; return True if it is finished, with its reply stored."""
        number, data = 0, b""
        try:
            self.until = next(steps)
            return False
        except StopIteration as end:
            data = end.value
        except OSError as error:
            number = error.errno or errno.EIO
        except Exception:  # an invalid request must not affect other clients
            number = errno.EINVAL
        if number or self._kind != packets.OUT:
            self._answers.append(packets.ANSWER.pack(self._kind, number) + data)
        return True

    def send_replies(self) -> None:
        """Send the replies at the end of a pass, in one packet if possible, to wake the client once."""
        try:
            for packet in packets.together(self._answers):
                self.wire.send(packet)
        except OSError:  # disconnected, or not reading
            self.ended = True
        self._answers.clear()
