"""Transport over Linux's hidraw, without libusb and with the kernel's driver attached.

It needs only the standard library and access to one device file. Linux allows several programs to open the file; a lock
on it separates runs of this driver. Limitation: a pipe that the stick has halted stays halted, because only libusb can
clear it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devices.common.bus import DENIED, GONE, printable
from devices.joystick.hid.descriptor import Report, ReportType
from devices.joystick.usb.transport import AGAIN, WRITE_TIMEOUT, Link, busy, failure, not_permitted
from haptics.errors import DeviceOpenError

CLASS = "sys/class/hidraw"
LONGEST_REPORT = 4096
"""Maximum length of an input report that the kernel passes on [byte]."""

_USB = 0x0003
_WRITE_READ = 3 << 30
_SET_FEATURE, _GET_FEATURE, _GET_INPUT = 0x06, 0x07, 0x0A
_GONE = GONE | {errno.EIO}


@dataclass(frozen=True)
class HidrawNode:
    """Device file and the kernel's description of its device, read without opening the device.

    Attributes
    ----------
    path : Path
        Device file.
    link : Link
        Properties of the device.
    """

    path: Path
    link: Link


def hidraw_nodes(root: Path = Path("/")) -> Iterator[HidrawNode]:
    """Yield the device files of USB devices under `root`."""
    for entry in sorted((root / CLASS).glob("hidraw*")):
        try:
            yield HidrawNode(root / "dev" / entry.name, _link(entry / "device"))
        except (OSError, ValueError, KeyError):  # removed in the meantime, or not a USB device
            continue


def _link(device: Path) -> Link:
    lines = (device / "uevent").read_bytes().decode(errors="replace").split("\n")
    facts = dict(line.split("=", 1) for line in reversed(lines) if "=" in line)  # the kernel's entries come first
    bus, vendor, product = (int(part, 16) for part in facts["HID_ID"].split(":"))
    if bus != _USB:
        raise ValueError("not of USB")
    usb = device.resolve().parent.parent
    inward, outward = _interval(device, "in"), _interval(device, "out")
    return Link(
        vendor_id=vendor,
        product_id=product,
        serial=printable(facts.get("HID_UNIQ", "")),
        name=printable(facts.get("HID_NAME", "")),
        descriptor=(device / "report_descriptor").read_bytes(),
        in_interval=inward or 1e-3,
        out_interval=outward or 1e-3,
        out_endpoint=outward is not None,
        port=usb.name,
        bcd_device=int((usb / "bcdDevice").read_text(), 16) if (usb / "bcdDevice").exists() else None,
    )


def _interval(device: Path, direction: str) -> float | None:
    """Return the interval of the interrupt pipe of this direction [s], None if absent.

    The parent folder of the HID device is its USB interface, with a folder for each endpoint.
    """
    for endpoint in sorted((device.resolve().parent).glob("ep_*")):
        text = {name: (endpoint / name).read_text().strip() for name in ("direction", "type", "interval")}
        if text["direction"] == direction and text["type"] == "Interrupt":
            number, unit = text["interval"].rstrip("mus"), text["interval"].lstrip("0123456789")
            return float(number) * {"ms": 1e-3, "us": 1e-6}[unit]
    return None


def node_of_interface(bus: int, address: int, interface: int, root: Path = Path("/")) -> Path | None:
    """Return the device file of an interface of the USB device at this bus address, None if absent."""
    for entry in sorted((root / CLASS).glob("hidraw*")):
        folder = (entry / "device").resolve().parent
        try:
            place = [int((folder.parent / name).read_text()) for name in ("busnum", "devnum")]
            number = int((folder / "bInterfaceNumber").read_text(), 16)
        except (OSError, ValueError):  # removed in the meantime, or not a USB device
            continue
        if [*place, number] == [bus, address, interface]:
            return root / "dev" / entry.name
    return None


def open_locked(path: Path) -> int:
    """Open and lock a device file; return the file descriptor.

    Raises
    ------
    OSError
        If it cannot be opened; `BlockingIOError` if another run has locked it.
    """
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


class HidrawTransport:
    """Open device file.

    Parameters
    ----------
    node : HidrawNode
        Device file to open.

    Raises
    ------
    DeviceOpenError
        If access is denied, the device is removed, or another run has locked it.
    """

    def __init__(self, node: HidrawNode) -> None:
        self.link = node.link
        identity, path = node.link.vid_pid, str(node.path)
        try:
            self._file = open_locked(node.path)
        except OSError as error:
            reason = f"the stick {identity} could not be opened ({path}: {error.strerror}): {AGAIN}."
            if error.errno in DENIED:
                reason = not_permitted(identity, path)
            elif error.errno in (errno.EBUSY, errno.EWOULDBLOCK):
                reason = busy(identity, path)
            raise DeviceOpenError(reason) from error
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)
        self._sender = _Sender(self._file)

    def get_report(self, report: Report) -> bytes:
        """Request a feature report, or an input report (Linux 5.11 and later)."""
        buffer = bytearray(report.length)
        buffer[0] = report.id
        number = _GET_FEATURE if report.type is ReportType.FEATURE else _GET_INPUT
        return bytes(buffer[: self._ioctl(number, buffer)])

    def set_feature(self, report: bytes) -> None:
        """Send a feature report."""
        self._ioctl(_SET_FEATURE, bytearray(report))

    def _ioctl(self, number: int, buffer: bytearray) -> int:
        request = _WRITE_READ | len(buffer) << 16 | ord("H") << 8 | number
        try:
            return int(fcntl.ioctl(self._file, request, buffer))
        except OSError as error:
            raise failure(error, "a request for a report", _GONE) from error

    def write(self, report: bytes) -> None:
        """Send an output report; the kernel uses the interrupt pipe if present."""
        try:
            self._sender.send(report)
        except OSError as error:
            raise failure(error, "an output report", _GONE, after_stall=AGAIN) from error

    def read(self, timeout: float) -> bytes | None:
        """Return the next input report, None after `timeout` [s] without a report."""
        try:
            if not self._poll.poll(max(timeout * 1e3, 0.0)):
                return None
            return os.read(self._file, LONGEST_REPORT)
        except OSError as error:
            raise failure(error, "an input report", _GONE) from error

    def close(self) -> None:
        """Close the device file after the pending report has been sent."""
        self._sender.end()


class _Sender:
    """Sender thread, because a write may block uninterruptibly in the kernel for seconds.

    Parameters
    ----------
    file : int
        Descriptor of the open device file; closed at the end.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._report: bytes | None = None
        self._error: OSError | None = None
        self._ending = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="hidraw", daemon=True)
        self._thread.start()

    def send(self, report: bytes) -> None:
        """Send a report and wait for it, or for a pending one, for at most `WRITE_TIMEOUT`.

        Raises
        ------
        OSError
            If sending failed or timed out. After a timeout the report may still be sent later.
        """
        with self._changed:
            self._wait()
            self._report, self._error = report, None
            self._changed.notify_all()
            self._wait()
            if self._error is not None:
                raise self._error

    def _wait(self) -> None:
        if not self._changed.wait_for(lambda: self._report is None, WRITE_TIMEOUT):
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    def end(self) -> None:
        """Close the file, and wait for that for at most `WRITE_TIMEOUT`."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join(WRITE_TIMEOUT)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._report is not None or self._ending)
                report, error = self._report, None
            if report is None:
                break
            try:
                os.write(self._file, report)
            except OSError as failed:
                error = failed
            with self._changed:
                self._report, self._error = None, error
                self._changed.notify_all()
        os.close(self._file)
