"""Transfers on an emulated bus: who may make them, when the bus serves them, and what goes wrong with them."""

from __future__ import annotations

import array
import errno
import math
import os
from typing import Any, NoReturn

import usb.core

from devices.emulators.pid.descriptor_tree import configuration_tree
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

_IN = 0x80
_ROUNDING = 1e-6


def fail(number: int) -> NoReturn:
    """Raise the error of pyusb with this number of the system's."""
    kind = usb.core.USBTimeoutError if number == errno.ETIMEDOUT else usb.core.USBError
    raise kind(os.strerror(number), _CODES[number], number)


class Device:
    """A stick as it was found on the bus; it is another device once it has been away."""

    def __init__(self, stick: EmulatedStick) -> None:
        self.stick, self.generation, self.address = stick, stick.generation, stick.address
        self.tree = configuration_tree(stick.firmware.configuration_descriptor)

    @property
    def there(self) -> bool:
        """Whether it is on the bus still."""
        return self.stick.plugged and self.stick.generation == self.generation


class Handle:
    """An opened device."""

    def __init__(self, device: Device) -> None:
        self.device, self.stick = device, device.stick
        self.closed = False


class Transfers:
    """The part of a backend for pyusb that exchanges data with sticks.

    Parameters
    ----------
    sticks : tuple of EmulatedStick
        What is on the bus.
    """

    def __init__(self, sticks: tuple[EmulatedStick, ...]) -> None:
        self.sticks = sticks
        self._slots: dict[tuple[int, int], int] = {}

    def intr_read(self, dev_handle: Handle, ep: int, intf: int, buff: array.array[int], timeout: int) -> int:
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

    def intr_write(self, dev_handle: Handle, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
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
        dev_handle: Handle,
        bmRequestType: int,
        bRequest: int,
        wValue: int,
        wIndex: int,
        data: array.array[int],
        timeout: int,
    ) -> int:
        """Make a request on endpoint 0; a frame goes by."""
        deadline = _deadline(dev_handle, timeout)
        self._travel(dev_handle)
        reading = bmRequestType & _IN
        answer = None
        while answer is None:
            self._wait_for_slot(dev_handle, 0, deadline)
            given: bytes | int = len(data) if reading else bytes(data)
            answer = self.try_control(dev_handle, bmRequestType, bRequest, wValue, wIndex, given)
        if not reading:
            return len(data)
        data[: len(answer)] = array.array("B", answer)
        return len(answer)

    def try_control(
        self, handle: Handle, request_type: int, request: int, value: int, index: int, given: bytes | int
    ) -> bytes | None:
        """Make a request on endpoint 0 with these data, or for so many; return the answer, None if it is not taken."""
        with handle.stick.lock:
            faults = self.look(handle)
            if request_type & 0x1F == 1:
                self._require_claim(handle, index & 0xFF)
            if "nak" in faults:
                return None
            try:
                return handle.stick.firmware.control(request_type, request, value, index, given)
            except Stall:
                fail(errno.EPIPE)

    # --- inside ------------------------------------------------------------------------------------------------------

    def look(self, handle: Handle) -> frozenset[str]:
        """Make up for the time that has gone by; raise if the device is not the one that was opened any more."""
        with handle.stick.lock:
            faults = handle.stick.catch_up()
            if handle.closed or not handle.device.there:
                fail(errno.ENODEV)
            return faults

    def _require_claim(self, handle: Handle, interface: int) -> None:
        if interface in handle.stick.drivers:
            fail(errno.EBUSY)
        if handle.stick.owners.get(interface) is not handle:
            fail(errno.EINVAL)

    def _ready_for(self, handle: Handle, endpoint: int, interface: int) -> frozenset[str]:
        """Return the faults there are; raise where a transfer on an interrupt endpoint cannot be."""
        faults = self.look(handle)
        self._require_claim(handle, interface)
        if "stall" in faults:
            handle.stick.halted.add(endpoint)
        if endpoint in handle.stick.halted:
            fail(errno.EPIPE)
        return faults

    def _wait_for_slot(self, handle: Handle, endpoint: int, deadline: float) -> None:
        """Wait for the next frame in which the bus serves `endpoint`; no two transfers share one."""
        stick = handle.stick
        interval = _endpoint(handle.device, endpoint).bInterval if endpoint else 1
        with stick.lock:
            self.look(handle)
            place = self.sticks.index(stick), endpoint
            earliest = max(math.floor(stick.now / FRAME + _ROUNDING), self._slots.get(place, 0)) + 1
            slot = -(-earliest // interval) * interval
            instant = stick.origin + slot * FRAME
            if instant <= deadline:
                self._slots[place] = slot
        stick.time.wait_until(min(instant, deadline))
        if instant > deadline:
            self.look(handle)
            fail(errno.ETIMEDOUT)

    def _travel(self, handle: Handle) -> None:
        """Wait as long as transfers take longer than they should."""
        stick = handle.stick
        delay = stick.faults.delay(stick.now)
        if delay > 0.0:
            stick.time.wait_until(stick.time.now() + delay)


def _deadline(handle: Handle, timeout: int) -> float:
    """Return until when a transfer may last; a timeout of 0 ms is none."""
    return handle.stick.time.now() + timeout * 1e-3 if timeout else math.inf


def _endpoint(device: Device, address: int) -> Any:
    for interface in device.tree.interfaces:
        for endpoint in interface.endpoints:
            if endpoint.bEndpointAddress == address:
                return endpoint
    fail(errno.ENOENT)
