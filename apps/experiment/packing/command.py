"""Command ``haptics experiment pack``: compress recordings of sessions, or restore them."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.shared.answer import Answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+", help="a session, a participant or --out")
    parser.add_argument("--undo", action="store_true", help="make the recordings as they were")


def run(options: argparse.Namespace) -> Answer:
    """Pack every recording of every session after measuring its stimuli, or unpack it."""
    from apps.experiment.journal import sessions_below
    from apps.experiment.packing.sessions import recordings_of, store_stimuli
    from apps.pack.packing import pack, unpack
    from apps.shared.scale import grouped

    count = changed = 0
    for folder in options.folders:
        for place in sessions_below(folder):
            if not options.undo:
                store_stimuli(place)
            for recording in recordings_of(place):
                saved = unpack(recording) if options.undo else pack(recording)
                count += saved != 0
                changed += saved
    words = (
        f"{count} recordings {'as they were, with' if options.undo else 'packed, with'} {grouped(abs(changed))} bytes "
    )
    words += "more" if options.undo else "less"
    return Answer({"recordings": count, "bytes": changed if options.undo else -changed}, words)
