"""Parsing and validation of ``--stream``: kind and address of a stream."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from haptics.errors import ConfigurationError

UDP, WEBSOCKET, LSL = "udp", "websocket", "lsl"

DEFAULTS = {UDP: 9870, WEBSOCKET: 8765}
"""Default port of each kind of stream: PlotJuggler's port, and a customary WebSocket port."""

_HERE = "127.0.0.1"
_FORM = re.compile(r"(?P<kind>[a-z]+)(=((?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]=]+):)?(?P<port>[0-9]{1,5}))?")
_ALLOWED = "udp, websocket, lsl, udp=HOST:PORT or websocket=HOST:PORT, such as websocket=127.0.0.1:8765"


@dataclass(frozen=True)
class StreamAddress:
    """Kind and address of a stream.

    Attributes
    ----------
    kind : str
        ``udp``: datagrams to the address; ``websocket``: a server at the address; ``lsl``: outlets of the Lab Streaming
        Layer, whose receivers are discovered automatically.
    host : str
        Host name or address; empty for ``lsl``.
    port : int
        1 to 65535; 0 for ``lsl``.
    """

    kind: str
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.kind == LSL:
            return LSL
        return f"{self.kind}={f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_stream(text: str) -> StreamAddress:
    """Parse an argument of ``--stream``.

    Raises
    ------
    ConfigurationError
        If its form is invalid.
    """
    if text == LSL:
        return StreamAddress(LSL)
    found = _FORM.fullmatch(text)
    if found is None or found["kind"] not in DEFAULTS:
        raise ConfigurationError(f"--stream {text!r}: must be {_ALLOWED}.")
    port = int(found["port"] or DEFAULTS[found["kind"]])
    if not 1 <= port <= 65535:
        raise ConfigurationError(f"--stream {text!r}: the port must be from 1 to 65535.")
    return StreamAddress(found["kind"], (found["host"] or _HERE).strip("[]"), port)


def require_usable(stream: StreamAddress) -> None:
    """Check that a stream can be started, before the device moves.

    Raises
    ------
    ConfigurationError
        If its address is unknown or in use, or a package is missing.
    """
    if stream.kind == LSL:
        require_lsl()
        return
    is_server = stream.kind == WEBSOCKET
    if is_server:
        _require_websockets()
    try:
        family, kind, _, _, address = resolved(stream)
        with socket.socket(family, kind) as line:
            if is_server:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                line.bind(address)
    except OSError as error:
        remedy = "choose another port" if is_server else "choose a machine that is known here"
        raise ConfigurationError(
            f"--stream {stream}: cannot be used ({error.strerror or error}); {remedy}, or leave it out."
        ) from error


def resolved(stream: StreamAddress) -> tuple[int, int, int, str, tuple[object, ...]]:
    """Return family, kind and address of a socket for `stream`, as returned by `socket.getaddrinfo`."""
    kind = socket.SOCK_DGRAM if stream.kind == UDP else socket.SOCK_STREAM
    return socket.getaddrinfo(stream.host, stream.port, type=kind)[0]


def _require_websockets() -> None:
    try:
        import websockets.sync.server  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "--stream websocket needs the package websockets: pip install 'haptics[stream]', or take --stream udp."
        ) from error


def require_lsl() -> None:
    """Check that the Lab Streaming Layer is available.

    Raises
    ------
    ConfigurationError
        If it is not available. The message contains the remedy.
    """
    try:
        import pylsl  # noqa: F401
    except (ImportError, RuntimeError, OSError) as error:  # RuntimeError: the shared library is missing
        raise ConfigurationError(
            "the Lab Streaming Layer needs the package pylsl: pip install 'haptics[lsl]' (on Linux with glibc 2.35 or "
            "newer it brings its library)."
        ) from error
