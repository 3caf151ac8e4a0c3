"""Checks of Python, the required packages, and the compiled kernels."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import struct
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from apps.doctor.child import NoAnswer, call_in_child
from apps.doctor.finding import Finding, note, ok, problem
from apps.doctor.machine import Machine

OLDEST_PYTHON = (3, 11)
PACKAGES = {
    "numpy": "numpy",
    "numba": "numba",
    "pyusb": "usb",
    "libusb-package": "libusb_package",
    "pyglet": "pyglet",
    "pyqtgraph": "pyqtgraph",
    "PySide6-Essentials": "PySide6",
    "matplotlib": "matplotlib",
    "scipy": "scipy",
}
"""Required distributions, and the module that each provides."""
_BROKEN_QT = (6, 12)
"""First version of PySide6 that crashes Python older than 3.12."""

Version = Callable[[str], str | None]


def python(machine: Machine, version: tuple[int, ...] = sys.version_info[:3], name: str = "") -> Finding:
    """Check the version of Python."""
    name = name or platform.python_implementation()
    words = f"{name} {'.'.join(map(str, version))}, {8 * struct.calcsize('P')} bit"
    if version[:2] < OLDEST_PYTHON or name != "CPython":
        return problem(
            f"{words}: the project needs CPython {'.'.join(map(str, OLDEST_PYTHON))} or newer",
            f"{machine.sudo}apt-get install -y python3 python3-venv",
            "# then start anew with the Python installed: python3 ./run demo",
        )
    return ok(f"{words} ({sys.executable})")


def version_of(distribution: str) -> str | None:
    """Return the version of a distribution, or None if its module is not found.

    Imports nothing.
    """
    try:
        if importlib.util.find_spec(PACKAGES[distribution]) is None:
            return None
        return metadata.version(distribution)
    except (ImportError, ValueError):
        return None


def packages(
    machine: Machine, version: Version = version_of, python: tuple[int, ...] = sys.version_info[:3]
) -> Finding:
    """Check that all packages are installed."""
    found = {name: version(name) for name in PACKAGES}
    absent = [name for name, number in found.items() if number is None]
    pip = f"{shlex.quote(sys.executable)} -m pip install"
    if absent:
        return problem(f"missing Python packages: {', '.join(absent)}", f"{pip} {' '.join(absent)}")
    qt = found["PySide6-Essentials"] or ""
    if python < (3, 12) and _numbers(qt) >= _BROKEN_QT:
        return problem(
            f"PySide6 {qt} crashes Python older than 3.12 after some seconds", f"{pip} 'PySide6-Essentials>=6.8,<6.12'"
        )
    return ok(", ".join(f"{name} {number}" for name, number in {"haptics": _own_version(), **found}.items()))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def _own_version() -> str:
    try:
        return metadata.version("haptics")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def load_kernels() -> dict[str, Any]:
    """Load the compiler and return its version and the cache folder of compiled kernels."""
    import numba

    from haptics import jit

    folder = os.environ.get("NUMBA_CACHE_DIR", "")
    return {"numba": numba.__version__, "compiled": jit.COMPILED, "folder": folder, "writable": _writable(folder)}


def _writable(folder: str) -> bool:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return bool(folder)
    except OSError:
        return False


def _load() -> dict[str, Any]:
    answer: dict[str, Any] = call_in_child("apps.doctor.checks.software:load_kernels")
    return answer


def kernels(machine: Machine, load: Callable[[], dict[str, Any]] = _load) -> Finding:
    """Check that the compiler works and its cache is writable."""
    try:
        answer = load()
    except NoAnswer as error:
        pip = f"{shlex.quote(sys.executable)} -m pip install --force-reinstall"
        return problem(f"the compiler numba cannot be loaded ({error})", f"{pip} numba numpy")
    if not answer["compiled"]:
        return problem(
            "NUMBA_DISABLE_JIT is set: kernels are not compiled, which is too slow", "unset NUMBA_DISABLE_JIT"
        )
    if not answer["writable"]:
        where = answer["folder"] or "a cache in the home folder"
        return note(
            f"{where} cannot be written: all kernels are compiled again at every start, which takes seconds",
            'export NUMBA_CACHE_DIR="$(mktemp -d)"',
            "# until you log out; a folder of your own lasts longer",
        )
    return ok(f"numba {answer['numba']} loads; compiled kernels are kept in {answer['folder']}")
