"""A backend for pyusb whose bus is in another process, which `devices.emulators.odrive.child` runs.

Writing a packet to a drive is not waited for: only what went wrong with it is answered, and that is raised by the next
request of the thread (`devices.emulators.odrive.serving.packets`). A queue of its endpoints is there besides, as with
libusb: `devices.emulators.odrive.serving.remote_queue`.
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
    """A drive on that bus.

    Attributes
    ----------
    number, address, port : int
        What it is called there, its address, and its port.
    descriptor : bytes
        Its device descriptor.
    tree : SimpleNamespace
        Its configuration.
    """

    number: int
    address: int
    port: int
    descriptor: bytes
    tree: SimpleNamespace


class RemoteBackend(DescriptorTrees, usb.backend.IBackend):  # type: ignore[misc]
    """What `usb.core.find` takes as ``backend``.

    Each thread has a connection of its own, so that one can read while another writes.

    Parameters
    ----------
    address : str
        Where the other process is reached.
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._own = threading.local()

    def _send(self, request: bytes, wire_name: str = "host") -> socket.socket:
        """Send a request; if the other process is gone, so is the drive."""
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
        """Return the answer to the request before; raise what went wrong with it, or with packets before it."""
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
        """Have the other process do something, and return what that gave."""
        request = bytes((packets.CALL,)) + json.dumps((name, *arguments)).encode()
        return json.loads(self._receive(self._send(request, wire_name)))

    def _watch(self, name: str, *arguments: Any) -> Any:
        """Do so through a connection of its own: an observer waits for no transfer."""
        return self._call(name, *arguments, wire_name="observer")

    # --- for an observer ---------------------------------------------------------------------------------------------

    def observe(self) -> dict[str, Any]:
        """Return what is true of both axes (`devices.emulators.odrive.serving.server.observe`)."""
        found: dict[str, Any] = self._watch("observe")
        return found

    def stalled(self, patience: float = 0.2) -> float:
        """Return for how long the other process was kept from running lately, at a stretch [s].

        If it does not even answer within `patience` [s], it is kept from running now, for as long as that.
        """
        wire = self._send(bytes((packets.CALL,)) + b'["stalled"]', "judge")
        if not select.select([wire], (), (), patience)[0]:
            del self._own.judge  # lest the answer that comes late is taken for another
            return patience
        return float(json.loads(self._receive(wire)))

    def fault(self, *names: str) -> None:
        """Switch faults on (`devices.emulators.odrive.faults`)."""
        self._watch("fault", *names)

    def clear(self, *names: str) -> None:
        """Switch faults off; all of them where none is named."""
        self._watch("clear", *names)

    # --- devices -----------------------------------------------------------------------------------------------------

    def enumerate_devices(self) -> Iterator[RemoteDevice]:
        """Yield the drives that are plugged in."""
        for number, address, port, descriptor, configuration in self._call("devices"):
            tree = configuration_tree(bytes.fromhex(configuration))
            yield RemoteDevice(number, address, port, bytes.fromhex(descriptor), tree)

    def get_device_descriptor(self, dev: RemoteDevice) -> SimpleNamespace:
        """Return the device descriptor, and where the device is."""
        return placed(dev.descriptor, dev.address, dev.port)

    def open_device(self, dev: RemoteDevice) -> int:
        """Open it."""
        return int(self._call("open_device", dev.number))

    def close_device(self, dev_handle: int) -> None:
        """Close it; that never fails."""
        with contextlib.suppress(OSError):
            self._call("close_device", dev_handle)

    # --- transfers ---------------------------------------------------------------------------------------------------

    def bulk_write(self, dev_handle: int, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
        """Write a packet; raise what went wrong with those before."""
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
        """Return what makes queues of a device that is open (`devices.arm.motors.usb.queued.best_pipes`)."""
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
        """Make a request on endpoint 0."""
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
