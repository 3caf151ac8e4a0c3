"""What libusb shows: devices with an interface of the class of sticks, and what their descriptors say."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from typing import Any

from devices.common.bus.device_text import printable
from devices.joystick.hid.usages import PID_PAGE
from devices.joystick.usb.remedies import no_libusb, not_permitted
from haptics.errors import DeviceOpenError

HID_CLASS = 3
CONTROL_TIMEOUT = 250
"""For a control transfer [ms]."""
DENIED = {errno.EACCES, errno.EPERM}
ENDPOINT_IN, ENDPOINT_OUT = 0x80, 0x00

_GET_DESCRIPTOR, _REPORT_DESCRIPTOR, _HID_DESCRIPTOR = 0x06, 0x2200, 0x21
_STANDARD_FROM_INTERFACE = 0x81
_INTERRUPT = 3
_HIGH_SPEED = 3
_LONGEST_DESCRIPTOR = 4096


def libusb() -> Any:
    """Return pyusb's backend: the system's libusb, or else the one that comes as a Python package.

    Raises
    ------
    DeviceOpenError
        If there is neither.
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
    """Return the USB devices that have an interface of the class of sticks, keyboards and mice."""
    import usb.core

    return [
        device
        for device in usb.core.find(find_all=True, backend=backend)
        if next(hid_interfaces(device), None) is not None
    ]


def hid_interfaces(device: Any) -> Iterator[Any]:
    """Yield the interfaces of the class, as the descriptors have them; nothing is opened for it."""
    import usb.core

    with contextlib.suppress(usb.core.USBError):
        yield from filter(is_candidate, device[0])


def is_candidate(interface: Any) -> bool:
    """Tell whether it is of the class, and has a pipe for input reports."""
    plain = interface.bInterfaceClass == HID_CLASS and interface.bAlternateSetting == 0
    return plain and pipe(interface, ENDPOINT_IN) is not None


def pipe(interface: Any, direction: int) -> Any:
    """Return the interrupt endpoint of this direction, None if there is none."""
    for endpoint in interface:
        if endpoint.bmAttributes & 3 == _INTERRUPT and endpoint.bEndpointAddress & ENDPOINT_IN == direction:
            return endpoint
    return None


def names(device: Any) -> tuple[str, str]:
    """Return serial number and name of a device that nobody has open for long.

    Raises
    ------
    DeviceOpenError
        If the device may not be opened for it.
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
    """Open a device: the refusal of a string would not say why. Without a configuration it has its strings as well."""
    import usb.core

    try:
        device.get_active_configuration()
    except usb.core.USBError as error:
        if error.errno in DENIED:
            raise DeviceOpenError(not_permitted(identity_of(device), node_of(device))) from error
        if error.errno is not None:
            raise


def text(device: Any, index: int) -> str:
    """Return a string of a device that is open, empty if it has none."""
    import usb.core
    import usb.util

    try:
        return printable(usb.util.get_string(device, index) or "") if index else ""
    except (usb.core.USBError, ValueError):  # refused; or no language, or not what it says it is
        return ""


def identity_of(device: Any) -> str:
    """Return ``vendor:product``, hexadecimal, small letters."""
    return f"{device.idVendor:04x}:{device.idProduct:04x}"


def node_of(device: Any) -> str:
    """Return the device file."""
    return f"/dev/bus/usb/{device.bus or 0:03}/{device.address or 0:03}"


def port_of(device: Any) -> str:
    """Return the USB port as Linux writes it: the bus and the ports of the hubs, ``1-2.3``; empty if not known."""
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
    """Return the shortest time between two input and between two output reports [s], as the descriptors have it."""
    return _interval(device, pipe(interface, ENDPOINT_IN)), _interval(device, pipe(interface, ENDPOINT_OUT))


def report_descriptor(device: Any, interface: Any) -> bytes:
    """Ask a device that is open for the report descriptor of one of its interfaces."""
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
    """Return the length of the report descriptor, from the HID descriptor among the interface's own."""
    extra = bytes(interface.extra_descriptors)
    while len(extra) >= 2 and extra[0] >= 2:
        if extra[1] == _HID_DESCRIPTOR and len(extra) >= 9:
            return int.from_bytes(extra[7:9], "little")
        extra = extra[extra[0] :]
    return _LONGEST_DESCRIPTOR


def has_forces(descriptor: bytes) -> bool:
    """Tell whether a report descriptor is that of a force-feedback stick; one that cannot be read is not."""
    from devices.joystick.hid.descriptor import DescriptorError, parse_descriptor

    try:
        reports = parse_descriptor(descriptor).reports
    except DescriptorError:
        return False
    return any(usage >> 16 == PID_PAGE for report in reports for entry in report.fields for usage in entry.usages)


def number_of_motors(descriptor: bytes) -> int | None:
    """Return how many axes with a motor a report descriptor lists, None if it does not say or cannot be read."""
    from devices.joystick.hid.actuators import actuated_axes
    from devices.joystick.hid.descriptor import DescriptorError, parse_descriptor

    try:
        return len(actuated_axes(parse_descriptor(descriptor))) or None
    except DescriptorError:
        return None


def descriptor_with_forces(device: Any) -> bytes:
    """Return the report descriptor by which a device plays forces.

    It is empty if there is none, or it cannot be had without taking the device from a driver.
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
