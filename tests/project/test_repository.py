"""The repository: dependencies and their licences, imports, links, documented backends, and the writers of devices."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from apps import plugged
from apps.doctor import ports
from apps.doctor.usb import FAMILIES
from devices import BACKENDS, is_virtual

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TEXTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def _environment(python):
    return {**default_environment(), "python_version": python, "python_full_version": f"{python}.1", "extra": ""}


def _pin_lines():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _pins(python):
    pins: dict[str, str] = {}
    for requirement in map(Requirement, _pin_lines()):
        if requirement.marker is None or requirement.marker.evaluate(_environment(python)):
            assert canonicalize_name(requirement.name) not in pins, f"{requirement.name} is pinned twice"
            pins[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return pins


def _requirements(lines, python):
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate(_environment(python)):
            yield requirement


@cache
def _runtime_closure():
    """Return the names of all installed distributions that the running program needs."""
    this_python = "{}.{}".format(*sys.version_info)
    names: set[str] = set()
    waiting = list(_requirements(PROJECT["dependencies"], this_python))
    while waiting:
        name = canonicalize_name(waiting.pop().name)
        if name not in names:
            names.add(name)
            waiting += _requirements(metadata.requires(name) or [], this_python)
    return frozenset(names)


# --- versions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_is_pinned_within_its_bounds(python):
    pins = _pins(python)
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra), "hatchling>=1.27"]
    for requirement in _requirements(lines, python):
        if requirement.name != "haptics":
            assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement


def test_indirect_dependencies_are_pinned():
    assert _runtime_closure() - _pins("{}.{}".format(*sys.version_info)).keys() == set()


# --- licences ---------------------------------------------------------------------------------------------------


def _licences(name):
    """Return the licences one may choose from, as the distribution states them."""
    stated = metadata.metadata(name)
    expression = stated.get("License-Expression") or stated.get("License") or ""
    if expression and "\n" not in expression:
        return expression.split(" OR ")
    classifiers = [entry for entry in stated.get_all("Classifier") or [] if entry.startswith("License ::")]
    if classifiers:
        return classifiers
    files = [file for file in metadata.files(name) or [] if file.name.upper().startswith(("LICENSE", "LICENCE"))]
    return [file.read_text()[:200] for file in files]


def _is_gpl(licence):
    """Return True for a GPL, whose terms extend to its users; the Lesser GPL does not count."""
    name = re.sub(r"LGPL|(Lesser|Library) General Public", "", licence, flags=re.IGNORECASE)
    return re.search(r"GPL|General Public License", name, re.IGNORECASE) is not None


@pytest.mark.parametrize("name", sorted(_runtime_closure()))
def test_no_dependency_is_under_the_gpl(name):
    licences = _licences(name)
    assert licences, f"{name} states no licence"
    assert not all(_is_gpl(licence) for licence in licences), licences


# --- imports ----------------------------------------------------------------------------------------------------

WINDOWS = ("PySide6", "shiboken6", "pyqtgraph", "pyglet")
HEAVY = (*WINDOWS, "matplotlib", "numba", "scipy")
VIEW = ("feed", "history", "laws", "launch", "overview", "screenshot")
SHARED = ("shared.display", "shared.theme", "front_ends.front_end", "front_ends.run", "opengl.window")


@pytest.mark.parametrize(
    ("statement", "libraries"),
    [
        ("import haptics.errors", HEAVY),
        ("import devices", HEAVY),
        ("import apps.doctor.usb", (*HEAVY, "usb")),
        ("from apps.cli import main; main(['devices', '--json'])", HEAVY),
        ("import apps.stage.launch", WINDOWS),
        ("import " + ", ".join(f"apps.view.{name}" for name in VIEW), WINDOWS),
        ("import " + ", ".join(f"apps.{name}" for name in SHARED), WINDOWS),
    ],
    ids=["errors", "devices", "doctor", "devices command", "stage", "view", "shared"],
)
def test_code_without_a_window_imports_no_heavy_library(statement, libraries):
    script = f"import sys; {statement}; sys.exit(' '.join(name for name in {libraries} if name in sys.modules) or None)"
    answer = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


# --- texts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_inside_the_repository_exist(text):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text.read_text())
    missing = [target for target in targets if "://" not in target and not (text.parent / target).exists()]
    assert missing == []


def test_every_backend_is_documented_checked_and_detected():
    settings = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [name for name in BACKENDS if f"`{name}`" not in settings] == []
    real = {name for name in BACKENDS if not is_virtual(name)}
    assert {family.backend for family in FAMILIES} | {ports.BACKEND} == real == set(plugged._NEEDED)


# --- writers of devices -----------------------------------------------------------------------------------------

MAY_WRITE = {
    "haptics/servo/servo.py": "the servo",
    "devices/faults.py": "a device around another one",
    "devices/virtual/device.py": "its safe output, when it is closed",
    "devices/emulators/pid/firmware.py": "the plant behind an emulated stick",
    "devices/emulators/handle.py": "the plant behind an emulated device with three axes",
    "devices/emulators/hapi.py": "the plant behind an emulated board",
    "apps/reproduce/blockage.py": "a device around another one, which watches it",
    "examples/choosing_parameters.py": "an example that steps a virtual arm",
    "examples/walls.py": "an example that steps a virtual joystick",
}
"""Files that may call ``write`` of a device, and the reason."""

OTHER_TARGETS = {"stdout", "stderr", "out", "file", "wfile", "stream", "mapping"}
"""Names of files and streams with a method ``write``."""

OTHER_WRITES = {
    "devices/joystick/session.py": "reports, to a transport",
    "devices/joystick/streaming.py": "reports, to a session",
    "devices/joystick/usb/libusb.py": "reports, to a device of pyusb",
    "devices/arm/motors/native.py": "packets, to the pipes of a drive",
    "devices/arm/motors/odrive.py": "lines, to the serial port of a drive",
    "devices/arm/motors/usb.py": "packets, to a device of pyusb",
    "devices/emulators/falcon.py": "packets, to a device of pyusb",
    "devices/falcon/device.py": "packets, to a line",
    "devices/falcon/guardian.py": "packets, to a port",
    "devices/falcon/wire.py": "packets, to a line",
}
"""Files that call a ``write`` with one argument of something else."""


def test_only_the_servo_writes_to_a_device():
    """All other code gives the servo a program, so that the envelope limits every command."""
    found: dict[str, set[str]] = {}
    for floor in ("haptics", "devices", "calibration", "apps", "examples"):
        for path in sorted((ROOT / floor).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if floor not in ("haptics", "devices"):
                assert ".levels.publish" not in source and ".wake.call" not in source, f"{path} bypasses a driver"
            for node in ast.walk(ast.parse(source if "write(" in source else "")):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "write":
                    owner = ast.unparse(node.func.value)
                    if owner.split(".")[-1].strip("_") not in OTHER_TARGETS and len(node.args) == 1:
                        found.setdefault(path.relative_to(ROOT).as_posix(), set()).add(owner)
    assert {name: owners for name, owners in found.items() if name not in MAY_WRITE | OTHER_WRITES} == {}
    assert set(MAY_WRITE) <= set(found), "a file that does not write must not be on the list"
