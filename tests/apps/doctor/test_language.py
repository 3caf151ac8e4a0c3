"""Commas in numbers, and letters that cannot be printed."""

from pathlib import Path

import pytest

from apps.doctor.checks import language
from tests.apps.doctor.machines import expect, machine


def test_the_plain_language_has_a_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    expect(language.numbers(machine(tmp_path, environment={"LC_ALL": "C"})), "ok", "LC_ALL=C")


def test_a_language_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "xx_YY.UTF-8")
    here = machine(tmp_path, environment={"LC_ALL": "xx_YY.UTF-8"})
    expect(language.numbers(here), "note", "LC_ALL=xx_YY.UTF-8", "export LC_ALL=C.UTF-8")


def test_a_decimal_comma(tmp_path: Path) -> None:
    def german() -> dict[str, str]:
        return {"decimal_point": ","}

    by_language = machine(tmp_path, environment={"LANG": "de_DE.UTF-8"})
    finding = expect(language.numbers(by_language, german), "note", "LANG=de_DE.UTF-8", "export LC_NUMERIC=C.UTF-8")
    assert "unset LC_ALL" not in finding.fix
    overruled = machine(tmp_path, environment={"LC_ALL": "de_DE.UTF-8"})
    expect(language.numbers(overruled, german), "note", "unset LC_ALL")


@pytest.mark.parametrize(
    ("code", "severity"), [("utf-8", "ok"), ("UTF8", "ok"), ("ascii", "note"), ("latin-1", "note"), ("none", "note")]
)
def test_encodings(tmp_path: Path, code: str, severity: str) -> None:
    expect(language.encoding(machine(tmp_path), lambda: code), severity, code)
