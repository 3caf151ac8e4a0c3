"""An emulated drive in a process of its own (`devices.emulators.child`), reached by `devices.emulators.odrive.remote`.

When its standard input has ended it goes on for as long as a motor is driven, a second and a half at most, and says in
its log what has become of both: so it can be seen that the watchdogs have done their duty after the driver died.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devices.emulators import child
from devices.emulators.loop import LOOK, Loop
from haptics.errors import HapticError
from haptics.files import replace_own

if TYPE_CHECKING:  # what takes long to import is imported when the process has settled in
    from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend

LINGER = 1.5
"""How long it lives on after the end of its input while a motor is driven [s]."""


def spawn(table: Mapping[str, Any]) -> AbstractContextManager[str]:
    """Run an emulated drive; give its address.

    Parameters
    ----------
    table : mapping
        What `devices.emulators.odrive.emulated_odrive` takes, but for ``plant``, which is a text ``module:function``
        of what makes one of the mapping ``plant_settings``; and ``log``, a file for what became of the motors.

    Raises
    ------
    ConfigurationError, DeviceOpenError
        As `devices.emulators.child.spawn` does.
    """
    return child.spawn(__name__, table, "drive", LINGER + child.FAREWELL)


def _build(table: dict[str, Any]) -> Any:
    from devices.emulators.odrive import emulated_odrive

    maker, own = table.pop("plant", None), table.pop("plant_settings", {})
    plant = None
    if maker is not None:
        module, _, function = maker.partition(":")
        plant = getattr(importlib.import_module(module), function)(**own)
    return emulated_odrive(plant, **table)


class _Life:
    """How long an emulated drive lives: until its standard input has ended, and no motor is driven any more.

    Parameters
    ----------
    backend : EmulatedOdriveBackend
        The bus with the drive.
    loop : Loop
        What serves it.
    """

    def __init__(self, backend: EmulatedOdriveBackend, loop: Loop) -> None:
        self._backend, self._loop = backend, loop
        self._latest = math.inf
        self._next_look = 0.0
        loop.watch(sys.stdin, self._listen)

    def _listen(self) -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            self._latest = time.monotonic() + LINGER
            self._loop.forget(sys.stdin)

    def over(self) -> bool:
        """Tell whether it is over; the time of the drive goes on until it is, if nobody else looks at it."""
        board, now = self._backend.boards[0], time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK
            board.catch_up()
        if math.isinf(self._latest):
            return False
        driven = any(axis.driven or axis.torque for axis in board.inside.axes)
        return not driven or now > self._latest


def can_of(address: str) -> str:
    """Return where the CAN bus is reached of an emulated drive whose USB is reached at `address`."""
    return f"{address}-can"


def _listen(ends: contextlib.ExitStack, address: str) -> socket.socket:
    listener = ends.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    listener.bind(address)
    listener.listen()
    return listener


def serve(backend: EmulatedOdriveBackend, log: str, priority: int, also: str = "", sensor: Any = None) -> None:
    """Serve a backend, and the CAN bus of its drive, until standard input ends and the motors are loose.

    Parameters
    ----------
    backend : EmulatedOdriveBackend
        The bus with the drive.
    log : str
        File for what became of the motors; empty for none.
    priority : int
        What `devices.emulators.child.settle_in` has returned.
    also : str
        What is announced besides the address.
    sensor : RdtBox or OptoForceUnit, optional
        A force sensor that is served besides.
    """
    from devices.emulators.odrive.serving.can_bus import CanBus, CanServer
    from devices.emulators.odrive.serving.server import BusServer, observe

    loop = Loop()
    with contextlib.ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory())
        address = f"{folder}/drive"
        BusServer(backend, loop, _listen(ends, address))
        CanServer(CanBus(backend.boards[0]), loop, _listen(ends, can_of(address)))
        if sensor is not None:
            ends.enter_context(sensor.within(loop))
        life = _Life(backend, loop)
        child.announce(f"{address} {also}".rstrip())
        child.hurry(priority)
        loop.run(life.over)
        if log:
            replace_own(Path(log), json.dumps(observe(backend)).encode(), b"{")


def main(table: dict[str, Any]) -> int:
    """Build a drive, print its address or what is wrong with `table`, and serve it until standard input ends."""
    priority = child.settle_in()
    log = table.pop("log", "")
    try:
        backend = _build(table)
    except (HapticError, ImportError, AttributeError, TypeError) as error:
        return child.give_up(error)
    serve(backend, log, priority)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
