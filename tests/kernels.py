"""Compile the kernels of sessions before the system tests, so that no session in real time waits for the compiler.

``./run test --all`` runs this module unless these sources have been compiled before. Unit tests compile their own
kernels.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.processes import NO_PICTURE

ROOT = Path(__file__).resolve().parents[1]


def _commands(*commands):
    """Run commands of the project in a temporary folder, without output."""
    from apps.cli import main

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for command in commands:
            with contextlib.redirect_stderr(io.StringIO()) as words:
                status = main(command)
                if command[0] == "run" and status == 0:
                    status = main(["replay", str(next(Path("recordings").iterdir())), "--verify"])
            if status:
                raise SystemExit(f"haptics {' '.join(command)} ended with status {status}:\n{words.getvalue()}")


def _session(device, model, *more):
    return ["run", "--device", device, "--model", model, "--headless", "--duration", "0.2", *NO_PICTURE, *more]


def _impedance():
    in_python = ["--fault", "nan@60"]  # never happens, but makes the driver use its Python methods
    devices = ("pid-joystick", "pantograph", "inverse3", "forcedimension", "touch")
    emulated = ["--set", "device.emulated=true"]
    drivers = [_session(device, "C", *emulated, *more) for device in devices for more in ([], in_python)]
    _commands(_session("virtual-joystick", "C"), *drivers, ["conformance", "--quick", "--element", "C"])


def _arm():
    _commands(_session("virtual-arm", "A"))


def _offline():
    import numpy as np

    from haptics import Coulomb, MasslessImpedance, Network, simulate

    simulate(MasslessImpedance(Coulomb(1.0), 100.0, 1.0), np.zeros((10, 2)))
    network = Network()
    network.contact(network.body(1.0), network.wall, Coulomb(1.0), 100.0, 1.0)
    network.simulate(10)
    network.step()


GROUPS: tuple[tuple[Callable[[], None], ...], ...] = ((_impedance,), (_arm, _offline))
"""Functions that each process runs to compile its kernels."""


PROCESSOR = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
"""Environment variables that select the target processor of the kernels."""


def _stamp():
    """Return the stamp file of these sources in the kernel cache; None without a cache."""
    from haptics import kernel_cache

    folder = kernel_cache.find_folder()
    digest = hashlib.sha256(repr([os.environ.get(name) for name in PROCESSOR]).encode())
    for package in ("haptics", "devices", "calibration", "apps"):
        for source in sorted((ROOT / package).rglob("*.py")):
            digest.update(source.read_bytes())
    return folder and folder / f"compiled-{digest.hexdigest()[:24]}"


def _compile_all():
    """Compile each group in a separate process; return an exit status."""
    start = time.monotonic()
    print("compiling the kernels before the tests: about a minute, once", file=sys.stderr, flush=True)
    children = [
        subprocess.Popen([sys.executable, "-m", "tests.kernels", str(group)], cwd=ROOT) for group in range(len(GROUPS))
    ]
    failed = [child.wait() for child in children]
    print(f"compiled after {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return max(failed)


def main(arguments):
    """Compile the group whose number is given, or all groups if these sources have not been compiled."""
    if arguments:
        for compile_some in GROUPS[int(arguments[0])]:
            compile_some()
        return 0
    stamp = _stamp()
    if stamp is not None and stamp.exists():
        return 0
    status = _compile_all()
    if stamp is not None and status == 0:
        stamp.touch()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
