"""The command ``haptics conformance``."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apps.answer import Answer
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.conformance.cells import Cell
    from apps.conformance.subjects import Subject

_EVERY = 0.1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--element", metavar="NAME", action="append", default=[], help="only this one (repeatable); default: all"
    )
    parser.add_argument("--peers", action="store_true", help="also published formulas of others, re-implemented")
    parser.add_argument(
        "--renderer",
        metavar="FILE.py:FUNCTION",
        action="append",
        default=[],
        help="only your own, or with the others that are asked for: FUNCTION(period) returns a function of position "
        "and velocity that returns a force (repeatable)",
    )
    parser.add_argument("--quick", action="store_true", help="only the reference cell, in which the limits apply")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write table (JSON, CSV) and picture into this folder")


def run(options: argparse.Namespace) -> Answer:
    """Judge what was asked for."""
    from apps.conformance.cells import CELLS, REFERENCE
    from apps.conformance.report import describe, result, write
    from apps.conformance.subjects import choose, load_renderer
    from apps.conformance.suite import judge_all

    subjects: list[Subject] = [load_renderer(place) for place in options.renderer]
    if options.element or options.peers or not subjects:
        subjects = [*choose(options.element, options.peers), *subjects]
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    _require_different([subject.name for subject in subjects])
    cells: Sequence[Cell] = (REFERENCE,) if options.quick else CELLS
    bar = _Bar()
    try:
        rows = judge_all(subjects, cells, bar.show)
    finally:
        bar.clear()
    found, text = result(rows), describe(rows)
    if options.out is not None:
        from apps.conformance.picture import draw

        found["files"] = {**write(rows, options.out), "picture": draw(rows, subjects, options.out)}
        text += "\n" + "\n".join(f"{what:<8} {path}" for what, path in found["files"].items())
    return Answer(found, text)


def _require_different(names: list[str]) -> None:
    """Refuse two renderers of one name: their rows could not be told apart."""
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"--renderer: there are two called {name}; give the file or the function another.")


class _Bar:
    """Keeps one line of standard error up to date; silent where that is not a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._next = 0.0

    def show(self, done: int, total: int, words: str) -> None:
        """Show that `done` of `total` parts are done and what is going on now."""
        now = time.monotonic()
        if self._shown and now >= self._next:
            self._next = now + _EVERY
            filled = 30 * done // max(total, 1)
            self._write(f"[{'#' * filled}{'.' * (30 - filled)}] {done}/{total}  {words}")

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
