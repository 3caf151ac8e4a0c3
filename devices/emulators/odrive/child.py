"""An emulated drive in a process of its own: it takes no time from its driver, and lives on when that is killed.

`spawn` starts it. Run as a module it reads what to build from its argument, prints the address at which it is reached
(`devices.emulators.odrive.remote`), and serves it until its standard input ends. Then it goes on for as long as a motor
is driven, a second and a half at most, and says in its log what has become of both: so it can be seen that the
watchdogs have done their duty after the driver died.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

from devices.emulators.odrive.remote import Server, observe
from haptics.errors import DeviceOpenError, HapticError

START = 90.0
"""How long it may take to start [s]: a plant may have to be compiled."""

LINGER = 1.5
"""How long it lives on after the end of its input while a motor is driven [s]."""

_FAREWELL = 5.0
_SWITCH = 1e-4
_ROOT = Path(__file__).resolve().parents[3]
_WRONG = 2


@contextlib.contextmanager
def spawn(table: Mapping[str, Any]) -> Iterator[str]:
    """Run an emulated drive; give its address.

    Parameters
    ----------
    table : mapping
        What `devices.emulators.odrive.emulated_odrive` takes, but for ``plant``, which is a text ``module:function``
        of what makes one of the mapping ``plant_settings``; and ``log``, a file for what became of the motors.

    Raises
    ------
    DeviceOpenError
        If it does not start; says why.
    """
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(table)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # what a terminal sends to the driver is not for it
    )
    with process:
        try:
            yield _first_line(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(LINGER + _FAREWELL)
            except subprocess.TimeoutExpired:
                process.kill()


def _first_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START)
    line = process.stdout.readline().decode().strip() if ready else ""
    if not line.startswith("/"):
        raise DeviceOpenError(f"the emulated drive did not start: {line or 'it said nothing'}")
    return line


def _build(table: dict[str, Any]) -> Any:
    from devices.emulators.odrive import emulated_odrive

    maker, own = table.pop("plant", None), table.pop("plant_settings", {})
    plant = None
    if maker is not None:
        module, _, function = maker.partition(":")
        plant = getattr(importlib.import_module(module), function)(**own)
    return emulated_odrive(plant, **table)


def _accept(listener: Listener, server: Server) -> None:
    while True:
        try:
            connection = listener.accept()
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
        Path(log).write_text(json.dumps(observe(backend)))


def main(table: dict[str, Any]) -> int:
    """Build a drive, print its address or what is wrong with `table`, and serve it until standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # it ends with its parent's pipe, and not before
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # it is no part of the real-time loop, and must not run with its priority
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    log = table.pop("log", "")
    try:
        backend = _build(table)
    except (HapticError, ImportError, AttributeError, TypeError) as error:
        sys.stdout.write(f"{error}\n")
        return _WRONG
    with tempfile.TemporaryDirectory() as folder:
        listener = Listener(f"{folder}/drive", "AF_UNIX")
        threading.Thread(target=_accept, args=(listener, Server(backend)), daemon=True).start()
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(_SWITCH)
        sys.stdout.write(f"{listener.address}\n")
        sys.stdout.flush()
        sys.stdin.read()
        _see_off(backend, log)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
