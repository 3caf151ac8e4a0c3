"""CAN interfaces: which there are, and whether they are up. They are not opened, so nothing is disturbed."""

from __future__ import annotations

from dataclasses import dataclass

from apps.doctor.finding import Finding, note, ok
from apps.doctor.machine import Machine

BIT_RATE = 1_000_000
"""What an arm's drive needs [bit/s]."""

_INTERFACES = "/sys/class/net"
_CAN = 280
"""``ARPHRD_CAN``: the type of such interfaces (linux/if_arp.h)."""

_UP = 0x1


@dataclass(frozen=True)
class CanInterface:
    """A CAN interface: its name, whether it is up, and whether there is an adapter behind it."""

    name: str
    up: bool
    real: bool

    def bring_up(self, sudo: str) -> str:
        """Return what to type to bring it up; `sudo` comes in front."""
        rate = f" type can bitrate {BIT_RATE}" if self.real else ""
        return f"{sudo}ip link set {self.name} up{rate}"


def can_interfaces(machine: Machine) -> list[CanInterface]:
    """Return the CAN interfaces of a machine, as Linux shows them."""
    found = []
    for folder in sorted(machine.path(_INTERFACES).glob("*")):
        try:
            kind, flags = ((folder / name).read_text(errors="replace") for name in ("type", "flags"))
            if int(kind) == _CAN:
                found.append(CanInterface(folder.name, bool(int(flags, 16) & _UP), (folder / "device").exists()))
        except (OSError, ValueError):  # it is going, or no interface
            continue
    return found


def can_bus(machine: Machine) -> Finding:
    """See whether CAN interfaces are up."""
    found = can_interfaces(machine)
    down = [one for one in found if not one.up]
    if down:
        names = ", ".join(one.name for one in down)
        return note(f"CAN interfaces that are down: {names}", *(one.bring_up(machine.sudo) for one in down))
    if found:
        return ok(f"CAN interfaces that are up: {', '.join(one.name for one in found)}")
    return ok("no CAN interface; only an arm with device.motors.protocol=can needs one")
