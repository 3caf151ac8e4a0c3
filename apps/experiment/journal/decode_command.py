"""Command ``haptics experiment decode``: show the codes of a blind session that has ended."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from apps.experiment.journal.blinding import decode
from apps.experiment.journal.names import sessions_below
from apps.shared.answer import Answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+", help="folder of a session, or one above it")


def run(options: argparse.Namespace) -> Answer:
    """Open the codes of all sessions.

    Raises without output if a session has not ended.
    """
    sessions = [place for folder in options.folders for place in sessions_below(folder)]
    opened = [(place, decode(place)) for place in sessions]
    result = {"sessions": [{"folder": str(place.folder), "codes": codes.stimuli} for place, codes in opened]}
    lines = []
    for place, codes in opened:
        lines.append(f"{place.stem}: the table is the one that was sealed before the first trial")
        lines += [f"  {code}  {json.dumps(stimulus, ensure_ascii=False)}" for code, stimulus in codes.stimuli.items()]
    return Answer(result, "\n".join(lines))
