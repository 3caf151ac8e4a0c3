"""Emulated USB bus for pyusb: devices, descriptors, clocks, and a backend with the rules of Linux.

An interface belongs to the kernel's driver until that is detached, it must be claimed, and a control transfer waits for
its frame. Several threads may read and write concurrently. The backends of single devices add their transfers:
`devices.emulators.pid.stick` interrupt transfers, `BulkBackend` bulk transfers.
"""

from __future__ import annotations

import array
import contextlib
import errno
import itertools
import math
import os
import struct
import threading
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn

import usb.backend
import usb.core

from devices.emulators.wire_faults import WireFaults

FRAME = 1e-3
"""Length of a frame [s]."""

ROUNDING = 1e-6
"""Tolerance within which a time belongs to the next frame or control iteration [frame]."""

NAK_PAUSE = 1e-3
"""Maximum interval between retries of a transfer for which the device is not ready [s]."""

DEVICE, CONFIGURATION, STRING, INTERFACE, ENDPOINT, HID, REPORT = 0x01, 0x02, 0x03, 0x04, 0x05, 0x21, 0x22
"""Types of descriptors."""

IN, GET_DESCRIPTOR = 0x80, 0x06
"""Direction bit of endpoints and request types, and the request for a descriptor."""

DEVICE_FORM, CONFIGURATION_FORM = "<BBHBBBBHHHBBBB", "<BBHBBBBB"
"""Formats of the descriptors of device and configuration."""

_FULL_SPEED = 2
"""Number of this speed in libusb."""

_FIELDS = {
    DEVICE: (
        DEVICE_FORM,
        "bLength bDescriptorType bcdUSB bDeviceClass bDeviceSubClass bDeviceProtocol bMaxPacketSize0 idVendor "
        "idProduct bcdDevice iManufacturer iProduct iSerialNumber bNumConfigurations",
    ),
    CONFIGURATION: (
        CONFIGURATION_FORM,
        "bLength bDescriptorType wTotalLength bNumInterfaces bConfigurationValue iConfiguration bmAttributes bMaxPower",
    ),
    INTERFACE: (
        "9B",
        "bLength bDescriptorType bInterfaceNumber bAlternateSetting bNumEndpoints bInterfaceClass bInterfaceSubClass "
        "bInterfaceProtocol iInterface",
    ),
    ENDPOINT: ("<BBBBHB", "bLength bDescriptorType bEndpointAddress bmAttributes wMaxPacketSize bInterval"),
}
"""Formats of descriptors, and the names of their fields."""

_ERRORS = "EIO EINVAL EACCES ENODEV ENOENT EBUSY ETIMEDOUT EOVERFLOW EPIPE".split()
_CODES = {getattr(errno, name): -1 - index for index, name in enumerate(_ERRORS)} | {errno.ENODATA: -5}
"""Error code of libusb by system error number."""

_addresses = itertools.count(2)


class Stall(Exception):
    """The device refuses a request."""


def fail(number: int) -> NoReturn:
    """Raise the error of pyusb for a system error number."""
    kind = usb.core.USBTimeoutError if number == errno.ETIMEDOUT else usb.core.USBError
    raise kind(os.strerror(number), _CODES[number], number)


def fill(buffer: array.array[int], data: bytes) -> int:
    """Copy data into a buffer and return their length; raise `EOVERFLOW` if the buffer is too small."""
    if len(data) > len(buffer):
        fail(errno.EOVERFLOW)
    buffer[: len(data)] = array.array("B", data)
    return len(data)


# --- clocks ----------------------------------------------------------------------------------------------------------


class WallTime:
    """System's monotonic clock, shared by all processes."""

    def now(self) -> float:
        """Return the time [s]."""
        return time.monotonic()

    def wait_until(self, instant: float) -> None:
        """Sleep until `instant` [s]."""
        remaining = instant - time.monotonic()
        if remaining > 0.0:
            time.sleep(remaining)


