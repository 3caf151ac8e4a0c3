"""Serial port (CDC) of an ODrive on USB, which accepts lines of text."""

from __future__ import annotations

import contextlib
from typing import Any

from devices.arm.motors.usb.pipes import Pipes
from devices.common.bus import TransferError

_CONTROL, _DATA = 0x02, 0x0A
"""Classes of the two interfaces of a serial port."""


class SerialPort(Pipes):
    """Open serial port of a drive, created by `open_serial_port`.

    Parameters
    ----------
    device : usb.core.Device
        The device.
    interface : usb.core.Interface
        Its data interface, claimed.
    taken : list of int
        Interfaces detached from a kernel driver, to which they are returned on closing.
    """

    def __init__(self, device: Any, interface: Any, taken: list[int]) -> None:
        super().__init__(device, interface)
        self._taken = taken

    def close(self) -> None:
        """Return the port to the operating system; the drive stays open."""
        import usb.util

        with contextlib.suppress(OSError):
            usb.util.release_interface(self.device, self._number)
        _give_back(self.device, self._taken)


def open_serial_port(pipes: Pipes) -> SerialPort | None:
    """Return the serial port of an open drive, None if it has none or it is not available."""
    import usb.util

    device = pipes.device
    interfaces = {i.bInterfaceNumber: i for i in device.get_active_configuration()}
    ports = {number: i for number, i in interfaces.items() if i.bInterfaceClass in {_CONTROL, _DATA}}
    data = next((i for i in ports.values() if i.bInterfaceClass == _DATA), None)
    if data is None:
        return None
    taken: list[int] = []
    try:
        for number in ports:
            if _held_by_the_system(device, number):
                device.detach_kernel_driver(number)
                taken.append(number)
        usb.util.claim_interface(device, data.bInterfaceNumber)
        port = SerialPort(device, data, taken)
        port.drain()
        return port
    except (OSError, TransferError, StopIteration):  # held by another program, or malformed
        _give_back(device, taken)
        return None


def _held_by_the_system(device: Any, number: int) -> bool:
    try:
        return bool(device.is_kernel_driver_active(number))
    except NotImplementedError:  # not supported on this system
        return False


def _give_back(device: Any, taken: list[int]) -> None:
    for number in taken:
        with contextlib.suppress(OSError, NotImplementedError):
            device.attach_kernel_driver(number)
