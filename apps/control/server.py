"""Process of the remote control: a WebSocket server that is a front end of the session.

It runs apart from the session, so that a slow or malicious client cannot delay a heartbeat or a tick. A client needs
the token, and a browser also an allowed origin. The same port serves the watcher page (``GET /``) and the schema.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import signal
import socket
import struct
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from apps.control.verbs import MAX_BYTES, MAX_ROWS, RequestError, parse, schema
from apps.front_ends.front_end import ProcessFrontEnd
from apps.scripting.client import RUNNING, SessionClient
from haptics.errors import ConfigurationError, HapticError
from haptics.files import read_small
from haptics.records import Rows, cells_of, flatten

if TYPE_CHECKING:
    from websockets.http11 import Request, Response
    from websockets.sync.server import ServerConnection

DEFAULT_PORT = 8766

MAX_CLIENTS = 16
"""Maximum number of connected clients."""

MAX_PENDING = 8
"""Maximum number of waiting requests of one client."""

LAST_REPLIES = 2.0
"""Time for the replies to the last requests at the end of the application [s]."""

SEND_TIMEOUT = 5.0
"""Time after which a client that does not read is disconnected [s]."""

_TOKEN_LENGTH = 16
_POLICY = "default-src 'self' 'unsafe-inline'; connect-src 'self' ws:; frame-ancestors 'none'"
_PAGE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class ControlAddress:
    """Address, token and allowed origins of the remote control.

    Attributes
    ----------
    host : str
        Host name or address of this machine.
    port : int
        TCP port.
    token : str
        Secret that clients must send.
    origins : tuple of str
        Origins of web pages that may connect, such as ``https://lab.example``.
    """

    host: str
    port: int
    token: str
    origins: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Address of the watcher page, with the token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/#{self.token}"


def parse_address(text: str, token_file: str | Path | None, origins: tuple[str, ...]) -> ControlAddress:
    """Return the address for ``--control websocket[=HOST:PORT]``, with a new token or the one in a file.

    Raises
    ------
    ConfigurationError
        If the address or the token is invalid, the port is in use, or a package is missing.
    """
    kind, _, place = text.partition("=")
    host, _, port = place.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if kind != "websocket" or not (port or "0").isdecimal() or not 0 <= int(port or 0) <= 65535:
        raise ConfigurationError(f"--control {text!r}: must be websocket or websocket=HOST:PORT.")
    number = int(port or DEFAULT_PORT)
    try:
        import websockets.sync.server  # noqa: F401
    except ImportError as error:
        raise ConfigurationError("--control needs the package websockets: pip install 'haptics[stream]'.") from error
    try:
        family, kind_of_socket, _, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind_of_socket) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            line.bind(address)
            number = number or line.getsockname()[1]
    except OSError as error:
        raise ConfigurationError(
            f"--control {text}: cannot be used ({error.strerror or error}); choose another port or host."
        ) from error
    token = secrets.token_urlsafe(_TOKEN_LENGTH)
    if token_file is not None:
        token = read_small(token_file, f"--token {token_file}").decode("utf-8", "replace").strip()
        if not token.isascii() or not token.isprintable() or len(token) < 8 or " " in token:
            raise ConfigurationError(f"--token {token_file}: must hold one word of at least 8 ASCII characters.")
    return ControlAddress(host, number, token, origins)


def start_control(address: ControlAddress) -> ProcessFrontEnd:
    """Start the process of the remote control."""
    return ProcessFrontEnd(main, (address,), name="haptics control", holds_key=False)


def main(connection: Connection[Any, Any], address: ControlAddress) -> None:
    """Serve clients until the session sends `Quit` or closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(5)  # the servo has priority
    client = SessionClient(connection)
    server = ControlServer(address, client)
    try:
        while not client.quit:
            client.attend(0.1)
    finally:
        server.close()