class FreeTime(WallTime):
    """Simulated time, which advances immediately when a thread waits: as fast as possible."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0.0

    def now(self) -> float:
        """Return the time [s]."""
        with self._lock:
            return self._now

    def wait_until(self, instant: float) -> None:
        """Advance the time to `instant` [s], unless it is already later."""
        with self._lock:
            self._now = max(self._now, instant)


# --- devices ---------------------------------------------------------------------------------------------------------


class UsbFirmware:
    """Part of a device that serves endpoint 0.

    Attributes
    ----------
    device_descriptor, configuration_descriptor : bytes
        Descriptors.
    strings : sequence of str
        String descriptors, from number 1 on.
    """

    device_descriptor: bytes
    configuration_descriptor: bytes
    strings: Sequence[str]

    def string(self, number: int) -> bytes:
        """Return a string descriptor, or the languages (English) for number 0."""
        if number > len(self.strings):
            raise Stall
        data = self.strings[number - 1].encode("utf-16-le") if number else b"\x09\x04"
        return struct.pack("<BB", 2 + len(data), STRING) + data

    @abstractmethod
    def control(self, request_type: int, request: int, value: int, index: int, data_or_length: bytes | int) -> bytes:
        """Serve a request on endpoint 0.

        Parameters
        ----------
        request_type, request, value, index : int
            Setup packet.
        data_or_length : bytes or int
            Data of a request to the device; maximum length of the reply for a request from the device [byte].

        Returns
        -------
        bytes
            The reply; empty for a request to the device.

        Raises
        ------
        Stall
            If the request is not supported.
        """

    @abstractmethod
    def power_on(self) -> None:
        """Reset, as after plugging in and after a reset of the bus."""


class UsbDevice:
    """Device that can be plugged into the emulated bus and unplugged.

    Time advances on access: before every access, `catch_up` simulates the time since the last one. There is no thread
    here; `lock` is held by the accessing thread.

    Parameters
    ----------
    faults : WireFaults
        Faults of the communication.
    time : WallTime, optional
        Clock; by default real time.

    Attributes
    ----------
    firmware : UsbFirmware
        Part that serves endpoint 0.
    plugged : bool
        Whether it is on the bus.
    address, generation : int
        Address on the bus, and number of times that it has been plugged in; older handles are invalid.
    owners, drivers, halted : dict, set, set
        Handle by claimed interface; interfaces claimed by the kernel; endpoints that are halted.
    origin : float
        Time of creation [s].
    """

    firmware: UsbFirmware

    def __init__(self, faults: WireFaults, time: WallTime | None = None) -> None:
        self.faults = faults
        self.time = time or WallTime()
        self.lock = threading.RLock()
        self.origin = self.time.now()
        self.plugged = False
        self.address = self.generation = 0
        self.owners: dict[int, object] = {}
        self.drivers: set[int] = set()
        self.halted: set[int] = set()

    @property
    def now(self) -> float:
        """Time since creation [s]."""
        return self.time.now() - self.origin

    @abstractmethod
    def catch_up(self) -> frozenset[str]:
        """Simulate the device up to the present; return the names of the active faults."""

    @abstractmethod
    def bind(self, interface: int) -> None:
        """Assign an interface to the kernel's driver."""

    def unbind(self, interface: int) -> None:
        """Release an interface from the kernel's driver."""
        self.drivers.discard(interface)

    def pause(self) -> float:
        """Return the time until a waiting transfer is retried [s]."""
        return NAK_PAUSE

    def deadline(self, timeout: int) -> float:
        """Return the time until which a transfer may last [s]; a timeout of 0 ms means no limit."""
        return self.time.now() + timeout * 1e-3 if timeout else math.inf

    def move(self, address: int | None = None) -> None:
        """Take a new address on the bus, or the given one; open handles become invalid."""
        self.address = next(_addresses) % 127 + 1 if address is None else address
        self.generation += 1


@dataclass(frozen=True, eq=False)
class Device:
    """Device found on the bus; a reconnected device is another one."""

    unit: UsbDevice
    generation: int
    address: int
    tree: SimpleNamespace

    @property
    def connected(self) -> bool:
        """Whether it is still on the bus."""
        return self.unit.plugged and self.unit.generation == self.generation

    def endpoint(self, address: int) -> Any:
        """Return the descriptor of an endpoint; raise `ENOENT` if it does not exist."""
        endpoints = itertools.chain.from_iterable(interface.endpoints for interface in self.tree.interfaces)
        found = next((endpoint for endpoint in endpoints if endpoint.bEndpointAddress == address), None)
        return fail(errno.ENOENT) if found is None else found


@dataclass(eq=False)
class Handle:
    """Open device."""

    device: Device
    unit: Any
    closed: bool = False


# --- descriptors with the field names of the specification, as pyusb requires them ------------------------------------


def _named(kind: int, data: bytes) -> SimpleNamespace:
    form, names = _FIELDS[kind]
    return SimpleNamespace(**dict(zip(names.split(), struct.unpack(form, data), strict=True)), extra_descriptors=b"")


