"""Calibrating in this process, as the command line does it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apps.cli import main


def calibrate(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    """Return what ``haptics calibrate ... --json`` answers, if it succeeds."""
    capsys.readouterr()
    status = main(["calibrate", *map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return the one line with which ``haptics calibrate ...`` refuses."""
    capsys.readouterr()
    assert main(["calibrate", *map(str, arguments), "--json"]) == 2
    out, err = capsys.readouterr()
    assert "error" in json.loads(out)
    (line,) = err.strip().splitlines()
    return line


def refuses_to_move(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> str:
    """Return the one line with which it refuses before anything is moved or written."""
    out, record = folder / "own.toml", folder / "recordings"
    line = refusal(capsys, *arguments, f"--out={out}", f"--record={record}")
    assert not record.exists()
    assert not out.exists()
    return line
