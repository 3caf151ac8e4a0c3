"""A queue by libusb's own asynchronous functions, which pyusb does not show, on the device that pyusb has opened.

Libusb tells of a transfer that has come back by a call. What it calls here is `append` of a list of them, in which no
line of Python runs: nothing can go wrong in it, and no signal can strike there. Libusb calls while somebody waits.
A transfer is libusb's from `submit` until it has come back; what does not when the queue is closed is never freed.

Source: libusb 1.0, API reference, "Asynchronous device I/O" and struct libusb_transfer (libusb.h).
"""

from __future__ import annotations

import ctypes
import errno
import functools
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from devices.arm.motors.native.wire import PACKET
from devices.arm.motors.usb.pipes import WRITE_TIMEOUT
from devices.arm.motors.usb.queue import AHEAD, Done, NoQueue

MOST = 64
"""So many packets wait to go out at most: several rounds."""

FAREWELL = 0.5
"""What was cancelled has come back after so long [s]."""

_BULK = 2
_COMPLETED, _CANCELLED = 0, 3
_STATES = {1: errno.EIO, 2: errno.ETIMEDOUT, 4: errno.EPIPE, 5: errno.ENODEV, 6: errno.EOVERFLOW}
"""How a transfer has ended, to the system's number of that."""

_INTERRUPTED = -10
_CODES = {-2: errno.EINVAL, -3: errno.EACCES, -4: errno.ENODEV, -6: errno.EBUSY, -9: errno.EPIPE, -11: errno.ENOMEM}
"""What libusb's functions return, to the system's number; others are an input/output error."""

_LOOK = 0.02
_PROTOTYPE = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)  # how libusb calls, and is called, on this system
_CALLED = _PROTOTYPE(None, ctypes.c_void_p)

_kept: list[Any] = []
"""What never came back."""


