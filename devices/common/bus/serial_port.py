"""USB devices that show up as a serial port: finding theirs, and opening it.

Linux makes a terminal of them. What is needed of it (raw bytes, no waiting, nobody else) is a few lines of the standard
library, so there is no serial library here.
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
    """Return the device file of the only such device that is plugged in.

    Parameters
    ----------
    identities : container of str
        What it may be: ``vendor:product``, hexadecimal, small letters.
    what : str
        Its name in messages.
    setting : str
        The setting that names a port.
    system : Path
        Where the system lists its terminals.
    otherwise : str
        What else can be done if there is none; a sentence.

    Raises
    ------
    DeviceNotFoundError
        If there is none.
    DeviceOpenError
        If there are several: one must be chosen.
    """
    found = sorted(f"/dev/{entry.name}" for entry in system.glob("ttyACM*") if _identity(entry) in identities)
    if not found:
        hint = f"Plug it in, or name its port: {setting}=/dev/ttyACM0."
        raise DeviceNotFoundError(f"no {what} is plugged in. {hint} {otherwise}".rstrip())
    if len(found) > 1:
        raise DeviceOpenError(f"there are several ports with a {what}: choose one, {setting}={' or '.join(found)}.")
    return found[0]


def _identity(entry: Path) -> str:
    """Return vendor:product of the USB device behind a terminal, empty if there is none."""
    device = entry / "device" / ".."
    try:
        return ":".join((device / name).read_text().strip().lower() for name in ("idVendor", "idProduct"))
    except OSError:
        return ""


def open_port(path: str, setting: str, speed: int) -> int:
    """Open a serial port for raw, unbuffered, exclusive use; return the file descriptor.

    Parameters
    ----------
    path : str
        The device file.
    setting : str
        The setting that names it, for messages.
    speed : int
        A constant of `termios` such as ``termios.B115200``; it matters to real serial lines only.

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
        fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB)  # against other runs of this program
        fcntl.ioctl(port, termios.TIOCEXCL)  # against other programs, such as a modem manager
        _make_raw(port, speed)
    except (OSError, termios.error) as error:
        os.close(port)
        raise _refusal(path, setting, error) from error
    return port


def _make_raw(port: int, speed: int) -> None:
    """Bytes as they are, no modem lines, no hang-up at the end, and nothing left of what was sent before."""
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
