"""Emulated drive in a separate process (`devices.emulators.child`).

It is accessed by `devices.emulators.odrive.remote`.

After its standard input has ended it continues while a motor is armed, at most a second and a half, and logs the final
state of both motors. This allows tests of the watchdogs after the driver has died.
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
from haptics.files import replace_owned

if TYPE_CHECKING:  # slow imports are deferred until the process has settled in
    from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend

LINGER = 1.5
"""Maximum time for which it continues after the end of its input while a motor is armed [s]."""


def spawn(table: Mapping[str, Any]) -> AbstractContextManager[str]:
    """Run an emulated drive; yield its address.

    Parameters
    ----------
    table : mapping
        Arguments of `devices.emulators.odrive.emulated_odrive`, except that ``plant`` is a text ``module:function``, a
        function that creates the plant from the mapping ``plant_settings``; and ``log``, a file for the final state of
        the motors.

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
    """Lifetime of an emulated drive: until its standard input has ended and no motor is armed.

    Parameters
    ----------
    backend : EmulatedOdriveBackend
        The bus with the drive.
    loop : Loop
        The event loop.
    """

    def __init__(self, backend: EmulatedOdriveBackend, loop: Loop) -> None:
        self._backend, self._loop = backend, loop
        self._latest = math.inf
        self._next_look = 0.0
        loop.watch(sys.stdin, self._listen)

    def _listen(self) -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            self._latest = time.monotonic() + LINGER
            self._loop.remove(sys.stdin)

    def over(self) -> bool:
        """Return True if the lifetime is over; also advance the time of the drive at intervals."""
        board, now = self._backend.boards[0], time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK
            board.catch_up()
        if math.isinf(self._latest):
            return False
        driven = any(axis.driven or axis.torque for axis in board.inside.axes)
        return not driven or now > self._latest


def can_of(address: str) -> str:
    """Return the address of the CAN bus of an emulated drive whose USB bus is at `address`."""
    return f"{address}-can"


def _listen(ends: contextlib.ExitStack, address: str) -> socket.socket:
    listener = ends.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    listener.bind(address)
    listener.listen()
    return listener


def serve(backend: EmulatedOdriveBackend, log: str, priority: int, also: str = "", sensor: Any = None) -> None:
    """Serve a bus and the drive's CAN bus until standard input ends and the motors are disarmed.

    Parameters
    ----------
    backend : EmulatedOdriveBackend
        The bus with the drive.
    log : str
        File for the final state of the motors; empty for none.
    priority : int
        Result of `devices.emulators.child.settle_in`.
    also : str
        Text that is announced in addition to the address.
    sensor : RdtBox or OptoForceUnit, optional
        A force sensor that is also served.
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
            replace_owned(Path(log), json.dumps(observe(backend)).encode(), b"{")


def main(table: dict[str, Any]) -> int:
    """Build a drive, print its address or the error in `table`, and serve it until standard input ends."""
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
