"""The command ``haptics compare``: two recordings side by side."""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path

from apps.shared.answer import Answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("first", metavar="A", type=Path, help="folder of a recording")
    parser.add_argument("second", metavar="B", type=Path, help="folder of another one")
    parser.add_argument("--out", metavar="FILE.png", type=Path, help="draw both into this picture")
    parser.set_defaults(command=run)


def run(options: Namespace) -> Answer:
    """Compare two recordings."""
    from apps.compare.comparison import Comparison
    from haptics.recording.recording import Recording

    found = Comparison.of(Recording(options.first), Recording(options.second))
    result = found.as_dict()
    if options.out is not None:
        from apps.compare.picture import draw

        draw(found, options.out)
        result["picture"] = str(options.out)
    return Answer(result, found.describe())