class _Transfer(ctypes.Structure):
    _fields_ = (
        ("handle", ctypes.c_void_p),
        ("flags", ctypes.c_uint8),
        ("endpoint", ctypes.c_uint8),
        ("type", ctypes.c_uint8),
        ("timeout", ctypes.c_uint),
        ("status", ctypes.c_int),
        ("length", ctypes.c_int),
        ("actual_length", ctypes.c_int),
        ("callback", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("buffer", ctypes.c_void_p),
        ("iso_packets", ctypes.c_int),
    )


class _Duration(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("microseconds", ctypes.c_long))


class Functions:
    """The functions of libusb that a queue needs; pyusb's own declarations stay as they are.

    Parameters
    ----------
    library : ctypes.CDLL
        Libusb.

    Raises
    ------
    NoQueue
        If it lacks one of them.
    """

    def __init__(self, library: Any) -> None:
        address, code = ctypes.c_void_p, ctypes.c_int

        def function(name: str, result: Any, *arguments: Any) -> Any:
            try:
                return _PROTOTYPE(result, *arguments)((f"libusb_{name}", library))
            except AttributeError:
                raise NoQueue(f"this libusb has no libusb_{name}") from None

        self.allocate = function("alloc_transfer", address, ctypes.c_int)
        self.free = function("free_transfer", None, address)
        self.submit = function("submit_transfer", code, address)
        self.cancel = function("cancel_transfer", code, address)
        self.handle_events = function(
            "handle_events_timeout_completed", code, address, ctypes.POINTER(_Duration), ctypes.c_void_p
        )


class _Slot:
    """A transfer with its buffer, used again and again."""

    __slots__ = ("address", "buffer", "outward", "transfer")

    def __init__(self, address: int, handle: Any, endpoint: int, called: Any, outward: bool) -> None:
        self.address, self.outward = address, outward
        self.buffer = ctypes.create_string_buffer(PACKET)
        self.transfer = _Transfer.from_address(address)
        self.transfer.handle, self.transfer.endpoint, self.transfer.type = handle, endpoint, _BULK
        self.transfer.timeout = round(WRITE_TIMEOUT * 1e3) if outward else 0
        self.transfer.buffer, self.transfer.length = ctypes.addressof(self.buffer), PACKET
        self.transfer.callback = ctypes.cast(called, ctypes.c_void_p)

    def fill(self, packet: bytes) -> None:
        """Take a packet that is to go out."""
        ctypes.memmove(self.buffer, packet, len(packet))
        self.transfer.length = len(packet)

    def outcome(self) -> Done | None:
        """Return what has become of it, None if nobody need know."""
        transfer = self.transfer
        if transfer.status == _CANCELLED:
            return None
        if transfer.status != _COMPLETED:
            return Done(self.outward, _STATES.get(transfer.status, errno.EIO), b"")
        if self.outward:
            return None if transfer.actual_length == transfer.length else Done(True, errno.EIO, b"")
        return Done(False, 0, self.buffer.raw[: transfer.actual_length])


class LibusbQueue:
    """A queue (`devices.arm.motors.usb.queue.Queue`) of bulk endpoints; closed before the device is.

    Parameters
    ----------
    functions : Functions
        Of libusb.
    context, handle : int
        The addresses of libusb's context and of the open device.
    interface, out, inward : int
        Number of the interface, which is claimed, and its endpoints out and in.
    """

    def __init__(self, functions: Functions, context: Any, handle: Any, interface: int, out: int, inward: int) -> None:
        self._do, self._context = functions, context
        self._back: deque[int] = deque()  # what has come back and was not looked at, in this order
        self._called = _CALLED(self._back.append)
        self._came: deque[Done] = deque()
        self._flying: set[_Slot] = set()
        self._sorting = threading.Lock()
        self._slots: dict[int, _Slot] = {}
        self._reading = True
        self._closed = False
        for endpoint, count in ((out, MOST), (inward, AHEAD)):
            for _ in range(count):
                self._allocate(handle, endpoint, endpoint == out)
        self._idle = deque(slot for slot in self._slots.values() if slot.outward)
        self._set_off()

    def _allocate(self, handle: Any, endpoint: int, outward: bool) -> None:
        address = self._do.allocate(0)
        if not address:
            self._free()
            raise NoQueue("there is no memory for transfers")
        self._slots[address] = _Slot(address, handle, endpoint, self._called, outward)

    def _launch(self, slot: _Slot) -> int:
        """Submit a transfer; return the system's number of what went wrong."""
        self._flying.add(slot)
        code = self._do.submit(slot.address)
        if code:
            self._flying.discard(slot)
        return _CODES.get(code, errno.EIO) if code else 0

    def _set_off(self) -> None:
        """Have all transfers in under way."""
        for slot in list(self._slots.values()):
            if not slot.outward and slot not in self._flying:
                self._read_next(slot)

    def _read_next(self, slot: _Slot) -> None:
        if number := self._launch(slot):
            self._came.append(Done(False, number, b""))

    # --- see `Queue` -------------------------------------------------------------------------------------------------

    def submit(self, *data: bytes) -> None:
        """Have packets sent; if too many wait already, wait for one of them as long as for a packet."""
        for packet in data:
            latest = time.perf_counter() + WRITE_TIMEOUT
            while not self._idle:
                if self._closed or time.perf_counter() > latest:
                    raise OSError(errno.ETIMEDOUT, "too many packets wait")
                self._attend(WRITE_TIMEOUT / 4)
            slot = self._idle.popleft()
            slot.fill(packet)
            if number := self._launch(slot):
                self._idle.append(slot)
                raise OSError(number, "a packet was not taken")

    def wait(self, timeout: float) -> Done | None:
        """Return what came next; hands events over meanwhile."""
        latest = time.perf_counter() + timeout
        while not self._came:
            left = latest - time.perf_counter()
            if left <= 0.0 or self._closed:
                return None
            self._attend(left)
        return self._came.popleft()

    def restart(self, outward: bool, clear: Callable[[], None]) -> None:
        """Take back what is under way in this direction, clear the endpoint and go on."""
        self._reading = outward
        try:
            self._recall(outward)
            clear()
            kept = [done for done in self._came if done.outward != outward or done.error != errno.EPIPE]
            self._came.clear()
            self._came.extend(kept)
        finally:
            self._reading = True
        self._set_off()

    def close(self) -> None:
        """Let what was submitted go out, within its time limit; then nothing is under way, and all is freed."""
        if self._closed:
            return
        self._closed = True
        try:
            self._settle((True,), 2.0 * WRITE_TIMEOUT)
            self._recall(True, False)
        finally:
            self._free()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _attend(self, timeout: float) -> None:
        """Have libusb hand over what has come back, for `timeout` [s] at most, and see what that is."""
        duration = _Duration(0, round(1e6 * min(timeout, _LOOK)))
        code = self._do.handle_events(self._context, duration, None)
        if code and code != _INTERRUPTED:
            self._came.append(Done(False, _CODES.get(code, errno.EIO), b""))
        with self._sorting:
            while self._back:
                slot = self._slots.get(self._back.popleft())
                if slot is not None:
                    self._sort(slot)

    def _sort(self, slot: _Slot) -> None:
        """Take what became of a transfer, and have it ready, or under way, for the next."""
        self._flying.discard(slot)
        done = slot.outcome()
        if done is not None:
            self._came.append(done)
        if slot.outward:
            self._idle.append(slot)
        elif done is not None and not done.error and self._reading and not self._closed:
            self._read_next(slot)

    def _recall(self, *directions: bool) -> None:
        """Cancel what is under way in these directions (whether outward), and wait until it is back."""
        for slot in list(self._flying):
            if slot.outward in directions:
                self._do.cancel(slot.address)
        self._settle(directions, FAREWELL)

    def _settle(self, directions: tuple[bool, ...], timeout: float) -> None:
        """Wait until nothing is under way in these directions, `timeout` [s] at most."""
        latest = time.perf_counter() + timeout
        while any(slot.outward in directions for slot in list(self._flying)) and time.perf_counter() < latest:
            self._attend(_LOOK)

    def _free(self) -> None:
        with self._sorting:
            self._closed = True
            for slot in self._slots.values():
                if slot in self._flying:
                    _kept.append((slot, self._called))
                else:
                    self._do.free(slot.address)
            self._slots.clear()
            self._idle.clear()
            self._back.clear()


def queues_of_libusb(device: Any) -> Callable[[int, int, int], LibusbQueue]:
    """Return what makes queues of a device that pyusb has opened by libusb.

    Raises
    ------
    NoQueue
        If it has not, or libusb is too old.
    """
    library, context = getattr(device.backend, "lib", None), getattr(device.backend, "ctx", None)
    handle = getattr(getattr(getattr(device, "_ctx", None), "handle", None), "handle", None)
    if library is None or context is None or handle is None:
        raise NoQueue("the device is not reached by libusb 1.0")
    return functools.partial(LibusbQueue, Functions(library), context, handle)
