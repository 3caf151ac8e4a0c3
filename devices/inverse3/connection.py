"""WebSocket connection to the service: socket, frames, and immediate answers to control frames.

Reading blocks only for an explicit timeout, so that the sending thread can wait for commands and answers at once.
"""

from __future__ import annotations

import base64
import contextlib
import os
import select
import socket
import time

from devices.inverse3.frames import (
    CloseCode,
    FrameError,
    FrameReader,
    Message,
    Opcode,
    close_payload,
    close_reason,
    encode,
    text_of,
)
from devices.inverse3.handshake import Address, HandshakeError, check_answer, request, split_head
from haptics.clock import pause
from haptics.errors import HapticError

_BLOCK = 65536
_SLICE = 2e-3
"""Pause between two polls during the handshake [s], so that it can be cancelled."""


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
            self._shake_hands(address, time.monotonic() + patience)
        except BaseException:
            self.close(0.0)
            raise

    def _shake_hands(self, address: Address, latest: float) -> None:
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
        head, rest = parts
        check_answer(head, key)
        self._process_data(rest)

    def send(self, text: bytes) -> None:
        """Send a text in UTF-8.

        Raises
        ------
        ConnectionLost
            If the service accepts no data, or has disconnected.
        """
        self._send(Opcode.TEXT, text)

    def _send(self, opcode: Opcode, payload: bytes) -> None:
        data = encode(opcode, payload, os.urandom(4))
        try:
            while data:
                try:
                    data = data[self.socket.send(data) :]
                except BlockingIOError:
                    if not select.select((), (self.socket,), (), self._patience)[1]:
                        raise ConnectionLost("the service takes nothing any more") from None
        except OSError as error:
            raise ConnectionLost(f"the service is gone ({error.strerror or error})") from error

    def receive(self, timeout: float) -> list[str]:
        """Return the received texts; wait for one for at most `timeout` [s], 0 to poll.

        Pings are answered.

        Raises
        ------
        ConnectionLost
            If the service has closed the connection, has disconnected, or has violated the WebSocket protocol.
        """
        if not self._texts and select.select((self.socket,), (), (), timeout)[0]:
            self._read()
        texts, self._texts = self._texts, []
        return texts

    def _read(self) -> None:
        try:
            data = self.socket.recv(_BLOCK)
        except BlockingIOError:
            return
        except OSError as error:
            raise ConnectionLost(f"the service is gone ({error.strerror or error})") from error
        if not data:
            raise ConnectionLost("the service has hung up")
        self._process_data(data)

    def _process_data(self, data: bytes) -> None:
        """Process received data, and answer control frames immediately."""
        try:
            for message in self._reader.feed(data):
                self._hear(message)
        except FrameError as error:
            self._code = error.code
            raise ConnectionLost(f"the service sent something that is no WebSocket message: {error}") from error

    def _hear(self, message: Message) -> None:
        if message.opcode == Opcode.TEXT:
            self._texts.append(text_of(message))
        elif message.opcode == Opcode.PING:
            self._send(Opcode.PONG, message.payload)
        elif message.opcode == Opcode.CLOSE:
            raise ConnectionLost(f"the service has closed the connection ({close_reason(message.payload)})")

    def close(self, patience: float) -> None:
        """Send a close frame, wait at most `patience` [s] for the service's close frame, and close the socket.

        The close frame is sent only here, because no data may follow it: after a protocol error the caller can still
        send a zero force.
        """
        try:
            latest = time.monotonic() + patience
            with contextlib.suppress(ConnectionLost):  # raised by the service's close frame or a lost connection
                self._send(Opcode.CLOSE, close_payload(self._code))
                while (remaining := latest - time.monotonic()) > 0.0:
                    self.receive(remaining)
        finally:
            self.socket.close()
