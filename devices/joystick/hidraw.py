"""A stick over Linux's hidraw: the same reports without libusb, and the kernel's driver stays where it is.

Nothing but the standard library is needed, and the right to open one device file.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devices.joystick.remedies import busy, not_permitted
from devices.joystick.transport import Link, TransferError, Trouble
from haptics.errors import DeviceOpenError

CLASS = "sys/class/hidraw"
LONGEST_REPORT = 4096
"""Largest input report that the kernel passes on [byte]."""

_USB = 0x0003
_WRITE_READ = 3 << 30
_SET_FEATURE, _GET_FEATURE, _GET_INPUT = 0x06, 0x07, 0x0A
_GONE = {errno.ENODEV, errno.EIO, errno.ENXIO, errno.ENOENT}


@dataclass(frozen=True)
class HidrawNode:
    """A device file and what the kernel says of the device behind it; nothing is opened to know it.

    Attributes
    ----------
    path : Path
        The device file.
    link : Link
        The device.
    """

    path: Path
    link: Link


def hidraw_nodes(root: Path = Path("/")) -> Iterator[HidrawNode]:
    """Yield the device files of USB devices under `root`."""
    for entry in sorted((root / CLASS).glob("hidraw*")):
        try:
            yield HidrawNode(root / "dev" / entry.name, _link(entry / "device"))
        except (OSError, ValueError, KeyError):  # gone meanwhile, or not of USB
            continue


def _link(device: Path) -> Link:
    facts = dict(line.split("=", 1) for line in (device / "uevent").read_text().splitlines() if "=" in line)
    bus, vendor, product = (int(part, 16) for part in facts["HID_ID"].split(":"))
    if bus != _USB:
        raise ValueError("not of USB")
    inward, outward = _interval(device, "in"), _interval(device, "out")
    return Link(
        vendor_id=vendor,
        product_id=product,
        serial=facts.get("HID_UNIQ", ""),
        name=facts.get("HID_NAME", ""),
        descriptor=(device / "report_descriptor").read_bytes(),
        in_interval=inward or 1e-3,
        out_interval=outward or 1e-3,
        out_endpoint=outward is not None,
    )


def _interval(device: Path, direction: str) -> float | None:
    """Return the interval of the interrupt pipe of this direction [s], None if there is none.

    The folder above that of the HID device is its USB interface, with a folder for each endpoint.
    """
    for endpoint in sorted((device.resolve().parent).glob("ep_*")):
        text = {name: (endpoint / name).read_text().strip() for name in ("direction", "type", "interval")}
        if text["direction"] == direction and text["type"] == "Interrupt":
            number, unit = text["interval"].rstrip("mus"), text["interval"].lstrip("0123456789")
            return float(number) * {"ms": 1e-3, "us": 1e-6}[unit]
    return None


class HidrawTransport:
    """An open device file.

    Parameters
    ----------
    node : HidrawNode
        Which one.

    Raises
    ------
    DeviceOpenError
        If it may not be opened, or is gone.
    """

    def __init__(self, node: HidrawNode) -> None:
        self.link = node.link
        identity, path = f"{node.link.vendor_id:04x}:{node.link.product_id:04x}", str(node.path)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                raise DeviceOpenError(not_permitted(identity, path)) from error
            if error.errno == errno.EBUSY:
                raise DeviceOpenError(busy(identity, path)) from error
            raise DeviceOpenError(
                f"the stick {identity} could not be opened ({path}: {error.strerror}): unplug it, plug it in and start "
                "again."
            ) from error
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)

    def get_feature(self, report_id: int, length: int) -> bytes:
        """Return a feature report."""
        return self._get(_GET_FEATURE, report_id, length)

    def get_input(self, report_id: int, length: int) -> bytes:
        """Ask for an input report (Linux 5.11 and later)."""
        return self._get(_GET_INPUT, report_id, length)

    def _get(self, number: int, report_id: int, length: int) -> bytes:
        buffer = bytearray(length)
        buffer[0] = report_id
        return bytes(buffer[: self._ioctl(number, buffer)])

    def set_feature(self, report: bytes) -> None:
        """Send a feature report."""
        self._ioctl(_SET_FEATURE, bytearray(report))

    def _ioctl(self, number: int, buffer: bytearray) -> int:
        import fcntl

        request = _WRITE_READ | len(buffer) << 16 | ord("H") << 8 | number
        try:
            return int(fcntl.ioctl(self._file, request, buffer))
        except OSError as error:
            raise _failure(error, "a request for a report") from error

    def write(self, report: bytes) -> None:
        """Send an output report; the kernel sends it through the interrupt pipe where there is one."""
        try:
            os.write(self._file, report)
        except OSError as error:
            raise _failure(error, "an output report") from error

    def read(self, timeout: float) -> bytes | None:
        """Return the next input report, None if there was none for `timeout` [s]."""
        try:
            if not self._poll.poll(max(timeout * 1e3, 0.0)):
                return None
            return os.read(self._file, LONGEST_REPORT)
        except OSError as error:
            raise _failure(error, "an input report") from error

    def close(self) -> None:
        """Close the device file."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)


def _failure(error: OSError, what: str) -> TransferError:
    if error.errno in _GONE:
        return TransferError(
            "the stick was unplugged, or lost its power: plug it in and start again.", Trouble.UNPLUGGED
        )
    trouble = {errno.ETIMEDOUT: Trouble.TIMEOUT, errno.EPIPE: Trouble.STALL}.get(error.errno or 0, Trouble.BROKEN)
    return TransferError(f"{what} failed ({error.strerror or error}): check cable and hub.", trouble)
