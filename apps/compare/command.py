"""The command ``haptics compare``: two recordings, or the same hand motion with other settings."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from apps.shared.command import Answer
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.compare.side import Side
    from haptics.recording.recording import Recording
    from haptics.recording.tick_file import TickTable
    from haptics.records import Rows


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("first", metavar="A", type=Path, help="folder of a recording")
    parser.add_argument("second", metavar="B", type=Path, nargs="?", help="folder of the second recording")
    parser.add_argument(
        "--with",
        metavar="TABLE.NAME=VALUE",
        action="append",
        default=[],
        dest="changes",
        help=(
            "instead of B: run A again in simulated time, unchanged and with this setting, with the same motion"
            " of the hand"
        ),
    )
    parser.add_argument(
        "--open-loop",
        action="store_true",
        help="with --with: compute the output of another element for the recorded samples of A",
    )
    parser.add_argument("--out", metavar="FILE.png", type=Path, help="write a picture of both to this file")
    parser.add_argument("--show", action="store_true", help="show both in one window")
    parser.add_argument("--theme", choices=("auto", "dark", "light"), default="auto", help="colours of the window")
    parser.set_defaults(command=run)


def run(options: Namespace) -> Answer:
    """Compare two recordings, or a recorded session with a changed copy."""
    from haptics.recording.recording import Recording

    if (options.second is None) == (not options.changes):
        raise ConfigurationError("compare: give a second recording B, or --with TABLE.NAME=VALUE, and not both.")
    if options.open_loop and (not options.changes or options.out):
        raise ConfigurationError("--open-loop: goes with --with, and without --out.")
    first = Recording(options.first)
    if options.open_loop:
        return _open_loop(first, options)
    if options.second is not None:
        return _recordings(first, Recording(options.second), options)
    from apps.compare.again import twice

    return _recordings(*twice(first, options.changes, first.folder.with_name(f"{first.folder.name}-again")), options)


def _recordings(first: Recording, second: Recording, options: Namespace) -> Answer:
    from apps.compare.comparison import Comparison, in_a_line

    found = Comparison.of(first, second)
    result = found.as_dict()
    if options.out is not None:
        from apps.compare.picture import draw

        draw(found, options.out)
        result["picture"] = str(options.out)
    if options.show:
        _show(_side(first), _side(second), in_a_line(found.figures), options.theme)
    return Answer(result, found.describe())


def _open_loop(recording: Recording, options: Namespace) -> Answer:
    from apps.compare.again import open_loop
    from apps.compare.comparison import described, figures, in_a_line
    from apps.compare.side import OPEN_LOOP, Side
    from haptics.recording.recording import TICKS

    pieces, config = open_loop(recording, options.changes)
    with TemporaryDirectory(prefix="haptics-compare-") as folder:
        answers = _spooled(pieces, Path(folder) / TICKS)
        both = figures(recording, answers)
        words = f"A  {recording.folder}\nB  {', '.join(options.changes)}\n   {OPEN_LOOP}\n\n{described(both)}"
        if options.show:
            metadata = {**recording.metadata, "model": config.session.model, "configuration": config.as_dict()}
            title = f"model {config.session.model}, {config.law['name']}: {', '.join(options.changes)}"
            sides = _side(recording), Side(title, answers, metadata, open_loop=True)
            _show(*sides, in_a_line(both), options.theme)
    named: list[dict[str, Any]] = [{"name": name, "unit": unit, "a": a, "b": b} for name, unit, a, b in both]
    return Answer({"a": str(recording.folder), "open_loop": options.changes, "figures": named}, words)


def _spooled(pieces: Iterator[Rows], path: Path) -> TickTable:
    """Write chunks of rows to a tick table on disk."""
    from haptics.recording.tick_file import TickFile, TickTable

    file = TickFile(path)
    try:
        for rows in pieces:
            file.append(rows)
    finally:
        file.close()
    return TickTable(path)


def _side(recording: Recording) -> Side:
    from apps.compare.side import Side

    law = recording.metadata.get("configuration", {}).get("law", {})
    title = f"model {recording.metadata.get('model', '?')}, {law.get('name', '?')} ({recording.folder.name})"
    return Side(title, recording, recording.metadata)


def _show(first: Side, second: Side, words: str, theme: str) -> None:
    from apps.view.launch import window_obstacle

    obstacle = window_obstacle()
    if obstacle:
        raise ConfigurationError(f"--show: {obstacle}; leave it out for the figures, or give --out FILE.png.")
    from apps.view.comparison import run as show

    show((first, second), words, theme)
