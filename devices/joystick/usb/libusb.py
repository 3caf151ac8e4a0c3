"""Transport over libusb, which detaches the kernel's driver and always reattaches it at the end.

Output reports use the interrupt pipe if present, because firmware with such a pipe often reads nothing else. Feature
reports always use the control pipe.

On Linux a second process reattaches the interface (`devices.joystick.usb.reattaching`), so that this also happens if
the process is killed, and so that closing does not wait for the kernel.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from devices.common import bus
from devices.common.bus import DENIED, Trouble, identity_of, node_of, trouble_of, usb_string
from devices.common.guard import Guard
from devices.joystick.hid.descriptor import DescriptorError, Report, ReportType, actuated_axes, parse_descriptor
from devices.joystick.hid.usages import PID_PAGE
from devices.joystick.usb import hidraw, reattaching
from devices.joystick.usb.transport import AGAIN, WRITE_TIMEOUT, Link, busy, failure, not_permitted
from haptics.errors import DeviceOpenError

# --- listed devices and their descriptors -----------------------------------------------------------------------------

HID_CLASS = 3
_CONTROL_TIMEOUT = 250  # timeout of a control transfer [ms]
ENDPOINT_IN, ENDPOINT_OUT = 0x80, 0x00

_GET_DESCRIPTOR, _REPORT_DESCRIPTOR, _HID_DESCRIPTOR = 0x06, 0x2200, 0x21
_STANDARD_FROM_INTERFACE = 0x81
_INTERRUPT = 3
_HIGH_SPEED = 3
_LONGEST_DESCRIPTOR = 4096


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
        try:
            device.get_active_configuration()  # reading strings would not report why access failed
        except usb.core.USBError as error:
            if error.errno in DENIED:
                raise DeviceOpenError(not_permitted(identity_of(device), node_of(device))) from error
            if error.errno is not None:  # without a number: no configuration, but strings
                return "", ""
        return usb_string(device, device.iSerialNumber), usb_string(device, device.iProduct)
    finally:
        usb.util.dispose_resources(device)


def port_of(device: Any) -> str:
    """Return the USB port in Linux notation: bus and hub ports, ``1-2.3``; empty if unknown."""
    try:
        ports = device.port_numbers
    except NotImplementedError:
        ports = None
    return f"{device.bus}-{'.'.join(map(str, ports))}" if device.bus and ports else ""


def intervals(device: Any, interface: Any) -> tuple[float, float]:
    """Return the shortest time between two input and between two output reports [s] by the descriptors.

    The control pipe has one transfer per frame.
    """
    times = []
    for endpoint in (pipe(interface, ENDPOINT_IN), pipe(interface, ENDPOINT_OUT)):
        if endpoint is None:
            times.append(1e-3)
        elif (device.speed or 0) >= _HIGH_SPEED:
            times.append(125e-6 * float(2 ** (endpoint.bInterval - 1)))
        else:
            times.append(1e-3 * float(endpoint.bInterval))
    return times[0], times[1]


def report_descriptor(device: Any, interface: Any) -> bytes:
    """Read the report descriptor of an interface of an open device; the HID descriptor states its length."""
    length, extra = _LONGEST_DESCRIPTOR, bytes(interface.extra_descriptors)
    while len(extra) >= 2 and extra[0] >= 2:
        if extra[1] == _HID_DESCRIPTOR and len(extra) >= 9:
            length = int.from_bytes(extra[7:9], "little")
            break
        extra = extra[extra[0] :]
    request = _STANDARD_FROM_INTERFACE, _GET_DESCRIPTOR, _REPORT_DESCRIPTOR, interface.bInterfaceNumber
    return bytes(device.ctrl_transfer(*request, length, _CONTROL_TIMEOUT))


def has_forces(descriptor: bytes) -> bool:
    """Return True if the report descriptor contains PID usages; False if it cannot be parsed."""
    try:
        reports = parse_descriptor(descriptor).reports
    except DescriptorError:
        return False
    return any(usage >> 16 == PID_PAGE for report in reports for entry in report.fields for usage in entry.usages)


def number_of_motors(descriptor: bytes) -> int | None:
    """Return the number of axes with a motor in a report descriptor, None if unknown."""
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


# --- transport --------------------------------------------------------------------------------------------------------

_GET_REPORT, _SET_REPORT = 0x01, 0x09
_FROM_INTERFACE, _TO_INTERFACE = 0xA1, 0x21
_INPUT, _OUTPUT, _FEATURE = 1, 2, 3

ATTEMPTS = 3
"""Maximum attempts to claim an interface while the kernel's driver is being reattached."""

_ASK_TIMEOUT = 100  # timeout of a request for an input report while others are in transit [ms]

_HAND_OVER = 0.5  # maximum time that `close` waits for the kernel's driver to reattach [s]


