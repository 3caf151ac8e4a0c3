"""Displays that answer or not, libraries that are missing, and a window tried out."""

import runpy
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.doctor.checks import window
from apps.doctor.checks.libraries import OPENGL, WINDOW, install_line, missing
from apps.doctor.child import NoAnswer
from tests.apps.doctor.machines import expect, machine

ROOT = Path(__file__).resolve().parents[3]
X11 = {"DISPLAY": ":0"}


def never(_: str) -> bool:
    return False


def always(_: str) -> bool:
    return True


def test_no_display_is_worth_a_word_only(tmp_path: Path) -> None:
    expect(window.display(machine(tmp_path), never, never), "note", "demo --headless")


def test_a_display_that_is_named_must_answer(tmp_path: Path) -> None:
    here = machine(tmp_path, environment={**X11, "WAYLAND_DISPLAY": "wayland-0", "XDG_RUNTIME_DIR": "/run/user/7"})
    expect(window.display(here, never, never), "problem", "X11 :0", "Wayland wayland-0")
    expect(window.display(here, always, never), "ok", "X11 :0 answers")
    expect(window.display(here, never, lambda path: path == "/run/user/7/wayland-0"), "ok", "wayland-0 answers")


@pytest.mark.parametrize("name", ["", "nonsense", "host", ":x", ":987654321", "unix:4711", ":4711.0"])
def test_displays_that_cannot_answer(name: str) -> None:
    assert not window.reach_x11(name)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs sockets with a path")
def test_a_socket_that_listens_is_reached(tmp_path: Path) -> None:
    path = str(tmp_path / "w")
    assert not window.reach_wayland(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        assert window.reach_wayland(path)


def test_libraries_are_those_that_the_run_script_installs() -> None:
    assert {**OPENGL, **WINDOW} == runpy.run_path(str(ROOT / "run"), run_name="script")["WINDOW_LIBRARIES"]


def test_missing_libraries_are_a_problem_only_where_a_window_could_be(tmp_path: Path) -> None:
    expect(window.opengl(machine(tmp_path), never), "note", "libGL.so.1", "libegl1 libgl1")
    expect(window.libraries(machine(tmp_path, environment=X11), never), "problem", f"{len(WINDOW) - 3} more")
    expect(window.libraries(machine(tmp_path), always), "ok")
    expect(window.opengl(machine(tmp_path), always), "ok", "the processor draws")
    expect(window.opengl(machine(tmp_path, {"/dev/dri/renderD128": ""}), always), "ok", "the graphics card draws")


def test_what_cannot_be_loaded_is_missing() -> None:
    assert missing({"libnowhere.so.9": "libnowhere9"}) == {"libnowhere.so.9": "libnowhere9"}


def test_the_line_that_installs() -> None:
    assert install_line(["a", "b", "a"], "sudo ", apt=True).endswith("--no-install-recommends a b")
    assert install_line(["a", "b"], "", apt=False).startswith("#")


@pytest.mark.parametrize(
    ("answer", "environment", "severity", "word"),
    [
        ({"platform": "xcb"}, X11, "ok", "xcb"),
        ({"platform": "offscreen"}, X11, "note", "unset QT_QPA_PLATFORM"),
        ({"reason": "no display"}, {}, "note", "no display"),
        ({"reason": "Qt cannot be loaded"}, X11, "problem", "window-libraries"),
    ],
)
def test_a_window_that_was_tried(
    tmp_path: Path, answer: dict[str, Any], environment: dict[str, str], severity: str, word: str
) -> None:
    expect(window.window(machine(tmp_path, environment=environment), lambda: answer), severity, word)


def test_qt_may_end_the_program(tmp_path: Path) -> None:
    def aborted() -> dict[str, Any]:
        raise NoAnswer("SIGABRT: could not connect to display")

    expect(window.window(machine(tmp_path, environment=X11), aborted), "problem", "SIGABRT")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is always a display")
def test_a_display_that_does_not_exist_ends_another_process_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
    monkeypatch.setenv("DISPLAY", ":4711")
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    expect(window.window(machine(tmp_path, environment={"DISPLAY": ":4711"})), "problem", "the test program ended")
