"""Discovery of connected sticks, selection of one, and connection to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devices.joystick.families import GENERIC, Family, family_of
from devices.joystick.usb import hidraw
from devices.joystick.usb import listing as usb_listing
from devices.joystick.usb.remedies import not_listed, not_permitted
from devices.joystick.usb.transport import Link, Transport
from devices.joystick.usb.usb_transport import open_usb
from haptics.errors import DeviceNotFoundError, DeviceOpenError

USB, HIDRAW = "usb", "hidraw"
TRANSPORTS = ("auto", USB, HIDRAW)


@dataclass(frozen=True)
class FoundStick:
    """Connected stick.

    Attributes
    ----------
    vendor_id, product_id : int
        USB identity.
    serial : str or None
        Serial number, empty if the stick has none; None if it may not be read.
    name : str
        Product name, or the name of its family.
    family : Family
        Quirks of the stick.
    speaks_pid : bool
        Whether it plays forces: by its report descriptor if accessible without disturbing the stick, otherwise by
        family.
    in_interval, out_interval : float
        Shortest time between two input and two output reports [s].
    transport : str
        ``usb`` or ``hidraw``.
    node : str
        Device file.
    port : str
        USB port, ``1-2.3``; empty if unknown.
    motors : int or None
        Number of axes with a motor: 1 for a wheel; None if it cannot be determined without disturbing the stick.
    missing : tuple of str
        Steps that are required before it can be used; empty if none.
    """

    vendor_id: int
    product_id: int
    serial: str | None
    name: str
    family: Family
    speaks_pid: bool
    in_interval: float
    out_interval: float
    transport: str
    node: str
    port: str = ""
    motors: int | None = None
    missing: tuple[str, ...] = ()
    connect: Callable[[], Transport] = field(compare=False, repr=False, kw_only=True)

    @property
    def identity(self) -> str:
        """``vendor:product`` in lower-case hexadecimal digits."""
        return f"{self.vendor_id:04x}:{self.product_id:04x}"

    def __str__(self) -> str:
        place = f"at port {self.port}" if self.port else ""
        return " ".join(filter(None, (self.name, f"({self.identity})", self.serial and f"serial {self.serial}", place)))


def find_sticks(backend: Any = None, root: Path = Path("/")) -> list[FoundStick]:
    """Return the connected game controllers, keyboards and mice, each with the steps required for its use.

    Devices are not detached from the kernel's driver. If libusb is unavailable, hidraw is used.

    Parameters
    ----------
    backend : usb.backend.IBackend, optional
        USB backend to use instead of libusb.
    root : Path
        Root of the file system.
    """
    try:
        return usb_sticks(backend, root)
    except DeviceOpenError:
        return hidraw_sticks(root)


def usb_sticks(backend: Any = None, root: Path | None = None) -> list[FoundStick]:
    """Return the devices that libusb lists; see `find_sticks`.

    Raises
    ------
    DeviceOpenError
        If libusb is missing or cannot list the devices.
    """
    nodes = hidraw.hidraw_nodes(root) if root is not None and backend is None else ()
    speaking = [node.link for node in nodes if usb_listing.has_forces(node.link.descriptor)]
    try:
        devices = usb_listing.hid_devices(backend or usb_listing.libusb())
        return [_usb_stick(device, speaking, real=backend is None) for device in devices]
    except (ImportError, OSError) as error:  # OSError: raised by pyusb if no USB is accessible
        raise DeviceOpenError(not_listed(error)) from error


def _usb_stick(device: Any, speaking: list[Link], *, real: bool) -> FoundStick:
    vendor, product, port = device.idVendor, device.idProduct, usb_listing.port_of(device)
    descriptor = _shown(speaking, vendor, product, port) or usb_listing.descriptor_with_forces(device)
    family = family_of(vendor, product)
    interface = next(usb_listing.hid_interfaces(device))
    inward, outward = usb_listing.intervals(device, interface)
    serial: str | None = None
    name, missing = "", tuple[str, ...]()
    try:
        serial, name = usb_listing.names(device)
    except DeviceOpenError as error:
        missing = (str(error),)
    return FoundStick(
        vendor,
        product,
        serial,
        name or family.title,
        family,
        family is not GENERIC or bool(descriptor),
        inward,
        outward,
        USB,
        usb_listing.node_of(device),
        port,
        usb_listing.number_of_motors(descriptor),
        missing,
        connect=lambda: open_usb(device, real=real),
    )


def _shown(speaking: list[Link], vendor: int, product: int, port: str) -> bytes:
    """Return the report descriptor that hidraw has of a device that plays forces; empty if none."""
    alike = (link for link in speaking if (link.vendor_id, link.product_id) == (vendor, product))
    return next((link.descriptor for link in alike if port in ("", link.port)), b"")


def hidraw_sticks(root: Path = Path("/")) -> list[FoundStick]:
    """Return the devices that hidraw lists; see `find_sticks`."""
    return [_hidraw_stick(node) for node in hidraw.hidraw_nodes(root)]


def _hidraw_stick(node: hidraw.HidrawNode) -> FoundStick:
    link, path = node.link, str(node.path)
    family = family_of(link.vendor_id, link.product_id)
    identity = f"{link.vendor_id:04x}:{link.product_id:04x}"
    return FoundStick(
        link.vendor_id,
        link.product_id,
        link.serial,
        link.name or family.title,
        family,
        usb_listing.has_forces(link.descriptor),
        link.in_interval,
        link.out_interval,
        HIDRAW,
        path,
        link.port,
        usb_listing.number_of_motors(link.descriptor),
        () if os.access(path, os.R_OK | os.W_OK) else (not_permitted(identity, path),),
        connect=lambda: hidraw.HidrawTransport(node),
    )


def connect(identity: str, serial: str, transport: str = "auto", backend: Any = None, port: str = "") -> Transport:
    """Open one stick.

    Parameters
    ----------
    identity : str
        ``vendor:product``, hexadecimal; empty for any stick that plays forces.
    serial : str
        Serial number; empty if only one is connected.
    transport : str
        One of `TRANSPORTS`; ``auto`` tries libusb first.
    backend : usb.backend.IBackend, optional
        USB backend to use instead of libusb.
    port : str
        USB port; empty for any.

    Raises
    ------
    DeviceNotFoundError
        If it is not connected.
    DeviceOpenError
        If the selection is ambiguous, or it could not be opened; the message states the remedy.
    """
    if transport == HIDRAW:
        return choose(hidraw_sticks(), identity, serial, port).connect()
    try:
        return choose(usb_sticks(backend, Path("/")), identity, serial, port).connect()
    except (DeviceNotFoundError, DeviceOpenError):
        if transport == USB or backend is not None:
            raise
        other = _by_hidraw(identity, serial, port)
        if other is None:
            raise
        return other


def _by_hidraw(identity: str, serial: str, port: str) -> Transport | None:
    try:
        return choose(hidraw_sticks(), identity, serial, port).connect()
    except (DeviceNotFoundError, DeviceOpenError):
        return None


def choose(found: Sequence[FoundStick], identity: str, serial: str, port: str = "") -> FoundStick:
    """Return the selected stick.

    Raises
    ------
    DeviceNotFoundError
        If it is not among those found; names the sticks found.
    DeviceOpenError
        If the selection is ambiguous; names serial numbers and ports.
    """
    sticks = [stick for stick in found if stick.speaks_pid]
    alike = [stick for stick in sticks if identity in ("", stick.identity) and port in ("", stick.port)]
    meant = [stick for stick in alike if serial in ("", stick.serial)] or [s for s in alike if s.serial is None]
    if not meant:
        if not sticks:
            raise DeviceNotFoundError("no force-feedback stick is plugged in: plug one in and start again.")
        named = serial and f"with serial {serial}", port and f"at port {port}"
        wanted = " ".join(filter(None, ("stick", identity, *named)))
        there = ", ".join(map(str, sticks))
        raise DeviceNotFoundError(f"no {wanted} is plugged in; there is {there}. Plug it in, or name another one.")
    if len(meant) > 1:
        key = "serial" if len({stick.serial for stick in meant} - {"", None}) == len(meant) else "port"
        raise DeviceOpenError(
            f"{len(meant)} sticks could be meant: {', '.join(map(str, meant))}. Choose one with device.{key}."
        )
    return meant[0]
