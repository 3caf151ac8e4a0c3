"""Backend for pyusb whose bus is in another process, which `devices.emulators.odrive.child` runs.

Writes to a drive do not wait for a reply. Only a failure is reported, which the next request of the thread raises
(`devices.emulators.odrive.serving.packets`). A queue of the endpoints is also available, as with libusb:
`devices.emulators.odrive.serving.remote_queue`.
"""

from __future__ import annotations

import array
import contextlib
import errno
import functools
import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import usb.backend

from devices.emulators.odrive.serving import packets
from devices.emulators.odrive.serving.remote_queue import RemoteQueue, Wire
from devices.emulators.pid.descriptor_tree import DescriptorTrees, configuration_tree, placed
from devices.emulators.pid.transfers import fail


class RemoteDevice(NamedTuple):
    """Drive on the remote bus.

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

    def _watch(self, name: str, *arguments: Any) -> Any:
        """Call a method through a separate connection, which does not wait for transfers."""
        return self._call(name, *arguments, wire_name="observer")

    # --- information for observers -----------------------------------------------------------------------------------

    def observe(self) -> dict[str, Any]:
        """Return the true state of both axes (`devices.emulators.odrive.serving.server.observe`)."""
        found: dict[str, Any] = self._watch("observe")
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

    def fault(self, *names: str) -> None:
        """Activate faults (`devices.emulators.odrive.faults`)."""
        self._watch("fault", *names)

    def clear(self, *names: str) -> None:
        """Deactivate faults; all of them if none is named."""
        self._watch("clear", *names)

    # --- devices -----------------------------------------------------------------------------------------------------

    def enumerate_devices(self) -> Iterator[RemoteDevice]:
        """Yield the drives that are plugged in."""
        for number, address, port, descriptor, configuration in self._call("devices"):
            tree = configuration_tree(bytes.fromhex(configuration))
            yield RemoteDevice(number, address, port, bytes.fromhex(descriptor), tree)

    def get_device_descriptor(self, dev: RemoteDevice) -> SimpleNamespace:
        """Return the device descriptor, with bus address and port."""
        return placed(dev.descriptor, dev.address, dev.port)

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
        return _fill(buff, self._receive(self._send(request)))

    def queues_of(self, device: Any) -> Callable[[int, int, int], RemoteQueue]:
        """Return a function that makes queues of an open device (`devices.arm.motors.usb.queued.best_pipes`)."""
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
        what = bmRequestType, bRequest, wValue, wIndex
        head = packets.CONTROL_HEAD.pack(packets.CONTROL, dev_handle, *what, timeout, len(data))
        found = self._receive(self._send(head + data.tobytes()))
        return _fill(data, found) if bmRequestType & 0x80 else len(data)


def _fill(buff: array.array[int], found: bytes) -> int:
    buff[: len(found)] = array.array("B", found)
    return len(found)


def _forwarded(name: str) -> Any:
    def forward(self: RemoteBackend, *arguments: Any) -> Any:
        return self._call(name, *arguments)

    forward.__name__ = name
    forward.__doc__ = f"Have the other process do it: `usb.backend.IBackend.{name}`."
    return forward


for _name in packets.FORWARDED:
    setattr(RemoteBackend, _name, _forwarded(_name))
