"""USB devices known to the drivers: their identities and the device files that they need.

For a new device, add a row to `FAMILIES`; rules and checks use this table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from devices.arm import ODRIVES, OPTOFORCE
from devices.common.bus import Node
from devices.joystick.families import FAMILIES as STICKS
from devices.pantograph.mechanisms import IDENTITIES as HAPI_BOARDS


@dataclass(frozen=True)
class Family:
    """USB devices that need the same permissions.

    Attributes
    ----------
    name : str
        Short name.
    title : str
        One-line description.
    backend : str
        Backend (``--device``) that uses it.
    identities : tuple of str
        ``vendor:product`` in lower-case hexadecimal.
    nodes : tuple of Node
        Device files that the driver opens.
    """

    name: str
    title: str
    backend: str
    identities: tuple[str, ...]
    nodes: tuple[Node, ...]


_HID = (Node.USB, Node.HIDRAW)
_SERIAL = (Node.TTY,)
_IDENTITY = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")

FAMILIES = (
    *(Family(stick.name, stick.title, "pid-joystick", stick.identities, _HID) for stick in STICKS),
    Family("haply", "Haply board (Arduino Zero, M0 or Due)", "pantograph", HAPI_BOARDS, _SERIAL),
    Family("odrive", "ODrive 3 motor stage", "arm", ODRIVES, (Node.USB, Node.TTY)),
    Family("optoforce", "OptoForce / OnRobot force sensor", "arm", OPTOFORCE, _SERIAL),
)


def stick_family(identity: str, title: str = "") -> Family:
    """Return a family for a force-feedback stick that is not in `FAMILIES`, named by its identity."""
    return Family(identity, title or "a force-feedback stick", "pid-joystick", (identity,), _HID)


def names() -> list[str]:
    """Return all names of families and backends that `named` accepts."""
    return list(dict.fromkeys([*(family.name for family in FAMILIES), *(family.backend for family in FAMILIES)]))


def named(name: str) -> tuple[Family, ...]:
    """Return the family called `name`, or all families of the backend `name`.

    A name of the form ``vendor:product`` denotes a stick that is not in `FAMILIES`.
    """
    found = tuple(family for family in FAMILIES if name in {family.name, family.backend} or name in family.identities)
    return found or ((stick_family(name),) if _IDENTITY.fullmatch(name) else ())
