"""Checks of other connections of devices: serial ports, CAN interfaces, the Haply service and makers' libraries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from apps.doctor.machine import LOG_IN_AGAIN, Finding, Machine, note, ok, program
from devices.common.bus import RULES_FILE
from devices.common.vendor_library import VendorLibrary
from devices.forcedimension.library import LIBRARY as FORCE_DIMENSION_SDK
from devices.inverse3.service import PORT
from devices.touch.hdapi import OPENHAPTICS
from haptics.errors import ConfigurationError, reason_of

_PORT_GROUPS = ("dialout", "uucp")
"""Debian, Fedora and derivatives; Arch."""


def user_name() -> str:
    """Return the name of the user, empty if unknown."""
    import getpass

    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""


def serial_ports(machine: Machine, name: Callable[[], str] = user_name) -> Finding:
    """Check that the user is a member of the group of the serial ports."""
    if machine.is_root:
        return ok("root may open every serial port")
    known = machine.groups_of_names()
    group = next((group for group in _PORT_GROUPS if group in known), None)
    if group is None:
        return ok("this system has no group for serial ports")
    if known[group] in machine.groups:
        return ok(f"you are in the group {group} and may open serial ports")
    lines = [line.split(":") for line in (machine.read("/etc/group") or "").splitlines()]
    members = next((line[3].split(",") for line in lines if line[0] == group and len(line) > 3), [])
    if name() in members:
        return note(f"you are in the group {group}, but this login began before that", LOG_IN_AGAIN)
    return note(
        f"you are not in the group {group}: boards and sensors at serial ports cannot be opened without a rule",
        machine.join_group(group),
        LOG_IN_AGAIN,
    )


def modem_manager(machine: Machine) -> Finding:
    """Check that ModemManager does not probe our devices."""
    running = set()
    for path in machine.path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # the process has ended
            running.add(path.read_text(errors="replace").strip())
    if "ModemManager" not in running:
        return ok("ModemManager does not run: nobody else talks to serial devices")
    if "ID_MM_DEVICE_IGNORE" in (machine.read(RULES_FILE) or ""):
        return ok("ModemManager runs, and is told to leave our devices alone")
    return note(
        "ModemManager runs: for some seconds it talks to every serial device that is plugged in",
        f"{program()} doctor --udev | {machine.sudo}tee {RULES_FILE}",
        f"{machine.sudo}udevadm control --reload && {machine.sudo}udevadm trigger",
    )


BIT_RATE = 1_000_000
"""Bit rate of the drives of an arm [bit/s]."""

_INTERFACES = "/sys/class/net"
_CAN = 280
"""``ARPHRD_CAN``: device type of CAN interfaces (linux/if_arp.h)."""

_UP = 0x1


@dataclass(frozen=True)
class CanInterface:
    """CAN interface: its name, whether it is up, and whether it belongs to an adapter."""

    name: str
    up: bool
    real: bool

    def bring_up(self, sudo: str) -> str:
        """Return the shell command that brings it up, with the prefix `sudo`."""
        rate = f" type can bitrate {BIT_RATE}" if self.real else ""
        return f"{sudo}ip link set {self.name} up{rate}"


def can_interfaces(machine: Machine) -> list[CanInterface]:
    """Return the CAN interfaces in sysfs."""
    found = []
    for folder in sorted(machine.path(_INTERFACES).glob("*")):
        try:
            kind, flags = ((folder / name).read_text(errors="replace") for name in ("type", "flags"))
            if int(kind) == _CAN:
                found.append(CanInterface(folder.name, bool(int(flags, 16) & _UP), (folder / "device").exists()))
        except (OSError, ValueError):  # the interface was removed, or is not an interface
            continue
    return found


def can_bus(machine: Machine) -> Finding:
    """Check that CAN interfaces are up."""
    found = can_interfaces(machine)
    down = [one for one in found if not one.up]
    if down:
        names = ", ".join(one.name for one in down)
        return note(f"CAN interfaces that are down: {names}", *(one.bring_up(machine.sudo) for one in down))
    if found:
        return ok(f"CAN interfaces that are up: {', '.join(one.name for one in found)}")
    return ok("no CAN interface; only an arm with device.motors.protocol=can needs one")


BACKEND = "inverse3"
"""Backend (``--device``) that uses the service."""

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"


def listens(machine: Machine, port: int = PORT) -> bool:
    """Return True if a program listens on a TCP `port` of this machine, according to /proc."""
    wanted = f"{port:04X}"
    for table in _TABLES:
        try:
            lines = machine.path(table).read_text(errors="replace").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if len(fields) > 3 and fields[1].rpartition(":")[2] == wanted and fields[3] == _LISTENS:
                return True
    return False


def haply_service(machine: Machine) -> Finding:
    """Check whether a program listens on the port of the Haply service."""
    if listens(machine):
        return ok(f"port {PORT} is listened at: the Haply service runs, as far as can be told without asking it")
    return ok(f"no Haply service was seen at port {PORT}; only the device {BACKEND} needs one")


LIBRARIES: dict[str, VendorLibrary] = {library.backend: library for library in (FORCE_DIMENSION_SDK, OPENHAPTICS)}
"""Libraries of makers that the user installs, by backend."""


def maker_libraries(machine: Machine) -> Finding:
    """Check whether the libraries of device makers are found, and a C compiler for the emulated ones."""
    from devices.emulators.native.compiler import find_compiler

    found, fixes = [], []
    for backend, library in LIBRARIES.items():
        try:
            path = library.find()
        except ConfigurationError as error:
            found.append(reason_of(error))
            fixes.append(f"unset {' '.join(library.variables)}   # or let it name the {library.title}")
            continue
        missing = path is None and library.missing()
        found.append(f"{backend} needs the {library.title}, which was not found" if missing else f"{backend}: {path}")
    if not find_compiler():
        found.append(f"there is no C compiler, which {' and '.join(LIBRARIES)} need when they are emulated")
        fixes.append(f"{machine.sudo}apt install gcc libc6-dev")
    return note("; ".join(found), *fixes) if fixes else ok("; ".join(found))
