"""Discovery of connected sticks, selection of one, and connection to it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from devices.common import bus
from devices.joystick.families import GENERIC, Family, family_of
from devices.joystick.usb import hidraw, libusb
from devices.joystick.usb.transport import Link, not_permitted
from haptics.errors import DeviceNotFoundError, DeviceOpenError

USB, HIDRAW = "usb", "hidraw"
TRANSPORTS = ("auto", USB, HIDRAW)

Transport = libusb.UsbTransport | hidraw.HidrawTransport
"""Open connection to a stick.

Report bytes begin with the report's number. Two threads use a transport at once, one that reads and one that writes;
all other calls happen before they start or after they have ended. Every method except ``close`` raises
`devices.common.bus.TransferError`.
"""


@dataclass(frozen=True)
class FoundStick:
    """Connected stick.

    Attributes
    ----------
    identity : str
        ``vendor:product`` in lower-case hexadecimal digits.
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

    identity: str
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

    def __str__(self) -> str:
        place = f"at port {self.port}" if self.port else ""
        return " ".join(filter(None, (self.name, f"({self.identity})", self.serial and f"serial {self.serial}", place)))


def usb_sticks(backend: Any = None, root: Path | None = None) -> list[FoundStick]:
    """Return the game controllers, keyboards and mice that libusb lists, each with the steps required for its use.

    Devices are not detached from the kernel's driver.

    Parameters
    ----------
    backend : usb.backend.IBackend, optional
        USB backend to use instead of libusb.
    root : Path, optional
        Root of the file system, in which the kernel describes devices that libusb may not open.

    Raises
    ------
    DeviceOpenError
        If libusb is missing or cannot list the devices.
    """
    nodes = hidraw.hidraw_nodes(root) if root is not None and backend is None else ()
    speaking = [node.link for node in nodes if libusb.has_forces(node.link.descriptor)]
    try:
        import usb.core

        try:
            reached = backend or bus.libusb_backend()
        except DeviceOpenError as error:
            raise DeviceOpenError(f"{error} On Linux device.transport = 'hidraw' does without.") from error
        devices = usb.core.find(find_all=True, backend=reached)
        found = [device for device in devices if next(libusb.hid_interfaces(device), None) is not None]
        return [_usb_stick(device, speaking, real=backend is None) for device in found]
    except (ImportError, OSError) as error:  # OSError: raised by pyusb if no USB is accessible
        raise DeviceOpenError(
            f"USB devices cannot be listed ({error}): 'haptics doctor libusb' says why. On Linux device.transport = "
            "'hidraw' does without."
        ) from error


def _usb_stick(device: Any, speaking: list[Link], *, real: bool) -> FoundStick:
    """Describe a device that libusb lists; `speaking` are the devices with forces by hidraw."""
    identity, port = bus.identity_of(device), libusb.port_of(device)
    shown = (link.descriptor for link in speaking if link.vid_pid == identity and port in ("", link.port))
    descriptor = next(shown, b"") or libusb.descriptor_with_forces(device)
    family = family_of(identity)
    inward, outward = libusb.intervals(device, next(libusb.hid_interfaces(device)))
    serial: str | None = None
    name, missing = "", tuple[str, ...]()
    try:
        serial, name = libusb.names(device)
    except DeviceOpenError as error:
        missing = (str(error),)
    return FoundStick(
        identity,
        serial,
        name or family.title,
        family,
        family is not GENERIC or bool(descriptor),
        inward,
        outward,
        USB,
        bus.node_of(device),
        port,
        libusb.number_of_motors(descriptor),
        missing,
        connect=partial(libusb.open_usb, device, real=real),
    )


def hidraw_sticks(root: Path = Path("/")) -> list[FoundStick]:
    """Return the devices that hidraw lists; see `usb_sticks`."""
    found = []
    for node in hidraw.hidraw_nodes(root):
        link, path, family = node.link, str(node.path), family_of(node.link.vid_pid)
        stick = FoundStick(
            link.vid_pid,
            link.serial,
            link.name or family.title,
            family,
            libusb.has_forces(link.descriptor),
            link.in_interval,
            link.out_interval,
            HIDRAW,
            path,
            link.port,
            libusb.number_of_motors(link.descriptor),
            () if os.access(path, os.R_OK | os.W_OK) else (not_permitted(link.vid_pid, path),),
            connect=partial(hidraw.HidrawTransport, node),
        )
        found.append(stick)
    return found


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
        with contextlib.suppress(DeviceNotFoundError, DeviceOpenError):
            return choose(hidraw_sticks(), identity, serial, port).connect()
        raise


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
