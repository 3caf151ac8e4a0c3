"""Finding and opening an ODrive on USB, and its two pipes. Of its three interfaces only the native one is taken."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable
from typing import Any

from devices.arm.identities import ODRIVES
from devices.arm.motors.wire import PACKET
from devices.common.bus.transfers import TransferError, Trouble, trouble_of
from devices.common.bus.udev import GROUP, RULES_FILE, Node, device_rules
from devices.joystick.usb.listing import DENIED, identity_of, libusb, node_of, text
from haptics.errors import DeviceNotFoundError, DeviceOpenError

AGAIN = "switch its supply off and on, start again"
"""What to do with a drive that does not do as it should."""

WRITE_TIMEOUT = 0.04
"""For a packet out [s]."""

RETURN = 2.0
"""A drive that leaves the bus when it is reset is waited for so long [s]."""

_NATIVE = (0x00, 0x01)
_IN = 0x80
_DRAIN = 5
_MOST_STALE = 64
_LOOK = 0.02


class Pipes:
    """An open drive; made by `open_drive`. One thread may write while another reads.

    Parameters
    ----------
    device : usb.core.Device
        The device.
    interface : usb.core.Interface
        Its native interface, claimed.

    Attributes
    ----------
    device : usb.core.Device
        The same.
    serial : str
        Its serial number.
    """

    def __init__(self, device: Any, interface: Any) -> None:
        self.serial: str = text(device, device.iSerialNumber)
        self.device, self._number = device, interface.bInterfaceNumber
        self._out, self._in = (
            next(e.bEndpointAddress for e in interface if e.bEndpointAddress & _IN == direction)
            for direction in (0, _IN)
        )

    def write(self, packet: bytes) -> None:
        """Send a packet; raises `TransferError`."""
        self._persist(self._out, "a packet", lambda: self.device.write(self._out, packet, round(WRITE_TIMEOUT * 1e3)))

    def read(self, timeout: float) -> bytes | None:
        """Return the next packet, None if there was none for `timeout` [s]; raises `TransferError`."""
        milliseconds = max(round(timeout * 1e3), 1)
        try:
            return bytes(self._persist(self._in, "an answer", lambda: self.device.read(self._in, PACKET, milliseconds)))
        except TransferError as error:
            if error.trouble is Trouble.TIMEOUT:
                return None
            raise

    def _persist(self, address: int, what: str, transfer: Callable[[], Any]) -> Any:
        """Return what `transfer` gives; a pipe that has stalled is cleared and tried once more."""
        try:
            try:
                return transfer()
            except OSError as error:
                if trouble_of(error) is not Trouble.STALL:
                    raise
            self.device.clear_halt(address)
            return transfer()
        except OSError as error:
            raise _failure(error, what) from error

    def drain(self) -> int:
        """Read what an earlier run has left in the drive; return how many packets it was."""
        for count in range(_MOST_STALE):
            if self.read(_DRAIN * 1e-3) is None:
                return count
        return _MOST_STALE

    def close(self) -> None:
        """Give the interface back."""
        import usb.util

        with contextlib.suppress(OSError):
            usb.util.release_interface(self.device, self._number)
        with contextlib.suppress(OSError):
            usb.util.dispose_resources(self.device)


def _failure(error: OSError, what: str) -> TransferError:
    trouble = trouble_of(error)
    how = {
        Trouble.UNPLUGGED: "the drive was unplugged, or lost its power: plug it in, home it and start again",
        Trouble.TIMEOUT: f"the drive did not take {what} in time: {AGAIN}",
        Trouble.STALL: f"the drive refused {what} (stall): {AGAIN}",
        Trouble.BROKEN: f"{what} was lost ({error.strerror or error}): check cable and hub",
    }[trouble]
    return TransferError(f"{how}.", trouble)


def open_drive(serial: str = "", backend: Any = None) -> Pipes:
    """Open the drive that is meant, with nothing of an earlier run left in its pipes.

    Parameters
    ----------
    serial : str
        Its serial number; empty if there is only one.
    backend : usb.backend.IBackend, optional
        Instead of libusb.

    Raises
    ------
    DeviceNotFoundError
        If it is not plugged in.
    DeviceOpenError
        If several could be meant, or it could not be opened; says what to do.
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
                pipes = Pipes(device, interface)
                pipes.drain()
                return pipes
    except BaseException:
        usb.util.dispose_resources(device)
        raise
    usb.util.dispose_resources(device)
    raise DeviceOpenError(f"the device {identity_of(device)} has no native interface: is its firmware ODrive's 0.5?")


def _freshly_reset(device: Any, find_again: Callable[[], Any]) -> Any:
    """Reset the port: packets may wait in it that no read returns. Return the device, which may have come anew."""
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
    """Return the drive that is meant; see `open_drive`."""
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
    return DeviceOpenError(str(_failure(error, "opening")))