def configuration_tree(data: bytes) -> SimpleNamespace:
    """Return the configuration with its ``interfaces`` and their ``endpoints``.

    Other descriptors are in ``extra_descriptors``.
    """
    tree = node = SimpleNamespace(interfaces=[])
    while data:
        length, kind = data[0], data[1]
        piece, data = data[:length], data[length:]
        if kind == CONFIGURATION:
            node = tree = _named(kind, piece)
            tree.interfaces = []
        elif kind == INTERFACE:
            node = _named(kind, piece)
            node.endpoints = []
            tree.interfaces.append(node)
        elif kind == ENDPOINT:
            endpoint = _named(kind, piece)
            endpoint.bRefresh = endpoint.bSynchAddress = 0
            node.endpoints.append(endpoint)
        else:
            node.extra_descriptors += piece
    return tree


def device_fields(data: bytes, address: int, port: int) -> SimpleNamespace:
    """Return the fields of the device descriptor, with bus address and port; there is no hub."""
    found = _named(DEVICE, data)
    found.bus, found.address, found.speed = 1, address, _FULL_SPEED
    found.port_number, found.port_numbers = port, (port,)
    return found


class DescriptorTrees:
    """Part of a backend for pyusb that returns the configuration of devices with an attribute ``tree``."""

    def get_configuration_descriptor(self, dev: Any, config: int) -> SimpleNamespace:
        """Return the only configuration."""
        tree: SimpleNamespace = [dev.tree][config]
        return tree

    def get_interface_descriptor(self, dev: Any, intf: int, alt: int, config: int) -> Any:
        """Return an interface by its index."""
        return [self.get_configuration_descriptor(dev, config).interfaces[intf]][alt]

    def get_endpoint_descriptor(self, dev: Any, ep: int, intf: int, alt: int, config: int) -> Any:
        """Return an endpoint by its index."""
        return self.get_interface_descriptor(dev, intf, alt, config).endpoints[ep]


# --- backend ---------------------------------------------------------------------------------------------------------


