"""Python, packages, compiler."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from apps.doctor.checks import software
from apps.doctor.child import NoAnswer
from tests.apps.doctor.machines import expect, machine

ROOT = Path(__file__).resolve().parents[3]


def test_packages_are_those_that_the_project_asks_for() -> None:
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert set(software.PACKAGES) == {re.split(r"[<>=; ]", line)[0] for line in lines}


def test_the_packages_here_are_found_without_being_imported(tmp_path: Path) -> None:
    expect(software.packages(machine(tmp_path)), "ok", "numpy", "haptics")


def test_a_missing_package_is_named_with_its_line(tmp_path: Path) -> None:
    def version(name: str) -> str | None:
        return None if name in {"pyusb", "numba"} else "1.0"

    expect(software.packages(machine(tmp_path), version), "problem", "numba, pyusb", "pip install numba pyusb")


@pytest.mark.parametrize(
    ("python", "qt", "severity"),
    [
        ((3, 11, 7), "6.12.0", "problem"),
        ((3, 11, 7), "6.11.3", "ok"),
        ((3, 12, 1), "6.12.0", "ok"),
        ((3, 11), "new", "ok"),
    ],
)
def test_the_qt_that_ends_an_older_python(tmp_path: Path, python: tuple[int, ...], qt: str, severity: str) -> None:
    expect(software.packages(machine(tmp_path), lambda _: qt, python), severity)


@pytest.mark.parametrize(
    ("version", "name", "severity"),
    [
        ((3, 11, 0), "CPython", "ok"),
        ((3, 14, 1), "CPython", "ok"),
        ((3, 10, 9), "CPython", "problem"),
        ((3, 11, 9), "PyPy", "problem"),
    ],
)
def test_versions_of_python(tmp_path: Path, version: tuple[int, ...], name: str, severity: str) -> None:
    expect(software.python(machine(tmp_path), version, name), severity, name)


@pytest.mark.parametrize(
    ("answer", "severity", "word"),
    [
        ({}, "ok", "/somewhere"),
        ({"compiled": False}, "problem", "unset NUMBA_DISABLE_JIT"),
        ({"writable": False}, "note", "NUMBA_CACHE_DIR"),
        ({"writable": False, "folder": ""}, "note", "home folder"),
    ],
)
def test_kernels(tmp_path: Path, answer: dict[str, Any], severity: str, word: str) -> None:
    known = {"numba": "0.68", "compiled": True, "folder": "/somewhere", "writable": True}
    expect(software.kernels(machine(tmp_path), lambda: {**known, **answer}), severity, word)


def test_a_compiler_that_cannot_be_loaded(tmp_path: Path) -> None:
    def broken() -> dict[str, Any]:
        raise NoAnswer("ImportError: Numba needs NumPy 2.5 or less")

    expect(software.kernels(machine(tmp_path), broken), "problem", "NumPy 2.5", "--force-reinstall")


def test_the_cache_of_a_person_is_really_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    expect(software.kernels(machine(tmp_path)), "ok", str(tmp_path / "cache"))
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    expect(software.kernels(machine(tmp_path)), "note", str(tmp_path / "file"))