class UsbTransport:
    """Open stick; created by `open_usb`.

    Parameters
    ----------
    device : usb.core.Device
        USB device.
    interface : usb.core.Interface
        Interface to claim.
    real : bool
        Whether the device is on a physical bus and not emulated.

    Raises
    ------
    usb.core.USBError
        If it cannot be claimed; completed steps are undone.
    DeviceOpenError
        If another run has opened it through hidraw, or the guardian process cannot be started.
    """

    def __init__(self, device: Any, interface: Any, *, real: bool) -> None:
        self._device = device
        self._number: int = interface.bInterfaceNumber
        self._guard: Guard | None = None
        self._taken = self._closed = False
        atexit.register(self.close)
        try:
            if real and sys.platform == "linux":
                self._require_free()
                words = node_of(device), str(self._number)
                self._guard = Guard("the stick's interface", reattaching.__file__, words)
            self._claim()
            self._in, self._out = pipe(interface, ENDPOINT_IN), pipe(interface, ENDPOINT_OUT)
            inward, outward = intervals(device, interface)
            self.link = Link(
                vendor_id=device.idVendor,
                product_id=device.idProduct,
                serial=usb_string(device, device.iSerialNumber),
                name=usb_string(device, device.iProduct),
                descriptor=report_descriptor(device, interface),
                in_interval=inward,
                out_interval=outward,
                out_endpoint=self._out is not None,
                port=port_of(device),
                bcd_device=device.bcdDevice,
            )
        except BaseException:
            self.close()
            raise

    def _require_free(self) -> None:
        """Raise `DeviceOpenError` if a run uses the interface through hidraw.

        Claiming the interface would take it away from that run.
        """
        device = self._device
        node = hidraw.node_of_interface(device.bus or 0, device.address or 0, self._number)
        if node is None:
            return
        try:
            os.close(hidraw.open_locked(node))
        except BlockingIOError as error:
            raise DeviceOpenError(busy(identity_of(device), str(node))) from error
        except OSError:  # access denied or device removed: unknown
            pass

    def _claim(self) -> None:
        """Claim the interface from the kernel's driver, with retries while the driver is being reattached."""
        import usb.util

        for left in reversed(range(ATTEMPTS)):
            if self._is_with_the_kernel():
                self._taken = True
                self._device.detach_kernel_driver(self._number)
            try:
                usb.util.claim_interface(self._device, self._number)
            except OSError as error:
                if error.errno != errno.EBUSY or not left or not self._is_with_the_kernel():
                    raise
            else:
                break
        self._taken = True

    def _is_with_the_kernel(self) -> bool:
        try:
            return bool(self._device.is_kernel_driver_active(self._number))
        except NotImplementedError:  # a system without kernel drivers
            return False

    def get_report(self, report: Report) -> bytes:
        """Request a feature or input report. Not every device answers requests for input reports."""
        kind, timeout = (_FEATURE, _CONTROL_TIMEOUT) if report.type is ReportType.FEATURE else (_INPUT, _ASK_TIMEOUT)
        return bytes(self._control(_FROM_INTERFACE, _GET_REPORT, kind << 8 | report.id, report.length, timeout))

    def set_feature(self, report: bytes) -> None:
        """Send a feature report."""
        self._control(_TO_INTERFACE, _SET_REPORT, _FEATURE << 8 | report[0], report)

    def _control(
        self, request_type: int, request: int, value: int, data_or_length: Any, timeout: int = _CONTROL_TIMEOUT
    ) -> Any:
        try:
            return self._device.ctrl_transfer(request_type, request, value, self._number, data_or_length, timeout)
        except OSError as error:
            raise failure(error, "a control request") from error

    def write(self, report: bytes) -> None:
        """Send an output report and wait until the device has received it, at most `WRITE_TIMEOUT`."""
        timeout = round(WRITE_TIMEOUT * 1e3)
        if self._out is None:
            self._control(_TO_INTERFACE, _SET_REPORT, _OUTPUT << 8 | report[0], report, timeout)
            return
        address = self._out.bEndpointAddress
        try:
            bus.retry_after_stall(self._device, address, lambda: self._device.write(address, report, timeout))
        except OSError as error:
            raise failure(error, "an output report", after_stall=AGAIN) from error

    def read(self, timeout: float) -> bytes | None:
        """Return the next input report, None after `timeout` [s] without a report."""
        address, size = self._in.bEndpointAddress, self._in.wMaxPacketSize
        try:
            transfer = partial(self._device.read, address, size, max(round(timeout * 1e3), 1))
            return bytes(bus.retry_after_stall(self._device, address, transfer))
        except OSError as error:
            if trouble_of(error) is Trouble.TIMEOUT:
                return None
            raise failure(error, "an input report", after_stall=AGAIN) from error

    def close(self) -> None:
        """Release the interface and reattach the kernel's driver.

        The driver is reattached even if none was attached before: a killed run may have left the stick without a
        driver.
        """
        import usb.util

        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        steps: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        if self._taken:
            steps.append((usb.util.release_interface, (self._device, self._number)))
        if self._taken and self._guard is None:
            steps.append((self._device.attach_kernel_driver, (self._number,)))
        steps.append((usb.util.dispose_resources, (self._device,)))
        for step, arguments in steps:
            with contextlib.suppress(OSError, NotImplementedError):  # removed, or a system without kernel drivers
                step(*arguments)
        if self._guard is not None and self._taken:
            self._guard.hand_over(_HAND_OVER)
        elif self._guard is not None:
            self._guard.dismiss()


def open_usb(device: Any, *, real: bool) -> UsbTransport:
    """Claim the interface of `device` that plays forces; `real` unless it is emulated.

    Raises
    ------
    DeviceOpenError
        If access is denied, another program has claimed it, or none of its interfaces plays forces.
    """
    import usb.core
    import usb.util

    try:
        for interface in bus.active_configuration(device):
            if not is_candidate(interface):
                continue
            transport = UsbTransport(device, interface, real=real)
            if has_forces(transport.link.descriptor):
                return transport
            transport.close()
    except usb.core.USBError as error:
        usb.util.dispose_resources(device)
        identity, node = identity_of(device), node_of(device)
        reason = f"the stick {identity} could not be opened ({error.strerror or error}): {AGAIN}."
        if error.errno in DENIED:
            reason = not_permitted(identity, node)
        elif error.errno == errno.EBUSY:
            reason = busy(identity, node)
        elif trouble_of(error) is Trouble.UNPLUGGED:
            reason = f"the stick {identity} was unplugged while it was being opened: plug it in, start again."
        raise DeviceOpenError(reason) from error
    raise DeviceOpenError(
        f"the device {identity_of(device)} has no interface that plays forces (class Physical Interface Device)."
    )
