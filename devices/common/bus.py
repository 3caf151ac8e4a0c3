"""Access to devices: transfer errors, text of devices, libusb, serial ports and udev rules."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shlex
import sys
import termios
import tty
from collections.abc import Callable, Collection, Container, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError

# --- errors of transfers ----------------------------------------------------------------------------------------------

GONE = frozenset((errno.ENODEV, errno.ESHUTDOWN, errno.ENOENT, errno.ENXIO))
"""Error numbers of the system for a device that was unplugged."""


class Trouble(StrEnum):
    """Kind of a transfer failure."""

    UNPLUGGED = "unplugged"
    """The device was unplugged."""
    TIMEOUT = "timeout"
    """The device did not answer in time."""
    STALL = "stall"
    """The device rejected the request."""
    BROKEN = "broken"
    """Any other failure."""


class TransferError(DeviceFault):
    """Failed transfer.

    Attributes
    ----------
    trouble : Trouble
        Kind of the failure.
    """

    def __init__(self, message: str, trouble: Trouble = Trouble.BROKEN) -> None:
        super().__init__(message)
        self.trouble = trouble


def trouble_of(error: OSError, gone: Collection[int] = GONE) -> Trouble:
    """Classify a system error; `gone` contains the error numbers of an unplugged device."""
    if error.errno in gone:
        return Trouble.UNPLUGGED
    return {errno.ETIMEDOUT: Trouble.TIMEOUT, errno.EPIPE: Trouble.STALL}.get(error.errno or 0, Trouble.BROKEN)


# --- text of devices --------------------------------------------------------------------------------------------------

LONGEST = 126
"""Maximum length of a USB string in characters."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_OTHER_TOML = frozenset({"true", "false", "inf", "nan"})


def printable(text: str) -> str:
    """Return `text` without unprintable characters, such as line ends and terminal escape sequences."""
    return "".join(character for character in text if character.isprintable())[:LONGEST].strip()


def setting(key: str, value: str) -> str:
    """Return ``--set KEY=VALUE`` with shell quoting for any text `value`."""
    if not _PLAIN.fullmatch(value) or value in _OTHER_TOML:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        value = f'"{escaped}"'
    return f"--set {shlex.quote(f'{key}={value}')}"


# --- libusb -----------------------------------------------------------------------------------------------------------

DENIED = frozenset((errno.EACCES, errno.EPERM))
"""Error numbers of the system for missing permission."""


def libusb_backend() -> Any:
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
        raise DeviceOpenError(
            "no libusb was found, without which no USB device can be opened. Install the system's (Debian: sudo "
            f"apt-get install libusb-1.0-0) or run: {shlex.quote(sys.executable)} -m pip install libusb-package."
        )
    return backend


def usb_string(device: Any, index: int) -> str:
    """Return a string of an open device, empty if absent."""
    import usb.core
    import usb.util

    try:
        return printable(usb.util.get_string(device, index) or "") if index else ""
    except (usb.core.USBError, ValueError):  # rejected, or without a language, or invalid
        return ""


def active_configuration(device: Any) -> Any:
    """Return the active configuration; if there is none, select the only one, which would reset the device later."""
    import usb.core

    try:
        return device.get_active_configuration()
    except usb.core.USBError as error:
        if error.errno is not None:
            raise
        device.set_configuration()
        return device.get_active_configuration()


def retry_after_stall(device: Any, address: int, transfer: Callable[[], Any]) -> Any:
    """Return the result of `transfer`; if the pipe at `address` has stalled, clear it and retry once."""
    try:
        return transfer()
    except OSError as error:
        if trouble_of(error) is not Trouble.STALL:
            raise
    device.clear_halt(address)
    return transfer()


def identity_of(device: Any) -> str:
    """Return ``vendor:product`` of a USB device in lower-case hexadecimal digits."""
    return f"{device.idVendor:04x}:{device.idProduct:04x}"


def node_of(device: Any) -> str:
    """Return the path of the device file of a USB device."""
    return f"/dev/bus/usb/{device.bus or 0:03}/{device.address or 0:03}"


# --- serial ports -----------------------------------------------------------------------------------------------------
#
# Linux provides USB devices with a serial port as terminals. Raw, non-blocking, exclusive access requires only the
# standard library, so that no serial library is needed.

SYSTEM = Path("/sys/class/tty")


def find_port(
    identities: Container[str], title: str, setting: str, system: Path = SYSTEM, *, otherwise: str = ""
) -> str:
    """Return the device file of the only matching USB device.

    Parameters
    ----------
    identities : container of str
        Accepted USB identities: ``vendor:product``, hexadecimal, lower case.
    title : str
        Name of the device in messages.
    setting : str
        Name of the setting for the port.
    system : Path
        Folder in which the system lists its terminals.
    otherwise : str
        Alternative remedy if no device is found; a sentence.

    Raises
    ------
    DeviceNotFoundError
        If no device is found.
    DeviceOpenError
        If several devices are found, so that the user must choose one.
    """
    found = sorted(f"/dev/{entry.name}" for entry in system.glob("ttyACM*") if _identity(entry) in identities)
    if not found:
        hint = f"Plug it in, or name its port: {setting}=/dev/ttyACM0."
        raise DeviceNotFoundError(f"no {title} is plugged in. {hint} {otherwise}".rstrip())
    if len(found) > 1:
        raise DeviceOpenError(f"there are several ports with a {title}: choose one, {setting}={' or '.join(found)}.")
    return found[0]


