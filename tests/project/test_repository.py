"""What holds for the repository as a whole: its dependencies, their licences, what an import may load, its links."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TEXTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def _environment(python: str) -> dict[str, str]:
    return {**default_environment(), "python_version": python, "python_full_version": f"{python}.1", "extra": ""}


def _pin_lines() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _pins(python: str) -> dict[str, str]:
    pins: dict[str, str] = {}
    for requirement in map(Requirement, _pin_lines()):
        if requirement.marker is None or requirement.marker.evaluate(_environment(python)):
            assert canonicalize_name(requirement.name) not in pins, f"{requirement.name} is pinned twice"
            pins[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return pins


def _requirements(lines: list[str], python: str) -> Iterator[Requirement]:
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate(_environment(python)):
            yield requirement


@cache
def _runtime_closure() -> frozenset[str]:
    """Names of all distributions that the running program needs, found in what is installed."""
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


@pytest.mark.parametrize("line", _pin_lines())
def test_a_constraint_is_an_exact_version_and_no_address(line: str) -> None:
    assert re.fullmatch(r'[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*(; python_version (<|>=) "3\.\d+")?', line)


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_is_pinned_within_its_bounds(python: str) -> None:
    pins = _pins(python)
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra), "hatchling>=1.27"]
    for requirement in _requirements(lines, python):
        if requirement.name != "haptics":
            assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement


def test_what_the_dependencies_need_is_pinned_too() -> None:
    assert _runtime_closure() - _pins("{}.{}".format(*sys.version_info)).keys() == set()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal from Python 3.12 on")
def test_qt_gives_back_its_references_to_none() -> None:
    core = pytest.importorskip("PySide6.QtCore", exc_type=ImportError)
    size = core.QSize()
    before = sys.getrefcount(None)
    for width in range(1000):
        size.setWidth(width)
    assert abs(sys.getrefcount(None) - before) < 100


# --- licences ---------------------------------------------------------------------------------------------------


def _licences(name: str) -> list[str]:
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


def _is_gpl(licence: str) -> bool:
    """Tell whether a licence asks its users to publish under the same terms; the Lesser GPL does not."""
    name = re.sub(r"LGPL|(Lesser|Library) General Public", "", licence, flags=re.IGNORECASE)
    return re.search(r"GPL|General Public License", name, re.IGNORECASE) is not None


def test_the_licence_test_tells_the_two_apart() -> None:
    assert _is_gpl("GPL-3.0-only") and _is_gpl("License :: OSI Approved :: GNU General Public License v3 (GPLv3)")
    assert not _is_gpl("LGPL-3.0-only") and not _is_gpl("BSD-3-Clause")
    assert not _is_gpl("License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)")


@pytest.mark.parametrize("name", sorted(_runtime_closure()))
def test_nothing_that_runs_is_under_the_gpl(name: str) -> None:
    licences = _licences(name)
    assert licences, f"{name} states no licence"
    assert not all(_is_gpl(licence) for licence in licences), licences


# --- imports ----------------------------------------------------------------------------------------------------

HEAVY = ("PySide6", "shiboken6", "pyqtgraph", "pyglet", "matplotlib", "numba", "scipy")


@pytest.mark.parametrize("module", ["haptics.errors", "devices", "apps.cli"])
def test_what_needs_no_window_loads_none(module: str) -> None:
    question = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", question], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


# --- texts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_inside_the_repository_lead_somewhere(text: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text.read_text())
    missing = [target for target in targets if "://" not in target and not (text.parent / target).exists()]
    assert missing == []


def test_the_index_lists_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    documents = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [path for path in documents if path != "README.md" and f"({path})" not in index] == []
