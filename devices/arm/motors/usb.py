"""ODrive on USB: discovery, its native interface and its serial port. Only interfaces in use are claimed.

With one transfer at a time, a round of the native protocol takes one transfer time per packet. With a queue
(`LibusbQueue`) many are in flight at once, and a round takes a single round trip. `Pipes.write` does not wait then
until a packet is sent; a later `Pipes.read` reports a failure.

The queue uses libusb's asynchronous functions, which pyusb does not expose. Libusb reports a completed transfer by a
callback. The callback here is the `append` method of a deque, which runs no Python code: it cannot fail, and no signal
handler can run in it. Callbacks only occur while a thread handles events. A transfer belongs to libusb from `submit`
until its completion; transfers that are not complete when the queue is closed are never freed.

Source: libusb 1.0, API reference, "Asynchronous device I/O" and struct libusb_transfer (libusb.h).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from devices.arm import ODRIVES
from devices.common import bus
from devices.common.bus import TransferError, Trouble, identity_of
from haptics.errors import DeviceNotFoundError, DeviceOpenError

# --- transfers in flight ----------------------------------------------------------------------------------------------

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


AGAIN = "switch its supply off and on, start again"
"""Remedy for a drive that does not respond properly."""

_RETURN = 2.0  # timeout for a drive that leaves the bus when it is reset [s]

_PACKET_OUT, _PACKET_IN = "a packet", "an answer"  # names of the data in each direction, for messages

_NATIVE = (0x00, 0x01)  # class and subclass of the native interface

_CONTROL, _DATA = 0x02, 0x0A  # classes of the two interfaces of a serial port

_IN = 0x80
_DRAIN = 5e-3
_MOST_STALE = 64


# --- pipes ------------------------------------------------------------------------------------------------------------


class Unsent(TransferError):
    """A queued packet was not sent, which is detected after `write` has returned."""


class Pipes:
    """The two pipes of an interface of an open drive, with one transfer at a time in each.

    One thread may write while another reads.

    Parameters
    ----------
    device : usb.core.Device
        The device.
    interface : usb.core.Interface
        An interface of it, claimed.
    taken : list of int, optional
        Interfaces detached from a kernel driver, to which they are returned on closing, while the device stays open; by
        default the device is closed with the pipes.

    Attributes
    ----------
    device : usb.core.Device
        The device.
    serial : str
        Its serial number.
    transfers : str
        Description of the transfer mode.
    """

    transfers = "one at a time"

    def __init__(self, device: Any, interface: Any, taken: list[int] | None = None) -> None:
        self.serial: str = bus.usb_string(device, device.iSerialNumber)
        self.device, self._number, self._taken = device, interface.bInterfaceNumber, taken
        self._out, self._in = (
            next(e.bEndpointAddress for e in interface if e.bEndpointAddress & _IN == direction)
            for direction in (0, _IN)
        )

    def write(self, *data: bytes) -> None:
        """Send packets in order; raise `TransferError` on failure."""
        for packet in data:
            transfer = functools.partial(self.device.write, self._out, packet, round(WRITE_TIMEOUT * 1e3))
            try:
                bus.retry_after_stall(self.device, self._out, transfer)
            except OSError as error:
                raise _failure(error, _PACKET_OUT) from error

    def read(self, timeout: float) -> bytes | None:
        """Return the next packet, None after `timeout` [s]; raise `TransferError` on failure."""
        transfer = functools.partial(self.device.read, self._in, PACKET, max(round(timeout * 1e3), 1))
        try:
            return bytes(bus.retry_after_stall(self.device, self._in, transfer))
        except OSError as error:
            if bus.trouble_of(error) is Trouble.TIMEOUT:
                return None
            raise _failure(error, _PACKET_IN) from error

    def drain(self) -> None:
        """Read the packets that an earlier run has left in the drive."""
        for _ in range(_MOST_STALE):
            if self.read(_DRAIN) is None:
                return

    def close(self) -> None:
        """Release the interface."""
        import usb.util

        with contextlib.suppress(OSError):
            usb.util.release_interface(self.device, self._number)
        if self._taken is not None:
            _attach(self.device, self._taken)
            return
        with contextlib.suppress(OSError):
            usb.util.dispose_resources(self.device)


class QueuedPipes(Pipes):
    """Pipes whose packets are queued.

    A stalled pipe is cleared. If it stalls again before data arrive, that is a failure.

    Parameters
    ----------
    device : usb.core.Device
        The device.
    interface : usb.core.Interface
        Its native interface, claimed.
    make : callable
        Makes a queue (`devices.arm.motors.usb.LibusbQueue`) from the number of the interface and its endpoints
        out and in.
    """

    transfers = "queued"

    def __init__(self, device: Any, interface: Any, make: Callable[[int, int, int], Any]) -> None:
        super().__init__(device, interface)
        self._queue = make(self._number, self._out, self._in)
        self._restarted: set[bool] = set()

    def write(self, *data: bytes) -> None:
        """Queue packets to be sent; raise `TransferError` on failure."""
        try:
            self._queue.submit(*data)
        except OSError as error:
            raise _failure(error, _PACKET_OUT) from error

    def read(self, timeout: float) -> bytes | None:
        """Return the next packet, None after `timeout` [s].

        Raises
        ------
        Unsent
            If a packet was not sent.
        TransferError
            If receiving fails.
        """
        done = self._queue.wait(timeout)
        if done is None:
            return None
        if not done.error:
            self._restarted.clear()
            return bytes(done.data)
        address, data = (self._out, _PACKET_OUT) if done.outward else (self._in, _PACKET_IN)
        failure = _failure(OSError(done.error, os.strerror(done.error)), data)
        if failure.trouble is Trouble.STALL and done.outward not in self._restarted:
            self._restarted.add(done.outward)
            try:
                self._queue.restart(done.outward, lambda: self.device.clear_halt(address))
            except OSError as error:
                raise _failure(error, data) from error
            if not done.outward:
                return None
            # other queued packets were lost with it, but the pipe works again
            raise Unsent(str(failure), Trouble.TIMEOUT)
        if done.outward:
            raise Unsent(str(failure), failure.trouble)
        raise failure

    def close(self) -> None:
        """Send the queued packets, and release the interface."""
        try:
            self._queue.close()
        finally:
            super().close()


def open_serial_port(pipes: Pipes) -> Pipes | None:
    """Return the serial port of an open drive, None if it has none or it is not available."""
    import usb.util

    device, taken = pipes.device, list[int]()
    interfaces = device.get_active_configuration()
    ports = {i.bInterfaceNumber: i for i in interfaces if i.bInterfaceClass in {_CONTROL, _DATA}}
    data = next((i for i in ports.values() if i.bInterfaceClass == _DATA), None)
    if data is None:
        return None
    try:
        for number in ports:
            with contextlib.suppress(NotImplementedError):  # not supported on this system
                if device.is_kernel_driver_active(number):
                    device.detach_kernel_driver(number)
                    taken.append(number)
        usb.util.claim_interface(device, data.bInterfaceNumber)
        port = Pipes(device, data, taken)
        port.drain()
        return port
    except (OSError, TransferError, StopIteration):  # held by another program, or malformed
        _attach(device, taken)
        return None


def _attach(device: Any, taken: list[int]) -> None:
    """Return interfaces to their kernel drivers."""
    for number in taken:
        with contextlib.suppress(OSError, NotImplementedError):
            device.attach_kernel_driver(number)


def _failure(error: OSError, data: str) -> TransferError:
    """Return the error for a failed transfer of `data`, with the remedy."""
    trouble = bus.trouble_of(error)
    reason = {
        Trouble.UNPLUGGED: "the drive was unplugged, or lost its power: plug it in, home it and start again",
        Trouble.TIMEOUT: f"the drive did not take {data} in time: {AGAIN}",
        Trouble.STALL: f"the drive refused {data} (stall): {AGAIN}",
        Trouble.BROKEN: f"{data} was lost ({error.strerror or error}): check cable and hub",
    }[trouble]
    return TransferError(f"{reason}.", trouble)


# --- discovery --------------------------------------------------------------------------------------------------------


def open_drive(serial: str = "", backend: Any = None) -> Pipes:
    """Open the selected drive, with its pipes cleared of data from an earlier run.

    Parameters
    ----------
    serial : str
        Serial number of the drive; empty if there is only one.
    backend : usb.backend.IBackend, optional
        Backend instead of libusb.

    Raises
    ------
    DeviceNotFoundError
        If the drive is not found.
    DeviceOpenError
        If several drives match, or it cannot be opened; the message contains the remedy.
    """
    import usb.core

    reached = backend if backend is not None else bus.libusb_backend()
    device = _find(serial, reached)
    try:
        return _open(_reset(device, lambda: _find(serial, reached)))
    except usb.core.USBError as error:
        identity, node = identity_of(device), bus.node_of(device)
        reason = str(_failure(error, "opening"))
        if error.errno in bus.DENIED:
            reason = bus.not_permitted("drive", identity, node, [bus.Node.USB])
        elif error.errno == errno.EBUSY:
            reason = (
                f"the drive {identity} is held by another program: another run, or the maker's tool. See which one "
                f"with: fuser -v {node}; end it and start again."
            )
        raise DeviceOpenError(reason) from error
    except TransferError as error:
        raise DeviceOpenError(str(error)) from error


def _find(serial: str, backend: Any) -> Any:
    """Return the selected drive; see `open_drive`."""
    import usb.core
    import usb.util

    matches = usb.core.find(find_all=True, backend=backend, custom_match=lambda own: identity_of(own) in ODRIVES)
    found = list(matches)
    if not serial and len(found) == 1:
        return found[0]
    names = {bus.usb_string(device, device.iSerialNumber): device for device in found}
    for device in found:
        usb.util.dispose_resources(device)
    if not names:
        raise DeviceNotFoundError("no ODrive is plugged in: plug one in, switch its supply on and start again.")
    if not serial:
        raise DeviceOpenError(
            f"{len(found)} drives are plugged in: {', '.join(sorted(names))}. Choose one with device.motors.serial."
        )
    for name, device in names.items():
        if name.upper() == serial.upper():
            return device
    raise DeviceNotFoundError(
        f"no ODrive with serial number {serial} is plugged in; there is {', '.join(sorted(names))}."
    )


def _reset(device: Any, find_again: Callable[[], Any]) -> Any:
    """Reset the port, because packets may remain in it that no read returns, and return the device.

    The device may be a new one if it left the bus.
    """
    import usb.core
    import usb.util

    try:
        device.reset()
        return device
    except usb.core.USBError as error:
        if bus.trouble_of(error) is not Trouble.UNPLUGGED:
            usb.util.dispose_resources(device)
            raise
    usb.util.dispose_resources(device)
    latest = time.monotonic() + _RETURN
    while True:
        time.sleep(_POLL)
        try:
            return find_again()
        except DeviceNotFoundError as error:
            if time.monotonic() > latest:
                raise DeviceOpenError(
                    f"the drive {identity_of(device)} was reset and did not come back: {AGAIN}."
                ) from error


def _open(device: Any) -> Pipes:
    """Claim the native interface; return queued pipes if available, else plain pipes with the reason."""
    import usb.util

    try:
        for interface in bus.active_configuration(device):
            if (interface.bInterfaceClass, interface.bInterfaceSubClass) != _NATIVE:
                continue
            usb.util.claim_interface(device, interface.bInterfaceNumber)
            try:
                queues_of = getattr(device.backend, "queues_of", queues_of_libusb)  # an emulator has its own queues
                pipes: Pipes = QueuedPipes(device, interface, queues_of(device))
            except NoQueue as reason:
                pipes = Pipes(device, interface)
                pipes.transfers = f"{Pipes.transfers}: {reason}"
            try:
                pipes.drain()
            except BaseException:
                pipes.close()
                raise
            return pipes
    except BaseException:
        usb.util.dispose_resources(device)
        raise
    usb.util.dispose_resources(device)
    raise DeviceOpenError(f"the device {identity_of(device)} has no native interface: is its firmware ODrive's 0.5?")
