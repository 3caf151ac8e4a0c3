"""Native protocol of ODrives with firmware 0.5: packets to numbered endpoints, each with its reply.

There is one request or response per USB transfer. `Line` pipelines requests and matches each reply to its request;
`fetch` reads the drive's table of endpoints, cached on disk; `Drive` accesses properties and functions by name.

A request consists of sequence number, endpoint, length of the response, payload and trailer. A response is the
sequence number with its highest bit set, followed by data. All numbers are little-endian. The trailer is the checksum
of the table of endpoints, which proves that both ends use the same table. A drive silently drops packets with another
trailer.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import struct
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devices.arm.motors.stage import ATTEMPTS, PATIENCE
from devices.arm.motors.usb import AGAIN, Pipes, Unsent
from devices.common.bus import TransferError, Trouble
from haptics.errors import DeviceOpenError

TABLE = 0
"""Endpoint from which the drive's table of endpoints is read."""

_TABLE_TRAILER = 1  # trailer of requests to `TABLE`, and initial value of its checksum: the version of the protocol

VERSION = 0xFFFFFFFF
"""Offset at which `TABLE` returns an identification of the table."""

_POLYNOMIAL = 0x3D65
_ACKNOWLEDGE = 0x8000
_RESPONSE = 0x8000
# Bit set in every sequence number, so that the drive does not interpret the packet as a line of its text protocol.
_NOT_TEXT = 0x80

_HEAD = struct.Struct("<HHH")
_WORD = struct.Struct("<H")


_REMAINDERS = list(range(0, 1 << 16, 1 << 8))  # of each byte
for _ in range(8):
    _REMAINDERS = [(value << 1 ^ (_POLYNOMIAL if value & 0x8000 else 0)) & 0xFFFF for value in _REMAINDERS]


def checksum(data: bytes, start: int) -> int:
    """Return the 16-bit checksum of `data` with the initial value `start`."""
    value = start
    for byte in data:
        value = (value << 8 & 0xFFFF) ^ _REMAINDERS[value >> 8 ^ byte]
    return value


def request(
    sequence: int, endpoint: int, payload: bytes, length: int, trailer: int, *, acknowledged: bool = True
) -> bytes:
    """Return a request packet.

    Parameters
    ----------
    sequence : int
        Sequence number.
    endpoint : int
        Address of the endpoint.
    payload : bytes
        Data to write; empty to read.
    length : int
        Length of the requested data [byte].
    trailer : int
        Checksum of the table.
    acknowledged : bool
        Whether to request a response.
    """
    address = endpoint | _ACKNOWLEDGE if acknowledged else endpoint
    return _HEAD.pack(sequence, address, length) + payload + _WORD.pack(trailer)


def response(packet: bytes) -> tuple[int, bytes] | None:
    """Return sequence number and data of a response; None for other packets."""
    if len(packet) < _WORD.size:
        return None
    (sequence,) = _WORD.unpack_from(packet)
    return (sequence & ~_RESPONSE, packet[_WORD.size :]) if sequence & _RESPONSE else None


