"""A client of the emulated bus: its requests, one after the other.

A transfer that has to wait (for an answer of the drive, or until that takes a packet) is a generator, which is gone on
with in every pass of the event loop. What a client sends that makes no sense is refused; what it does not read ends its
connection.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections import deque
from collections.abc import Callable, Generator

from devices.emulators.odrive.serving import packets

MOST = 64
"""So many requests may wait."""

_CREDENTIALS = struct.Struct("3i")

Steps = Generator[float, None, bytes]
"""A transfer: gives instants until which it waits, returns its data."""


class Connection:
    """What one thread of a client wants, one request after the other.

    Parameters
    ----------
    wire : socket.socket
        To the client.
    perform : callable
        Makes a transfer of a request.
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
        """Whether it must not ask for more."""
        return len(self._waiting) >= MOST

    def receive(self) -> None:
        """Take the requests that have come, or notice that there will be no more."""
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

    def go_on(self, now: float, turn: int) -> bool:
        """Go on with the requests as far as possible; tell whether one was finished.

        `turn` counts what was finished on all connections: a transfer that waits is tried again if that has grown, and
        when it is time. After the last request it has ended; one that waits then is not waited for.
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
        """Go on with a transfer; tell whether it is over, and then it has its answer."""
        number, data = 0, b""
        try:
            self.until = next(steps)
            return False
        except StopIteration as end:
            data = end.value
        except OSError as error:
            number = error.errno or errno.EIO
        except Exception:  # a strange request; nobody else's business
            number = errno.EINVAL
        if number or self._kind != packets.OUT:
            self._answers.append(packets.ANSWER.pack(self._kind, number) + data)
        return True

    def answer(self) -> None:
        """Send the answers there are, at the end of a pass: sent one by one they would wake the client for each."""
        try:
            for packet in packets.together(self._answers):
                self.wire.send(packet)
        except OSError:  # gone, or it reads nothing
            self.ended = True
        self._answers.clear()
