"""The wire between a host and an emulated stick: one transfer per endpoint and interval, with a log."""

from __future__ import annotations

import errno
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from devices.emulators.usb_bus import Stall

# Duration on a full-speed bus [s].
FRAME = 1e-3

# Types of descriptors.
INTERFACE, ENDPOINT = 0x04, 0x05

# Bit of an endpoint's address, and of a request's type.
TO_HOST = 0x80

# Request type, request and value.
CLEAR_HALT = (0x02, 1, 0)


@dataclass(eq=False)
class Transfer:
    """A transfer of the host; `done` gets 0 or -errno and the transferred bytes."""

    endpoint: int
    done: Callable[[int, bytes], None]
    data: bytes = b""
    length: int = 0
    setup: bytes = b""


class Packet(NamedTuple):
    """Transferred bytes; packets of endpoint 0 have the eight bytes of their request."""

    endpoint: int
    setup: bytes
    data: bytes


def take(connection, length):
    """Return exactly `length` bytes of a socket. Raise `ConnectionError` if it ends before."""
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        parts += part
    return bytes(parts)


def descriptors(configuration):
    """Yield the descriptors of a configuration."""
    while configuration:
        yield configuration[: configuration[0]]
        configuration = configuration[configuration[0] :]


def _endpoints(configuration):
    """Yield address, interface and polling interval [s] of every endpoint but the first."""
    interface = 0
    for descriptor in descriptors(configuration):
        if descriptor[1] == INTERFACE:
            interface = descriptor[2]
        elif descriptor[1] == ENDPOINT:
            yield descriptor[2], interface, descriptor[6] * FRAME


class Bus:
    """Carries transfers to a stick in a thread until it is disconnected, and logs them; `lock` protects the stick.

    The faults are defined by `devices.emulators.wire_faults`.
    """

    def __init__(self, stick):
        self.stick = stick
        self.lock = threading.Condition(stick.lock)
        self.connected = True
        self.log: list[Packet] = []
        endpoints = list(_endpoints(stick.firmware.configuration_descriptor))
        self.interface_of = {address: interface for address, interface, _ in endpoints}
        self._interval = {0: 0.0} | {address: interval for address, _, interval in endpoints}
        self._waiting: dict[int, deque[Transfer]] = {endpoint: deque() for endpoint in self._interval}
        self._due = dict.fromkeys(self._interval, 0.0)
        stick.plug()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def submit(self, transfer):
        """Queue a transfer; it fails at once if the device is unplugged."""
        with self.lock:
            if not self.connected:
                transfer.done(-errno.ENODEV, b"")
            elif transfer.endpoint not in self._waiting:
                transfer.done(-errno.ENOENT, b"")
            else:
                self._waiting[transfer.endpoint].append(transfer)
                self.lock.notify_all()

    def cancel(self, transfer):
        """Cancel a transfer; return False if it was already done."""
        with self.lock:
            queue = self._waiting.get(transfer.endpoint, deque())
            if transfer not in queue:
                return False
            queue.remove(transfer)
            return True

    def disconnect(self):
        """Unplug the stick: pending transfers fail as they do in the kernel."""
        with self.lock:
            self.connected = False
            self.stick.unplug()
            for queue in self._waiting.values():
                while queue:
                    queue.popleft().done(-errno.ESHUTDOWN, b"")
            self.lock.notify_all()
        self._thread.join(10.0)

    def reset(self):
        """Reset the port: no endpoint is halted afterwards."""
        with self.lock:
            self.stick.halted.clear()

    def sent(self, endpoint):
        """Return the data of an endpoint, oldest first; of number 0 only data to the device."""
        with self.lock:
            log = [packet for packet in self.log if packet.endpoint == endpoint]
        return [packet.data for packet in log if not packet.setup or not packet.setup[0] & TO_HOST]

    def _serve(self):
        with self.lock:
            while self.connected:
                faults, now = self.stick.catch_up(), time.monotonic()
                for endpoint, queue in self._waiting.items():
                    self._run(endpoint, queue, now, faults)
                self.lock.wait(FRAME if any(self._waiting.values()) else None)

    def _run(self, endpoint, queue, now, faults):
        if "nak" in faults or ("dropout" in faults and endpoint & TO_HOST):
            return
        while queue and self._due[endpoint] <= now:
            answer = self._answer(queue[0], faults)
            if answer is None:
                return
            self._due[endpoint] = now + self._interval[endpoint]
            transfer = queue.popleft()
            if answer[0] == 0:
                self.log.append(Packet(endpoint, transfer.setup, answer[1]))
            transfer.done(*answer)

    def _answer(self, transfer, faults):
        """Return status and data, None if the device has no answer yet."""
        endpoint, halted = transfer.endpoint, self.stick.halted
        if endpoint and "stall" in faults:
            halted.add(endpoint)
        try:
            if endpoint in halted:
                raise Stall
            data = self._exchange(transfer)
        except Stall:
            return -errno.EPIPE, b""
        if data is None:
            return None
        if "short" in faults and endpoint & TO_HOST:
            data = data[: len(data) // 2]
        return (0, data) if len(data) <= max(transfer.length, len(transfer.data)) else (-errno.EOVERFLOW, b"")

    def _exchange(self, transfer):
        firmware = self.stick.firmware
        if transfer.endpoint == 0:
            return self._control(transfer)
        if transfer.endpoint & TO_HOST:
            return firmware.poll_in(transfer.endpoint)
        firmware.out(transfer.endpoint, transfer.data)
        return transfer.data

    def _control(self, transfer):
        request_type, request, value, index, length = struct.unpack("<BBHHH", transfer.setup)
        firmware = self.stick.firmware
        if request_type & TO_HOST:
            return firmware.control(request_type, request, value, index, length)
        if (request_type, request, value) == CLEAR_HALT:
            self.stick.halted.discard(index)
        else:
            firmware.control(request_type, request, value, index, transfer.data)
        return transfer.data
