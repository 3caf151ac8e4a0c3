"""Checks of software: Python, packages, compiled kernels, locale, and the libraries and display of the live view."""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import importlib.util
import locale
import os
import platform
import re
import shlex
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from apps.doctor.child import NoAnswer, call_in_child
from apps.doctor.machine import Finding, Machine, note, ok, problem, program

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
    "pillow": "PIL",
}
"""Required distributions, and the module that each provides."""
_BROKEN_QT = (6, 12)
"""First version of PySide6 that crashes Python older than 3.12."""

Facts = Callable[[], dict[str, Any]]
"""Performs a step in a separate process and returns its facts."""

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
    if python < (3, 12) and tuple(int(part) for part in qt.split(".")[:2] if part.isdecimal()) >= _BROKEN_QT:
        return problem(
            f"PySide6 {qt} crashes Python older than 3.12 after some seconds", f"{pip} 'PySide6-Essentials>=6.8,<6.12'"
        )
    try:
        own = metadata.version("haptics")
    except metadata.PackageNotFoundError:
        own = "(not installed)"
    return ok(", ".join(f"{name} {number}" for name, number in {"haptics": own, **found}.items()))


def load_kernels() -> dict[str, Any]:
    """Load the compiler and return its version and the cache folder of compiled kernels."""
    import numba

    from haptics import jit

    folder = os.environ.get("NUMBA_CACHE_DIR", "")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            writable = bool(folder)
    except OSError:
        writable = False
    return {"numba": numba.__version__, "compiled": jit.COMPILED, "folder": folder, "writable": writable}


_load_kernels = partial(call_in_child, "apps.doctor.software:load_kernels")


def kernels(machine: Machine, load: Facts = _load_kernels) -> Finding:
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


# --- locale -------------------------------------------------------------------------------------------------------

_VARIABLES = ("LC_ALL", "LC_NUMERIC", "LANG")


def settle() -> dict[str, Any]:
    """Set the locale of the environment, as Qt does, and return its decimal point.

    Runs in a separate process, because the locale stays set.
    """
    try:
        locale.setlocale(locale.LC_ALL, "")
    except locale.Error as error:
        return {"error": str(error)}
    return {"decimal_point": locale.localeconv()["decimal_point"]}


_settle = partial(call_in_child, "apps.doctor.software:settle")


def numbers(machine: Machine, settle: Facts = _settle) -> Finding:
    """Check the decimal point of the locale."""
    answer = settle()
    asked = next(
        (f"{name}={machine.environment[name]}" for name in _VARIABLES if machine.environment.get(name)), "none"
    )
    if "error" in answer:
        return note(
            f"the locale is not installed ({asked}); programs fall back to different ones",
            "export LC_ALL=C.UTF-8",
        )
    point = answer["decimal_point"]
    if point == ".":
        return ok(f"numbers have a decimal point ({asked})")
    lines = ["export LC_NUMERIC=C.UTF-8"]
    if machine.environment.get("LC_ALL"):
        lines.insert(0, 'export LANG="$LC_ALL"; unset LC_ALL')
    return note(
        f"numbers are written with {point!r} here ({asked}): spreadsheets write tables that our commands refuse, "
        "and C libraries misread numbers",
        *lines,
    )


def encoding(
    machine: Machine, output: Callable[[], str] = lambda: getattr(sys.stdout, "encoding", None) or "none"
) -> Finding:
    """Check that all characters can be printed and used in file names."""
    printed, named = output(), sys.getfilesystemencoding()
    poor = []
    for kind, code in (("standard output", printed), ("file names", named)):
        name = ""
        with contextlib.suppress(LookupError):
            name = codecs.lookup(code).name
        if not name.startswith("utf"):
            poor.append(f"{kind} ({code})")
    if not poor:
        return ok(f"all letters can be printed ({printed}) and be in file names ({named})")
    return note(f"not every letter can be used: {', '.join(poor)}", "export PYTHONUTF8=1 LANG=C.UTF-8")


# --- live view ----------------------------------------------------------------------------------------------------


def _debian_package(library: str) -> str:
    """Return the package of a library such as ``libxcb.so.1``, by the naming rule of Debian."""
    name, _, version = library.lower().partition(".so.")
    if name in {"libglib-2.0", "libgthread-2.0"}:
        name = "libglib2.0"
    return f"{name}-{version}" if name[-1].isdecimal() else f"{name}{version}"


OPENGL = {library: _debian_package(library) for library in ("libEGL.so.1", "libGL.so.1")}
WINDOW = {
    library: _debian_package(library)
    for library in (
        *("libX11.so.6", "libdbus-1.so.3", "libfontconfig.so.1", "libfreetype.so.6", "libglib-2.0.so.0"),
        *("libgthread-2.0.so.0", "libxkbcommon.so.0", "libxkbcommon-x11.so.0", "libX11-xcb.so.1", "libxcb.so.1"),
        *("libxcb-cursor.so.0", "libxcb-icccm.so.4", "libxcb-image.so.0", "libxcb-keysyms.so.1"),
        *("libxcb-randr.so.0", "libxcb-render.so.0", "libxcb-render-util.so.0", "libxcb-shape.so.0"),
        *("libxcb-shm.so.0", "libxcb-sync.so.1", "libxcb-util.so.1", "libxcb-xfixes.so.0", "libxcb-xkb.so.1"),
    )
}
"""Libraries, with their Debian packages."""


