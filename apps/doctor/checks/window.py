"""Checks of the live view: display, OpenGL, the libraries of Qt, and a test window."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.doctor.checks.libraries import OPENGL, WINDOW, install_line, loads, missing
from apps.doctor.child import NoAnswer, call_in_child
from apps.doctor.finding import Finding, note, ok, problem
from apps.doctor.machine import Machine, program

_PATIENCE = 1.0
"""Timeout of a display connection [s]."""
_X11_PORT = 6000

Connect = Callable[[str], bool]
Try = Callable[[], dict[str, Any]]


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


def libraries(machine: Machine, present: Callable[[str], bool] = loads) -> Finding:
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


def _try_window() -> dict[str, Any]:
    answer: dict[str, Any] = call_in_child("apps.doctor.checks.window:open_window")
    return answer


def window(machine: Machine, attempt: Try = _try_window) -> Finding:
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
