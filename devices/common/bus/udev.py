"""udev rules that grant access to devices, for the user at the machine and for members of a group."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

RULES_FILE = "/etc/udev/rules.d/70-haptics.rules"
GROUP = "haptics"
"""Group that receives access rights."""


class Node(StrEnum):
    """Kind of device file, with the name of its kernel subsystem."""

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
    """Return the udev rules for one device.

    Parameters
    ----------
    identity : str
        ``vendor:product``, hexadecimal, lower case.
    nodes : iterable of Node
        Device files that the driver opens.
    """
    wanted = list(nodes)
    vendor, product = identity.split(":")
    lines = [f"{_MATCH[node].format(vendor, product)}, {_GRANT}" for node in wanted]
    return [*lines, f"{_MATCH[Node.USB].format(vendor, product)}, {_at_peace(wanted)}"]


def _at_peace(nodes: list[Node]) -> str:
    """Return assignments that disable power saving, and modem probing of a serial device."""
    awake = 'ATTR{power/control}="on"'
    return f'ENV{{ID_MM_DEVICE_IGNORE}}="1", {awake}' if Node.TTY in nodes else awake
