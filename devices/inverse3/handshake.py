"""Opening handshake of the WebSocket protocol (RFC 6455, section 4), client side, without a socket."""

from __future__ import annotations

import base64
import hashlib
from typing import NamedTuple
from urllib.parse import urlsplit

from haptics.errors import HapticError

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


def accept_of(key: bytes) -> str:
    """Return the expected Sec-WebSocket-Accept value for a `key`, section 4.2.2."""
    return base64.b64encode(hashlib.sha1(key + _MAGIC).digest()).decode("ascii")


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
    """Validate that the `head` of an answer accepts a WebSocket, section 4.1.

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
    if not upgraded or fields.get("sec-websocket-accept") != accept_of(key):
        raise HandshakeError("its answer to the handshake is not that of a WebSocket server")
    if "sec-websocket-extensions" in fields or "sec-websocket-protocol" in fields:
        raise HandshakeError("it wants an extension that was not asked for")
