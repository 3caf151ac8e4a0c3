"""Client side of an emulated USB bus in another process (`devices.emulators.usb_server`): backend for pyusb and queue.

Writes to a device do not wait for a reply. Only a failure is reported, which the next request of the thread raises
(`devices.emulators.usb_packets`). A queue of the endpoints is also available, as with libusb.
"""

from __future__ import annotations

import array
import contextlib
import errno
import functools
import json
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import usb.backend

from devices.common.usb_queue import PACKET, WRITE_TIMEOUT, Done
from devices.emulators import usb_packets as packets
from devices.emulators.usb_bus import DescriptorTrees, configuration_tree, device_fields, fail, fill

SILENCE = 30
"""Time without a reply after which an emulator is considered dead [s]; no timeout of a transfer is longer."""

FAREWELL = 0.2
"""Timeout for packets that are waiting to be sent when the queue is closed [s]."""

WAITING = 48
"""Number of pending requests for packets in. New ones are sent when half of them are used, because sending wakes the
other process.
"""

_LAST = b"", bytes((packets.CALL,))
"""Last replies on a connection: end of the connection, or the reply to the request that closes a queue."""


class Wire:
    """Connection to an emulator, closed with the object."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", SILENCE, 0))
        self.socket.connect(address)

    def __del__(self) -> None:
        self.socket.close()


class RemoteDevice(NamedTuple):
    """Device on the remote bus.

    Attributes
    ----------
    number, address, port : int
        Number in the other process, bus address, and port.
    descriptor : bytes
        Device descriptor.
    tree : SimpleNamespace
        Configuration.
    """

    number: int
    address: int
    port: int
    descriptor: bytes
    tree: SimpleNamespace


class RemoteBackend(DescriptorTrees, usb.backend.IBackend):  # type: ignore[misc]
    """Backend, for the argument ``backend`` of `usb.core.find`.

    Each thread has a separate connection, so that one can read while another writes.

    Parameters
    ----------
    address : str
        Address of the other process.
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._own = threading.local()

    def _send(self, request: bytes, wire_name: str = "host") -> socket.socket:
        """Send a request; raise `ENODEV` if the other process has ended."""
        try:
            wire: Wire | None = getattr(self._own, wire_name, None)
            if wire is None:
                wire = Wire(self._address)
                setattr(self._own, wire_name, wire)
            wire.socket.send(request)
            return wire.socket
        except OSError:
            fail(errno.ENODEV)

    def _receive(self, wire: socket.socket) -> bytes:
        """Return the reply to the last request; raise its error, or the error of an earlier packet."""
        earlier = 0
        while True:
            try:
                packet = wire.recv(packets.LONGEST)
            except OSError:
                packet = b""
            if not packet:
                fail(errno.ENODEV)
            for answer in packets.apart(packet):
                kind, number = packets.ANSWER.unpack_from(answer)
                if kind == packets.OUT:
                    earlier = number
                elif earlier or number:
                    fail(earlier or number)
                else:
                    return answer[packets.ANSWER.size :]

    def _call(self, name: str, *arguments: Any, wire_name: str = "host") -> Any:
        """Call a method in the other process and return its result."""
        request = bytes((packets.CALL,)) + json.dumps((name, *arguments)).encode()
        return json.loads(self._receive(self._send(request, wire_name)))

    # --- information for observers -----------------------------------------------------------------------------------

    def observe(self) -> dict[str, Any]:
        """Return the true state of the device, as the function `observe` of its `BusServer` does."""
        found: dict[str, Any] = self._call("observe", wire_name="observer")
        return found

    def stalled(self, patience: float = 0.2) -> float:
        """Return the longest recent time for which the other process was not executed [s].

        If it does not reply within `patience` [s], it is not executed at present, and `patience` is returned.
        """
        wire = self._send(bytes((packets.CALL,)) + b'["stalled"]', "judge")
        if not select.select([wire], (), (), patience)[0]:
            del self._own.judge  # otherwise the late reply would be assigned to the next request
            return patience
        return float(json.loads(self._receive(wire)))

    fault = functools.partialmethod(_call, "fault", wire_name="observer")
    """Activate faults with these names."""
    clear = functools.partialmethod(_call, "clear", wire_name="observer")
    """Deactivate faults with these names; all of them if none is named."""

    # --- devices -----------------------------------------------------------------------------------------------------

    def enumerate_devices(self) -> Iterator[RemoteDevice]:
        """Yield the devices that are plugged in."""
        for number, address, port, descriptor, configuration in self._call("devices"):
            tree = configuration_tree(bytes.fromhex(configuration))
            yield RemoteDevice(number, address, port, bytes.fromhex(descriptor), tree)

    def get_device_descriptor(self, dev: RemoteDevice) -> SimpleNamespace:
        """Return the device descriptor, with bus address and port."""
        return device_fields(dev.descriptor, dev.address, dev.port)

    def open_device(self, dev: RemoteDevice) -> int:
        """Open a device."""
        return int(self._call("open_device", dev.number))

    def close_device(self, dev_handle: int) -> None:
        """Close a device, ignoring errors."""
        with contextlib.suppress(OSError):
            self._call("close_device", dev_handle)

    # --- transfers ---------------------------------------------------------------------------------------------------

    def bulk_write(self, dev_handle: int, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
        """Write a packet; raise the errors of earlier packets."""
        head = packets.OUT_HEAD.pack(packets.OUT, dev_handle, ep, intf, timeout)
        wire = self._send(head + data.tobytes())
        earlier = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = wire.recv(packets.LONGEST, socket.MSG_DONTWAIT)
                if not packet:
                    earlier = errno.ENODEV
                    break
                earlier = packets.ANSWER.unpack_from(packets.apart(packet)[-1])[1]
        if earlier:
            fail(earlier)
        return len(data)

    def bulk_read(self, dev_handle: int, ep: int, intf: int, buff: array.array[int], timeout: int) -> int:
        """Read a packet."""
        request = packets.IN_REQUEST.pack(packets.IN, dev_handle, ep, intf, timeout, len(buff))
        return fill(buff, self._receive(self._send(request)))

    def queues_of(self, device: Any) -> Callable[[int, int, int], RemoteQueue]:
        """Return a function that makes queues of an open device."""
        return functools.partial(RemoteQueue, self._address, device._ctx.handle)

    def ctrl_transfer(
        self,
        dev_handle: int,
        bmRequestType: int,
        bRequest: int,
        wValue: int,
        wIndex: int,
        data: array.array[int],
        timeout: int,
    ) -> int:
        """Perform a request on endpoint 0."""
        setup = bmRequestType, bRequest, wValue, wIndex
        head = packets.CONTROL_HEAD.pack(packets.CONTROL, dev_handle, *setup, timeout, len(data))
        found = self._receive(self._send(head + data.tobytes()))
        return fill(data, found) if bmRequestType & 0x80 else len(data)


for _name in packets.FORWARDED:
    setattr(RemoteBackend, _name, functools.partialmethod(RemoteBackend._call, _name))


class RemoteQueue:
    """See `devices.common.usb_queue.LibusbQueue`.

    Parameters
    ----------
    address : str
        Address of the other process.
    handle : int
        Handle of the open device there.
    interface, out, inward : int
        Number of the claimed interface, and its endpoints out and in.
    """

    def __init__(self, address: str, handle: int, interface: int, out: int, inward: int) -> None:
        milliseconds = round(WRITE_TIMEOUT * 1e3)
        self._head = packets.OUT_HEAD.pack(packets.OUT, handle, out, interface, milliseconds)
        self._request = packets.IN_REQUEST.pack(packets.IN, handle, inward, interface, 0, PACKET)
        self._wires = Wire(address), Wire(address)  # closed with the queue
        self._in, self._out = (wire.socket for wire in self._wires)
        self._ready = select.poll()
        for wire in (self._in, self._out):
            self._ready.register(wire, select.POLLIN)
        self._came: deque[Done] = deque()
        self._wanted, self._under_way = WAITING, 0
        self._request_more()

    def _request_more(self) -> None:
        """Send the missing requests for transfers in."""
        missing, self._under_way = self._wanted - self._under_way, self._wanted
        try:
            _send(self._in, missing * [self._request])
        except OSError as error:
            self._came.append(Done(False, error.errno or errno.EIO, b""))

    def submit(self, *data: bytes) -> None:
        """Send packets."""
        _send(self._out, [self._head + packet for packet in data])

    def wait(self, timeout: float) -> Done | None:
        """Return the next result, None after `timeout` [s]."""
        if not self._came:
            self._read_replies(timeout)
        return self._came.popleft() if self._came else None

    def restart(self, outward: bool, clear: Callable[[], None]) -> None:
        """Clear an endpoint, and discard its earlier failures, which have been answered by then."""
        clear()
        self._read_replies(0.0)
        kept = [done for done in self._came if done.outward != outward or done.error != errno.EPIPE]
        self._came.clear()
        self._came.extend(kept)
        self._wanted = WAITING
        self._request_more()

    def close(self) -> None:
        """Wait until the packets are sent, which are served before any other request on their connection."""
        with contextlib.suppress(OSError):
            _send(self._out, [bytes((packets.CALL,)) + b'["stalled"]'])
            waiting = select.poll()
            waiting.register(self._out, select.POLLIN)
            latest = time.monotonic() + FAREWELL
            while waiting.poll(max(1e3 * (latest - time.monotonic()), 0.0)):
                if any(answer[:1] in _LAST for answer in packets.apart(self._out.recv(packets.LONGEST))):
                    break
        for wire in (self._in, self._out):
            wire.close()

    # --- private -----------------------------------------------------------------------------------------------------

    def _read_replies(self, timeout: float) -> None:
        """Read all available replies, waiting for the first one for at most `timeout` [s]."""
        for number, _ in self._ready.poll(1e3 * timeout):
            outward = number == self._out.fileno()
            packet = b"."
            while packet:
                try:
                    packet = (self._out if outward else self._in).recv(packets.LONGEST, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                except ConnectionError:
                    packet = b""
                for answer in packets.apart(packet):
                    error = packets.ANSWER.unpack_from(answer)[1] if answer else errno.ENODEV
                    self._came.append(Done(outward, error, answer[packets.ANSWER.size :]))
                    if not outward:
                        self._under_way -= 1
                        self._wanted -= error != 0  # a failed transfer is not retried until the endpoint is cleared
        if self._under_way <= self._wanted // 2:
            self._request_more()


def _send(wire: socket.socket, requests: Sequence[bytes]) -> None:
    """Send requests as soon as there is space; raise `ENODEV` if the other process has ended."""
    for packet in packets.together(requests):
        try:
            try:
                wire.send(packet, socket.MSG_DONTWAIT)
            except BlockingIOError:
                if not select.select((), (wire,), (), WRITE_TIMEOUT)[1]:
                    raise
                wire.send(packet, socket.MSG_DONTWAIT)
        except BlockingIOError:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
        except OSError:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from None
