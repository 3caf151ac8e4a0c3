"""System libraries that pip cannot provide, and their Debian packages.

`./run` installs the same.
"""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Iterable, Mapping

OPENGL = {"libEGL.so.1": "libegl1", "libGL.so.1": "libgl1"}
WINDOW = {
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb.so.1": "libxcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
}


def loads(library: str) -> bool:
    """Return True if the dynamic linker finds and loads `library`."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def missing(libraries: Mapping[str, str], present: Callable[[str], bool] = loads) -> dict[str, str]:
    """Return the `libraries` that cannot be loaded, with their packages."""
    return {library: package for library, package in libraries.items() if not present(library)}


def install_line(packages: Iterable[str], sudo: str, apt: bool | None = None) -> str:
    """Return the command that installs Debian `packages`, or a comment with their names without apt."""
    names = " ".join(dict.fromkeys(packages))
    if shutil.which("apt-get") is not None if apt is None else apt:
        return f"{sudo}apt-get install -y --no-install-recommends {names}"
    return f"# install what Debian calls: {names}"
