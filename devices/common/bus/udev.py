"""Rules of udev that let a person open a device: for whoever sits at the machine, and for members of a group."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

RULES_FILE = "/etc/udev/rules.d/70-haptics.rules"
GROUP = "haptics"
"""The group to whose members rules and other fixes give rights."""


class Node(StrEnum):
    """A kind of device file, named as the kernel's subsystem."""

    USB = "usb"
    HIDRAW = "hidraw"
    TTY = "tty"


_GRANT = f'TAG+="uaccess", GROUP="{GROUP}", MODE="0660"'
_MATCH = {
    Node.USB: 'SUBSYSTEM=="usb", ENV{{DEVTYPE}}=="usb_device", ATTR{{idVendor}}=="{0}", ATTR{{idProduct}}=="{1}"',
    Node.HIDRAW: 'SUBSYSTEM=="hidraw", ATTRS{{idVendor}}=="{0}", ATTRS{{idProduct}}=="{1}"',
    Node.TTY: 'SUBSYSTEM=="tty", ATTRS{{idVendor}}=="{0}", ATTRS{{idProduct}}=="{1}"',
}


def device_rules(identity: str, nodes: Iterable[Node]) -> list[str]:
    """Return the lines for one device.

    Parameters
    ----------
    identity : str
        ``vendor:product``, hexadecimal, small letters.
    nodes : iterable of Node
        The device files that its driver opens.
    """
    wanted = list(nodes)
    vendor, product = identity.split(":")
    lines = [f"{_MATCH[node].format(vendor, product)}, {_GRANT}" for node in wanted]
    return [*lines, f"{_MATCH[Node.USB].format(vendor, product)}, {_at_peace(wanted)}"]


def _at_peace(nodes: list[Node]) -> str:
    """Return what keeps a device awake, and a serial one from being taken for a modem."""
    awake = 'ATTR{power/control}="on"'
    return f'ENV{{ID_MM_DEVICE_IGNORE}}="1", {awake}' if Node.TTY in nodes else awake
