"""USB devices with a serial port: search for the port, and opening it.

Linux provides them as terminals. Raw, non-blocking, exclusive access requires only the standard library, so that no
serial library is needed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import termios
import tty
from collections.abc import Container
from pathlib import Path

from haptics.errors import DeviceNotFoundError, DeviceOpenError

SYSTEM = Path("/sys/class/tty")


def find_port(
    identities: Container[str], what: str, setting: str, system: Path = SYSTEM, *, otherwise: str = ""
) -> str:
    """Return the device file of the only matching USB device.

    Parameters
    ----------
    identities : container of str
        Accepted USB identities: ``vendor:product``, hexadecimal, lower case.
    what : str
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
        raise DeviceNotFoundError(f"no {what} is plugged in. {hint} {otherwise}".rstrip())
    if len(found) > 1:
        raise DeviceOpenError(f"there are several ports with a {what}: choose one, {setting}={' or '.join(found)}.")
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
        _make_raw(port, speed)
    except (OSError, termios.error) as error:
        os.close(port)
        raise _refusal(path, setting, error) from error
    return port


def _make_raw(port: int, speed: int) -> None:
    """Set raw mode, disable modem control and hang-up on close, and discard buffered data."""
    tty.setraw(port, termios.TCSANOW)
    attributes = termios.tcgetattr(port)
    attributes[2] = (attributes[2] | termios.CLOCAL | termios.CREAD) & ~termios.HUPCL
    attributes[4] = attributes[5] = speed
    termios.tcsetattr(port, termios.TCSANOW, attributes)
    termios.tcflush(port, termios.TCIOFLUSH)


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
