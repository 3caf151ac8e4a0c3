"""Checks of serial ports: permissions, and programs that open them automatically."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from apps.doctor.finding import Finding, note, ok
from apps.doctor.machine import LOG_IN_AGAIN, Machine, program
from devices.common.bus import RULES_FILE

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
    if name() in _members(machine, group):
        return note(f"you are in the group {group}, but this login began before that", LOG_IN_AGAIN)
    return note(
        f"you are not in the group {group}: boards and sensors at serial ports cannot be opened without a rule",
        machine.join_group(group),
        LOG_IN_AGAIN,
    )


def _members(machine: Machine, group: str) -> list[str]:
    for line in (machine.read("/etc/group") or "").splitlines():
        fields = line.split(":")
        if fields[0] == group and len(fields) > 3:
            return fields[3].split(",")
    return []


def _running(machine: Machine) -> Iterator[str]:
    for path in machine.path("/proc").glob("[0-9]*/comm"):
        try:
            yield path.read_text(errors="replace").strip()
        except OSError:  # the process has ended
            continue


def modem_manager(machine: Machine) -> Finding:
    """Check that ModemManager does not probe our devices."""
    if "ModemManager" not in set(_running(machine)):
        return ok("ModemManager does not run: nobody else talks to serial devices")
    if "ID_MM_DEVICE_IGNORE" in (machine.read(RULES_FILE) or ""):
        return ok("ModemManager runs, and is told to leave our devices alone")
    return note(
        "ModemManager runs: for some seconds it talks to every serial device that is plugged in",
        f"{program()} doctor --udev | {machine.sudo}tee {RULES_FILE}",
        f"{machine.sudo}udevadm control --reload && {machine.sudo}udevadm trigger",
    )