class ControlServer:
    """WebSocket server for the clients of one session.

    Parameters
    ----------
    address : ControlAddress
        Address and access.
    session : SessionClient
        Connection to the session.
    """

    def __init__(self, address: ControlAddress, session: SessionClient) -> None:
        from websockets.sync.server import serve

        self._address, self.session = address, session
        hosts = {"127.0.0.1", "localhost", "[::1]", address.host}
        self._allowed_origins = {*(f"http://{host}:{address.port}" for host in hosts), *address.origins}
        self._clients: set[Any] = set()
        self._work = _Work()
        self._lock = threading.Lock()
        self._server = serve(
            self._serve,
            address.host,
            address.port,
            process_request=self._process_request,
            max_size=MAX_BYTES,
            compression=None,
            open_timeout=5.0,
            server_header=None,
        )
        threading.Thread(target=self._server.serve_forever, name="control server", daemon=True).start()

    def close(self) -> None:
        """Let the present requests and subscriptions end, disconnect the clients, and stop the server."""
        latest = time.monotonic() + LAST_REPLIES
        while self._work.running and time.monotonic() < latest:
            time.sleep(0.01)
        with self._lock:
            clients = list(self._clients)
        for client in clients:
            with contextlib.suppress(Exception):  # it is disconnecting
                client.close(1001, "the application ends")
        self._server.shutdown()

    # --- access -------------------------------------------------------------------------------------------------------

    def _process_request(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer requests for pages, and refuse clients without token or with a foreign origin."""
        parts = urlsplit(request.path)
        origin = request.headers.get("Origin")
        if origin is not None and origin not in self._allowed_origins:
            return _response(HTTPStatus.FORBIDDEN, f"origin {origin[:80]} is not allowed; see --allow-origin.\n")
        if "websocket" not in request.headers.get("Upgrade", "").lower():
            if parts.path == "/":
                return _response(HTTPStatus.OK, _PAGE.read_text(encoding="utf-8"), "text/html")
            if parts.path == "/control.schema.json":
                return _response(HTTPStatus.OK, json.dumps(schema()), "application/schema+json")
            return _response(HTTPStatus.NOT_FOUND, "no such page.\n")
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = given or parse_qs(parts.query).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self._address.token.encode()):
            return _response(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong.\n")
        with self._lock:
            if len(self._clients) >= MAX_CLIENTS:
                return _response(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_CLIENTS} clients are connected already.\n")
        return None

    # --- clients ------------------------------------------------------------------------------------------------------

    def _serve(self, connection: ServerConnection) -> None:
        """Serve one client, in a separate thread."""
        seconds = int(SEND_TIMEOUT)
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, 0))
        with self._lock:
            self._clients.add(connection)
        client = _Client(connection, self.session, self._work)
        try:
            for message in connection:
                client.handle(message)
        except Exception as error:
            from websockets.exceptions import ConnectionClosed

            if not isinstance(error, ConnectionClosed | OSError):
                raise
        finally:
            client.closed.set()
            with self._lock:
                self._clients.discard(connection)


class _Work:
    """Counts the requests and subscriptions in progress: a context manager for each."""

    def __init__(self) -> None:
        self.running = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.running -= 1


class _Client:
    """Requests of one connected client."""

    def __init__(self, connection: ServerConnection, session: SessionClient, work: _Work) -> None:
        self._connection, self._session, self._work = connection, session, work
        self.closed = threading.Event()
        self._pending = threading.Semaphore(MAX_PENDING)
        self._subscription = 0

    def handle(self, text: str | bytes) -> None:
        """Execute one message. Requests that wait are executed in separate threads."""
        try:
            number, verb, arguments = parse(text)
        except RequestError as error:
            self._send({"id": error.number, "ok": False, "field": error.field, "error": str(error)})
            return
        if verb not in _WAITING:
            self._execute(number, verb, arguments)
        elif self._pending.acquire(blocking=False):
            threading.Thread(target=self._execute_pending, args=(number, verb, arguments), daemon=True).start()
        else:
            words = f"{MAX_PENDING} requests are waiting already"
            self._send({"id": number, "ok": False, "field": "verb", "error": words})

    def _execute_pending(self, number: int | str, verb: str, arguments: Mapping[str, Any]) -> None:
        try:
            with contextlib.suppress(Exception):  # the client has disconnected
                self._execute(number, verb, arguments)
        finally:
            self._pending.release()

    def _execute(self, number: int | str, verb: str, arguments: Mapping[str, Any]) -> None:
        with self._work:
            self._send(self._reply(number, verb, arguments))

    def _reply(self, number: int | str, verb: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Execute a request; return its result, or the reason why it failed."""
        try:
            result = None
            if verb == "subscribe":
                self._subscription += 1
                columns, interval = arguments.get("columns"), arguments["interval"]
                if interval > 0.0:
                    require_columns(self._session, columns)
                    order = (self._subscription, max(interval, 0.01), columns)
                    threading.Thread(target=self._publish, args=order, daemon=True).start()
            else:
                result = getattr(Verbs(self._session), verb)(**arguments)
            return {"id": number, "ok": True, "result": result}
        except HapticError as error:
            field = str(error).partition(":")[0].partition(" =")[0]
            return {"id": number, "ok": False, "field": field if " " not in field else "", "error": str(error)}
        except Exception as error:  # an error of this program must not leave the client without a reply
            traceback.print_exc()
            return {"id": number, "ok": False, "field": "", "error": f"internal error ({error!r})"}

    def _publish(self, number: int, interval: float, columns: list[str] | None) -> None:
        """Send the rows since the last message at an interval, until another subscription replaces this one."""
        session, tick, ended = self._session, self._session.tick, False
        with self._work, contextlib.suppress(Exception):  # the client has disconnected
            while not ended and number == self._subscription and not self.closed.wait(interval):
                ended = session.status != RUNNING
                rows = session.since(max(tick + 1, session.tick - MAX_ROWS + 1))
                if len(rows):
                    tick = int(rows["tick"][-1])
                    self._send({"event": "rows", "rows": flat_rows(session, rows, columns)})
            if ended:
                self._send({"event": "end", "status": session.status, "certificate": session.certificate})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._connection.send(json.dumps(message, separators=(",", ":"), allow_nan=False))


def _response(status: HTTPStatus, text: str, kind: str = "text/plain") -> Response:
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    body = text.encode()
    headers = Headers(
        {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Connection": "close",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": _POLICY,
        }
    )
    return Response(status.value, status.phrase, headers, body)


# --- verbs ------------------------------------------------------------------------------------------------------------


class Verbs:
    """The verbs of `apps.control.verbs.VERBS` except ``subscribe``: a method for each, whose result is plain data."""

    def __init__(self, session: SessionClient) -> None:
        self._session = session

    def configure(self, **changes: Any) -> dict[str, int]:
        """Change the settings; return the first tick with the new ones."""
        return {"tick": self._session.configure(**changes)}

    def gate(self, open: bool) -> None:  # noqa: A002
        """Fade the output in or out."""
        self._session.gate(open)

    def mark(self, marker: int) -> None:
        """Set the marker of the rows."""
        self._session.mark(marker)

    def advance(self, seconds: float) -> dict[str, int]:
        """Run a session in simulated time for `seconds` [s]."""
        self._session.advance(seconds)
        return {"tick": self._session.tick}

    def wait(self, seconds: float) -> dict[str, int]:
        """Wait for `seconds` [s] of the session."""
        self._session.wait(seconds)
        return {"tick": self._session.tick}

    def wait_for_button(self, timeout: float = np.inf) -> dict[str, int] | None:
        """Wait for a press for at most `timeout` [s]."""
        found = self._session.wait_for_button(timeout)
        return None if found is None else {"button": found[0], "tick": found[1]}

    def wait_until(
        self, column: str, above: float = np.inf, below: float = -np.inf, timeout: float = np.inf
    ) -> dict[str, int] | None:
        """Wait until a column is above or below a limit, for at most `timeout` [s]."""
        session = self._session
        require_columns(session, [column])
        if np.isinf(above) and np.isinf(below):
            raise ConfigurationError("above: give above, below or both.")

        def crossed(rows: Rows) -> Any:
            values = flatten(rows, session.units, session.causality)[column]
            return (values > above) | (values < below)

        tick = session.wait_until(crossed, timeout)
        return None if tick is None else {"tick": tick}

    def latest(self, seconds: float, columns: list[str] | None = None) -> dict[str, list[Any]]:
        """Return the rows of the last `seconds` [s]."""
        require_columns(self._session, columns)
        return flat_rows(self._session, self._session.latest(min(seconds, MAX_ROWS / self._session.rate)), columns)

    def since(self, tick: int, columns: list[str] | None = None) -> dict[str, list[Any]]:
        """Return the rows from `tick` on."""
        require_columns(self._session, columns)
        return flat_rows(self._session, self._session.since(tick)[:MAX_ROWS], columns)

    def status(self) -> dict[str, Any]:
        """Return the state of the run."""
        session = self._session
        return {
            "status": session.status,
            "tick": session.tick,
            "time_s": session.time,
            "rate_hz": session.rate,
            "device": session.device,
            "model": session.model,
            "law": session.law,
            "recording": str(session.folder),
        }

    def certificate(self) -> dict[str, Any] | None:
        """Return the timing certificate; None before the end of the run."""
        return self._session.certificate

    def stop(self) -> None:
        """End the run in order."""
        self._session.request_stop()


def require_columns(session: SessionClient, columns: list[str] | None) -> None:
    """Raise `ConfigurationError` unless all `columns` exist."""
    known = flat_rows(session, session.since(session.tick + 1), None)
    for name in columns or ():
        if name not in known:
            raise ConfigurationError(f"columns: {name[:64]!r} is not one of {', '.join(known)}.")


def flat_rows(session: SessionClient, rows: Rows, columns: list[str] | None) -> dict[str, list[Any]]:
    """Return rows as lists by column name with unit; values that are not finite are None."""
    flat = flatten(rows, session.units, session.causality)
    return {name: cells_of(values) for name, values in flat.items() if columns is None or name in columns}


_WAITING = {"configure", "advance", "wait", "wait_for_button", "wait_until"}  # may take longer than a message
