"""A backend for pyusb behind which there are emulated sticks instead of a bus.

It has the manners of Linux: an interface belongs to the kernel's driver until that is detached, it must be claimed, and
every transfer waits for its frame. Reading and writing may go on at once in several threads.
"""

from __future__ import annotations

import array
import errno
import math
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

import usb.backend
import usb.core

from devices.emulators.pid.descriptor_tree import configuration_tree, device_fields
from devices.emulators.pid.firmware import Stall
from devices.emulators.pid.plant import FRAME
from devices.emulators.pid.stick import EmulatedStick

_CODES = {
    errno.EIO: -1,
    errno.EINVAL: -2,
    errno.EACCES: -3,
    errno.ENODEV: -4,
    errno.ENOENT: -5,
    errno.EBUSY: -6,
    errno.ETIMEDOUT: -7,
    errno.EOVERFLOW: -8,
    errno.EPIPE: -9,
}
"""Error number of the system to the code of libusb."""

_FULL_SPEED = 2
_IN = 0x80
_ROUNDING = 1e-6


def fail(number: int) -> NoReturn:
    """Raise the error of pyusb with this number of the system's."""
    kind = usb.core.USBTimeoutError if number == errno.ETIMEDOUT else usb.core.USBError
    raise kind(os.strerror(number), _CODES[number], number)


class _Device:
    """A stick as it was found on the bus; it is another device once it has been away."""

    def __init__(self, stick: EmulatedStick) -> None:
        self.stick, self.generation, self.address = stick, stick.generation, stick.address
        self.tree = configuration_tree(stick.firmware.configuration_descriptor)

    @property
    def there(self) -> bool:
        return self.stick.plugged and self.stick.generation == self.generation


class _Handle:
    """An opened device."""

    def __init__(self, device: _Device) -> None:
        self.device, self.stick = device, device.stick
        self.closed = False


