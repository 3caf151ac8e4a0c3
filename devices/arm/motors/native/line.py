"""Pipelined requests to a drive: many under way at once, each answer matched to its request.

One thread reads, whoever asks writes. That is not only faster: as long as a drive has an answer that nobody has read it
takes no further request, so who would write them all before reading would wait for ever.

A drive answers in the order in which it was asked, and there are few sequence numbers. So an answer belongs to the
oldest request of its number, also if nobody waits for that any more: one that comes late is never taken for another.
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
from devices.common.bus.transfers import TransferError, Trouble

PATIENCE = 0.1
"""An answer that nobody is in a hurry for is waited for so long [s] ..."""

ATTEMPTS = 3
"""... and asked for so often."""

_READ_TIMEOUT = 0.02
_JOIN_TIMEOUT = 0.3


class Ticket:
    """A request whose answer is to come."""

    __slots__ = ("_done", "least", "reply", "sequence")

    def __init__(self, sequence: int, least: int) -> None:
        self.sequence, self.least = sequence, least
        self.reply: bytes | None = None
        self._done = _thread.allocate_lock()  # held until the answer is there
        self._done.acquire()

    def settle(self, reply: bytes | None) -> None:
        """Give the answer, or none at all."""
        self.reply = reply
        with contextlib.suppress(RuntimeError):  # settled already
            self._done.release()

    def wait(self, timeout: float) -> bytes | None:
        """Return the answer, None if it does not come in time [s]."""
        self._done.acquire(timeout=max(timeout, 0.0))
        return self.reply


class Line:
    """The conversation with a drive. At any time one thread may ask.

    Parameters
    ----------
    pipes : Pipes
        The open drive.

    Attributes
    ----------
    trailer : int
        Checksum of the drive's table of endpoints; with a wrong one the drive is silent.
    strays : int
        How many answers came that nobody waited for.
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
        """Write and do not wait to hear of it; may work where reading does not any more. Raises `TransferError`."""
        self._count += 1
        self._send(wire.sequence_number(self._count), endpoint, payload, 0, acknowledged=False)

    def ask(self, endpoint: int, payload: bytes = b"", length: int = 0, least: int | None = None) -> Ticket:
        """Write, read or both, and return what the answer will come to.

        Parameters
        ----------
        endpoint : int
            Whom to ask.
        payload : bytes
            What is written; empty to read only.
        length : int
            How many bytes to ask for.
        least : int, optional
            An answer that is shorter is none; by default `length`.

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
        """Have what is posted and asked for meanwhile written at the end, all of it at once; raises `TransferError`."""
        held: list[bytes] = []
        self._held = held
        try:
            yield
        finally:
            self._held = None
        self._write(*held)

    def collect(self, ticket: Ticket, timeout: float) -> bytes:
        """Return the answer to a request.

        Raises
        ------
        TransferError
            If it does not come within `timeout` [s], or is not what it should be.
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
        """Ask and return the answer, patiently; an answer that was lost is asked for again.

        Raises
        ------
        TransferError
            If none comes.
        """
        self._unsent = None  # of something else
        for _ in range(ATTEMPTS - 1):
            try:
                return self.collect(self.ask(endpoint, payload, length, least), PATIENCE)
            except TransferError as error:
                if error.trouble is not Trouble.TIMEOUT:
                    raise
        return self.collect(self.ask(endpoint, payload, length, least), PATIENCE)

    def require_sent(self) -> None:
        """Raise what kept a packet from going out since this was asked last, if anything has."""
        unsent, self._unsent = self._unsent, None
        if unsent is not None:
            raise unsent

    def close(self) -> None:
        """End the conversation and give the drive back."""
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
        except TransferError as error:  # a drive takes nothing either if nobody reads any more
            raise self._fault or error from error

    def _read_on(self) -> None:
        """Bring every answer to its ticket, until the end; an error settles all of them."""
        try:
            while not self._closing:
                self._read()
        except TransferError as error:
            self._fault = error
            self._disappoint()

    def _read(self) -> None:
        try:
            packet = self._pipes.read(_READ_TIMEOUT)
        except Unsent as error:  # what was asked for behind it may not be answered either
            self._unsent = error
            self._disappoint()
            return
        if packet is not None:
            self._deliver(packet)

    def _disappoint(self) -> None:
        """Have nobody wait any longer."""
        for ticket in list(self._waiting):
            ticket.settle(None)

    def _deliver(self, packet: bytes) -> None:
        """Bring an answer to its ticket; what was asked for before that will not be answered any more."""
        answer = wire.response(packet)
        for place, ticket in enumerate(list(self._waiting)):
            if answer is not None and ticket.sequence == answer[0]:
                for _ in range(place + 1):
                    self._waiting.popleft()
                ticket.settle(answer[1])
                return
        self.strays += 1


def wait_all(line: Line, tickets: list[Ticket], timeout: float) -> list[bytes]:
    """Return the answers to all of them, and make sure that what was posted before has gone out.

    Raises `TransferError` if that is not so after `timeout` [s] altogether. The last answer is waited for first: the
    others have come by then, and nobody is woken for each of them.
    """
    latest = time.perf_counter() + timeout
    *others, last = tickets
    answer = line.collect(last, timeout)
    answers = [line.collect(ticket, latest - time.perf_counter()) for ticket in others]
    line.require_sent()
    return [*answers, answer]
