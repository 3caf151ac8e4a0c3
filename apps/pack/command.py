"""The command ``haptics pack``: compress recordings and restore them."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.shared.command import Answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = "Compress recordings without loss. All commands read packed recordings directly."
    parser.add_argument("recordings", metavar="RECORDING", type=Path, nargs="+", help="folder of a recording")
    parser.add_argument("--undo", action="store_true", help="restore the original files")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> Answer:
    """Pack or unpack the recordings."""
    from apps.pack.packing import pack, unpack
    from apps.shared.display import grouped
    from haptics.recording.recording import Recording

    for folder in options.recordings:
        Recording(folder)  # validate all recordings before the first one is changed
    count = changed = 0
    for folder in options.recordings:
        saved = unpack(folder) if options.undo else pack(folder)
        count += saved != 0
        changed += saved
    size = sum(Recording(folder).ticks.stat().st_size for folder in options.recordings)
    words = "restored, {} bytes larger" if options.undo else "packed, {} bytes smaller"
    result = {"recordings": count, "bytes": changed if options.undo else -changed, "size": size}
    return Answer(result, f"{count} recordings {words.format(grouped(abs(changed)))} ({grouped(size)} bytes now)")