class EmulatedUsbBackend(usb.backend.IBackend):  # type: ignore[misc]
    """What `usb.core.find` takes as ``backend``.

    Parameters
    ----------
    *sticks : EmulatedStick
        What is on the bus.

    Attributes
    ----------
    sticks : tuple of EmulatedStick
        The same.
    """

    def __init__(self, *sticks: EmulatedStick) -> None:
        super().__init__()
        self.sticks = sticks
        self._slots: dict[tuple[int, int], int] = {}

    # --- descriptors -------------------------------------------------------------------------------------------------

    def enumerate_devices(self) -> Iterator[_Device]:
        """Yield the sticks that are plugged in."""
        for stick in self.sticks:
            with stick.lock:
                stick.catch_up()
                device = _Device(stick) if stick.plugged else None
            if device is not None:
                yield device

    def get_parent(self, dev: _Device) -> None:
        """There is no hub."""

    def get_device_descriptor(self, dev: _Device) -> SimpleNamespace:
        """Return the device descriptor, and where the device is."""
        found = device_fields(dev.stick.firmware.device_descriptor)
        port = self.sticks.index(dev.stick) + 1
        found.bus, found.address, found.speed = 1, dev.address, _FULL_SPEED
        found.port_number, found.port_numbers = port, (port,)
        return found

    def get_configuration_descriptor(self, dev: _Device, config: int) -> SimpleNamespace:
        """Return the only configuration."""
        return [dev.tree][config]

    def get_interface_descriptor(self, dev: _Device, intf: int, alt: int, config: int) -> SimpleNamespace:
        """Return an interface by its place."""
        interfaces: list[SimpleNamespace] = self.get_configuration_descriptor(dev, config).interfaces
        return [interfaces[intf]][alt]

    def get_endpoint_descriptor(self, dev: _Device, ep: int, intf: int, alt: int, config: int) -> SimpleNamespace:
        """Return an endpoint by its place."""
        endpoints: list[SimpleNamespace] = self.get_interface_descriptor(dev, intf, alt, config).endpoints
        return endpoints[ep]

    # --- opening and claiming ----------------------------------------------------------------------------------------

    def open_device(self, dev: _Device) -> _Handle:
        """Open a device that is there and may be opened."""
        with dev.stick.lock:
            faults = dev.stick.catch_up()
            if not dev.there:
                fail(errno.ENODEV)
            if "no-permission" in faults:
                fail(errno.EACCES)
        return _Handle(dev)

    def close_device(self, dev_handle: _Handle) -> None:
        """Close it; what was claimed is free, but the kernel's driver does not come back by itself."""
        with dev_handle.stick.lock:
            dev_handle.closed = True
            owners = dev_handle.stick.owners
            for interface in [number for number, owner in owners.items() if owner is dev_handle]:
                del owners[interface]

    def get_configuration(self, dev_handle: _Handle) -> int:
        """Return the number of the configuration."""
        self._look(dev_handle)
        return int(dev_handle.device.tree.bConfigurationValue)

    def set_configuration(self, dev_handle: _Handle, config_value: int) -> None:
        """Choose the configuration again, which to the device is a reset."""
        with dev_handle.stick.lock:
            self._look(dev_handle)
            if dev_handle.stick.drivers or dev_handle.stick.owners:
                fail(errno.EBUSY)
            dev_handle.stick.firmware.power_on()

    def set_interface_altsetting(self, dev_handle: _Handle, intf: int, altsetting: int) -> None:
        """There is only setting 0."""
        self._look(dev_handle)
        if altsetting:
            fail(errno.ENOENT)

    def is_kernel_driver_active(self, dev_handle: _Handle, intf: int) -> bool:
        """Tell whether the kernel holds the interface."""
        self._look(dev_handle)
        return intf in dev_handle.stick.drivers

    def detach_kernel_driver(self, dev_handle: _Handle, intf: int) -> None:
        """Take the interface from the kernel."""
        with dev_handle.stick.lock:
            self._look(dev_handle)
            if intf not in dev_handle.stick.drivers:
                fail(errno.ENOENT)
            dev_handle.stick.drivers.discard(intf)

    def attach_kernel_driver(self, dev_handle: _Handle, intf: int) -> None:
        """Give the interface back to the kernel."""
        with dev_handle.stick.lock:
            self._look(dev_handle)
            if intf in dev_handle.stick.owners or intf in dev_handle.stick.drivers:
                fail(errno.EBUSY)
            dev_handle.stick.bind(intf)

    def claim_interface(self, dev_handle: _Handle, intf: int) -> None:
        """Claim the interface for this handle."""
        stick = dev_handle.stick
        with stick.lock:
            faults = self._look(dev_handle)
            if intf > stick.profile.interface:
                fail(errno.ENOENT)
            if "busy" in faults or intf in stick.drivers or stick.owners.get(intf, dev_handle) is not dev_handle:
                fail(errno.EBUSY)
            stick.owners[intf] = dev_handle

    def release_interface(self, dev_handle: _Handle, intf: int) -> None:
        """Give up what was claimed."""
        with dev_handle.stick.lock:
            self._look(dev_handle)
            if dev_handle.stick.owners.get(intf) is not dev_handle:
                fail(errno.ENOENT)
            del dev_handle.stick.owners[intf]

    def clear_halt(self, dev_handle: _Handle, ep: int) -> None:
        """Set an endpoint going again."""
        with dev_handle.stick.lock:
            self._look(dev_handle)
            dev_handle.stick.halted.discard(ep)

    def reset_device(self, dev_handle: _Handle) -> None:
        """Reset the port: the firmware begins anew."""
        with dev_handle.stick.lock:
            self._look(dev_handle)
            dev_handle.stick.halted.clear()
            dev_handle.stick.firmware.power_on()

    # --- transfers ---------------------------------------------------------------------------------------------------

    def intr_read(self, dev_handle: _Handle, ep: int, intf: int, buff: array.array[int], timeout: int) -> int:
        """Read one packet; raises a timeout if the device has none."""
        stick, deadline = dev_handle.stick, _deadline(dev_handle, timeout)
        while True:
            self._wait_for_slot(dev_handle, ep, deadline)
            with stick.lock:
                faults = self._ready_for(dev_handle, ep, intf)
                if "read-error" in faults:
                    fail(errno.EIO)
                silent = not faults.isdisjoint({"nak", "dropout"})
                report = None if silent else stick.firmware.poll_in(ep)
            if report is not None:
                break
        self._travel(dev_handle)
        if "short" in faults:
            report = report[: len(report) // 2]
        if len(report) > len(buff):
            fail(errno.EOVERFLOW)
        buff[: len(report)] = array.array("B", report)
        return len(report)

    def intr_write(self, dev_handle: _Handle, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
        """Write, in packets of the endpoint's size."""
        stick, deadline = dev_handle.stick, _deadline(dev_handle, timeout)
        self._travel(dev_handle)
        payload, size = bytes(data), _endpoint(dev_handle.device, ep).wMaxPacketSize
        for start in range(0, max(len(payload), 1), size):
            while True:
                self._wait_for_slot(dev_handle, ep, deadline)
                with stick.lock:
                    faults = self._ready_for(dev_handle, ep, intf)
                    if "write-error" in faults:
                        fail(errno.EIO)
                    if "nak" not in faults:
                        stick.firmware.out(ep, payload[start : start + size])
                        break
        return len(payload)

    def ctrl_transfer(
        self,
        dev_handle: _Handle,
        bmRequestType: int,
        bRequest: int,
        wValue: int,
        wIndex: int,
        data: array.array[int],
        timeout: int,
    ) -> int:
        """Make a request on endpoint 0; a frame goes by."""
        stick, deadline = dev_handle.stick, _deadline(dev_handle, timeout)
        self._travel(dev_handle)
        while True:
            self._wait_for_slot(dev_handle, 0, deadline)
            with stick.lock:
                faults = self._look(dev_handle)
                if bmRequestType & 0x1F == 1:
                    self._require_claim(dev_handle, wIndex & 0xFF)
                if "nak" in faults:
                    continue
                try:
                    reading = bmRequestType & _IN
                    given: bytes | int = len(data) if reading else bytes(data)
                    answer = stick.firmware.control(bmRequestType, bRequest, wValue, wIndex, given)
                except Stall:
                    fail(errno.EPIPE)
            if not reading:
                return len(data)
            data[: len(answer)] = array.array("B", answer)
            return len(answer)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _look(self, handle: _Handle) -> frozenset[str]:
        """Make up for the time that has gone by; raise if the device is not the one that was opened any more."""
        with handle.stick.lock:
            faults = handle.stick.catch_up()
            if handle.closed or not handle.device.there:
                fail(errno.ENODEV)
            return faults

    def _require_claim(self, handle: _Handle, interface: int) -> None:
        if interface in handle.stick.drivers:
            fail(errno.EBUSY)
        if handle.stick.owners.get(interface) is not handle:
            fail(errno.EINVAL)

    def _ready_for(self, handle: _Handle, endpoint: int, interface: int) -> frozenset[str]:
        """Return the faults there are; raise where a transfer on an interrupt endpoint cannot be."""
        faults = self._look(handle)
        self._require_claim(handle, interface)
        if "stall" in faults:
            handle.stick.halted.add(endpoint)
        if endpoint in handle.stick.halted:
            fail(errno.EPIPE)
        return faults

    def _wait_for_slot(self, handle: _Handle, endpoint: int, deadline: float) -> None:
        """Wait for the next frame in which the bus serves `endpoint`; no two transfers share one."""
        stick = handle.stick
        interval = _endpoint(handle.device, endpoint).bInterval if endpoint else 1
        with stick.lock:
            self._look(handle)
            place = self.sticks.index(stick), endpoint
            earliest = max(math.floor(stick.now / FRAME + _ROUNDING), self._slots.get(place, 0)) + 1
            slot = -(-earliest // interval) * interval
            instant = stick.origin + slot * FRAME
            if instant <= deadline:
                self._slots[place] = slot
        stick.time.wait_until(min(instant, deadline))
        if instant > deadline:
            self._look(handle)
            fail(errno.ETIMEDOUT)

    def _travel(self, handle: _Handle) -> None:
        """Wait as long as transfers take longer than they should."""
        stick = handle.stick
        delay = stick.faults.delay(stick.now)
        if delay > 0.0:
            stick.time.wait_until(stick.time.now() + delay)


def _deadline(handle: _Handle, timeout: int) -> float:
    """Return until when a transfer may last; a timeout of 0 ms is none."""
    return handle.stick.time.now() + timeout * 1e-3 if timeout else math.inf


def _endpoint(device: _Device, address: int) -> Any:
    for interface in device.tree.interfaces:
        for endpoint in interface.endpoints:
            if endpoint.bEndpointAddress == address:
                return endpoint
    fail(errno.ENOENT)
