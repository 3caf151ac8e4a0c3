"""The wire between a host and an emulated stick: one transfer per endpoint and interval, and a record of them all."""

from __future__ import annotations

import errno
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from devices.emulators.pid.firmware import Stall
from devices.emulators.pid.stick import EmulatedStick

FRAME = 1e-3
"""Of a full-speed bus [s]."""

INTERFACE, ENDPOINT = 0x04, 0x05
"""Types of descriptors."""

TO_HOST = 0x80
"""Bit of an endpoint's address, and of a request's type."""

CLEAR_HALT = (0x02, 1, 0)
"""Request type, request and value: an endpoint shall answer again."""


@dataclass(eq=False)
class Transfer:
    """What a host asks for; `done` is told 0 or -errno and the bytes that went over the wire."""

    endpoint: int
    done: Callable[[int, bytes], None]
    data: bytes = b""
    length: int = 0
    setup: bytes = b""


class Packet(NamedTuple):
    """What went over the wire: endpoint 0 with the eight bytes of its request, the others without."""

    endpoint: int
    setup: bytes
    data: bytes


def descriptors(configuration: bytes) -> Iterator[bytes]:
    """Yield the descriptors that a configuration consists of."""
    while configuration:
        yield configuration[: configuration[0]]
        configuration = configuration[configuration[0] :]


def _endpoints(configuration: bytes) -> Iterator[tuple[int, int, float]]:
    """Yield address, interface and polling interval [s] of every endpoint but the first."""
    interface = 0
    for descriptor in descriptors(configuration):
        if descriptor[1] == INTERFACE:
            interface = descriptor[2]
        elif descriptor[1] == ENDPOINT:
            yield descriptor[2], interface, descriptor[6] * FRAME


class Bus:
    """Carries transfers to a stick until it is disconnected, in a thread of its own.

    The faults of the stick have the meaning they have on its emulated bus (`devices.emulators.pid.faults`).

    Attributes
    ----------
    lock : threading.Condition
        Held by whoever looks at the stick.
    connected : bool
        Whether the stick is plugged in.
    interface_of : dict
        Address of an endpoint to the number of its interface.
    log : list of Packet
        What went over the wire.
    """

    def __init__(self, stick: EmulatedStick) -> None:
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

    def submit(self, transfer: Transfer) -> None:
        """Queue a transfer; on a bus without its device it fails at once."""
        with self.lock:
            if not self.connected:
                transfer.done(-errno.ENODEV, b"")
            elif transfer.endpoint not in self._waiting:
                transfer.done(-errno.ENOENT, b"")
            else:
                self._waiting[transfer.endpoint].append(transfer)
                self.lock.notify_all()

    def cancel(self, transfer: Transfer) -> bool:
        """Take a transfer back; False if it was already over."""
        with self.lock:
            queue = self._waiting.get(transfer.endpoint, deque())
            if transfer not in queue:
                return False
            queue.remove(transfer)
            return True

    def disconnect(self) -> None:
        """Pull the plug: what was under way fails as it does in the kernel."""
        with self.lock:
            self.connected = False
            self.stick.unplug()
            for queue in self._waiting.values():
                while queue:
                    queue.popleft().done(-errno.ESHUTDOWN, b"")
            self.lock.notify_all()
        self._thread.join(10.0)

    def reset(self) -> None:
        """Reset the port: no endpoint is halted any more."""
        with self.lock:
            self.stick.halted.clear()

    def sent(self, endpoint: int) -> list[bytes]:
        """Return what has gone over an endpoint, oldest first; over number 0 only what the device was told."""
        with self.lock:
            log = [packet for packet in self.log if packet.endpoint == endpoint]
        return [packet.data for packet in log if not packet.setup or not packet.setup[0] & TO_HOST]

    def _serve(self) -> None:
        with self.lock:
            while self.connected:
                faults, now = self.stick.catch_up(), time.monotonic()
                for endpoint, queue in self._waiting.items():
                    self._run(endpoint, queue, now, faults)
                self.lock.wait(FRAME if any(self._waiting.values()) else None)

    def _run(self, endpoint: int, queue: deque[Transfer], now: float, faults: frozenset[str]) -> None:
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

    def _answer(self, transfer: Transfer, faults: frozenset[str]) -> tuple[int, bytes] | None:
        """Return status and data, None where the device has nothing to say yet."""
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

    def _exchange(self, transfer: Transfer) -> bytes | None:
        firmware = self.stick.firmware
        if transfer.endpoint == 0:
            return self._control(transfer)
        if transfer.endpoint & TO_HOST:
            return firmware.poll_in(transfer.endpoint)
        firmware.out(transfer.endpoint, transfer.data)
        return transfer.data

    def _control(self, transfer: Transfer) -> bytes:
        request_type, request, value, index, length = struct.unpack("<BBHHH", transfer.setup)
        firmware = self.stick.firmware
        if request_type & TO_HOST:
            return firmware.control(request_type, request, value, index, length)
        if (request_type, request, value) == CLEAR_HALT:
            self.stick.halted.discard(index)
        else:
            firmware.control(request_type, request, value, index, transfer.data)
        return transfer.data
