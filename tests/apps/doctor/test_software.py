"""Checks of Python, packages, locale, windows, the disk and shared memory."""

import os
import re
import runpy
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from apps.doctor import software, storage
from apps.doctor.child import NoAnswer
from apps.doctor.software import OPENGL, WINDOW, install_line, missing
from apps.doctor.storage import need
from haptics.errors import ConfigurationError
from haptics.records import COLUMNS
from tests.apps.doctor.machines import expect, machine
from tests.processes import ROOT as PROJECT

HOUR = 3600.0
X11 = {"DISPLAY": ":0"}

# --- Python and packages ---------------------------------------------------------------------------------------------


def test_packages_are_the_dependencies_of_the_project(tmp_path):
    lines = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert set(software.PACKAGES) == {re.split(r"[<>=; ]", line)[0] for line in lines}
    expect(software.packages(machine(tmp_path)), "ok", "numpy", "haptics")


def test_missing_packages_are_named_with_the_command_that_installs_them(tmp_path):
    found = software.packages(machine(tmp_path), lambda name: None if name in {"pyusb", "numba"} else "1.0")
    expect(found, "problem", "numba, pyusb", "pip install numba pyusb")


def test_qt_that_crashes_python_is_a_problem(tmp_path):
    here = machine(tmp_path)
    expect(software.packages(here, lambda _: "6.12.0", (3, 11, 7)), "problem")
    for qt, python in (("6.11.3", (3, 11, 7)), ("6.12.0", (3, 12, 1)), ("new", (3, 11))):
        expect(software.packages(here, lambda _, qt=qt: qt, python), "ok")


def test_python_version(tmp_path):
    here = machine(tmp_path)
    expect(software.python(here, (3, 11, 0), "CPython"), "ok", "CPython")
    expect(software.python(here, (3, 14, 1), "CPython"), "ok", "CPython")
    expect(software.python(here, (3, 10, 9), "CPython"), "problem", "CPython")
    expect(software.python(here, (3, 11, 9), "PyPy"), "problem", "PyPy")


def test_compiled_kernels(tmp_path):
    def broken():
        raise NoAnswer("ImportError: Numba needs NumPy 2.5 or less")

    known = {"numba": "0.68", "compiled": True, "folder": "/somewhere", "writable": True}
    here = machine(tmp_path)
    expect(software.kernels(here, lambda: known), "ok", "/somewhere")
    expect(software.kernels(here, lambda: known | {"compiled": False}), "problem", "unset NUMBA_DISABLE_JIT")
    expect(software.kernels(here, lambda: known | {"writable": False}), "note", "NUMBA_CACHE_DIR")
    expect(software.kernels(here, lambda: known | {"writable": False, "folder": ""}), "note", "home folder")
    expect(software.kernels(here, broken), "problem", "NumPy 2.5", "--force-reinstall")


@pytest.mark.parametrize(("is_file", "severity"), [(False, "ok"), (True, "note")])
def test_kernel_cache_is_tried(tmp_path, monkeypatch, is_file, severity):
    cache = tmp_path / "cache"
    if is_file:
        cache.touch()
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    expect(software.kernels(machine(tmp_path)), severity, str(cache))


# --- locale ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "severity", "fix"), [("C", "ok", ""), ("xx_YY.UTF-8", "note", "export LC_ALL=C.UTF-8")]
)
def test_locale_is_adopted(tmp_path, monkeypatch, name, severity, fix):
    monkeypatch.setenv("LC_ALL", name)
    expect(software.numbers(machine(tmp_path, environment={"LC_ALL": name})), severity, f"LC_ALL={name}", fix)


@pytest.mark.parametrize("variable", ["LANG", "LC_ALL"])
def test_decimal_comma_is_noted_with_a_fix(tmp_path, variable):
    here = machine(tmp_path, environment={variable: "de_DE.UTF-8"})
    finding = software.numbers(here, lambda: {"decimal_point": ","})
    expect(finding, "note", f"{variable}=de_DE.UTF-8", "export LC_NUMERIC=C.UTF-8")
    assert ("unset LC_ALL" in finding.fix) == (variable == "LC_ALL")


@pytest.mark.parametrize(
    ("code", "severity"), [("utf-8", "ok"), ("UTF8", "ok"), ("ascii", "note"), ("latin-1", "note"), ("none", "note")]
)
def test_encoding(tmp_path, code, severity):
    expect(software.encoding(machine(tmp_path), lambda: code), severity, code)


# --- windows ---------------------------------------------------------------------------------------------------------


def never(_):
    return False


def always(_):
    return True


def test_display_must_answer_if_one_is_set(tmp_path):
    expect(software.display(machine(tmp_path), never, never), "note", "demo --headless")
    here = machine(tmp_path, environment={**X11, "WAYLAND_DISPLAY": "wayland-0", "XDG_RUNTIME_DIR": "/run/user/7"})
    expect(software.display(here, never, never), "problem", "X11 :0", "Wayland wayland-0")
    expect(software.display(here, always, never), "ok", "X11 :0 answers")
    expect(software.display(here, never, lambda path: path == "/run/user/7/wayland-0"), "ok", "wayland-0 answers")


@pytest.mark.parametrize("name", ["", "nonsense", "host", ":x", ":987654321", "unix:4711", ":4711.0"])
def test_unreachable_x11_display_does_not_answer(name):
    assert not software.reach_x11(name)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs sockets with a path")
