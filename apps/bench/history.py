"""History of benchmarks: an append-only file with one line per run (results, versions, machine)."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apps.bench.outcome import table
from apps.shared.command import package_versions
from haptics.errors import ConfigurationError
from haptics.servo.realtime import without_requests

FORMAT = 1

_PACKAGES = ("haptics", "numpy", "numba", "llvmlite", "scipy")
_LONGEST = 1_000_000
_RATIOS = ("ratio", "ratio_p99", "ratio_p999", "ratio_tick")


def entry(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the history entry of a run: its results, with the versions and properties of the machine."""
    return {
        "format": FORMAT,
        "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": package_versions(_PACKAGES),
        "machine": {
            "system": platform.platform(),
            "processor": without_requests()["processor"],
            "processors": len(os.sched_getaffinity(0)),
            "load": round(os.getloadavg()[0], 2),
        },
        "benchmarks": results,
    }


def append(path: Path, line: Mapping[str, Any]) -> None:
    """Append a line to the file at `path`, which is created if missing.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    try:
        with path.open("ab+") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)  # remove a line that was truncated by a kill
            file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
    except OSError as error:
        raise ConfigurationError(
            f"--history = {str(path)!r}: cannot be written to ({error.strerror or error}); name another file."
        ) from error


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a history, oldest first; empty if the file does not exist.

    Raises
    ------
    ConfigurationError
        If a line is invalid. A truncated last line is ignored.
    """
    if not path.exists():
        return []
    texts = path.read_bytes().split(b"\n")
    found = []
    for number, text in enumerate(texts[:-1], 1):
        try:
            line = json.loads(text[:_LONGEST])
            if line["format"] != FORMAT or not isinstance(line["benchmarks"], dict):
                raise ValueError(f"not of format {FORMAT}")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConfigurationError(f"{path}, line {number}: is no result of benchmarks ({error}).") from error
        found.append(line)
    return found


def ratios(results: Mapping[str, Any]) -> dict[str, float]:
    """Return all ratios in the results by name.

    Of several ratios with the same name, the first is used. The first one is the summary; ratios of single slices
    follow.
    """
    found: dict[str, float] = {}
    for name, result in results.items():
        for words, value in _ratios_in(result, ()):
            found.setdefault(" ".join((name, *words)), value)
    return found


def _ratios_in(value: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(value, list):
        for each in value:
            yield from _ratios_in(each, words)
    elif isinstance(value, Mapping):
        own = (*words, *(each for each in value.values() if isinstance(each, str) and len(each) < 30))
        for name, each in value.items():
            if name in _RATIOS and isinstance(each, float):
                yield (*own, *(() if name == "ratio" else (name,))), each
            else:
                yield from _ratios_in(each, own)


def describe(before: list[dict[str, Any]], now: Mapping[str, Any]) -> str:
    """Format a table of all current ratios with the medians of the earlier runs."""
    earlier = [ratios(line["benchmarks"]) for line in before]
    rows: list[tuple[object, ...]] = [("what", "ratio", "median before", "runs")]
    for name, value in ratios(now).items():
        known = [each[name] for each in earlier if name in each]
        rows.append((name, value, statistics.median(known) if known else None, len(known)))
    return table(rows)
