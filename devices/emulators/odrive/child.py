"""An emulated drive in a process of its own (`devices.emulators.child`), reached by `devices.emulators.odrive.remote`.

When its standard input has ended it goes on for as long as a motor is driven, a second and a half at most, and says in
its log what has become of both: so it can be seen that the watchdogs have done their duty after the driver died.
"""

from __future__ import annotations

import importlib
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from devices.emulators import child
from devices.emulators.odrive.remote import Server, observe
from haptics.errors import HapticError
from haptics.files import replace_own

LINGER = 1.5
"""How long it lives on after the end of its input while a motor is driven [s]."""

_SWITCH = 1e-4


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


def _accept(listener: socket.socket, server: Server) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=server.serve, args=(connection,), daemon=True).start()


def _see_off(backend: Any, log: str) -> None:
    """Live on until no motor is driven; write down what has become of them."""
    latest = time.monotonic() + LINGER
    while any(observe(backend)["torques"]) or 8 in observe(backend)["states"]:
        if time.monotonic() > latest:
            break
        time.sleep(0.01)
    if log:
        replace_own(Path(log), json.dumps(observe(backend)).encode(), b"{")


def serve(backend: Any, log: str, also: str = "") -> None:
    """Serve a backend until standard input ends and the motors are loose.

    Parameters
    ----------
    backend : EmulatedOdriveBackend
        The bus with the drive.
    log : str
        File for what became of the motors; empty for none.
    also : str
        What is announced besides the address.
    """
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        address = f"{folder}/drive"
        listener.bind(address)
        listener.listen()
        threading.Thread(target=_accept, args=(listener, Server(backend)), daemon=True).start()
        sys.setswitchinterval(_SWITCH)
        child.announce(f"{address} {also}".rstrip())
        sys.stdin.read()
        _see_off(backend, log)


def main(table: dict[str, Any]) -> int:
    """Build a drive, print its address or what is wrong with `table`, and serve it until standard input ends."""
    child.settle_in()
    log = table.pop("log", "")
    try:
        backend = _build(table)
    except (HapticError, ImportError, AttributeError, TypeError) as error:
        return child.give_up(error)
    serve(backend, log)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
