"""The command ``haptics compare``: two recordings, or the same hand motion with other settings."""

from __future__ import annotations

import argparse
import contextlib
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from apps.shared.command import Answer
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.compare.comparison import Side
    from haptics.recording.recording import Recording


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
    from haptics.recording.recording import TICKS, Recording
    from haptics.recording.tick_file import TickFile, TickTable

    if (options.second is None) == (not options.changes):
        raise ConfigurationError("compare: give a second recording B, or --with TABLE.NAME=VALUE, and not both.")
    if options.open_loop and (not options.changes or options.out):
        raise ConfigurationError("--open-loop: goes with --with, and without --out.")
    first = Recording(options.first)
    if options.second is not None:
        return _recordings(first, Recording(options.second), options)
    from apps.compare.again import open_loop, twice
    from apps.compare.comparison import OPEN_LOOP, Side, described, figures, in_a_line

    if not options.open_loop:
        folder = first.folder.with_name(f"{first.folder.name}-again")
        return _recordings(*twice(first, options.changes, folder), options)
    pieces, config = open_loop(first, options.changes)
    with TemporaryDirectory(prefix="haptics-compare-") as directory:
        path = Path(directory) / TICKS
        with contextlib.closing(TickFile(path)) as file:
            for rows in pieces:
                file.append(rows)
        answers = TickTable(path)
        both = figures(first, answers)
        words = f"A  {first.folder}\nB  {', '.join(options.changes)}\n   {OPEN_LOOP}\n\n{described(both)}"
        if options.show:
            metadata = {**first.metadata, "model": config.session.model, "configuration": config.as_dict()}
            title = f"model {config.session.model}, {config.law['name']}: {', '.join(options.changes)}"
            _show(_side(first), Side(title, answers, metadata, open_loop=True), in_a_line(both), options.theme)
    named = [{"name": name, "unit": unit, "a": a, "b": b} for name, unit, a, b in both]
    return Answer({"a": str(first.folder), "open_loop": options.changes, "figures": named}, words)


def _recordings(first: Recording, second: Recording, options: Namespace) -> Answer:
    from apps.compare.comparison import Comparison, in_a_line

    found = Comparison.of(first, second)
    result = found.as_dict()
    if options.out is not None:
        from apps.compare.comparison import draw

        draw(found, options.out)
        result["picture"] = str(options.out)
    if options.show:
        _show(_side(first), _side(second), in_a_line(found.figures), options.theme)
    return Answer(result, found.describe())


def _side(recording: Recording) -> Side:
    from apps.compare.comparison import Side, title_of

    return Side(title_of(recording), recording, recording.metadata)


def _show(first: Side, second: Side, words: str, theme: str) -> None:
    from apps.view.launch import window_obstacle

    obstacle = window_obstacle()
    if obstacle:
        raise ConfigurationError(f"--show: {obstacle}; leave it out for the figures, or give --out FILE.png.")
    from apps.view.comparison import run as show

    show((first, second), words, theme)