def test_listening_wayland_socket_answers(tmp_path):
    path = str(tmp_path / "w")
    assert not software.reach_wayland(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        assert software.reach_wayland(path)


def test_window_libraries_are_those_that_the_run_script_installs():
    assert {**OPENGL, **WINDOW} == runpy.run_path(str(PROJECT / "run"), run_name="script")["WINDOW_LIBRARIES"]


def test_missing_libraries_are_a_problem_only_with_a_display(tmp_path):
    expect(software.opengl(machine(tmp_path), never), "note", "libGL.so.1", "libegl1 libgl1")
    expect(software.window_libraries(machine(tmp_path, environment=X11), never), "problem", f"{len(WINDOW) - 3} more")
    expect(software.window_libraries(machine(tmp_path), always), "ok")
    expect(software.opengl(machine(tmp_path), always), "ok", "the processor draws")
    expect(software.opengl(machine(tmp_path, {"/dev/dri/renderD128": ""}), always), "ok", "the graphics card draws")
    assert missing({"libnowhere.so.9": "libnowhere9"}) == {"libnowhere.so.9": "libnowhere9"}
    assert install_line(["a", "b", "a"], "sudo ", apt=True).endswith("--no-install-recommends a b")
    assert install_line(["a", "b"], "", apt=False).startswith("#")


def test_window(tmp_path):
    def aborted():
        raise NoAnswer("SIGABRT: could not connect to display")

    here = machine(tmp_path, environment=X11)
    expect(software.window(here, lambda: {"platform": "xcb"}), "ok", "xcb")
    expect(software.window(here, lambda: {"platform": "offscreen"}), "note", "unset QT_QPA_PLATFORM")
    expect(software.window(machine(tmp_path), lambda: {"reason": "no display"}), "note", "no display")
    expect(software.window(here, lambda: {"reason": "Qt cannot be loaded"}), "problem", "window-libraries")
    expect(software.window(here, aborted), "problem", "SIGABRT")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is always a display")
def test_window_on_an_absent_display_is_a_problem(tmp_path, monkeypatch):
    pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
    monkeypatch.setenv("DISPLAY", ":4711")
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    expect(software.window(machine(tmp_path, environment={"DISPLAY": ":4711"})), "problem", "the test program ended")


# --- disk and shared memory ------------------------------------------------------------------------------------------


def test_disk_check_writes_and_removes_its_file(tmp_path):
    finding = storage.disk(machine(tmp_path, record=tmp_path / "not" / "yet"))
    assert str(tmp_path) in finding.found
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("speed", "room", "severity"), [
    (100.0, 10 * HOUR, "ok"), (2.0, 10 * HOUR, "note"), (0.9, 10 * HOUR, "problem"), (100.0, 0.5 * HOUR, "note"),
    (100.0, 30.0, "problem"),
])  # fmt: skip
def test_disk_speed_and_room_of_a_recording(tmp_path, speed, room, severity):
    """`speed` as a multiple of the need, `room` as the length of a recording [s]."""
    assert need() == 8000 * COLUMNS.itemsize
    finding = storage.disk(machine(tmp_path), lambda _: speed * need(), lambda _: int(room * need()))
    expect(finding, severity, "a recording at 8 kHz needs")


def test_unusable_disk_is_a_problem(tmp_path):
    def full(_):
        raise OSError(28, "No space left on device")

    (tmp_path / "file").touch()
    expect(storage.disk(machine(tmp_path, record=tmp_path / "file")), "problem", "--record")
    expect(storage.disk(machine(tmp_path), full), "problem", "No space left")


def test_shared_memory(tmp_path):
    def no_room(_):
        raise ConfigurationError("no room in memory for 16777216 bytes (No space left on device): free some")

    assert not storage.share(1 << 16).exists()
    here = machine(tmp_path)
    expect(storage.shared_memory(here), "ok", "16.8 MB")
    file = Path("/tmp/haptics-x.doctor")
    expect(storage.shared_memory(here, lambda _: file, lambda _: True), "ok", "/tmp")
    expect(storage.shared_memory(here, lambda _: file, lambda _: False), "note", "mount -t tmpfs")
    expect(storage.shared_memory(here, no_room), "problem", "--shm-size")


def later():
    return time.time() + 3600.0


def test_abandoned_shared_files_are_noted_and_the_fix_removes_them(tmp_path):
    files = {f"{storage.SHARED}/haptics-4711-99.{kind}": "x" * 1000 for kind in ("trace", "control")}
    here = machine(tmp_path / "m", files | {"/proc/12/maps": ""}, os.getuid())
    finding = storage.stale_files(here, later, tmp_path)
    expect(finding, "note", "2 files", "haptics-4711-99.*")
    subprocess.run(["sh", "-c", finding.fix], check=True)
    expect(storage.stale_files(here, later, tmp_path), "ok")


@pytest.mark.parametrize("why", ["mapped", "recent", "another user's", "unrelated"])
def test_other_shared_files_are_not_touched(tmp_path, why):
    name = "haptics-notes.txt" if why == "unrelated" else "haptics-abc_12.trace"
    maps = f"7f00-7f01 rw-s 0 0:1 5 /dev/shm/{name}\n" if why == "mapped" else ""
    user = os.getuid() + (why == "another user's")
    here = machine(tmp_path, {f"{storage.SHARED}/{name}": "x" * 1000, "/proc/12/maps": maps}, user)
    expect(storage.stale_files(here, time.time if why == "recent" else later, tmp_path), "ok")
