"""Emulated service at a local TCP port, with faults on demand."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Self

from devices.emulators.inverse3 import wire
from devices.emulators.inverse3.faults import WIRE_FAULTS
from devices.emulators.inverse3.service import EmulatedDevice, Service
from devices.emulators.wire_faults import WireFaults

_BLOCK = 65536
_HALF = 1e-3
_WAIT = 5.0
"""Timeout of a client's handshake [s]."""


class InverseServer:
    """Emulated service. In a ``with`` statement a thread serves it, one client after the other.

    Parameters
    ----------
    devices : sequence of EmulatedDevice
        Connected devices.
    faults : iterable of str
        Faults, ``NAME@SECONDS+DURATION`` (`devices.emulators.inverse3.faults`).

    Attributes
    ----------
    address : str
        Address for the driver.
    service : Service
        Message processing.
    faults : WireFaults
        The faults above, and faults that are switched manually.
    closed : list of str
        Reason for the end of every connection.
    """

    def __init__(self, devices: Sequence[EmulatedDevice], faults: Iterable[str] = ()) -> None:
        self.service = Service(devices)
        self.faults = WireFaults(WIRE_FAULTS, faults)
        self.closed: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.address = f"ws://{host}:{port}"
        self._halt, self._halted = os.pipe()
        self._thread = threading.Thread(target=self.serve, args=(self._halt,), name="emulated service", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread."""
        os.write(self._halted, b".")
        self._thread.join()
        self._listener.close()
        os.close(self._halt)
        os.close(self._halted)

    def serve(self, until: int) -> None:
        """Serve clients, one after the other, until the file descriptor `until` is readable."""
        while until not in select.select((until, self._listener.fileno()), (), ())[0]:
            line, _ = self._listener.accept()
            with line:
                try:
                    self._converse(line, until)
                    self.closed.append("halted")
                except (OSError, EOFError, ValueError, wire.BadClient) as error:
                    self.closed.append(f"{type(error).__name__}: {error}")

    def _converse(self, line: socket.socket, until: int) -> None:
        """Serve one client until its connection ends."""
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = _greet(line)
        began = time.monotonic()
        self.faults.origin = float("inf")
        line.sendall(wire.frame(wire.TEXT, self.service.connect().encode()))
        while True:
            while (taken := wire.take_frame(data)) is not None:
                kind, payload = taken
                if kind == wire.CLOSE:
                    line.sendall(wire.frame(wire.CLOSE, payload))
                    raise EOFError(f"closed with {payload.hex()}")
                if kind == wire.PING:
                    line.sendall(wire.frame(wire.PONG, payload))
                elif kind == wire.TEXT:
                    self._answer(line, payload.decode(), time.monotonic() - began)
            if until in select.select((line.fileno(), until), (), ())[0]:
                return
            data += _received(line)

    def _answer(self, line: socket.socket, text: str, now: float) -> None:
        faults = self.faults.at(now)
        answer = self.service.receive(text, now, faults)
        if self.faults.origin > now and any(any(device.told) for device in self.service.devices):
            self.faults.origin = now
        if "hang-up" in faults:
            raise EOFError("hung up")
        if "close" in faults:
            line.sendall(wire.frame(wire.CLOSE, (1001).to_bytes(2, "big") + b"going away"))
            raise EOFError("closed by the fault")
        if delay := self.faults.delay(now):
            time.sleep(delay)
        for part in _spoilt(answer.encode(), faults):
            line.sendall(part)
            if "half" in faults:
                time.sleep(_HALF)


def _greet(line: socket.socket) -> bytearray:
    """Perform the opening handshake; return the data received after it."""
    line.settimeout(_WAIT)
    data = bytearray()
    while b"\r\n\r\n" not in data:
        data += _received(line)
    head, _, rest = bytes(data).partition(b"\r\n\r\n")
    line.sendall(wire.greeting(head))
    return bytearray(rest)


def _received(line: socket.socket) -> bytes:
    data = line.recv(_BLOCK)
    if not data:
        raise EOFError("the client is gone")
    return data


def _spoilt(answer: bytes, faults: Iterable[str]) -> list[bytes]:
    """Return the frames of an `answer` as modified by the faults, in parts."""
    present = set(faults)
    if "dropout" in present:
        return []
    if "nonsense" in present:
        return [wire.frame(wire.TEXT, b'{"inverse3": [' + answer[:20])]
    if "not-utf8" in present:
        return [wire.frame(wire.TEXT, b"\xff\xfe" + answer)]
    if "giant" in present:
        return [bytes((0x81, 127)) + (1 << 62).to_bytes(8, "big")]
    if "fragments" in present:
        third = len(answer) // 3
        ping = wire.frame(wire.PING, b"are you there")
        first = wire.frame(wire.TEXT, answer[:third], last=False)
        middle = wire.frame(0, answer[third : 2 * third], last=False)
        return [first + ping, middle, ping + wire.frame(0, answer[2 * third :])]
    whole = wire.frame(wire.TEXT, answer)
    return [whole[: len(whole) // 2], whole[len(whole) // 2 :]] if "half" in present else [whole]
