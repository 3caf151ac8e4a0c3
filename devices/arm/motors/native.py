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
from typing import Any, TypeVar

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


def _remainder(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = value << 1 ^ (_POLYNOMIAL if value & 0x8000 else 0)
    return value & 0xFFFF


_REMAINDERS = tuple(map(_remainder, range(256)))


def checksum(data: bytes, start: int) -> int:
    """Return the 16-bit checksum of `data` with the initial value `start`."""
    value = start
    for byte in data:
        value = (value << 8 & 0xFFFF) ^ _REMAINDERS[value >> 8 ^ byte]
    return value


def sequence_number(count: int) -> int:
    """Return the sequence number of request number `count`; it repeats after 128 requests."""
    return count & 0x7FFF | _NOT_TEXT


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

    def post(self, endpoint: int, payload: bytes = b"") -> None:
        """Write without a reply, which may work when reading fails; raise `TransferError` on failure."""
        self._count += 1
        self._send(sequence_number(self._count), endpoint, payload, 0, acknowledged=False)

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
        ticket = Ticket(sequence_number(self._count), length if least is None else least)
        self._waiting.append(ticket)
        self._send(ticket.sequence, endpoint, payload, length, acknowledged=True)
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

    def _send(self, sequence: int, endpoint: int, payload: bytes, length: int, *, acknowledged: bool) -> None:
        trailer = self.trailer if endpoint != TABLE else _TABLE_TRAILER
        packet = request(sequence, endpoint, payload, length, trailer, acknowledged=acknowledged)
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
                try:
                    packet = self._pipes.read(_READ_TIMEOUT)
                except Unsent as error:  # requests queued behind it may not be answered either
                    self._unsent = error
                    for ticket in list(self._waiting):
                        ticket.settle(None)
                    continue
                if packet is not None:
                    self._deliver(packet)
        except TransferError as error:
            self._fault = error
            for ticket in list(self._waiting):
                ticket.settle(None)

    def _deliver(self, packet: bytes) -> None:
        """Assign a reply to its ticket, and discard earlier tickets, which will not be answered."""
        answer = response(packet)
        for place, ticket in enumerate(list(self._waiting)):
            if answer is not None and ticket.sequence == answer[0]:
                for _ in range(place + 1):
                    self._waiting.popleft()
                ticket.settle(answer[1])
                return
        self.unmatched += 1


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

_E = TypeVar("_E")

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
    """Property of a drive.

    Attributes
    ----------
    name : str
        Full name with dots.
    number : int
        Address.
    form : struct.Struct
        Format of its value.
    """

    name: str
    number: int
    form: struct.Struct


@dataclass(frozen=True, slots=True)
class Function:
    """Function of a drive: write the inputs, then write to `number`, then read the outputs."""

    number: int
    inputs: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """All endpoints of a drive.

    Attributes
    ----------
    checksum : int
        Trailer of requests to the endpoints.
    properties : mapping of str to Endpoint
        Properties by name.
    functions : mapping of str to Function
        Functions by name.
    """

    checksum: int
    properties: Mapping[str, Endpoint]
    functions: Mapping[str, Function]


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
    properties: dict[str, Endpoint] = {}
    functions: dict[str, Function] = {}
    try:
        _collect(json.loads(text), "", properties, functions)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DeviceOpenError(
            f"the drive's table of endpoints cannot be understood ({error}): is its firmware 0.5?"
        ) from error
    return Table(checksum(text, _TABLE_TRAILER), properties, functions)


def _collect(
    members: list[dict[str, Any]], prefix: str, properties: dict[str, Endpoint], functions: dict[str, Function]
) -> None:
    for member in members:
        kind, name = member["type"], f"{prefix}{member['name']}"
        if kind == "object":
            _collect(member["members"], f"{name}.", properties, functions)
        elif kind == "function":
            ends = (tuple(_endpoint(e, f"{name}.") for e in member.get(key, ())) for key in ("inputs", "outputs"))
            functions[name] = Function(_address(member, name), *ends)
        elif kind in _FORMS:
            properties[name] = _endpoint(member, prefix)


def _endpoint(member: dict[str, Any], prefix: str) -> Endpoint:
    name = f"{prefix}{member['name']}"
    return Endpoint(name, _address(member, name), struct.Struct(_FORMS[member["type"]]))


def _address(member: dict[str, Any], name: str) -> int:
    """Return the address in a member of the table; raise `ValueError` if it is invalid."""
    number = member["id"]
    if type(number) is not int or not 0 <= number <= _HIGHEST:
        raise ValueError(f"{name} has the address {str(number)[:20]}")
    return number


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

    def property(self, name: str) -> Endpoint:
        """Return the endpoint of a property."""
        return _find(self.table.properties, name, name)

    def function(self, name: str) -> Function:
        """Return the endpoints of a function."""
        return _find(self.table.functions, name, f"{name}()")

    def get(self, name: str | Endpoint) -> Any:
        """Return the value of a property."""
        endpoint = self.property(name) if isinstance(name, str) else name
        return endpoint.form.unpack(self.line.operate(endpoint.number, b"", endpoint.form.size))[0]

    def set(self, name: str | Endpoint, value: Value) -> None:
        """Write a property and wait for the acknowledgement."""
        endpoint = self.property(name) if isinstance(name, str) else name
        self.line.operate(endpoint.number, endpoint.form.pack(value))

    def post(self, endpoint: Endpoint, value: Value) -> None:
        """Write a property without an acknowledgement."""
        self.line.post(endpoint.number, endpoint.form.pack(value))

    def call(self, name: str, *arguments: Value) -> Any:
        """Call a function; return its first output, None if it has no output."""
        function = self.function(name)
        for endpoint, value in zip(function.inputs, arguments, strict=True):
            self.set(endpoint, value)
        self.line.operate(function.number)
        return self.get(function.outputs[0]) if function.outputs else None


def _find(endpoints: Mapping[str, _E], name: str, title: str) -> _E:
    if name not in endpoints:
        raise DeviceOpenError(
            f"the drive has no {title}: this driver is for firmware 0.5.2 to 0.5.6; update it with the maker's tool."
        )
    return endpoints[name]


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

    def page(offset: int) -> bytes:
        return line.operate(TABLE, _OFFSET.pack(offset), _PAGE, least=0)

    version = line.operate(TABLE, _OFFSET.pack(VERSION), 4)
    table = fetch(int.from_bytes(version, "little"), page, folder)
    line.trailer = table.checksum
    return Drive(line, table)
