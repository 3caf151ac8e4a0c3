"""CAN interfaces and their state.

They are not opened, so buses are not disturbed.
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.doctor.finding import Finding, note, ok
from apps.doctor.machine import Machine

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
