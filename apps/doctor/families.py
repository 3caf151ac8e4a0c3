"""The USB devices that the drivers know: which identities they have and which device files they need.

A driver that learns of one more device adds a row here; rules and checks follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Node(StrEnum):
    """A kind of device file, named as the kernel's subsystem."""

    USB = "usb"
    HIDRAW = "hidraw"
    TTY = "tty"


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

FAMILIES = (
    Family(
        "sidewinder",
        "Microsoft SideWinder Force Feedback 2 and Wheel",
        "pid-joystick",
        ("045e:001b", "045e:0034"),
        _HID,
    ),
    Family("openffboard", "OpenFFBoard joystick", "pid-joystick", ("1209:ffb0",), _HID),
    Family(
        "arduino-ffb",
        "Arduino Leonardo or Micro with a force feedback library",
        "pid-joystick",
        ("2341:8036", "2341:8037"),
        _HID,
    ),
    Family(
        "adapt-ffb", "adapt-ffb-joy adapter for gameport joysticks", "pid-joystick", ("03eb:204e", "03eb:2056"), _HID
    ),
    Family("rhino", "VPforce Rhino", "pid-joystick", ("ffff:2055",), _HID),
    Family("ffbeast", "FFBeast joystick", "pid-joystick", ("045b:58f9",), _HID),
    Family(
        "haply",
        "Haply board (Arduino Zero, M0 or Due)",
        "pantograph",
        ("2341:804d", "2341:824d", "2a03:804e", "03eb:2157", "2341:003e", "2a03:003e", "2341:003d"),
        _SERIAL,
    ),
    Family("odrive", "ODrive 3 motor stage", "arm", ("1209:0d31", "1209:0d32", "1209:0d33"), (Node.USB, Node.TTY)),
    Family("optoforce", "OptoForce / OnRobot force sensor", "arm", ("04d8:000a",), _SERIAL),
)


def names() -> list[str]:
    """Return everything `named` understands."""
    return list(dict.fromkeys([*(family.name for family in FAMILIES), *(family.backend for family in FAMILIES)]))


def named(name: str) -> tuple[Family, ...]:
    """Return the family called `name`, or all that the device `name` may be made of."""
    return tuple(family for family in FAMILIES if name in {family.name, family.backend})