# --- requests ---------------------------------------------------------------------------------------------------------


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
    unmatched : int
        Number of replies without a pending request.
    """

    def __init__(self, pipes: Pipes) -> None:
        self.trailer = 0
        self.unmatched = 0
        self._pipes = pipes
        self._count = 0
        self._waiting: deque[Ticket] = deque()  # oldest first
        self._held: list[bytes] | None = None
        self._fault: TransferError | None = None
        self._unsent: Unsent | None = None
        self._closing = False
        self._reader = threading.Thread(target=self._read_on, name="odrive reader", daemon=True)
        self._reader.start()

    def request(
        self,
        endpoint: int,
        payload: bytes = b"",
        length: int = 0,
        least: int | None = None,
        *,
        acknowledged: bool = True,
    ) -> Ticket:
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
        acknowledged : bool
            Whether to request a reply. Writing without a reply may work when reading fails.

        Raises
        ------
        TransferError
            If it cannot be sent.
        """
        if acknowledged and self._fault is not None:
            raise self._fault
        self._count += 1  # the number repeats after 128 requests
        ticket = Ticket(self._count & 0x7FFF | _NOT_TEXT, length if least is None else least)
        if acknowledged:
            self._waiting.append(ticket)
        trailer = self.trailer if endpoint != TABLE else _TABLE_TRAILER
        packet = request(ticket.sequence, endpoint, payload, length, trailer, acknowledged=acknowledged)
        if self._held is None:
            self._write(packet)
        else:
            self._held.append(packet)
        return ticket

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
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
                f"the drive answered with {len(reply)} bytes in place of {ticket.least}: the request is "
                f"unknown to it. {AGAIN.capitalize()}."
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

    def _write(self, *data: bytes) -> None:
        try:
            self._pipes.write(*data)
        except TransferError as error:  # a drive also rejects packets if its replies are not read
            raise self._fault or error from error

    def _read_on(self) -> None:
        """Assign replies to their tickets until closed; on an error, settle all tickets."""
        try:
            while not self._closing:
                try:
                    packet = self._pipes.read(_READ_TIMEOUT)
                except Unsent as error:  # requests queued behind it may not be answered either
                    self._unsent = error
                    for ticket in list(self._waiting):
                        ticket.settle(None)
                    continue
                answer = response(packet) if packet is not None else None
                waiting = [ticket.sequence for ticket in list(self._waiting)]
                if answer is not None and answer[0] in waiting:
                    for _ in range(waiting.index(answer[0])):  # earlier requests will not be answered
                        self._waiting.popleft()
                    self._waiting.popleft().settle(answer[1])
                elif packet is not None:
                    self.unmatched += 1
        except TransferError as error:
            self._fault = error
            for ticket in list(self._waiting):
                ticket.settle(None)


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


# --- table of endpoints -----------------------------------------------------------------------------------------------


Value = float | int | bool
"""Value of a property."""

# Format for `struct` by type name.
_FORMS = {
    "float": "<f",
    "bool": "<?",
    **{f"{sign}int{8 * size}": f"<{letter}" for sign, letters in (("", "bhiq"), ("u", "BHIQ"))
       for size, letter in zip((1, 2, 4, 8), letters, strict=True)},
}  # fmt: skip

_HIGHEST = 0x7FFF  # highest address: the bit above requests an acknowledgement

_LONGEST = 1 << 20  # maximum length of a table [byte]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Property or function of a drive.

    To call a function, write its inputs, then write to its own address, then read its outputs.

    Attributes
    ----------
    name : str
        Full name with dots.
    number : int
        Address.
    form : struct.Struct
        Format of its value; empty for a function.
    inputs, outputs : tuple of Endpoint
        Arguments and results of a function.
    """

    name: str
    number: int
    form: struct.Struct
    inputs: tuple[Endpoint, ...] = ()
    outputs: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """All endpoints of a drive.

    Attributes
    ----------
    checksum : int
        Trailer of requests to the endpoints.
    endpoints : mapping of str to Endpoint
        Properties by name, and functions by name with parentheses: ``"clear_errors()"``.
    """

    checksum: int
    endpoints: Mapping[str, Endpoint]


def identification(text: bytes) -> int:
    """Return the identification that a drive with this table reports."""
    first = checksum(text, _TABLE_TRAILER)
    return first << 16 | checksum(text, first)


def parse_table(text: bytes) -> Table:
    """Return the table that a JSON text describes; members of unknown type are left out.

    Raises
    ------
    DeviceOpenError
        If the text is not a table of endpoints.
    """
    endpoints: dict[str, Endpoint] = {}
    try:
        _collect(json.loads(text), "", endpoints)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DeviceOpenError(
            f"the drive's table of endpoints cannot be understood ({error}): is its firmware 0.5?"
        ) from error
    return Table(checksum(text, _TABLE_TRAILER), endpoints)


def _collect(members: list[dict[str, Any]], prefix: str, endpoints: dict[str, Endpoint]) -> None:
    for member in members:
        kind, name = member["type"], f"{prefix}{member['name']}"
        if kind == "object":
            _collect(member["members"], f"{name}.", endpoints)
        elif kind == "function":
            endpoints[f"{name}()"] = _endpoint(member, prefix)
        elif kind in _FORMS:
            endpoints[name] = _endpoint(member, prefix)


def _endpoint(member: dict[str, Any], prefix: str) -> Endpoint:
    """Return the endpoint of a member of the table; raise `ValueError` if its address is invalid."""
    name, number, kind = f"{prefix}{member['name']}", member["id"], member["type"]
    if type(number) is not int or not 0 <= number <= _HIGHEST:
        raise ValueError(f"{name} has the address {str(number)[:20]}")
    ends = (tuple(_endpoint(e, f"{name}.") for e in member.get(key, ())) for key in ("inputs", "outputs"))
    return Endpoint(name, number, struct.Struct("" if kind == "function" else _FORMS[kind]), *ends)


def fetch(version: int, page: Callable[[int], bytes], folder: Path | None) -> Table:
    """Return the table with this identification, from the cache if available.

    Parameters
    ----------
    version : int
        Identification that the drive reports.
    page : callable
        Reads the piece of the text at an offset; empty at the end.
    folder : Path or None
        Folder of the cached tables, None for no cache.

    Raises
    ------
    DeviceOpenError
        If the text does not match the identification.
    """
    file = folder / f"{version:08x}.json" if folder is not None else None
    text = b""
    if file is not None:
        with contextlib.suppress(OSError):
            text = file.read_bytes()
    if not text or identification(text) != version:
        text = b""
        while len(text) < _LONGEST and (piece := page(len(text))):
            text += piece
        if identification(text) != version:
            raise DeviceOpenError(
                f"the drive's table of endpoints was garbled on its way ({len(text)} bytes): check cable and hub, "
                "start again."
            )
        if file is not None:
            with contextlib.suppress(OSError):  # without a cache, the table is read again
                file.parent.mkdir(parents=True, exist_ok=True)
                descriptor, name = tempfile.mkstemp(dir=file.parent)
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(text)
                Path(name).replace(file)
    return parse_table(text)


def table_folder() -> Path | None:
    """Return the cache folder of the tables, None if there is no home directory."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return base / "haptics" / "odrive"


