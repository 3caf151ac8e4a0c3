"""JSON files of a recording: journals and metadata, with validated reading."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

MAX_JSON_BYTES = 100_000_000
"""Maximum size of a metadata file or journal [bytes]."""


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Append one JSON line to a journal and flush it to the operating system."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(value, allow_nan=False) + "\n")


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace the content of `path` atomically: readers see the old file or the new one."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def parse_json(text: str) -> Any:
    """Parse JSON; raise `ValueError` for nan and infinity, which JSON does not have."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def complete_lines(path: Path) -> list[str]:
    """Return the complete lines of a journal, without a last line truncated by a crash."""
    if not path.exists():
        return []
    return [line for line in read_small_text(path).splitlines(keepends=True) if line.endswith("\n")]


def read_small_text(path: Path) -> str:
    """Return the text of a file; raise `OSError` or `ValueError` if it is not a text file or is too large."""
    if not path.is_file():
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(f"{path.name} is too large")
    return path.read_text(encoding="utf-8")
