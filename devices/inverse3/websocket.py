"""WebSocket connection to the service (RFC 6455), client side: frames, opening handshake and socket.

Input is not trusted: lengths are validated before memory is allocated, text must be UTF-8, and a violation of the RFC
by the server ends the connection with the specified status code. Control frames are answered immediately. Reading
blocks only for an explicit timeout, so that the sending thread can wait for commands and answers at once.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple
from urllib.parse import urlsplit

from haptics.clock import pause
from haptics.errors import HapticError

# --- frames -----------------------------------------------------------------------------------------------------------

LARGEST = 1 << 20
"""Maximum length of a message [byte], far more than an inventory of many devices needs."""

_LARGEST_CONTROL = 125  # maximum payload of a ping, pong or close frame [byte], section 5.5

_FINAL, _RESERVED, _OPCODE = 0x80, 0x70, 0x0F
_MASKED, _LENGTH = 0x80, 0x7F
_SHORT, _LONG = 126, 127  # length codes that announce a length of 16 or 64 bits

_WORD, _QUAD = struct.Struct("!H"), struct.Struct("!Q")


class Opcode(IntEnum):
    """Opcode of a frame, section 5.2."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class CloseCode(IntEnum):
    """Status code of a close frame, section 7.4.1; the codes that are used here."""

    NORMAL = 1000
    PROTOCOL_ERROR = 1002
    NOT_UTF8 = 1007
    TOO_BIG = 1009


class FrameError(HapticError):
    """Error in a WebSocket frame from the server.

    Attributes
    ----------
    code : CloseCode
        Status code to send to the server.
    """

    def __init__(self, words: str, code: CloseCode = CloseCode.PROTOCOL_ERROR) -> None:
        super().__init__(words)
        self.code = code


class Message(NamedTuple):
    """Complete message: a text, or a ping, pong or close with its payload."""

    opcode: Opcode
    payload: bytes


