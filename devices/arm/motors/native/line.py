"""Pipelined requests to a drive: many in flight at once, each reply matched to its request.

One thread reads, the caller writes. This is not only for speed: while a reply is unread, the drive accepts no further
request, so that writing all requests before reading would deadlock.

A drive replies in the order of the requests, and there are few sequence numbers. A reply therefore belongs to the
oldest request with its number, even if no caller waits for it: a late reply is never assigned to a newer request.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator

from devices.arm.motors.native import wire
from devices.arm.motors.usb.pipes import AGAIN, Pipes, Unsent
from devices.common.bus import TransferError, Trouble

PATIENCE = 0.1
"""Timeout of a reply outside the tick [s]."""

ATTEMPTS = 3
"""Number of attempts for such a request."""

_READ_TIMEOUT = 0.02
_JOIN_TIMEOUT = 0.3


class Ticket:
    """Request with a pending reply."""

    __slots__ = ("_done", "least", "reply", "sequence")

    def __init__(self, sequence: int, least: int) -> None:
        self.sequence, self.least = sequence, least
        self.reply: bytes | None = None
        self._done = _thread.allocate_lock()  # held until the reply arrives
        self._done.acquire()

    def settle(self, reply: bytes | None) -> None:
        """Set the reply, or None if no reply will arrive."""
        self.reply = reply
        with contextlib.suppress(RuntimeError):  # settled already
            self._done.release()

    def wait(self, timeout: float) -> bytes | None:
        """Return the reply, None after `timeout` [s]."""
        self._done.acquire(timeout=max(timeout, 0.0))
        return self.reply


class Line:
    """Communication with a drive. Only one thread at a time may send requests.

    Parameters
    ----------
    pipes : Pipes
        The open drive.

    Attributes
    ----------
    trailer : int
        Checksum of the drive's table of endpoints; the drive does not reply if it is wrong.
    strays : int
        Number of replies without a pending request.
    """

    def __init__(self, pipes: Pipes) -> None:
        self.trailer = 0
        self.strays = 0
        self._pipes = pipes
        self._count = 0
        self._waiting: deque[Ticket] = deque()  # oldest first
        self._held: list[bytes] | None = None
        self._fault: TransferError | None = None
        self._unsent: Unsent | None = None
        self._closing = False
        self._reader = threading.Thread(target=self._read_on, name="odrive reader", daemon=True)
        self._reader.start()

    def post(self, endpoint: int, payload: bytes = b"") -> None:
        """Write without a reply, which may work when reading fails; raise `TransferError` on failure."""
        self._count += 1
        self._send(wire.sequence_number(self._count), endpoint, payload, 0, acknowledged=False)

    def request(self, endpoint: int, payload: bytes = b"", length: int = 0, least: int | None = None) -> Ticket:
        """Send a request that writes, reads or both, and return its ticket.

        Parameters
        ----------
        endpoint : int
            Address of the endpoint.
        payload : bytes
            Data to write; empty to read only.
        length : int
            Number of bytes to read.
        least : int, optional
            Minimum length of a valid reply; by default `length`.

        Raises
        ------
        TransferError
            If it cannot be sent.
        """
        if self._fault is not None:
            raise self._fault
        self._count += 1
        ticket = Ticket(wire.sequence_number(self._count), length if least is None else least)
        self._waiting.append(ticket)
        self._send(ticket.sequence, endpoint, payload, length, acknowledged=True)
        return ticket

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Buffer all requests of the block and write them together at its end; raise `TransferError`."""
        held: list[bytes] = []
        self._held = held
        try:
            yield
        finally:
            self._held = None
        self._write(*held)

    def collect(self, ticket: Ticket, timeout: float) -> bytes:
        """Return the reply to a request.

        Raises
        ------
        TransferError
            If it does not arrive within `timeout` [s], or is too short.
        """
        reply = ticket.wait(timeout)
        if reply is None:
            self.require_sent()
            raise self._fault or TransferError(
                "the drive does not answer: it drops packets that do not end with the checksum of its own table of "
                f"endpoints, or its firmware hangs. {AGAIN.capitalize()}.",
                Trouble.TIMEOUT,
            )
        if len(reply) < ticket.least:
            raise TransferError(
                f"the drive answered with {len(reply)} bytes in place of {ticket.least}: it does not know what it was "
                f"asked for. {AGAIN.capitalize()}."
            )
        return reply

    def operate(self, endpoint: int, payload: bytes = b"", length: int = 0, least: int | None = None) -> bytes:
        """Send a request and return its reply, with retries after a timeout.

        Raises
        ------
        TransferError
            If no reply arrives.
        """
        self._unsent = None  # discard an error of earlier packets
        for _ in range(ATTEMPTS - 1):
            try:
                return self.collect(self.request(endpoint, payload, length, least), PATIENCE)
            except TransferError as error:
                if error.trouble is not Trouble.TIMEOUT:
                    raise
        return self.collect(self.request(endpoint, payload, length, least), PATIENCE)

    def require_sent(self) -> None:
        """Raise the error of a packet that could not be sent since the last call, if any."""
        unsent, self._unsent = self._unsent, None
        if unsent is not None:
            raise unsent

    def close(self) -> None:
        """Stop the reader thread and close the drive."""
        self._closing = True
        try:
            self._reader.join(_JOIN_TIMEOUT)
        finally:
            self._pipes.close()

    def _send(self, sequence: int, endpoint: int, payload: bytes, length: int, *, acknowledged: bool) -> None:
        trailer = self.trailer if endpoint != wire.TABLE else wire.TABLE_TRAILER
        packet = wire.request(sequence, endpoint, payload, length, trailer, acknowledged=acknowledged)
        if self._held is None:
            self._write(packet)
        else:
            self._held.append(packet)

    def _write(self, *data: bytes) -> None:
        try:
            self._pipes.write(*data)
        except TransferError as error:  # a drive also rejects packets if its replies are not read
            raise self._fault or error from error

    def _read_on(self) -> None:
        """Assign replies to their tickets until closed; on an error, settle all tickets."""
        try:
            while not self._closing:
                self._read()
        except TransferError as error:
            self._fault = error
            self._disappoint()

    def _read(self) -> None:
        try:
            packet = self._pipes.read(_READ_TIMEOUT)
        except Unsent as error:  # requests queued behind it may not be answered either
            self._unsent = error
            self._disappoint()
            return
        if packet is not None:
            self._deliver(packet)

    def _disappoint(self) -> None:
        """Settle all pending tickets without a reply."""
        for ticket in list(self._waiting):
            ticket.settle(None)

    def _deliver(self, packet: bytes) -> None:
        """Assign a reply to its ticket, and discard earlier tickets, which will not be answered."""
        answer = wire.response(packet)
        for place, ticket in enumerate(list(self._waiting)):
            if answer is not None and ticket.sequence == answer[0]:
                for _ in range(place + 1):
                    self._waiting.popleft()
                ticket.settle(answer[1])
                return
        self.strays += 1


def wait_all(line: Line, tickets: list[Ticket], timeout: float) -> list[bytes]:
    """Return the replies to all tickets, and require that all posted packets were sent.

    Raises `TransferError` after `timeout` [s] in total. The last reply is awaited first: the others have arrived by
    then, so that the thread is woken only once.
    """
    latest = time.perf_counter() + timeout
    *others, last = tickets
    answer = line.collect(last, timeout)
    answers = [line.collect(ticket, latest - time.perf_counter()) for ticket in others]
    line.require_sent()
    return [*answers, answer]
