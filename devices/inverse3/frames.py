"""Frames of the WebSocket protocol (RFC 6455) as a client sends and takes them; bytes only, no socket.

What comes in is not trusted: a length is looked at before anything is kept for it, text must be UTF-8, and whatever
the RFC forbids a server to send ends the conversation with the status code that it names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from haptics.errors import HapticError

LARGEST = 1 << 20
"""Bytes of a message at most: far more than an inventory of many devices takes."""

LARGEST_CONTROL = 125
"""Bytes that a ping, a pong or a close may carry, section 5.5."""

_FINAL, _RESERVED, _OPCODE = 0x80, 0x70, 0x0F
_MASKED, _LENGTH = 0x80, 0x7F
_SHORT, _LONG = 126, 127
"""These lengths stand for one of 16 or 64 bits that follows."""

_WORD, _QUAD = struct.Struct("!H"), struct.Struct("!Q")


class Opcode(IntEnum):
    """What a frame is, section 5.2."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class CloseCode(IntEnum):
    """Why a conversation ends, section 7.4.1; those that are used here."""

    NORMAL = 1000
    PROTOCOL_ERROR = 1002
    NOT_UTF8 = 1007
    TOO_BIG = 1009


class FrameError(HapticError):
    """What came in is no WebSocket frame that a server may send.

    Attributes
    ----------
    code : CloseCode
        What to tell the server.
    """

    def __init__(self, words: str, code: CloseCode = CloseCode.PROTOCOL_ERROR) -> None:
        super().__init__(words)
        self.code = code


class Message(NamedTuple):
    """A whole message: a text, or a ping, pong or close with its bytes."""

    opcode: Opcode
    payload: bytes


def encode(opcode: Opcode, payload: bytes, mask: bytes) -> bytes:
    """Return a final frame, masked as a client's must be, section 5.3.

    Parameters
    ----------
    opcode : Opcode
        What it is.
    payload : bytes
        What it carries.
    mask : (4,) bytes
        Random, fresh for every frame.
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
    """Combine every byte with one of the mask in turn, section 5.3: all of them at once, as one long number."""
    length = len(payload)
    pattern = (mask * (length // 4 + 1))[:length]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(pattern, "big")).to_bytes(length, "big")


def close_payload(code: CloseCode) -> bytes:
    """Return what a close frame carries, section 5.5.1."""
    return _WORD.pack(code)


def close_reason(payload: bytes) -> str:
    """Return in words why the other side closes, from what its close frame carries."""
    if len(payload) < _WORD.size:
        return "without a reason"
    text = payload[_WORD.size :].decode("utf-8", "replace").strip()
    return f"code {_WORD.unpack_from(payload)[0]}" + (f", {text!r}" if text else "")


class FrameReader:
    """Makes messages of bytes as they come in, however they are cut.

    Parameters
    ----------
    largest : int
        Bytes of a message at most.
    """

    def __init__(self, largest: int = LARGEST) -> None:
        self._largest = largest
        self._input = bytearray()
        self._kind: Opcode | None = None
        self._parts = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Take bytes in and yield the messages that are whole by now.

        Raises
        ------
        FrameError
            If they are none that a server may send.
        """
        self._input += data
        while (frame := self._next_frame()) is not None:
            message = self._join(*frame)
            if message is not None:
                yield message

    def _next_frame(self) -> tuple[bool, Opcode, bytes] | None:
        """Return whether the next frame is final, its opcode and payload; None if it is not whole yet."""
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
        """Put a frame to the fragments before it; return the message if it is whole, section 5.4."""
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
    """Return the text of a message.

    Raises
    ------
    FrameError
        If it is not UTF-8, section 8.1.
    """
    try:
        return message.payload.decode("utf-8")
    except UnicodeDecodeError:
        raise FrameError("a text is not UTF-8", CloseCode.NOT_UTF8) from None
