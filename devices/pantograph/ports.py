"""Finding and opening the board's serial port.

Linux makes a terminal of a USB-serial device. What is needed of it (raw bytes, no waiting, nobody else) is a few lines
of the standard library, so there is no serial library here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import termios
import tty
from pathlib import Path

from devices.pantograph.identities import IDENTITIES
from haptics.errors import DeviceNotFoundError, DeviceOpenError

SYSTEM = Path("/sys/class/tty")


def find_port(system: Path = SYSTEM) -> str:
    """Return the device file of the only hAPI board that is plugged in.

    Raises
    ------
    DeviceNotFoundError
        If there is none.
    DeviceOpenError
        If there are several: one must be chosen.
    """
    found = sorted(f"/dev/{entry.name}" for entry in system.glob("ttyACM*") if _identity(entry) in IDENTITIES)
    if not found:
        raise DeviceNotFoundError(
            "no hAPI board (Arduino Zero, M0 or Due) is plugged in. Plug it in at its native USB port, or name its "
            "serial port: device.port=/dev/ttyACM0; device.emulated=true works without one."
        )
    if len(found) > 1:
        raise DeviceOpenError(f"there are several hAPI boards: choose one of device.port={', '.join(found)}.")
    return found[0]


def _identity(entry: Path) -> str:
    """Return vendor:product of the USB device behind a terminal, empty if there is none."""
    device = entry / "device" / ".."
    try:
        return ":".join((device / name).read_text().strip().lower() for name in ("idVendor", "idProduct"))
    except OSError:
        return ""


def open_port(path: str) -> int:
    """Open a serial port for raw, unbuffered, exclusive use; return the file descriptor.

    Raises
    ------
    DeviceNotFoundError, DeviceOpenError
        With the remedy.
    """
    try:
        port = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB)  # for siblings
        fcntl.ioctl(port, termios.TIOCEXCL)  # for others, such as a modem manager
        _make_raw(port)
    except (OSError, termios.error) as error:
        os.close(port)
        raise _refusal(path, error) from error
    return port


def _make_raw(port: int) -> None:
    """Bytes as they are; 57600 baud, since 1200 would send an Arduino to its boot loader; no hang-up at the end."""
    tty.setraw(port, termios.TCSANOW)
    attributes = termios.tcgetattr(port)
    attributes[2] = (attributes[2] | termios.CLOCAL | termios.CREAD) & ~termios.HUPCL
    attributes[4] = attributes[5] = termios.B57600
    termios.tcsetattr(port, termios.TCSANOW, attributes)
    termios.tcflush(port, termios.TCIOFLUSH)


def _refusal(path: str, error: Exception) -> DeviceNotFoundError | DeviceOpenError:
    number = error.errno if isinstance(error, OSError) else errno.ENOTTY
    if number in {errno.ENOENT, errno.ENXIO, errno.ENODEV}:
        return DeviceNotFoundError(f"there is no {path}: plug the board in, or leave device.port out to look for it.")
    remedies = {
        errno.EACCES: "you may not use it: `haptics doctor` has the udev rule; or join the group that owns it "
        "(sudo usermod -aG dialout $USER) and log in again.",
        errno.EBUSY: "another program has it open: close that first (`fuser -v` names it).",
        errno.EWOULDBLOCK: "another session, or the guardian of one that is just ending, has it open: wait a second.",
        errno.ENOTTY: "it is no serial port: choose another device.port.",
    }
    return DeviceOpenError(f"{path} cannot be opened: {remedies.get(number or 0, os.strerror(number or errno.EIO))}")