def encode(opcode: Opcode, payload: bytes, mask: bytes) -> bytes:
    """Return a final frame, masked as required for clients, section 5.3.

    Parameters
    ----------
    opcode : Opcode
        Kind of the frame.
    payload : bytes
        Payload of the frame.
    mask : (4,) bytes
        Random bytes, new for every frame.
    """
    length = len(payload)
    if length < _SHORT:
        head = bytes((_FINAL | opcode, _MASKED | length))
    elif length < 1 << 16:
        head = bytes((_FINAL | opcode, _MASKED | _SHORT)) + _WORD.pack(length)
    else:
        head = bytes((_FINAL | opcode, _MASKED | _LONG)) + _QUAD.pack(length)
    pattern = (mask * (length // 4 + 1))[:length]  # one XOR of long integers for speed
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(pattern, "big")
    return head + mask + masked.to_bytes(length, "big")


def close_payload(code: CloseCode) -> bytes:
    """Return the payload of a close frame, section 5.5.1."""
    return _WORD.pack(code)


def close_reason(payload: bytes) -> str:
    """Return the reason in the payload of a close frame, for messages."""
    if len(payload) < _WORD.size:
        return "without a reason"
    text = payload[_WORD.size :].decode("utf-8", "replace").strip()
    return f"code {_WORD.unpack_from(payload)[0]}" + (f", {text!r}" if text else "")


class FrameReader:
    """Incremental parser of messages from arbitrary pieces of the byte stream.

    Parameters
    ----------
    largest : int
        Maximum length of a message [byte].
    """

    def __init__(self, largest: int = LARGEST) -> None:
        self._largest = largest
        self._input = bytearray()
        self._unfinished = False
        self._parts = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Process bytes and yield the messages that are complete; a text may come in fragments, section 5.4.

        Raises
        ------
        FrameError
            If the bytes violate the protocol.
        """
        self._input += data
        while (frame := self._next_frame()) is not None:
            final, opcode, payload = frame
            if opcode >= Opcode.CLOSE:
                yield Message(opcode, payload)
                continue
            if (opcode == Opcode.CONTINUATION) != self._unfinished:
                raise FrameError("a fragment continues nothing, or a message begins within another one")
            if opcode == Opcode.BINARY:
                raise FrameError("a binary message came, where only text is spoken")
            self._parts += payload
            self._unfinished = not final
            if final:
                whole = bytes(self._parts)
                self._parts.clear()
                yield Message(Opcode.TEXT, whole)

    def _next_frame(self) -> tuple[bool, Opcode, bytes] | None:
        """Return the next frame: whether it is final, its opcode and payload; None if incomplete."""
        data = self._input
        if len(data) < 2:
            return None
        if data[0] & _RESERVED:
            raise FrameError("a frame has reserved bits set, though no extension was agreed on")
        if data[1] & _MASKED:
            raise FrameError("a frame is masked, which only a client's may be")
        try:
            opcode = Opcode(data[0] & _OPCODE)
        except ValueError:
            raise FrameError(f"a frame has the unknown opcode {data[0] & _OPCODE}") from None
        final, length, start = bool(data[0] & _FINAL), data[1] & _LENGTH, 2
        if opcode >= Opcode.CLOSE and (not final or length > _LARGEST_CONTROL):
            raise FrameError("a ping, pong or close is in fragments, or too long")
        if length >= _SHORT:
            number = _WORD if length == _SHORT else _QUAD
            start += number.size
            if len(data) < start:
                return None
            length = number.unpack_from(data, 2)[0]
        total = length + (len(self._parts) if opcode == Opcode.CONTINUATION else 0)
        if total > self._largest:
            raise FrameError(f"a message of {total} bytes is announced; {self._largest} are allowed", CloseCode.TOO_BIG)
        if len(data) < start + length:
            return None
        payload = bytes(data[start : start + length])
        del data[: start + length]
        return final, opcode, payload


def text_of(message: Message) -> str:
    """Decode the text of a message.

    Raises
    ------
    FrameError
        If it is not UTF-8, section 8.1.
    """
    try:
        return message.payload.decode("utf-8")
    except UnicodeDecodeError:
        raise FrameError("a text is not UTF-8", CloseCode.NOT_UTF8) from None


# --- handshake --------------------------------------------------------------------------------------------------------

LARGEST_HEAD = 16384
"""Maximum length of the head of an answer [byte]."""

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_END = b"\r\n\r\n"
_SWITCHING = 101
_PORT = 80


class HandshakeError(HapticError):
    """Error of a server that does not implement WebSocket."""


class Address(NamedTuple):
    """Address of a service: host, port and resource."""

    host: str
    port: int
    resource: str


def parse_address(text: str) -> Address:
    """Parse an address ``ws://host:port/resource``.

    Raises
    ------
    ValueError
        If the address is invalid.
    """
    parts = urlsplit(text)
    printable = text.isascii() and text.isprintable() and " " not in text
    if parts.scheme != "ws" or not parts.hostname or parts.username is not None or parts.fragment or not printable:
        raise ValueError(text)
    resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.hostname, _PORT if parts.port is None else parts.port, resource)


def request(address: Address, key: bytes) -> bytes:
    """Return the request that opens a WebSocket, section 4.1; `key` is 16 random bytes in base 64."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    lines = (
        f"GET {address.resource} HTTP/1.1",
        f"Host: {host}:{address.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key.decode('ascii')}",
        "Sec-WebSocket-Version: 13",
    )
    return "\r\n".join((*lines, "", "")).encode("ascii")


def split_head(data: bytes) -> tuple[bytes, bytes] | None:
    """Split an answer into its head and the remaining data; return None if the head is incomplete.

    Raises
    ------
    HandshakeError
        If the head is too long.
    """
    head, end, rest = data.partition(_END)
    if not end and len(data) > LARGEST_HEAD:
        raise HandshakeError("its answer to the handshake has no end")
    return (head, rest) if end else None


def check_answer(head: bytes, key: bytes) -> None:
    """Validate that the `head` of an answer accepts a WebSocket for a `key`, sections 4.1 and 4.2.2.

    Raises
    ------
    HandshakeError
        If it does not.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, status = first.partition(" ")
    if version != "HTTP/1.1" or not status.startswith(f"{_SWITCHING} "):
        raise HandshakeError(f"it answered the handshake with {first[:60]!r}")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name.strip().lower() in fields:
            raise HandshakeError("its answer to the handshake cannot be read")
        fields[name.strip().lower()] = value.strip()
    upgraded = fields.get("upgrade", "").lower() == "websocket" and "upgrade" in fields.get("connection", "").lower()
    accepted = base64.b64encode(hashlib.sha1(key + _MAGIC).digest()).decode("ascii")
    if not upgraded or fields.get("sec-websocket-accept") != accepted:
        raise HandshakeError("its answer to the handshake is not that of a WebSocket server")
    if "sec-websocket-extensions" in fields or "sec-websocket-protocol" in fields:
        raise HandshakeError("it selected an extension that was not offered")


# --- connection -------------------------------------------------------------------------------------------------------

_BLOCK = 65536
_SLICE = 2e-3  # pause between two polls during the handshake [s], so that it can be cancelled


class ConnectionLost(HapticError):
    """Error of a connection that will not deliver further messages."""


class Connection:
    """Open WebSocket. One thread sends and receives.

    Parameters
    ----------
    address : Address
        Address of the service.
    patience : float
        Timeout of its answers [s].

    Raises
    ------
    OSError
        If the address refuses the connection.
    HandshakeError, ConnectionLost
        If the server does not implement WebSocket.
    """

    def __init__(self, address: Address, patience: float) -> None:
        self._reader = FrameReader()
        self._texts: list[str] = []
        self._code, self._patience = CloseCode.NORMAL, patience
        self.socket = socket.create_connection((address.host, address.port), patience)
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._handshake(address, time.monotonic() + patience)
        except BaseException:
            self.close(0.0)
            raise

    def _handshake(self, address: Address, latest: float) -> None:
        key = base64.b64encode(os.urandom(16))
        self.socket.sendall(request(address, key))
        self.socket.setblocking(False)  # a blocking read would also delay the tick
        data = b""
        while (parts := split_head(data)) is None:
            if time.monotonic() > latest:
                raise HandshakeError("it did not answer the handshake")
            try:
                part = self.socket.recv(_BLOCK)
            except BlockingIOError:
                pause(_SLICE)
                continue
            if not part:
                raise HandshakeError("it hung up during the handshake")
            data += part
        check_answer(parts[0], key)
        self._process_data(parts[1])

    def send(self, payload: bytes, opcode: Opcode = Opcode.TEXT) -> None:
        """Send a frame, by default with a text in UTF-8.

        Raises
        ------
        ConnectionLost
            If the service accepts no data, or has disconnected.
        """
        data = encode(opcode, payload, os.urandom(4))
        try:
            while data:
                try:
                    data = data[self.socket.send(data) :]
                except BlockingIOError:
                    if not select.select((), (self.socket,), (), self._patience)[1]:
                        raise ConnectionLost("the service accepts no more data") from None
        except OSError as error:
            raise ConnectionLost(f"the connection to the service failed ({error.strerror or error})") from error

    def receive(self, timeout: float) -> list[str]:
        """Return the received texts; wait for one for at most `timeout` [s], 0 to poll.

        Pings are answered.

        Raises
        ------
        ConnectionLost
            If the service has closed the connection, has disconnected, or has violated the WebSocket protocol.
        """
        if not self._texts and select.select((self.socket,), (), (), timeout)[0]:
            try:
                data = self.socket.recv(_BLOCK)
            except BlockingIOError:
                return []
            except OSError as error:
                raise ConnectionLost(f"the connection to the service failed ({error.strerror or error})") from error
            if not data:
                raise ConnectionLost("the service has hung up")
            self._process_data(data)
        texts, self._texts = self._texts, []
        return texts

    def _process_data(self, data: bytes) -> None:
        """Process received data, and answer control frames immediately."""
        try:
            for message in self._reader.feed(data):
                if message.opcode == Opcode.TEXT:
                    self._texts.append(text_of(message))
                elif message.opcode == Opcode.PING:
                    self.send(message.payload, Opcode.PONG)
                elif message.opcode == Opcode.CLOSE:
                    raise ConnectionLost(f"the service has closed the connection ({close_reason(message.payload)})")
        except FrameError as error:
            self._code = error.code
            raise ConnectionLost(f"the service sent something that is no WebSocket message: {error}") from error

    def close(self, patience: float) -> None:
        """Send a close frame, wait at most `patience` [s] for the service's close frame, and close the socket.

        The close frame is sent only here, because no data may follow it: after a protocol error the caller can still
        send a zero force.
        """
        try:
            latest = time.monotonic() + patience
            with contextlib.suppress(ConnectionLost):  # raised by the service's close frame or a lost connection
                self.send(close_payload(self._code), Opcode.CLOSE)
                while (remaining := latest - time.monotonic()) > 0.0:
                    self.receive(remaining)
        finally:
            self.socket.close()
