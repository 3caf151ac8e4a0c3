"""Server of an emulated USB bus with one device, within an event loop, for drivers in other processes.

Clients (`devices.emulators.usb_remote`) refer to devices and handles by number. A transfer that has to wait (for a
reply of the device, or until the device accepts a packet) is a generator, which is resumed in every pass of the event
loop. Invalid requests are refused. A client that does not read its replies is disconnected. When the last connection of
a process has ended, its open devices are closed, as the operating system does when a process dies.
"""

from __future__ import annotations

import errno
import json
import math
import os
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from devices.emulators import usb_packets as packets
from devices.emulators.loop import LINGER, LONGEST_WAIT, Loop
from devices.emulators.usb_bus import BulkBackend, Device, Handle, fail
from haptics.files import replace_owned

MOST_REQUESTS = 64
"""Maximum number of waiting requests."""

CONNECTIONS = 64
"""Maximum number of connections."""

_CREDENTIALS = struct.Struct("3i")

Steps = Generator[float, None, bytes]
"""Transfer: yields times until which it waits, returns its data."""


class Connection:
    """Requests of one client thread, in order.

    Parameters
    ----------
    wire : socket.socket
        Socket of the client.
    perform : callable
        Returns the transfer of a request.
    """

    def __init__(self, wire: socket.socket, perform: Callable[[bytes], Steps]) -> None:
        wire.setblocking(False)
        self.wire = wire
        self.process: int = _CREDENTIALS.unpack(
            wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )[0]
        self.ended = False
        self._over = False
        self.until = float("inf")
        self._perform = perform
        self._waiting: deque[bytes] = deque()
        self._answers: list[bytes] = []
        self._steps: Steps | None = None
        self._turn = 0
        self._kind = packets.OUT

    @property
    def full(self) -> bool:
        """Whether the maximum number of requests is waiting."""
        return len(self._waiting) >= MOST_REQUESTS

    def receive(self) -> None:
        """Receive requests, or detect the end of the connection."""
        while not self.full and not self._over:
            try:
                request = self.wire.recv(packets.LONGEST)
            except BlockingIOError:
                return
            except OSError:
                request = b""
            if request:
                self._waiting.extend(packets.apart(request))
            else:
                self._over = True

    def process_requests(self, now: float, turn: int) -> bool:
        """Process the requests as far as possible; return True if one was finished.

        `turn` is the number of finished transfers on all connections: a waiting transfer is retried if it has
        increased, or if its time has come. The connection ends after the last request, without completing a pending
        transfer.
        """
        finished = False
        if self._steps is None or turn != self._turn or now >= self.until:
            self._turn = turn
            while not self.ended:
                if self._steps is None:
                    if not self._waiting:
                        self.until = float("inf")
                        break
                    request = self._waiting.popleft()
                    self._kind, self._steps = request[0], self._perform(request)
                if not self._advance(self._steps):
                    break
                self._steps, finished = None, True
        self.ended = self.ended or self._over
        return finished

    def _advance(self, steps: Steps) -> bool:
        """Resume a transfer; return True if it is finished, with its reply stored."""
        number, data = 0, b""
        try:
            self.until = next(steps)
            return False
        except StopIteration as end:
            data = end.value
        except OSError as error:
            number = error.errno or errno.EIO
        except Exception:  # an invalid request must not affect other clients
            number = errno.EINVAL
        if number or self._kind != packets.OUT:
            self._answers.append(packets.ANSWER.pack(self._kind, number) + data)
        return True

    def send_replies(self) -> None:
        """Send the replies at the end of a pass, in one packet if possible, to wake the client once."""
        try:
            for packet in packets.together(self._answers):
                self.wire.send(packet)
        except OSError:  # disconnected, or not reading
            self.ended = True
        self._answers.clear()


