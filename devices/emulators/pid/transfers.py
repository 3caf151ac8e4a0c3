"""Transfers on an emulated bus: permissions, timing by frames, and faults."""

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
"""Error code of libusb by system error number."""

_IN = 0x80
_ROUNDING = 1e-6


def fail(number: int) -> NoReturn:
    """Raise the error of pyusb for a system error number."""
    kind = usb.core.USBTimeoutError if number == errno.ETIMEDOUT else usb.core.USBError
    raise kind(os.strerror(number), _CODES[number], number)


class Device:
    """Stick found on the bus; a reconnected stick is another device."""

    def __init__(self, stick: EmulatedStick) -> None:
        self.stick, self.generation, self.address = stick, stick.generation, stick.address
        self.tree = configuration_tree(stick.firmware.configuration_descriptor)

    @property
    def connected(self) -> bool:
        """Whether it is still on the bus."""
        return self.stick.plugged and self.stick.generation == self.generation


class Handle:
    """Open device."""

    def __init__(self, device: Device) -> None:
        self.device, self.stick = device, device.stick
        self.closed = False


class Transfers:
    """Part of a backend for pyusb that exchanges data with sticks.

    Parameters
    ----------
    sticks : tuple of EmulatedStick
        Sticks on the bus.
    """

    def __init__(self, sticks: tuple[EmulatedStick, ...]) -> None:
        self.sticks = sticks
        self._slots: dict[tuple[int, int], int] = {}

    def intr_read(self, dev_handle: Handle, ep: int, intf: int, buff: array.array[int], timeout: int) -> int:
        """Read one packet; raise a timeout if the device has none."""
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
        """Write data in packets of the endpoint's size."""
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
        """Perform a request on endpoint 0, which takes a frame."""
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
        """Perform a request on endpoint 0 with data or a length; return the reply, None if it is not accepted."""
        with handle.stick.lock:
            faults = self.advance(handle)
            if request_type & 0x1F == 1:
                self._require_claim(handle, index & 0xFF)
            if "nak" in faults:
                return None
            try:
                return handle.stick.firmware.control(request_type, request, value, index, given)
            except Stall:
                fail(errno.EPIPE)

    # --- private -----------------------------------------------------------------------------------------------------

    def advance(self, handle: Handle) -> frozenset[str]:
        """Advance the stick to the present time; raise `ENODEV` if the opened device does not exist."""
        with handle.stick.lock:
            faults = handle.stick.catch_up()
            if handle.closed or not handle.device.connected:
                fail(errno.ENODEV)
            return faults

    def _require_claim(self, handle: Handle, interface: int) -> None:
        if interface in handle.stick.drivers:
            fail(errno.EBUSY)
        if handle.stick.owners.get(interface) is not handle:
            fail(errno.EINVAL)

    def _ready_for(self, handle: Handle, endpoint: int, interface: int) -> frozenset[str]:
        """Return the active faults; raise an error if a transfer on the endpoint is not possible."""
        faults = self.advance(handle)
        self._require_claim(handle, interface)
        if "stall" in faults:
            handle.stick.halted.add(endpoint)
        if endpoint in handle.stick.halted:
            fail(errno.EPIPE)
        return faults

    def _wait_for_slot(self, handle: Handle, endpoint: int, deadline: float) -> None:
        """Wait for the next frame in which the bus serves `endpoint`; transfers never share a frame."""
        stick = handle.stick
        interval = _endpoint(handle.device, endpoint).bInterval if endpoint else 1
        with stick.lock:
            self.advance(handle)
            place = self.sticks.index(stick), endpoint
            earliest = max(math.floor(stick.now / FRAME + _ROUNDING), self._slots.get(place, 0)) + 1
            slot = -(-earliest // interval) * interval
            instant = stick.origin + slot * FRAME
            if instant <= deadline:
                self._slots[place] = slot
        stick.time.wait_until(min(instant, deadline))
        if instant > deadline:
            self.advance(handle)
            fail(errno.ETIMEDOUT)

    def _travel(self, handle: Handle) -> None:
        """Wait for the additional duration of a transfer."""
        stick = handle.stick
        delay = stick.faults.delay(stick.now)
        if delay > 0.0:
            stick.time.wait_until(stick.time.now() + delay)


def _deadline(handle: Handle, timeout: int) -> float:
    """Return the time until which a transfer may last; a timeout of 0 ms means no limit."""
    return handle.stick.time.now() + timeout * 1e-3 if timeout else math.inf


def _endpoint(device: Device, address: int) -> Any:
    for interface in device.tree.interfaces:
        for endpoint in interface.endpoints:
            if endpoint.bEndpointAddress == address:
                return endpoint
    fail(errno.ENOENT)
