"""A stick over Linux's hidraw: the same reports without libusb, and the kernel's driver stays where it is.

Nothing but the standard library is needed, and the right to open one device file. Linux lets many programs open it at
once; a lock on it keeps runs of this driver apart. There is one thing that this way cannot do: a pipe that the stick
has halted stays so, for only libusb can clear it.
"""

from __future__ import annotations

import errno
import os
import select
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devices.common.bus.device_text import printable
from devices.common.bus.transfers import GONE
from devices.joystick.usb.remedies import busy, not_permitted
from devices.joystick.usb.transport import AGAIN, WRITE_TIMEOUT, Link, failure
from haptics.errors import DeviceOpenError

CLASS = "sys/class/hidraw"
LONGEST_REPORT = 4096
"""Largest input report that the kernel passes on [byte]."""

_USB = 0x0003
_WRITE_READ = 3 << 30
_SET_FEATURE, _GET_FEATURE, _GET_INPUT = 0x06, 0x07, 0x0A
_GONE = GONE | {errno.EIO}


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
    lines = (device / "uevent").read_bytes().decode(errors="replace").split("\n")
    facts = dict(line.split("=", 1) for line in reversed(lines) if "=" in line)  # the kernel's own come first
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
    """Return the interval of the interrupt pipe of this direction [s], None if there is none.

    The folder above that of the HID device is its USB interface, with a folder for each endpoint.
    """
    for endpoint in sorted((device.resolve().parent).glob("ep_*")):
        text = {name: (endpoint / name).read_text().strip() for name in ("direction", "type", "interval")}
        if text["direction"] == direction and text["type"] == "Interrupt":
            number, unit = text["interval"].rstrip("mus"), text["interval"].lstrip("0123456789")
            return float(number) * {"ms": 1e-3, "us": 1e-6}[unit]
    return None


def node_of_interface(bus: int, address: int, interface: int, root: Path = Path("/")) -> Path | None:
    """Return the device file of an interface of the USB device at this place, None if it has none."""
    for entry in sorted((root / CLASS).glob("hidraw*")):
        folder = (entry / "device").resolve().parent
        try:
            place = [int((folder.parent / name).read_text()) for name in ("busnum", "devnum")]
            number = int((folder / "bInterfaceNumber").read_text(), 16)
        except (OSError, ValueError):  # gone meanwhile, or not of USB
            continue
        if [*place, number] == [bus, address, interface]:
            return root / "dev" / entry.name
    return None


def open_locked(path: Path) -> int:
    """Open a device file that no other run has, until it is closed; return the file.

    Raises
    ------
    OSError
        If it cannot be opened; `BlockingIOError` if another run has it.
    """
    import fcntl

    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


class HidrawTransport:
    """An open device file.

    Parameters
    ----------
    node : HidrawNode
        Which one.

    Raises
    ------
    DeviceOpenError
        If it may not be opened, is gone, or another run has it.
    """

    def __init__(self, node: HidrawNode) -> None:
        self.link = node.link
        identity, path = f"{node.link.vendor_id:04x}:{node.link.product_id:04x}", str(node.path)
        try:
            self._file = open_locked(node.path)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                raise DeviceOpenError(not_permitted(identity, path)) from error
            if error.errno in (errno.EBUSY, errno.EWOULDBLOCK):
                raise DeviceOpenError(busy(identity, path)) from error
            raise DeviceOpenError(
                f"the stick {identity} could not be opened ({path}: {error.strerror}): {AGAIN}."
            ) from error
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)
        self._sender = _Sender(self._file)

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
            raise failure(error, "a request for a report", _GONE) from error

    def write(self, report: bytes) -> None:
        """Send an output report; the kernel sends it through the interrupt pipe where there is one."""
        try:
            self._sender.send(report)
        except OSError as error:
            raise failure(error, "an output report", _GONE, after_stall=AGAIN) from error

    def read(self, timeout: float) -> bytes | None:
        """Return the next input report, None if there was none for `timeout` [s]."""
        try:
            if not self._poll.poll(max(timeout * 1e3, 0.0)):
                return None
            return os.read(self._file, LONGEST_REPORT)
        except OSError as error:
            raise failure(error, "an input report", _GONE) from error

    def close(self) -> None:
        """Close the device file, as soon as no report is under way any more."""
        self._sender.end()


class _Sender:
    """Sends reports in a thread of its own: for a stick that takes none the kernel waits for seconds, uninterruptibly.

    Parameters
    ----------
    file : int
        The open device file; it is closed in the end.
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
        """Send a report and wait for it, or for one before that is still under way, for `WRITE_TIMEOUT`.

        Raises
        ------
        OSError
            If it could not be sent, or not in time; then it may be sent later.
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
        """Have the file closed, and wait for that for a short while."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join(WRITE_TIMEOUT)

    def _run(self) -> None:
        while (report := self._next()) is not None:
            error = None
            try:
                os.write(self._file, report)
            except OSError as failed:
                error = failed
            with self._changed:
                self._report, self._error = None, error
                self._changed.notify_all()
        os.close(self._file)

    def _next(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._report is not None or self._ending)
            return self._report