def loads(library: str) -> bool:
    """Return True if the dynamic linker finds and loads `library`."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def missing(libraries: Mapping[str, str], present: Callable[[str], bool] = loads) -> dict[str, str]:
    """Return the `window_libraries` that cannot be loaded, with their packages."""
    return {library: package for library, package in libraries.items() if not present(library)}


def install_line(packages: Iterable[str], sudo: str, apt: bool | None = None) -> str:
    """Return the command that installs Debian `packages`, or a comment with their names without apt."""
    names = " ".join(dict.fromkeys(packages))
    if shutil.which("apt-get") is not None if apt is None else apt:
        return f"{sudo}apt-get install -y --no-install-recommends {names}"
    return f"# install what Debian calls: {names}"


_PATIENCE = 1.0
"""Timeout of a display connection [s]."""
_X11_PORT = 6000

Connect = Callable[[str], bool]


def _reach(family: int, address: str | tuple[str, int]) -> bool:
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as line:
        line.settimeout(_PATIENCE)
        line.connect(address)
        return True
    return False


def reach_x11(display: str) -> bool:
    """Return True if an X11 server accepts connections on a `display` such as ``:0`` or ``host:10.0``."""
    parts = re.fullmatch(r"(?P<host>.*):(?P<number>\d+)(\.\d+)?", display)
    if parts is None:
        return False
    host, number = parts["host"], int(parts["number"])
    if host in {"", "unix"} and hasattr(socket, "AF_UNIX"):
        name = f"/tmp/.X11-unix/X{number}"
        return _reach(socket.AF_UNIX, name) or _reach(socket.AF_UNIX, f"\0{name}")
    return _reach(socket.AF_INET, (host or "localhost", _X11_PORT + number))


def reach_wayland(path: str) -> bool:
    """Return True if a server accepts connections on the socket `path`."""
    return hasattr(socket, "AF_UNIX") and _reach(socket.AF_UNIX, path)


def display(machine: Machine, x11: Connect = reach_x11, wayland: Connect = reach_wayland) -> Finding:
    """Check that there is a display server and that it accepts connections."""
    variables = machine.environment
    named, reached = [], []
    if name := variables.get("WAYLAND_DISPLAY"):
        named.append(f"Wayland {name}")
        if wayland(str(Path(variables.get("XDG_RUNTIME_DIR", "/run/user")) / name)):
            reached.append(named[-1])
    if name := variables.get("DISPLAY"):
        named.append(f"X11 {name}")
        if x11(name):
            reached.append(named[-1])
    if reached:
        return ok(f"{' and '.join(reached)} {'answer' if len(reached) > 1 else 'answers'}")
    if named:
        return problem(
            f"{' and '.join(named)}: no display server answers",
            "unset DISPLAY WAYLAND_DISPLAY",
            "# or log in to a desktop; over ssh: ssh -Y HOST",
        )
    return note(
        "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set); everything but the live view works",
        "# for the view log in to a desktop, or over ssh: ssh -Y HOST; without it:",
        f"{program()} demo --headless",
    )


def opengl(machine: Machine, present: Callable[[str], bool] = loads) -> Finding:
    """Check that OpenGL can be loaded, and report whether it is hardware accelerated."""
    absent = missing(OPENGL, present)
    if absent:
        return _absent(machine, absent, "OpenGL cannot be loaded")
    hardware = any(machine.path("/dev/dri").glob("renderD*")) or machine.path("/dev/nvidiactl").exists()
    return ok(f"{' and '.join(OPENGL)} load; {'the graphics card draws' if hardware else 'the processor draws'}")


def window_libraries(machine: Machine, present: Callable[[str], bool] = loads) -> Finding:
    """Check that the libraries of a window can be loaded."""
    absent = missing(WINDOW, present)
    if absent:
        return _absent(machine, absent, "libraries that a window needs are missing")
    return ok(f"all {len(WINDOW)} libraries that a window needs load")


def _absent(machine: Machine, absent: dict[str, str], words: str) -> Finding:
    names = ", ".join(list(absent)[:3]) + (f" and {len(absent) - 3} more" if len(absent) > 3 else "")
    wanted = machine.environment.get("DISPLAY") or machine.environment.get("WAYLAND_DISPLAY")
    return (problem if wanted else note)(f"{words}: {names}", install_line(absent.values(), machine.sudo))


def open_window() -> dict[str, Any]:
    """Connect to the display with Qt and return the platform.

    On failure, Qt may abort the process.
    """
    from apps.view.launch import obstacle_at_hand

    reason = obstacle_at_hand()
    if reason is not None:
        return {"reason": reason}
    from PySide6.QtWidgets import QApplication

    return {"platform": QApplication([]).platformName()}


_open_window = partial(call_in_child, "apps.doctor.software:open_window")


def window(machine: Machine, attempt: Facts = _open_window) -> Finding:
    """Check that Qt can show a window."""
    wanted = machine.environment.get("DISPLAY") or machine.environment.get("WAYLAND_DISPLAY")
    try:
        answer = attempt()
    except NoAnswer as error:
        answer = {"reason": f"the test program ended ({error})"}
    if "reason" in answer:
        fix = f"{program()} doctor display opengl window-libraries packages"
        severity = problem if wanted or machine.system != "linux" else note
        return severity(f"no window: {answer['reason']}", "# these checks say what is missing:", fix)
    if answer["platform"] in {"offscreen", "minimal"}:
        return note(f"windows are drawn but not shown (QT_QPA_PLATFORM={answer['platform']})", "unset QT_QPA_PLATFORM")
    return ok(f"Qt can show a window ({answer['platform']})")