class BusServer:
    """Server of a backend for pyusb within an event loop.

    Parameters
    ----------
    backend : BulkBackend
        The bus.
    loop : Loop
        The event loop.
    listener : socket.socket
        Listening socket for clients.
    observe : callable
        Returns the true state of the device as plain values.
    """

    def __init__(
        self, backend: BulkBackend, loop: Loop, listener: socket.socket, observe: Callable[[], dict[str, Any]]
    ) -> None:
        self.backend = backend
        self._loop, self._observe = loop, observe
        self._connections: list[Connection] = []
        self._devices: dict[int, Device] = {}
        self._handles: dict[int, dict[int, Handle]] = {}
        self._count = self._turn = 0
        faults = backend.units[0].faults
        self._calls: dict[str, Callable[..., Any]] = {
            "devices": self._devices_found,
            "open_device": self._open,
            "close_device": self._close,
            "observe": lambda _: observe(),
            "stalled": lambda _: loop.stalled(),
            "fault": lambda _, *names: faults.set(*names),
            "clear": lambda _, *names: faults.clear(*names),
        }
        loop.accept(listener, self._begin)
        loop.sources.append(
            (lambda now: min((each.until for each in self._connections), default=math.inf) - now, self._serve)
        )

    def run(self, driven: Callable[[], bool], log: str = "") -> None:
        """Serve until standard input has ended and no motor is on, at most `LINGER` longer; then log the final state.

        This allows tests of watchdogs and guardians after the driver has died.

        Parameters
        ----------
        driven : callable
            Returns True while a motor is on.
        log : str
            File for the true state of the device at the end; empty for none.
        """
        latest, next_advance = math.inf, 0.0

        def listen() -> None:
            nonlocal latest
            if not os.read(sys.stdin.fileno(), 4096):
                latest = time.monotonic() + LINGER
                del self._loop.files[sys.stdin]

        def done() -> bool:
            """Advance the time of the device at intervals; return True at the end."""
            nonlocal next_advance
            now = time.monotonic()
            if now >= next_advance:
                next_advance = now + LONGEST_WAIT
                self.backend.units[0].catch_up()
            return math.isfinite(latest) and (now > latest or not driven())

        self._loop.files[sys.stdin] = listen
        self._loop.run(done)
        if log:
            replace_owned(Path(log), json.dumps(self._observe()).encode(), b"{")

    # --- connections -------------------------------------------------------------------------------------------------

    def _begin(self, wire: socket.socket) -> bool:
        if len(self._connections) >= CONNECTIONS:
            return False
        connection = Connection(wire, lambda request: self._perform(connection.process, request))
        self._connections.append(connection)
        self._handles.setdefault(connection.process, {})
        self._loop.files[wire] = connection.receive
        return True

    def _serve(self, now: float) -> None:
        """Process all transfers, and repeat while a finished transfer may have enabled another one."""
        progress = True
        while progress:
            progress = False
            for connection in self._connections:
                if connection.process_requests(now, self._turn):
                    self._turn += 1
                    progress = True
        for connection in list(self._connections):
            connection.send_replies()
            if connection.ended:
                self._connections.remove(connection)
                self._loop.files.pop(connection.wire, None)
                connection.wire.close()
                if all(other.process != connection.process for other in self._connections):
                    for handle in self._handles.pop(connection.process, {}).values():
                        self.backend.close_device(handle)
            elif connection.full:
                self._loop.files.pop(connection.wire, None)
            else:
                self._loop.files[connection.wire] = connection.receive

    # --- requests ----------------------------------------------------------------------------------------------------

    def _perform(self, process: int, request: bytes) -> Steps:
        """Perform a request: a transfer waits until the device has a packet, or accepts one."""
        kind = request[0]
        if kind == packets.CALL:
            name, *arguments = json.loads(request[1:])
            if name in packets.FORWARDED:
                result = getattr(self.backend, name)(self._handle(process, arguments[0]), *arguments[1:])
            else:
                result = self._calls[name](process, *arguments)
            return json.dumps(result).encode()
        head = (packets.OUT_HEAD, packets.IN_REQUEST, packets.CONTROL_HEAD)[kind]
        _, number, *fields = head.unpack_from(request)
        handle, data = self._handle(process, number), request[head.size :]
        if kind != packets.IN:
            yield from self._travel(handle)
        elif data:
            fail(errno.EINVAL)
        if kind == packets.OUT:
            endpoint, interface, timeout = fields
            yield from _retry(handle, lambda: self.backend.try_out(handle, endpoint, interface, data) or None, timeout)
            return b""
        answer: bytes
        if kind == packets.CONTROL:
            code, request_number, value, index, timeout, size = fields
            given: bytes | int = size if code & 0x80 else data
            answer = yield from _retry(
                handle, lambda: self.backend.try_control(handle, code, request_number, value, index, given), timeout
            )
            return answer
        endpoint, interface, timeout, size = fields
        answer = yield from _retry(handle, lambda: self.backend.try_in(handle, endpoint, interface), timeout)
        yield from self._travel(handle)
        return answer if len(answer) <= size else fail(errno.EOVERFLOW)

    def _handle(self, process: int, number: int) -> Handle:
        handle = self._handles[process].get(number)
        return handle if handle is not None else fail(errno.ENODEV)

    def _travel(self, handle: Handle) -> Generator[float, None, None]:
        """Wait for the additional duration of a transfer."""
        delay = self.backend.delay(handle)
        if delay > 0.0:
            instant = time.monotonic() + delay
            while time.monotonic() < instant:
                yield instant

    def _devices_found(self, _: int) -> list[tuple[int, int, int, str, str]]:
        """Return number, address and port of each device, and its descriptors."""
        found = []
        for device in self.backend.enumerate_devices():
            self._devices[device.generation] = device
            firmware = device.unit.firmware
            descriptors = firmware.device_descriptor.hex(), firmware.configuration_descriptor.hex()
            found.append((device.generation, device.address, self.backend.port(device.unit), *descriptors))
        return found

    def _open(self, process: int, number: int) -> int:
        handle = self.backend.open_device(self._devices[number])
        self._count += 1
        self._handles[process][self._count] = handle
        return self._count

    def _close(self, process: int, number: int) -> None:
        handle = self._handles[process].pop(number, None)
        if handle is not None:
            self.backend.close_device(handle)


def _retry(handle: Handle, attempt: Callable[[], Any], timeout: int) -> Generator[float, None, Any]:
    """Repeat a transfer until it has a result, because faults change without notice; raise after `timeout` [ms]."""
    latest = time.monotonic() + timeout * 1e-3 if timeout else float("inf")
    while (result := attempt()) is None:
        now = time.monotonic()
        if now >= latest:
            fail(errno.ETIMEDOUT)
        yield min(latest, now + handle.unit.pause())
    return result
