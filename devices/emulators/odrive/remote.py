"""A backend for pyusb whose bus is in another process, and what serves it there (`devices.emulators.odrive.child`).

Between the two goes one packet per request and one per answer. Writing a packet to a drive is not waited for: only what
went wrong with it is answered, and that is raised by the next request. A drive answers before much can pile up.
"""

from __future__ import annotations

import array
import contextlib
import errno
import os
import pickle
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import usb.backend

from devices.emulators.pid.transfers import fail

NO_MORE = -1
"""Stands for an `IndexError` where other numbers are those of the system's errors."""

_POSTED = "bulk_write"
"""The request that is answered only if it went wrong."""

_LONGEST = 1 << 16
"""No request and no answer is longer [byte]."""


class Server:
    """Serves a backend for pyusb to other processes, one connection for each of their threads.

    Devices and handles stay here; numbers stand for them. A connection begins with the number of its process. When the
    last one of a process has ended, whatever that had open is closed, as the system does it when a process dies.

    Parameters
    ----------
    backend : EmulatedOdriveBackend
        What is served.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._lock = threading.Lock()
        self._objects: dict[int, Any] = {}
        self._connections: Counter[int] = Counter()
        self._open: dict[int, set[int]] = defaultdict(set)

    def serve(self, connection: socket.socket) -> None:
        """Answer what comes through a connection until it ends."""
        with contextlib.suppress(OSError), connection:
            process = int.from_bytes(connection.recv(_LONGEST), "little")
            with self._lock:
                self._connections[process] += 1
            try:
                while request := connection.recv(_LONGEST):
                    name, *arguments = pickle.loads(request)
                    number, result = self._answer(process, name, arguments)
                    if number or name != _POSTED:
                        connection.send(pickle.dumps((name, number, result)))
            finally:
                self._leave(process)

    def _leave(self, process: int) -> None:
        with self._lock:
            self._connections[process] -= 1
            left = self._open.pop(process, set()) if not self._connections[process] else set()
        for number in left:
            self.backend.close_device(self._objects[number])

    def _answer(self, process: int, name: str, arguments: list[Any]) -> tuple[int, Any]:
        """Return 0 and the result, or the number of the error and None."""
        try:
            if name == "enumerate_devices":
                return 0, [self._number(device) for device in self.backend.enumerate_devices()]
            if name == "observe":
                return 0, observe(self.backend)
            if name in {"fault", "clear"}:
                faults = self.backend.boards[0].faults
                return 0, (faults.set if name == "fault" else faults.clear)(*arguments)
            target = self._objects[arguments[0]]
            arguments = [array.array("B", given) if isinstance(given, bytes) else given for given in arguments[1:]]
            result = getattr(self.backend, name)(target, *arguments)
            if name == "open_device":
                number = self._number(result)
                self._open[process].add(number)
                return 0, number
            filled = next((given for given in arguments if isinstance(given, array.array)), None)
            return 0, (result, bytes(filled[:result])) if filled is not None else result
        except IndexError:  # by which a backend says that there are no more descriptors
            return NO_MORE, None
        except OSError as error:
            return error.errno or errno.EIO, None

    def _number(self, thing: Any) -> int:
        with self._lock:
            number = len(self._objects)
            self._objects[number] = thing
            return number


def observe(backend: Any) -> dict[str, Any]:
    """Return states, errors, torques [N m], angles [turn], speeds [turn/s] of both axes, and when they became loose."""
    board = backend.boards[0]
    with board.lock:
        board.catch_up()
        axes = board.inside.axes
        return {
            "states": [axis.values["current_state"] for axis in axes],
            "errors": [axis.values.get("error", 0) for axis in axes],
            "torques": [axis.torque for axis in axes],
            "angles": list(board.plant.angles),
            "speeds": list(board.plant.speeds),
            "loose_at": board.loose_at,
        }


class _Wire:
    """A connection of one thread, which ends with the thread."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(address)
        self.socket.send(os.getpid().to_bytes(4, "little"))

    def __del__(self) -> None:
        self.socket.close()


