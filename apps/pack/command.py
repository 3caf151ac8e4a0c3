"""The command ``haptics pack``: recordings take less room, and can be made as they were again."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.shared.answer import Answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = (
        "Pack recordings without loss, to an eighth to two fifths. Every command reads them as they are."
    )
    parser.add_argument("recordings", metavar="RECORDING", type=Path, nargs="+", help="folder of a recording")
    parser.add_argument("--undo", action="store_true", help="make the recordings as they were")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> Answer:
    """Pack every recording, or unpack it."""
    from apps.pack.packing import pack, unpack
    from apps.shared.scale import grouped
    from haptics.recording.recording import Recording

    for folder in options.recordings:
        Recording(folder)  # an error in the last one is told before the first is changed
    count = changed = 0
    for folder in options.recordings:
        saved = unpack(folder) if options.undo else pack(folder)
        count += saved != 0
        changed += saved
    size = sum(Recording(folder).ticks.stat().st_size for folder in options.recordings)
    words = "as they were, with {} bytes more" if options.undo else "packed, with {} bytes less"
    result = {"recordings": count, "bytes": changed if options.undo else -changed, "size": size}
    return Answer(result, f"{count} recordings {words.format(grouped(abs(changed)))}: {grouped(size)} bytes now")
