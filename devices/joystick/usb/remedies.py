"""Messages with instructions for sticks that cannot be opened."""

from __future__ import annotations

import shlex
import sys

from devices.common.bus import GROUP, RULES_FILE, Node, device_rules

_NODES = (Node.USB, Node.HIDRAW)


def rules(identity: str) -> str:
    """Return the udev rules for the stick `identity` (``vendor:product``, hexadecimal)."""
    return "\n".join(device_rules(identity, _NODES))


def not_permitted(identity: str, node: str) -> str:
    """Return the message for a stick that the user has no permission to open."""
    return (
        f"the stick {identity} is there, but may not be opened ({node}: permission denied). Put these lines into "
        f"{RULES_FILE}:\n{rules(identity)}\nthen run: sudo groupadd -f {GROUP}; sudo udevadm control --reload; "
        "sudo udevadm trigger; and plug the stick in anew."
    )


def busy(identity: str, node: str) -> str:
    """Return the message for a stick that another process has opened."""
    return (
        f"the stick {identity} is held by another program: another run, a game, or a tool of its maker. See which one "
        f"with: fuser -v {node}; end it and start again."
    )


def no_libusb() -> str:
    """Return the message for a missing libusb."""
    return (
        "no libusb was found, without which no USB device can be opened. Install the system's (Debian: sudo apt-get "
        f"install libusb-1.0-0) or run: {shlex.quote(sys.executable)} -m pip install libusb-package. On Linux "
        "device.transport = 'hidraw' does without."
    )


def not_listed(error: Exception) -> str:
    """Return the message for a failure of libusb or pyusb to list the devices."""
    return (
        f"USB devices cannot be listed ({error}): 'haptics doctor libusb' says why. On Linux device.transport = "
        "'hidraw' does without."
    )