class RemoteBackend(usb.backend.IBackend):  # type: ignore[misc]
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

    def _call(self, name: str, *arguments: Any) -> Any:
        """Have the other process do something, and return what that gave."""
        self._ask(name, *arguments)
        earlier, (of, number, result) = 0, self._receive()
        while of == _POSTED:  # an earlier packet went wrong; the answer is behind that
            earlier, (of, number, result) = number, self._receive()
        if earlier or number > 0:
            fail(earlier or number)
        if number == NO_MORE:
            raise IndexError
        return result

    def _ask(self, name: str, *arguments: Any) -> None:
        """Send a request; if the other process is gone, so is the drive."""
        try:
            wire: _Wire | None = getattr(self._own, "wire", None)
            if wire is None:
                wire = self._own.wire = _Wire(self._address)
            wire.socket.send(pickle.dumps((name, *arguments)))
        except OSError:
            fail(errno.ENODEV)

    def _receive(self, flags: int = 0) -> tuple[str, int, Any]:
        """Return an answer: to what, the number of the error, the result. Raise `BlockingIOError` if there is none."""
        try:
            answer = self._own.wire.socket.recv(_LONGEST, flags)
        except BlockingIOError:
            raise
        except OSError:
            answer = b""
        if not answer:
            fail(errno.ENODEV)
        found: tuple[str, int, Any] = pickle.loads(answer)
        return found

    # --- for an observer ---------------------------------------------------------------------------------------------

    def observe(self) -> dict[str, Any]:
        """Return what is true of both axes (`observe`)."""
        found: dict[str, Any] = self._call("observe")
        return found

    def fault(self, *names: str) -> None:
        """Switch faults on (`devices.emulators.odrive.faults`)."""
        self._call("fault", *names)

    def clear(self, *names: str) -> None:
        """Switch faults off; all of them where none is named."""
        self._call("clear", *names)

    # --- devices and handles are numbers here ------------------------------------------------------------------------

    def enumerate_devices(self) -> Iterator[int]:
        """Yield the drives that are plugged in."""
        yield from self._call("enumerate_devices")

    def close_device(self, dev_handle: int) -> None:
        """Close it; that never fails."""
        with contextlib.suppress(OSError):
            self._call("close_device", dev_handle)

    def bulk_write(self, dev_handle: int, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
        """Write a packet; raise what went wrong with those before."""
        self._ask(_POSTED, dev_handle, ep, intf, bytes(data), timeout)
        earlier = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                earlier = self._receive(socket.MSG_DONTWAIT)[1]
        if earlier:
            fail(earlier)
        return len(data)

    def bulk_read(self, dev_handle: int, ep: int, intf: int, buff: array.array[int], timeout: int) -> int:
        """Read a packet."""
        count, data = self._call("bulk_read", dev_handle, ep, intf, bytes(len(buff)), timeout)
        buff[:count] = array.array("B", data)
        return int(count)

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
        request = bmRequestType, bRequest, wValue, wIndex
        count, found = self._call("ctrl_transfer", dev_handle, *request, bytes(data), timeout)
        data[:count] = array.array("B", found)
        return int(count)


def _forwarded(name: str) -> Any:
    def forward(self: RemoteBackend, *arguments: Any) -> Any:
        return self._call(name, *arguments)

    forward.__name__ = name
    forward.__doc__ = f"Have the other process do it: `usb.backend.IBackend.{name}`."
    return forward


for _name in (
    "get_parent get_device_descriptor get_configuration_descriptor get_interface_descriptor get_endpoint_descriptor "
    "open_device get_configuration set_configuration set_interface_altsetting is_kernel_driver_active "
    "detach_kernel_driver attach_kernel_driver claim_interface release_interface clear_halt reset_device"
).split():
    setattr(RemoteBackend, _name, _forwarded(_name))