def _identity(entry: Path) -> str:
    """Return vendor:product of the USB device of a terminal, or an empty string."""
    device = entry / "device" / ".."
    try:
        return ":".join((device / name).read_text().strip().lower() for name in ("idVendor", "idProduct"))
    except OSError:
        return ""


def open_port(path: str, setting: str, speed: int) -> int:
    """Open a serial port for raw, non-blocking, exclusive use; return the file descriptor.

    Parameters
    ----------
    path : str
        Device file.
    setting : str
        Name of the setting for the port, for messages.
    speed : int
        Constant of `termios` such as ``termios.B115200``; only relevant for physical serial lines.

    Raises
    ------
    DeviceNotFoundError, DeviceOpenError
        With the remedy.
    """
    try:
        port = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _refusal(path, setting, error) from error
    try:
        fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB)  # lock against other runs of this program
        fcntl.ioctl(port, termios.TIOCEXCL)  # lock against other programs, such as a modem manager
        tty.setraw(port, termios.TCSANOW)
        attributes = termios.tcgetattr(port)
        attributes[2] = (attributes[2] | termios.CLOCAL | termios.CREAD) & ~termios.HUPCL  # no modem control or hang-up
        attributes[4] = attributes[5] = speed
        termios.tcsetattr(port, termios.TCSANOW, attributes)
        termios.tcflush(port, termios.TCIOFLUSH)
    except (OSError, termios.error) as error:
        os.close(port)
        raise _refusal(path, setting, error) from error
    return port


def _refusal(path: str, setting: str, error: Exception) -> DeviceNotFoundError | DeviceOpenError:
    number = error.errno if isinstance(error, OSError) else errno.ENOTTY
    if number in {errno.ENOENT, errno.ENXIO, errno.ENODEV}:
        return DeviceNotFoundError(f"there is no {path}: plug the device in, or leave {setting} out to look for it.")
    remedies = {
        errno.EACCES: "you may not use it: `haptics doctor` has the udev rule; or join the group that owns it "
        "(sudo usermod -aG dialout $USER) and log in again.",
        errno.EBUSY: "another program has it open: close that first (`fuser -v` names it).",
        errno.EWOULDBLOCK: "another session, or the guardian of one that is just ending, has it open: wait a second.",
        errno.ENOTTY: f"it is no serial port: choose another {setting}.",
    }
    return DeviceOpenError(f"{path} cannot be opened: {remedies.get(number or 0, os.strerror(number or errno.EIO))}")


# --- udev rules -------------------------------------------------------------------------------------------------------

RULES_FILE = "/etc/udev/rules.d/70-haptics.rules"
GROUP = "haptics"
"""Group that receives access rights."""


class Node(StrEnum):
    """Kind of device file, with the name of its kernel subsystem."""

    USB = "usb"
    HIDRAW = "hidraw"
    TTY = "tty"


_GRANT = f'TAG+="uaccess", GROUP="{GROUP}", MODE="0660"'
_MATCH = {
    Node.USB: 'SUBSYSTEM=="usb", ENV{{DEVTYPE}}=="usb_device", ATTR{{idVendor}}=="{0}", ATTR{{idProduct}}=="{1}"',
    Node.HIDRAW: 'SUBSYSTEM=="hidraw", ATTRS{{idVendor}}=="{0}", ATTRS{{idProduct}}=="{1}"',
    Node.TTY: 'SUBSYSTEM=="tty", ATTRS{{idVendor}}=="{0}", ATTRS{{idProduct}}=="{1}"',
}


def not_permitted(noun: str, identity: str, path: str) -> str:
    """Return the message for a device, such as a "stick", whose file at `path` the user has no permission to open."""
    return (
        f"the {noun} {identity} is there, but may not be opened ({path}: permission denied): haptics doctor udev "
        "prints the commands that give this user access; haptics devices shows the udev rule."
    )


def device_rules(identity: str, nodes: Iterable[Node]) -> list[str]:
    """Return the udev rules for one device.

    Parameters
    ----------
    identity : str
        ``vendor:product``, hexadecimal, lower case.
    nodes : iterable of Node
        Device files that the driver opens.
    """
    kinds = list(nodes)
    vendor, product = identity.split(":")
    quiet = 'ATTR{power/control}="on"'  # no power saving, and no probing of a serial device for a modem
    if Node.TTY in kinds:
        quiet = f'ENV{{ID_MM_DEVICE_IGNORE}}="1", {quiet}'
    rules = [f"{_MATCH[node].format(vendor, product)}, {_GRANT}" for node in kinds]
    return [*rules, f"{_MATCH[Node.USB].format(vendor, product)}, {quiet}"]