# --- drive ------------------------------------------------------------------------------------------------------------


_OFFSET = struct.Struct("<I")
_PAGE = 512


class Drive:
    """Drive whose table of endpoints is known; created by `connect`.

    Every method raises `TransferError` if the drive does not reply, and `DeviceOpenError` if the name does not exist.

    Parameters
    ----------
    line : Line
        Communication with the drive.
    table : Table
        Its endpoints.
    """

    def __init__(self, line: Line, table: Table) -> None:
        self.line, self.table = line, table

    def find(self, name: str) -> Endpoint:
        """Return the endpoint of a property, or of a function with ``()`` after its name."""
        if name not in self.table.endpoints:
            raise DeviceOpenError(
                f"the drive has no {name}: this driver is for firmware 0.5.2 to 0.5.6; update it with the maker's tool."
            )
        return self.table.endpoints[name]

    def get(self, name: str | Endpoint) -> Any:
        """Return the value of a property."""
        endpoint = self.find(name) if isinstance(name, str) else name
        return endpoint.form.unpack(self.line.operate(endpoint.number, b"", endpoint.form.size))[0]

    def set(self, name: str | Endpoint, value: Value) -> None:
        """Write a property and wait for the acknowledgement."""
        endpoint = self.find(name) if isinstance(name, str) else name
        self.line.operate(endpoint.number, endpoint.form.pack(value))

    def post(self, endpoint: Endpoint, value: Value) -> None:
        """Write a property without an acknowledgement."""
        self.line.request(endpoint.number, endpoint.form.pack(value), acknowledged=False)

    def call(self, name: str, *arguments: Value) -> Any:
        """Call a function; return its first output, None if it has no output."""
        function = self.find(f"{name}()")
        for endpoint, value in zip(function.inputs, arguments, strict=True):
            self.set(endpoint, value)
        self.line.operate(function.number)
        return self.get(function.outputs[0]) if function.outputs else None


def connect(line: Line, folder: Path | None) -> Drive:
    """Read the drive's table of endpoints, and set its checksum as the trailer of requests.

    Parameters
    ----------
    line : Line
        Communication with the drive.
    folder : Path or None
        Folder of the cached tables, None for no cache.

    Raises
    ------
    TransferError
        If the drive does not reply.
    DeviceOpenError
        If its table cannot be used.
    """
    version = int.from_bytes(line.operate(TABLE, _OFFSET.pack(VERSION), 4), "little")
    table = fetch(version, lambda offset: line.operate(TABLE, _OFFSET.pack(offset), _PAGE, least=0), folder)
    line.trailer = table.checksum
    return Drive(line, table)
