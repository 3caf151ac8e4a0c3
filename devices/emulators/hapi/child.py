"""Emulated board in a separate process (`devices.emulators.child`), accessible at a serial port."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from devices.emulators import child
from haptics.errors import HapticError


def spawn(table: Mapping[str, Any]) -> AbstractContextManager[str]:
    """Run an emulated board; yield the name of its port.

    Parameters
    ----------
    table : mapping
        Arguments of `devices.emulators.hapi.board.HapiBoard`.

    Raises
    ------
    ConfigurationError, DeviceOpenError
        As `devices.emulators.child.spawn` does.
    """
    return child.spawn(__name__, table, "board")


def main(table: Mapping[str, Any]) -> int:
    """Build a board, print its port or the error in `table`, and serve it until standard input ends."""
    from devices.emulators.hapi.board import HapiBoard

    priority = child.settle_in()
    try:
        board = HapiBoard(**table)
    except HapticError as error:
        return child.give_up(error)
    child.announce(board.port)
    child.hurry(priority)
    board.serve(sys.stdin.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
