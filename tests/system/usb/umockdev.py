"""Show real libusb an emulated stick (``python -m tests.system.usb.umockdev PROFILE LIBRARY``)."""

from __future__ import annotations

import ctypes.util
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from devices.emulators.child import come_first
from tests.processes import program
from tests.system.usb.driven import packaged_libusb
from tests.system.usb.scenes import SCENES, other_program
from tests.system.usb.stage import Stage, play, played, staged
from tests.system.usb.usbfs import UsbDeviceFiles

LIBRARY = "libumockdev-preload.so.0"
FOLDER = "UMOCKDEV_DIR"

SECONDS = 90.0
"""After so long a run is ended; what came of its scenes until then counts."""


def why_not() -> str:
    """Say what keeps it from running here; empty if nothing does."""
    if sys.platform != "linux":
        return "umockdev stands in for Linux's device files"
    if not any(Path(folder, LIBRARY).exists() for folder in _library_folders()):
        return f"{LIBRARY} is missing (Debian package umockdev)"
    return ""


def _library_folders() -> list[str]:
    multiarch = getattr(sys.implementation, "_multiarch", "")
    return ["/usr/lib", "/usr/lib64", "/usr/local/lib", f"/usr/lib/{multiarch}", f"/lib/{multiarch}"]


def system_libusb() -> str | None:
    """Return the operating system's own libusb, None if it has none."""
    return ctypes.util.find_library("usb-1.0")


def repetition(request: Any) -> int:
    """Return how often the test that asks was begun, which is more than once if something kept it from its step."""
    return getattr(request.node, "execution_count", 1)


def run(profile: str, library: str) -> tuple[dict[str, Any], str]:
    """Play the scenes; return what came of each and what was said meanwhile. `library`: ``package`` or ``system``."""
    return run_below("tests.system.usb.umockdev", profile, library)


def run_below(module: str, *arguments: str, also: str = "") -> tuple[dict[str, Any], str]:
    """Run a module with umockdev below it, and in front of that `also`; return what `run` does."""
    with tempfile.TemporaryDirectory(prefix="usb") as folder:  # short: a socket's name may have 107 characters
        preload = f"{also}:{LIBRARY}" if also else LIBRARY
        variables = {**os.environ, "LD_PRELOAD": preload, FOLDER: folder, "NUMBA_DISABLE_JIT": "1"}
        with program(
            "-m", module, *arguments, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                out, err = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                err += f"\nended after {SECONDS:g} s"
    return played(out), err


def loaded(_: Stage) -> list[str]:
    """Return the libusb that is in use."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return sorted({line.split()[-1] for line in maps if "libusb" in line})


def main() -> None:
    come_first()
    profile, library = sys.argv[1:]
    folder = Path(os.environ[FOLDER])
    stage = staged(profile, folder, lambda stick: UsbDeviceFiles(folder, stick))
    with packaged_libusb() if library == "package" else nullcontext():
        play(stage, (*SCENES, other_program, loaded))


if __name__ == "__main__":
    main()
