"""Queues of bulk transfers with libusb's asynchronous functions, which pyusb does not expose.

Many transfers are in flight at once. Libusb reports a completed transfer by a callback. The callback here is the
`append` method of a deque, which runs no Python code: it cannot fail, and no signal handler can run in it. Callbacks
only occur while a thread handles events. A transfer belongs to libusb from `submit` until its completion; transfers
that are not complete when the queue is closed are never freed.

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
from typing import Any, NamedTuple

PACKET = 64
"""Maximum length of a packet [byte]."""

WRITE_TIMEOUT = 0.04
"""Timeout of a packet out [s]."""

AHEAD = 8
"""Number of transfers in that are in flight at any time: more than the replies of a round."""


class NoQueue(Exception):
    """A queue is not available, with the reason."""


class Done(NamedTuple):
    """Completed transfer: one in with its data, or one that failed.

    Direction (True for outward), system error number (0 on success), and received data.
    """

    outward: bool
    error: int
    data: bytes


MOST = 64
"""Maximum number of packets waiting to be sent: several rounds."""

CANCEL_TIMEOUT = 0.5
"""Timeout for the completion of cancelled transfers [s]."""

_BULK = 2
_COMPLETED, _CANCELLED = 0, 3
# System error number by transfer status.
_STATES = {1: errno.EIO, 2: errno.ETIMEDOUT, 4: errno.EPIPE, 5: errno.ENODEV, 6: errno.EOVERFLOW}

_INTERRUPTED = -10
# System error number by return code of libusb; others become an input/output error.
_CODES = {-2: errno.EINVAL, -3: errno.EACCES, -4: errno.ENODEV, -6: errno.EBUSY, -9: errno.EPIPE, -11: errno.ENOMEM}

_POLL = 0.02
_PROTOTYPE = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)  # calling convention of libusb on this system
_CALLBACK = _PROTOTYPE(None, ctypes.c_void_p)

_abandoned: list[Any] = []  # transfers that were not complete when their queue was closed


class _Transfer(ctypes.Structure):
    _fields_ = tuple(
        (name, kind)
        for kind, names in (
            (ctypes.c_void_p, "handle"),
            (ctypes.c_uint8, "flags endpoint type"),
            (ctypes.c_uint, "timeout"),
            (ctypes.c_int, "status length actual_length"),
            (ctypes.c_void_p, "callback user_data buffer"),
            (ctypes.c_int, "iso_packets"),
        )
        for name in names.split()
    )


class _Duration(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("microseconds", ctypes.c_long))


class Functions:
    """Functions of libusb that a queue needs; pyusb's own declarations are unchanged.

    Parameters
    ----------
    library : ctypes.CDLL
        Libusb.

    Raises
    ------
    NoQueue
        If a function is missing.
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
    """Reusable transfer with its buffer."""

    __slots__ = ("address", "buffer", "outward", "transfer")

    def __init__(self, address: int, handle: Any, endpoint: int, called: Any, outward: bool) -> None:
        self.address, self.outward = address, outward
        self.buffer = ctypes.create_string_buffer(PACKET)
        self.transfer = _Transfer.from_address(address)
        self.transfer.handle, self.transfer.endpoint, self.transfer.type = handle, endpoint, _BULK
        self.transfer.timeout = round(WRITE_TIMEOUT * 1e3) if outward else 0
        self.transfer.buffer, self.transfer.length = ctypes.addressof(self.buffer), PACKET
        self.transfer.callback = ctypes.cast(called, ctypes.c_void_p)

    def result(self) -> Done | None:
        """Return the result of the transfer, None if it needs no report."""
        transfer = self.transfer
        if transfer.status == _CANCELLED:
            return None
        if transfer.status != _COMPLETED:
            return Done(self.outward, _STATES.get(transfer.status, errno.EIO), b"")
        if self.outward:
            return None if transfer.actual_length == transfer.length else Done(True, errno.EIO, b"")
        return Done(False, 0, self.buffer.raw[: transfer.actual_length])


