"""Encoding and decoding of WebSocket frames (RFC 6455) on the client side, without a socket.

Input is not trusted: lengths are validated before memory is allocated, text must be UTF-8, and a violation of the RFC
by the server ends the connection with the specified status code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from haptics.errors import HapticError

LARGEST = 1 << 20
"""Maximum length of a message [byte], far more than an inventory of many devices needs."""

LARGEST_CONTROL = 125
"""Maximum payload of a ping, pong or close frame [byte], section 5.5."""

_FINAL, _RESERVED, _OPCODE = 0x80, 0x70, 0x0F
_MASKED, _LENGTH = 0x80, 0x7F
_SHORT, _LONG = 126, 127
"""Length codes that announce a length of 16 or 64 bits."""

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
    return head + mask + _masked(payload, mask)


def _masked(payload: bytes, mask: bytes) -> bytes:
    """Return the payload masked as in section 5.3, with one XOR of long integers for speed."""
    length = len(payload)
    pattern = (mask * (length // 4 + 1))[:length]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(pattern, "big")).to_bytes(length, "big")


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
        self._kind: Opcode | None = None
        self._parts = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Process bytes and yield the messages that are complete.

        Raises
        ------
        FrameError
            If the bytes violate the protocol.
        """
        self._input += data
        while (frame := self._next_frame()) is not None:
            message = self._join(*frame)
            if message is not None:
                yield message

    def _next_frame(self) -> tuple[bool, Opcode, bytes] | None:
        """Return the next frame: whether it is final, its opcode and payload; None if incomplete."""
        data = self._input
        if len(data) < 2:
            return None
        final, opcode = self._checked_head(data[0], data[1])
        length, start = data[1] & _LENGTH, 2
        if length >= _SHORT:
            number = _WORD if length == _SHORT else _QUAD
            start += number.size
            if len(data) < start:
                return None
            length = number.unpack_from(data, 2)[0]
        self._check_length(opcode, length)
        if len(data) < start + length:
            return None
        payload = bytes(data[start : start + length])
        del data[: start + length]
        return final, opcode, payload

    def _checked_head(self, first: int, second: int) -> tuple[bool, Opcode]:
        if first & _RESERVED:
            raise FrameError("a frame has reserved bits set, though no extension was agreed on")
        if second & _MASKED:
            raise FrameError("a frame is masked, which only a client's may be")
        try:
            opcode = Opcode(first & _OPCODE)
        except ValueError:
            raise FrameError(f"a frame has the unknown opcode {first & _OPCODE}") from None
        final = bool(first & _FINAL)
        if opcode >= Opcode.CLOSE and (not final or second & _LENGTH > LARGEST_CONTROL):
            raise FrameError("a ping, pong or close is in fragments, or too long")
        return final, opcode

    def _check_length(self, opcode: Opcode, length: int) -> None:
        total = length + (len(self._parts) if opcode == Opcode.CONTINUATION else 0)
        if total > self._largest:
            raise FrameError(f"a message of {total} bytes is announced; {self._largest} are allowed", CloseCode.TOO_BIG)

    def _join(self, final: bool, opcode: Opcode, payload: bytes) -> Message | None:
        """Append a frame to the preceding fragments; return the message if it is complete, section 5.4."""
        if opcode >= Opcode.CLOSE:
            return Message(opcode, payload)
        if (opcode == Opcode.CONTINUATION) != (self._kind is not None):
            raise FrameError("a fragment continues nothing, or a message begins within another one")
        if opcode == Opcode.BINARY:
            raise FrameError("a binary message came, where only text is spoken")
        self._kind = Opcode.TEXT
        self._parts += payload
        if not final:
            return None
        whole, self._kind = bytes(self._parts), None
        self._parts.clear()
        return Message(Opcode.TEXT, whole)


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