class UsbBackend(DescriptorTrees, usb.backend.IBackend):  # type: ignore[misc]
    """Backend, for the argument ``backend`` of `usb.core.find`.

    Parameters
    ----------
    *units : UsbDevice
        Devices on the bus; the ports are numbered in this order, from 1 on.
    latency : float
        Additional duration of every transfer [s].
    """

    def __init__(self, *units: Any, latency: float = 0.0) -> None:
        super().__init__()
        self.units = units
        self._latency = latency
        self._slots: dict[tuple[int, int], int] = {}

    def port(self, unit: UsbDevice) -> int:
        """Return the number of the port at which a device is plugged in."""
        return self.units.index(unit) + 1

    def enumerate_devices(self) -> Iterator[Device]:
        """Yield the devices that are plugged in."""
        for unit in self.units:
            with unit.lock:
                unit.catch_up()
                if not unit.plugged:
                    continue
                tree = configuration_tree(unit.firmware.configuration_descriptor)
                device = Device(unit, unit.generation, unit.address, tree)
            yield device

    def get_device_descriptor(self, dev: Device) -> SimpleNamespace:
        """Return the device descriptor, with bus address and port."""
        return device_fields(dev.unit.firmware.device_descriptor, dev.address, self.port(dev.unit))

    @contextlib.contextmanager
    def _advanced(self, handle: Handle) -> Iterator[Any]:
        """Hold the lock of an opened device, simulated up to the present, within the block."""
        with handle.unit.lock:
            self.advance(handle)
            yield handle.unit

    # --- opening and claiming ----------------------------------------------------------------------------------------

    def open_device(self, dev: Device) -> Handle:
        """Open a device if it exists and access is permitted."""
        with dev.unit.lock:
            faults = dev.unit.catch_up()
            if not dev.connected:
                fail(errno.ENODEV)
            if "no-permission" in faults:
                fail(errno.EACCES)
        return Handle(dev, dev.unit)

    def close_device(self, dev_handle: Handle) -> None:
        """Close a device and release its interfaces; the kernel's driver is not reattached automatically."""
        with dev_handle.unit.lock:
            dev_handle.closed = True
            owners = dev_handle.unit.owners
            for interface in [number for number, owner in owners.items() if owner is dev_handle]:
                del owners[interface]

    def get_configuration(self, dev_handle: Handle) -> int:
        """Return the number of the configuration."""
        self.advance(dev_handle)
        return int(dev_handle.device.tree.bConfigurationValue)

    def set_configuration(self, dev_handle: Handle, config_value: int) -> None:
        """Set the configuration, which resets the device."""
        with self._advanced(dev_handle) as unit:
            if unit.drivers or unit.owners:
                fail(errno.EBUSY)
            unit.firmware.power_on()

    def is_kernel_driver_active(self, dev_handle: Handle, intf: int) -> bool:
        """Return True if the kernel's driver has claimed the interface."""
        self.advance(dev_handle)
        return intf in dev_handle.unit.drivers

    def detach_kernel_driver(self, dev_handle: Handle, intf: int) -> None:
        """Detach the kernel's driver from the interface."""
        with self._advanced(dev_handle) as unit:
            if intf not in unit.drivers:
                fail(errno.ENOENT)
            unit.unbind(intf)

    def attach_kernel_driver(self, dev_handle: Handle, intf: int) -> None:
        """Attach the kernel's driver to the interface."""
        with self._advanced(dev_handle) as unit:
            if intf in unit.owners or intf in unit.drivers:
                fail(errno.EBUSY)
            unit.bind(intf)

    def claim_interface(self, dev_handle: Handle, intf: int) -> None:
        """Claim the interface for this handle."""
        unit = dev_handle.unit
        with unit.lock:
            faults = self.advance(dev_handle)
            if intf >= dev_handle.device.tree.bNumInterfaces:
                fail(errno.ENOENT)
            if "busy" in faults or intf in unit.drivers or unit.owners.get(intf, dev_handle) is not dev_handle:
                fail(errno.EBUSY)
            unit.owners[intf] = dev_handle

    def release_interface(self, dev_handle: Handle, intf: int) -> None:
        """Release a claimed interface."""
        with self._advanced(dev_handle) as unit:
            if unit.owners.get(intf) is not dev_handle:
                fail(errno.ENOENT)
            del unit.owners[intf]

    def disconnect(self, dev_handle: Handle, intf: int) -> None:
        """Take the interface from the kernel's driver or the process that has it, which pyusb does not offer."""
        with self._advanced(dev_handle) as unit:
            if unit.owners.pop(intf, None) is None and intf not in unit.drivers:
                fail(errno.ENODATA)
            unit.unbind(intf)

    def clear_halt(self, dev_handle: Handle, ep: int) -> None:
        """Clear the halt of an endpoint."""
        with self._advanced(dev_handle) as unit:
            unit.halted.discard(ep)

    def reset_device(self, dev_handle: Handle) -> None:
        """Reset the port, which resets the firmware."""
        with self._advanced(dev_handle) as unit:
            unit.halted.clear()
            unit.firmware.power_on()

    # --- control transfers -------------------------------------------------------------------------------------------

    def ctrl_transfer(
        self,
        dev_handle: Handle,
        bmRequestType: int,
        bRequest: int,
        wValue: int,
        wIndex: int,
        data: array.array[int],
        timeout: int,
    ) -> int:
        """Perform a request on endpoint 0, which takes a frame."""
        deadline = dev_handle.unit.deadline(timeout)
        self.travel(dev_handle)
        given: bytes | int = len(data) if bmRequestType & IN else bytes(data)
        answer = None
        while answer is None:
            self.wait_for_slot(dev_handle, 0, deadline)
            answer = self.try_control(dev_handle, bmRequestType, bRequest, wValue, wIndex, given)
        return fill(data, answer) if bmRequestType & IN else len(data)

    def try_control(
        self, handle: Handle, request_type: int, request: int, value: int, index: int, given: bytes | int
    ) -> bytes | None:
        """Perform a request on endpoint 0 with data or a length; return the reply, None if it is not accepted."""
        with handle.unit.lock:
            faults = self.advance(handle)
            if request_type & 0x1F == 1:
                self._require_claim(handle, index & 0xFF)
            if "nak" in faults:
                return None
            try:
                answer: bytes = handle.unit.firmware.control(request_type, request, value, index, given)
            except Stall:
                fail(errno.EPIPE)
            return answer

    # --- parts of a transfer -----------------------------------------------------------------------------------------

    def advance(self, handle: Handle) -> frozenset[str]:
        """Simulate up to the present; return the active faults, or raise `ENODEV` after an unplug."""
        with handle.unit.lock:
            faults: frozenset[str] = handle.unit.catch_up()
            if handle.closed or not handle.device.connected:
                fail(errno.ENODEV)
            return faults

    def _require_claim(self, handle: Handle, interface: int) -> None:
        if interface in handle.unit.drivers:
            fail(errno.EBUSY)
        if handle.unit.owners.get(interface) is not handle:
            fail(errno.EINVAL)

    def ready_for(self, handle: Handle, endpoint: int, interface: int) -> frozenset[str]:
        """Return the active faults; raise an error if a transfer on the endpoint is not possible."""
        faults = self.advance(handle)
        self._require_claim(handle, interface)
        if "stall" in faults:
            handle.unit.halted.add(endpoint)
        if endpoint in handle.unit.halted:
            fail(errno.EPIPE)
        return faults

    def wait_for_slot(self, handle: Handle, endpoint: int, deadline: float) -> None:
        """Wait for the next frame in which the bus serves `endpoint`; transfers never share a frame."""
        unit = handle.unit
        interval = handle.device.endpoint(endpoint).bInterval if endpoint else 1
        with unit.lock:
            self.advance(handle)
            place = self.port(unit), endpoint
            earliest = max(math.floor(unit.now / FRAME + ROUNDING), self._slots.get(place, 0)) + 1
            slot = -(-earliest // interval) * interval
            instant = unit.origin + slot * FRAME
            if instant <= deadline:
                self._slots[place] = slot
        unit.time.wait_until(min(instant, deadline))
        if instant > deadline:
            self.advance(handle)
            fail(errno.ETIMEDOUT)

    def delay(self, handle: Handle) -> float:
        """Return the present additional duration of a transfer [s]."""
        return float(handle.unit.faults.delay(handle.unit.now)) + self._latency

    def travel(self, handle: Handle) -> None:
        """Wait for the additional duration of a transfer."""
        delay, time = self.delay(handle), handle.unit.time
        if delay > 0.0:
            time.wait_until(time.now() + delay)


class BulkBackend(UsbBackend):
    """Backend with bulk transfers, which do not wait for a frame.

    Its devices have a condition ``changed`` with the lock of the device, notified after every packet, and a function
    ``pipe`` that returns the pair of endpoints to which an endpoint belongs: ``out(packet, faults)`` returns False if
    the packet is not accepted, and ``poll_in()`` returns the pending packet or None.
    """

    def bulk_write(self, dev_handle: Handle, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
        """Write a packet as soon as the device accepts it."""
        board, payload = dev_handle.unit, bytes(data)
        self.travel(dev_handle)
        latest = board.deadline(timeout)
        with board.changed:
            while not self.try_out(dev_handle, ep, intf, payload):
                self._wait(board, latest)
        return len(payload)

    def bulk_read(self, dev_handle: Handle, ep: int, intf: int, buff: array.array[int], timeout: int) -> int:
        """Read a packet as soon as the device has one."""
        board = dev_handle.unit
        latest = board.deadline(timeout)
        with board.changed:
            while (answer := self.try_in(dev_handle, ep, intf)) is None:
                self._wait(board, latest)
        self.travel(dev_handle)
        return fill(buff, answer)

    # --- non-blocking transfers --------------------------------------------------------------------------------------

    def try_out(self, handle: Handle, endpoint: int, interface: int, packet: bytes) -> bool:
        """Write a packet; return False if the device does not accept it at present."""
        board = handle.unit
        with board.changed:
            faults = self.ready_for(handle, endpoint, interface)
            if "write-error" in faults:
                fail(errno.EIO)
            if "nak" in faults or not board.pipe(endpoint).out(packet, faults):
                return False
            board.changed.notify_all()
            return True

    def try_in(self, handle: Handle, endpoint: int, interface: int) -> bytes | None:
        """Return the pending packet, None if there is no packet."""
        board = handle.unit
        with board.changed:
            faults = self.ready_for(handle, endpoint, interface)
            if "read-error" in faults:
                fail(errno.EIO)
            packet: bytes | None = None if "nak" in faults else board.pipe(endpoint).poll_in()
            if packet is not None:
                board.changed.notify_all()
            return packet

    def _wait(self, board: Any, latest: float) -> None:
        """Wait for a change, with the lock released; raise a timeout after `latest`."""
        remaining = latest - board.time.now()
        if remaining <= 0.0:
            fail(errno.ETIMEDOUT)
        pause = min(remaining, board.pause())
        if isinstance(board.time, FreeTime):
            board.time.wait_until(board.time.now() + pause)
        else:
            board.changed.wait(pause)