class LibusbQueue:
    """Queue of two bulk endpoints, with many transfers in flight at once; must be closed before the device.

    One thread may submit while another waits.

    Parameters
    ----------
    functions : Functions
        Functions of libusb.
    context, handle : int
        Addresses of libusb's context and of the open device.
    interface, out, inward : int
        Number of the claimed interface, and its endpoints out and in.
    """

    def __init__(self, functions: Functions, context: Any, handle: Any, interface: int, out: int, inward: int) -> None:
        self._functions, self._context = functions, context
        self._completed: deque[int] = deque()  # completed transfers that were not processed yet, in order
        self._callback = _CALLBACK(self._completed.append)
        self._results: deque[Done] = deque()
        self._pending: set[_Slot] = set()
        self._lock = threading.Lock()
        self._slots: dict[int, _Slot] = {}
        self._reading = True
        self._closed = False
        for endpoint in (*MOST * (out,), *AHEAD * (inward,)):
            address = functions.allocate(0)
            if not address:
                self._free()
                raise NoQueue("there is no memory for transfers")
            self._slots[address] = _Slot(address, handle, endpoint, self._callback, endpoint == out)
        self._idle = deque(slot for slot in self._slots.values() if slot.outward)
        self._submit_reads()

    def _submit(self, slot: _Slot) -> int:
        """Submit a transfer; return the system error number, 0 on success.

        The failure of a transfer in also becomes a result.
        """
        self._pending.add(slot)
        code = self._functions.submit(slot.address)
        if not code:
            return 0
        self._pending.discard(slot)
        number = _CODES.get(code, errno.EIO)
        if not slot.outward:
            self._results.append(Done(False, number, b""))
        return number

    def _submit_reads(self) -> None:
        """Submit all idle transfers in."""
        for slot in list(self._slots.values()):
            if not slot.outward and slot not in self._pending:
                self._submit(slot)

    # --- for pipes ---------------------------------------------------------------------------------------------------

    def submit(self, *data: bytes) -> None:
        """Append packets to the queue; raise `OSError` on failure.

        If too many are waiting, wait for one of them for at most the timeout of a packet.
        """
        for packet in data:
            latest = time.perf_counter() + WRITE_TIMEOUT
            while not self._idle:
                if self._closed or time.perf_counter() > latest:
                    raise OSError(errno.ETIMEDOUT, "too many packets wait")
                self._handle_events(WRITE_TIMEOUT / 4)
            slot = self._idle.popleft()
            ctypes.memmove(slot.buffer, packet, len(packet))
            slot.transfer.length = len(packet)
            if number := self._submit(slot):
                self._idle.append(slot)
                raise OSError(number, "a packet was not taken")

    def wait(self, timeout: float) -> Done | None:
        """Return received data, or a failure in either direction; None after `timeout` [s]."""
        latest = time.perf_counter() + timeout
        while not self._results:
            left = latest - time.perf_counter()
            if left <= 0.0 or self._closed:
                return None
            self._handle_events(left)
        return self._results.popleft()

    def restart(self, outward: bool, clear: Callable[[], None]) -> None:
        """Cancel the transfers in this direction, clear the endpoint and restart.

        Packets that have not been sent are lost.
        """
        self._reading = outward
        try:
            self._recall(outward)
            clear()
            kept = [done for done in self._results if done.outward != outward or done.error != errno.EPIPE]
            self._results.clear()
            self._results.extend(kept)
        finally:
            self._reading = True
        self._submit_reads()

    def close(self) -> None:
        """Send the submitted packets within their timeout, then cancel and free all transfers."""
        if self._closed:
            return
        self._closed = True
        try:
            self._settle((True,), 2.0 * WRITE_TIMEOUT)
            self._recall(True, False)
        finally:
            self._free()

    # --- private -----------------------------------------------------------------------------------------------------

    def _handle_events(self, timeout: float) -> None:
        """Handle libusb's events for at most `timeout` [s], and process the completed transfers."""
        duration = _Duration(0, round(1e6 * min(timeout, _POLL)))
        code = self._functions.handle_events(self._context, duration, None)
        if code and code != _INTERRUPTED:
            self._results.append(Done(False, _CODES.get(code, errno.EIO), b""))
        with self._lock:
            while self._completed:
                slot = self._slots.get(self._completed.popleft())
                if slot is None:
                    continue
                self._pending.discard(slot)
                done = slot.result()
                if done is not None:
                    self._results.append(done)
                if slot.outward:
                    self._idle.append(slot)
                elif done is not None and not done.error and self._reading and not self._closed:
                    self._submit(slot)

    def _recall(self, *directions: bool) -> None:
        """Cancel the transfers in these directions (True for outward), and wait for their completion."""
        for slot in list(self._pending):
            if slot.outward in directions:
                self._functions.cancel(slot.address)
        self._settle(directions, CANCEL_TIMEOUT)

    def _settle(self, directions: tuple[bool, ...], timeout: float) -> None:
        """Wait until no transfer in these directions is in flight, at most `timeout` [s]."""
        latest = time.perf_counter() + timeout
        while any(slot.outward in directions for slot in list(self._pending)) and time.perf_counter() < latest:
            self._handle_events(_POLL)

    def _free(self) -> None:
        with self._lock:
            self._closed = True
            for slot in self._slots.values():
                if slot in self._pending:
                    _abandoned.append((slot, self._callback))
                else:
                    self._functions.free(slot.address)
            self._slots.clear()
            self._idle.clear()
            self._completed.clear()


def queues_of_libusb(device: Any) -> Callable[[int, int, int], LibusbQueue]:
    """Return a function that makes queues for a device that pyusb has opened with libusb.

    Raises
    ------
    NoQueue
        If the device uses another backend, or libusb is too old.
    """
    library, context = getattr(device.backend, "lib", None), getattr(device.backend, "ctx", None)
    handle = getattr(getattr(getattr(device, "_ctx", None), "handle", None), "handle", None)
    if library is None or context is None or handle is None:
        raise NoQueue("the device is not reached by libusb 1.0")
    return functools.partial(LibusbQueue, Functions(library), context, handle)
