"""Emulated service in a separate process (`devices.emulators.child`), accessible at a TCP port."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from devices.emulators import child
from haptics.errors import HapticError


def spawn(table: Mapping[str, Any]) -> AbstractContextManager[str]:
    """Run an emulated service with one device; yield its address.

    Parameters
    ----------
    table : mapping
        ``device_id``, ``kind``, ``plane``, ``hand``, ``seed``, ``mass`` and ``damping`` of the device
        (`devices.emulators.inverse3.handle.Handle`), and ``faults`` (`devices.emulators.inverse3.faults`).

    Raises
    ------
    ConfigurationError, DeviceOpenError
        As `devices.emulators.child.spawn` does.
    """
    return child.spawn(__name__, table, "service")


def main(table: dict[str, Any]) -> int:
    """Build a service, print its address or the error in `table`, and serve it until standard input ends."""
    from devices.emulators.inverse3.handle import Handle
    from devices.emulators.inverse3.server import InverseServer
    from devices.emulators.inverse3.service import EmulatedDevice

    priority = child.settle_in()
    faults, device_id, kind = table.pop("faults"), table.pop("device_id"), table.pop("kind")
    try:
        server = InverseServer([EmulatedDevice(device_id, kind, Handle(kind, **table))], faults)
    except HapticError as error:
        return child.give_up(error)
    child.announce(server.address)
    child.hurry(priority)
    server.serve(sys.stdin.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
