"""Server of the bus with an emulated drive for other processes, within an event loop.

Clients refer to devices and handles by number. When the last connection of a process has ended, its open devices are
closed, as the operating system does when a process dies.
"""

from __future__ import annotations

import errno
import json
import socket
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

from devices.emulators.loop import Loop
from devices.emulators.odrive.serving import packets
from devices.emulators.odrive.serving.connection import Connection, Steps
from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend
from devices.emulators.pid.transfers import Device, Handle, fail

_NAK = 1e-3
"""Maximum interval between retries of a transfer for which the drive is not ready [s]."""

CONNECTIONS = 64
"""Maximum number of connections."""


def observe(backend: EmulatedOdriveBackend) -> dict[str, Any]:
    """Return states, errors, torques [N m], angles [turn], speeds [turn/s] and time of disarming."""
    board = backend.boards[0]
    with board.lock:
        board.catch_up()
        axes = board.inside.axes
        return {
            "states": [axis.values["current_state"] for axis in axes],
            "errors": [axis.values["error"] for axis in axes],
            "torques": [axis.torque for axis in axes],
            "angles": list(board.plant.angles),
            "speeds": list(board.plant.speeds),
            "loose_at": board.loose_at,
        }


class BusServer:
    """Source (`devices.emulators.loop`) that serves a backend for pyusb.

    Parameters
    ----------
    backend : EmulatedOdriveBackend
        The bus.
    loop : Loop
        The event loop.
    listener : socket.socket
        Listening socket for clients.
    """

    def __init__(self, backend: EmulatedOdriveBackend, loop: Loop, listener: socket.socket) -> None:
        self.backend = backend
        self._loop = loop
        self._connections: list[Connection] = []
        self._devices: dict[int, Device] = {}
        self._handles: dict[int, dict[int, Handle]] = {}
        self._count = self._turn = 0
        self._calls = self._known_calls()
        loop.welcome(listener, self._begin)
        loop.sources.append(self)

    # --- connections -------------------------------------------------------------------------------------------------

    def _begin(self, wire: socket.socket) -> bool:
        if len(self._connections) >= CONNECTIONS:
            return False
        connection = Connection(wire, lambda request: self._perform(connection.process, request))
        self._connections.append(connection)
        self._handles.setdefault(connection.process, {})
        self._loop.watch(wire, connection.receive)
        return True

    def pause(self, now: float) -> float:
        """Return the time until the next transfer is due [s]."""
        return min((connection.until for connection in self._connections), default=float("inf")) - now

    def serve(self, now: float) -> None:
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
                self._leave(connection)
            elif connection.full:
                self._loop.remove(connection.wire)
            else:
                self._loop.watch(connection.wire, connection.receive)

    def _leave(self, connection: Connection) -> None:
        self._connections.remove(connection)
        self._loop.remove(connection.wire)
        connection.wire.close()
        if all(other.process != connection.process for other in self._connections):
            for handle in self._handles.pop(connection.process, {}).values():
                self.backend.close_device(handle)

    # --- requests ----------------------------------------------------------------------------------------------------

    def _perform(self, process: int, request: bytes) -> Steps:
        kind = request[0]
        if kind == packets.CALL:
            return self._call(process, request)
        return (yield from (self._out, self._in, self._control)[kind](process, request))

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

    def _out(self, process: int, request: bytes) -> Steps:
        """Write a packet as soon as the drive accepts it."""
        _, number, endpoint, interface, timeout = packets.OUT_HEAD.unpack_from(request)
        handle, data = self._handle(process, number), request[packets.OUT_HEAD.size :]
        yield from self._travel(handle)
        latest = _latest(timeout)
        while not self.backend.try_out(handle, endpoint, interface, data):
            yield _in_time(latest)
        return b""

    def _in(self, process: int, request: bytes) -> Steps:
        """Read a packet as soon as the drive has one."""
        _, number, endpoint, interface, timeout, size = packets.IN_REQUEST.unpack(request)
        handle, latest = self._handle(process, number), _latest(timeout)
        while True:
            data = self.backend.try_in(handle, endpoint, interface)
            if data is not None:
                break
            yield _in_time(latest)
        yield from self._travel(handle)
        return data if len(data) <= size else fail(errno.EOVERFLOW)

    def _control(self, process: int, request: bytes) -> Steps:
        """Perform a request on endpoint 0."""
        _, number, kind, what, value, index, timeout, size = packets.CONTROL_HEAD.unpack_from(request)
        handle, data = self._handle(process, number), request[packets.CONTROL_HEAD.size :]
        yield from self._travel(handle)
        latest = _latest(timeout)
        while True:
            answer = self.backend.try_control(handle, kind, what, value, index, size if kind & 0x80 else data)
            if answer is not None:
                return answer
            yield _in_time(latest)

    def _call(self, process: int, request: bytes) -> bytes:
        """Execute a request that needs no waiting."""
        name, *arguments = json.loads(request[1:])
        return json.dumps(self._calls[name](process, *arguments)).encode()

    # --- requests without waiting ------------------------------------------------------------------------------------

    def _known_calls(self) -> dict[str, Callable[..., Any]]:
        faults = self.backend.boards[0].faults
        calls: dict[str, Callable[..., Any]] = {
            "devices": lambda _: list(self._listed()),
            "open_device": self._open,
            "close_device": self._close,
            "observe": lambda _: observe(self.backend),
            "stalled": lambda _: self._loop.stalled(),
            "fault": lambda _, *names: faults.set(*names),
            "clear": lambda _, *names: faults.clear(*names),
        }
        for name in packets.FORWARDED:
            calls[name] = self._forwarded(getattr(self.backend, name))
        return calls

    def _forwarded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda process, number, *arguments: method(self._handle(process, number), *arguments)

    def _listed(self) -> Iterable[tuple[int, int, int, str, str]]:
        """Yield number, address and port of each device, and its descriptors."""
        for device in self.backend.enumerate_devices():
            self._devices[device.generation] = device
            port, firmware = self.backend.sticks.index(device.stick) + 1, device.stick.firmware
            descriptors = firmware.device_descriptor.hex(), firmware.configuration_descriptor.hex()
            yield device.generation, device.address, port, *descriptors

    def _open(self, process: int, number: int) -> int:
        handle = self.backend.open_device(self._devices[number])
        self._count += 1
        self._handles[process][self._count] = handle
        return self._count

    def _close(self, process: int, number: int) -> None:
        handle = self._handles[process].pop(number, None)
        if handle is not None:
            self.backend.close_device(handle)


def _latest(timeout: int) -> float:
    return time.monotonic() + timeout * 1e-3 if timeout else float("inf")


def _in_time(latest: float) -> float:
    """Return the time of the next retry, because faults change without notice; raise after `latest`."""
    now = time.monotonic()
    return min(latest, now + _NAK) if now < latest else fail(errno.ETIMEDOUT)
