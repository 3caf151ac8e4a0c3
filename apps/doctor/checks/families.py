"""The USB devices that the drivers know: which identities they have and which device files they need.

A driver that learns of one more device adds a row here; rules and checks follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from devices.arm.identities import ODRIVES, OPTOFORCE
from devices.common.bus.udev import Node
from devices.joystick.families import FAMILIES as STICKS
from devices.pantograph.identities import IDENTITIES as HAPI_BOARDS


@dataclass(frozen=True)
class Family:
    """USB devices that need the same rights.

    Attributes
    ----------
    name : str
        What a person calls it.
    title : str
        One line.
    backend : str
        The device of ``--device`` that uses it.
    identities : tuple of str
        ``vendor:product``, hexadecimal, small letters.
    nodes : tuple of Node
        The device files that the driver opens.
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
    """Return a family for a force-feedback stick that is in none of the table; it is called by its identity."""
    return Family(identity, title or "a force-feedback stick", "pid-joystick", (identity,), _HID)


def names() -> list[str]:
    """Return everything `named` understands."""
    return list(dict.fromkeys([*(family.name for family in FAMILIES), *(family.backend for family in FAMILIES)]))


def named(name: str) -> tuple[Family, ...]:
    """Return the family called `name`, or all that the device `name` may be made of.

    A name of the form ``vendor:product`` stands for a stick that is in none of the table.
    """
    found = tuple(family for family in FAMILIES if name in {family.name, family.backend} or name in family.identities)
    return found or ((stick_family(name),) if _IDENTITY.fullmatch(name) else ())
