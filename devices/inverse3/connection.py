"""A WebSocket to the service: a socket, its frames, and what has to be answered at once.

Reading never blocks but where it is told how long; so the thread that sends commands can wait for both at once.
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
"""Pause between two looks while the service is connected to [s]: a cancel reaches it."""


class ConnectionLost(HapticError):
    """There will be no more messages."""


class Connection:
    """An open WebSocket. One thread sends and receives.

    Parameters
    ----------
    address : Address
        Where the service is.
    patience : float
        How long it may take to answer [s].

    Raises
    ------
    OSError
        If nobody listens there.
    HandshakeError, ConnectionLost
        If whoever listens speaks no WebSocket.
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
        self.socket.setblocking(False)  # whoever waits, waits for the tick as well
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
        self._take(rest)

    def send(self, text: bytes) -> None:
        """Send a text, in UTF-8.

        Raises
        ------
        ConnectionLost
            If the service takes nothing, or is gone.
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
        """Return the texts that have come in; wait for one for at most `timeout` [s], 0 to look only.

        Pings are answered on the way.

        Raises
        ------
        ConnectionLost
            If the service has closed, is gone, or has sent what no WebSocket server may.
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
        self._take(data)

    def _take(self, data: bytes) -> None:
        """Take in what the service has sent, and answer what has to be answered at once."""
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
        """Say why it is over, wait at most `patience` [s] for the service to agree, and hang up.

        It is not said earlier, since nothing may be sent after it: whoever has lost the service can still take a force
        away.
        """
        try:
            latest = time.monotonic() + patience
            with contextlib.suppress(ConnectionLost):  # which is how its close is told, or its end
                self._send(Opcode.CLOSE, close_payload(self._code))
                while (remaining := latest - time.monotonic()) > 0.0:
                    self.receive(remaining)
        finally:
            self.socket.close()
