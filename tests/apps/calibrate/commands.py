"""Calibrating in this process, as the command line does it."""

from __future__ import annotations

import json
from typing import Any

from apps.cli import main


def calibrate(capsys, *arguments):
    """Return the answer of ``haptics calibrate ... --json``, which must succeed."""
    capsys.readouterr()
    status = main(["calibrate", *map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def refusal(capsys, *arguments):
    """Return the error of ``haptics calibrate ...``, which must be one line."""
    capsys.readouterr()
    assert main(["calibrate", *map(str, arguments), "--json"]) == 2
    out, err = capsys.readouterr()
    assert "error" in json.loads(out)
    (line,) = err.strip().splitlines()
    return line


def refuses_to_move(capsys, folder, *arguments):
    """Return the error of a command that is refused before it moves or writes anything."""
    out, record = folder / "own.toml", folder / "recordings"
    line = refusal(capsys, *arguments, f"--out={out}", f"--record={record}")
    assert not record.exists()
    assert not out.exists()
    return line
