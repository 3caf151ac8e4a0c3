"""USB devices of the HID class that libusb lists, and their descriptors."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from typing import Any

from devices.common.bus import printable
from devices.joystick.hid.usages import PID_PAGE
from devices.joystick.usb.remedies import no_libusb, not_permitted
from haptics.errors import DeviceOpenError

HID_CLASS = 3
CONTROL_TIMEOUT = 250
"""Timeout of a control transfer [ms]."""
DENIED = {errno.EACCES, errno.EPERM}
ENDPOINT_IN, ENDPOINT_OUT = 0x80, 0x00

_GET_DESCRIPTOR, _REPORT_DESCRIPTOR, _HID_DESCRIPTOR = 0x06, 0x2200, 0x21
_STANDARD_FROM_INTERFACE = 0x81
_INTERRUPT = 3
_HIGH_SPEED = 3
_LONGEST_DESCRIPTOR = 4096


def libusb() -> Any:
    """Return pyusb's backend: the system's libusb, otherwise the one from the Python package.

    Raises
    ------
    DeviceOpenError
        If neither is installed.
    """
    import usb.backend.libusb1

    backend = usb.backend.libusb1.get_backend()
    if backend is None:
        with contextlib.suppress(ImportError):
            import libusb_package

            backend = libusb_package.get_libusb1_backend()
    if backend is None:
        raise DeviceOpenError(no_libusb())
    return backend


def hid_devices(backend: Any) -> list[Any]:
    """Return the USB devices with an interface of the HID class (sticks, keyboards and mice)."""
    import usb.core

    return [
        device
        for device in usb.core.find(find_all=True, backend=backend)
        if next(hid_interfaces(device), None) is not None
    ]


def hid_interfaces(device: Any) -> Iterator[Any]:
    """Yield the HID interfaces from the descriptors, without opening the device."""
    import usb.core

    with contextlib.suppress(usb.core.USBError):
        yield from filter(is_candidate, device[0])


def is_candidate(interface: Any) -> bool:
    """Return True if the interface is of the HID class and has a pipe for input reports."""
    plain = interface.bInterfaceClass == HID_CLASS and interface.bAlternateSetting == 0
    return plain and pipe(interface, ENDPOINT_IN) is not None


def pipe(interface: Any, direction: int) -> Any:
    """Return the interrupt endpoint of this direction, None if absent."""
    for endpoint in interface:
        if endpoint.bmAttributes & 3 == _INTERRUPT and endpoint.bEndpointAddress & ENDPOINT_IN == direction:
            return endpoint
    return None


def names(device: Any) -> tuple[str, str]:
    """Return serial number and name of a device, which is opened only briefly.

    Raises
    ------
    DeviceOpenError
        If access is denied.
    """
    import usb.core
    import usb.util

    try:
        _require_opening(device)
        return text(device, device.iSerialNumber), text(device, device.iProduct)
    except usb.core.USBError:
        return "", ""
    finally:
        usb.util.dispose_resources(device)


def _require_opening(device: Any) -> None:
    """Open a device. Reading strings would not report why access failed.

    A device without a configuration also has strings.
    """
    import usb.core

    try:
        device.get_active_configuration()
    except usb.core.USBError as error:
        if error.errno in DENIED:
            raise DeviceOpenError(not_permitted(identity_of(device), node_of(device))) from error
        if error.errno is not None:
            raise


def text(device: Any, index: int) -> str:
    """Return a string of an open device, empty if absent."""
    import usb.core
    import usb.util

    try:
        return printable(usb.util.get_string(device, index) or "") if index else ""
    except (usb.core.USBError, ValueError):  # rejected, or without a language, or invalid
        return ""


def identity_of(device: Any) -> str:
    """Return ``vendor:product`` in lower-case hexadecimal digits."""
    return f"{device.idVendor:04x}:{device.idProduct:04x}"


def node_of(device: Any) -> str:
    """Return the path of the device file."""
    return f"/dev/bus/usb/{device.bus or 0:03}/{device.address or 0:03}"


def port_of(device: Any) -> str:
    """Return the USB port in Linux notation: bus and hub ports, ``1-2.3``; empty if unknown."""
    try:
        ports = device.port_numbers
    except NotImplementedError:
        ports = None
    return f"{device.bus}-{'.'.join(map(str, ports))}" if device.bus and ports else ""


def _interval(device: Any, endpoint: Any) -> float:
    """Return the shortest time between two transfers of a pipe [s]; the control pipe has one per frame."""
    if endpoint is None:
        return 1e-3
    if (device.speed or 0) >= _HIGH_SPEED:
        return 125e-6 * float(2 ** (endpoint.bInterval - 1))
    return 1e-3 * float(endpoint.bInterval)


def intervals(device: Any, interface: Any) -> tuple[float, float]:
    """Return the shortest time between two input and between two output reports [s] by the descriptors."""
    return _interval(device, pipe(interface, ENDPOINT_IN)), _interval(device, pipe(interface, ENDPOINT_OUT))


def report_descriptor(device: Any, interface: Any) -> bytes:
    """Read the report descriptor of an interface of an open device."""
    return bytes(
        device.ctrl_transfer(
            _STANDARD_FROM_INTERFACE,
            _GET_DESCRIPTOR,
            _REPORT_DESCRIPTOR,
            interface.bInterfaceNumber,
            _descriptor_length(interface),
            CONTROL_TIMEOUT,
        )
    )


def _descriptor_length(interface: Any) -> int:
    """Return the length of the report descriptor from the HID descriptor of the interface."""
    extra = bytes(interface.extra_descriptors)
    while len(extra) >= 2 and extra[0] >= 2:
        if extra[1] == _HID_DESCRIPTOR and len(extra) >= 9:
            return int.from_bytes(extra[7:9], "little")
        extra = extra[extra[0] :]
    return _LONGEST_DESCRIPTOR


def has_forces(descriptor: bytes) -> bool:
    """Return True if the report descriptor contains PID usages; False if it cannot be parsed."""
    from devices.joystick.hid.descriptor import DescriptorError, parse_descriptor

    try:
        reports = parse_descriptor(descriptor).reports
    except DescriptorError:
        return False
    return any(usage >> 16 == PID_PAGE for report in reports for entry in report.fields for usage in entry.usages)


def number_of_motors(descriptor: bytes) -> int | None:
    """Return the number of axes with a motor in a report descriptor, None if unknown."""
    from devices.joystick.hid.actuators import actuated_axes
    from devices.joystick.hid.descriptor import DescriptorError, parse_descriptor

    try:
        return len(actuated_axes(parse_descriptor(descriptor))) or None
    except DescriptorError:
        return None


def descriptor_with_forces(device: Any) -> bytes:
    """Return the report descriptor through which a device plays forces.

    It is empty if none exists, or if reading it would require detaching the device from a driver.
    """
    import usb.core
    import usb.util

    try:
        for interface in hid_interfaces(device):
            if not device.is_kernel_driver_active(interface.bInterfaceNumber):
                descriptor = report_descriptor(device, interface)
                if has_forces(descriptor):
                    return descriptor
    except (usb.core.USBError, NotImplementedError):
        pass
    finally:
        usb.util.dispose_resources(device)
    return b""
