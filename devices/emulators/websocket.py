"""WebSocket frames of a server (RFC 6455), for the emulated service of an Inverse3.

Frames that a client must not send raise an error: frames without a mask, with reserved bits, fragmented control frames.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import b64decode, b64encode

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
LONGEST = 1 << 16


class BadClient(Exception):
    """The client violates the protocol."""


def greeting(head: bytes) -> bytes:
    """Return the reply to a client's opening handshake, whose `head` ends with an empty line.

    Raises
    ------
    BadClient
        If the handshake is invalid.
    """
    lines = head.decode("ascii").split("\r\n")
    if not lines[0].startswith("GET ") or not lines[0].endswith(" HTTP/1.1"):
        raise BadClient(f"request {lines[0]!r}")
    fields = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in lines[1:] if ":" in line}
    key = fields.get("sec-websocket-key", "")
    wanted = fields.get("upgrade", "").lower(), fields.get("connection", "").lower(), fields["sec-websocket-version"]
    if wanted != ("websocket", "upgrade", "13") or len(b64decode(key)) != 16 or "host" not in fields:
        raise BadClient(f"handshake {fields!r}")
    token = b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
    answer = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    return "\r\n".join([*answer, f"Sec-WebSocket-Accept: {token}", "", ""]).encode()


def frame(kind: int, payload: bytes, *, last: bool = True) -> bytes:
    """Return a server's frame."""
    head, size = kind | (0x80 if last else 0), len(payload)
    if size <= 125:
        return struct.pack(">BB", head, size) + payload
    return struct.pack(">BBH" if size <= 0xFFFF else ">BBQ", head, 126 if size <= 0xFFFF else 127, size) + payload


def take_frame(data: bytearray) -> tuple[int, bytes] | None:
    """Remove the first frame from `data`; return its kind and payload, None if it is incomplete.

    Raises
    ------
    BadClient
        If a client must not send it.
    """
    if len(data) < 6:
        return None
    kind, size = data[0] & 0x0F, data[1] & 0x7F
    if data[0] & 0xF0 != 0x80 or not data[1] & 0x80 or kind not in {TEXT, CLOSE, PING, PONG}:
        raise BadClient(f"frame that begins with {bytes(data[:2]).hex()}")
    position = 2
    if size >= 126:
        width = 2 if size == 126 else 8
        size = int.from_bytes(data[2 : 2 + width], "big")
        position += width
    if size > LONGEST:
        raise BadClient(f"frame of {size} bytes")
    end = position + 4 + size
    if len(data) < end:
        return None
    mask, body = data[position : position + 4], data[position + 4 : end]
    plain = bytes(byte ^ mask[index & 3] for index, byte in enumerate(body))
    del data[:end]
    return kind, plain
