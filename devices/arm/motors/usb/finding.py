"""Discovery and opening of an ODrive on USB. Only the native one of its three interfaces is claimed."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import Any

from devices.arm.identities import ODRIVES
from devices.arm.motors.usb.pipes import AGAIN, Pipes, failure_of
from devices.arm.motors.usb.queued import best_pipes
from devices.common.bus import GROUP, RULES_FILE, Node, TransferError, Trouble, device_rules, trouble_of
from devices.joystick.usb.listing import DENIED, identity_of, libusb, node_of, text
from haptics.errors import DeviceNotFoundError, DeviceOpenError

RETURN = 2.0
"""Timeout for a drive that leaves the bus when it is reset [s]."""

_NATIVE = (0x00, 0x01)
_LOOK = 0.02


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

    reached = backend if backend is not None else libusb()
    device = find(serial, reached)
    try:
        return _open(_freshly_reset(device, lambda: find(serial, reached)))
    except usb.core.USBError as error:
        raise _refusal(device, error) from error
    except TransferError as error:
        raise DeviceOpenError(str(error)) from error


def _open(device: Any) -> Pipes:
    import usb.core
    import usb.util

    try:
        try:
            configuration = device.get_active_configuration()
        except usb.core.USBError as error:
            if error.errno is not None:
                raise
            device.set_configuration()
            configuration = device.get_active_configuration()
        for interface in configuration:
            if (interface.bInterfaceClass, interface.bInterfaceSubClass) == _NATIVE:
                usb.util.claim_interface(device, interface.bInterfaceNumber)
                pipes = best_pipes(device, interface)
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


def _freshly_reset(device: Any, find_again: Callable[[], Any]) -> Any:
    """Reset the port, because packets may remain in it that no read returns, and return the device.

    The device may be a new one if it left the bus.
    """
    import usb.core
    import usb.util

    try:
        device.reset()
        return device
    except usb.core.USBError as error:
        if trouble_of(error) is not Trouble.UNPLUGGED:
            usb.util.dispose_resources(device)
            raise
    usb.util.dispose_resources(device)
    latest = time.monotonic() + RETURN
    while True:
        time.sleep(_LOOK)
        try:
            return find_again()
        except DeviceNotFoundError as error:
            if time.monotonic() > latest:
                raise DeviceOpenError(
                    f"the drive {identity_of(device)} was reset and did not come back: {AGAIN}."
                ) from error


def find(serial: str, backend: Any) -> Any:
    """Return the selected drive; see `open_drive`."""
    import usb.core
    import usb.util

    def is_drive(device: Any) -> bool:
        return identity_of(device) in ODRIVES

    found = list(usb.core.find(find_all=True, backend=backend, custom_match=is_drive))
    if not serial and len(found) == 1:
        return found[0]
    names = {text(device, device.iSerialNumber): device for device in found}
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


def _refusal(device: Any, error: OSError) -> DeviceOpenError:
    identity, node = identity_of(device), node_of(device)
    if error.errno in DENIED:
        rules = "\n".join(device_rules(identity, [Node.USB]))
        return DeviceOpenError(
            f"the drive {identity} is there, but may not be opened ({node}: permission denied). Put these lines into "
            f"{RULES_FILE}:\n{rules}\nthen run: sudo groupadd -f {GROUP}; sudo udevadm control --reload; "
            "sudo udevadm trigger; and plug the drive in anew."
        )
    if error.errno == errno.EBUSY:
        return DeviceOpenError(
            f"the drive {identity} is held by another program: another run, or the maker's tool. See which one with: "
            f"fuser -v {node}; end it and start again."
        )
    return DeviceOpenError(str(failure_of(error, "opening")))
