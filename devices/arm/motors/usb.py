"""ODrive on USB: discovery, its native interface and its serial port. Only interfaces in use are claimed.

With one transfer at a time, a round of the native protocol takes one transfer time per packet. With a queue
(`devices.common.usb_queue`) many are in flight at once, and a round takes a single round trip. `Pipes.write` does not
wait then until a packet is sent; a later `Pipes.read` reports a failure.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import time
from collections.abc import Callable
from typing import Any

from devices.arm import ODRIVES
from devices.common import bus
from devices.common.bus import TransferError, Trouble, identity_of
from devices.common.usb_queue import PACKET, WRITE_TIMEOUT, NoQueue, queues_of_libusb
from haptics.errors import DeviceNotFoundError, DeviceOpenError

AGAIN = "switch its supply off and on, start again"
"""Remedy for a drive that does not respond properly."""

_RETURN, _POLL = 2.0, 0.02  # timeout and polling interval for a drive that leaves the bus when it is reset [s]

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
        Makes a queue (`devices.common.usb_queue.LibusbQueue`) from the number of the interface and its endpoints
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
            reason = bus.not_permitted("drive", identity, node)
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
