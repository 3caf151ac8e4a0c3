"""Command ``haptics experiment resume``: continue an interrupted session."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.shared.answer import Answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the session (ses-01), or its journal")
    parser.add_argument("--clock", choices=("wall", "off"), help="of an observer, as it was when the session began")
    parser.add_argument("--screens", action="store_true", help="of a rehearsal: show both screens")
    parser.add_argument("--lsl", action="store_true", help="stream ticks and records by the Lab Streaming Layer")


def run(options: argparse.Namespace) -> Answer:
    """Resume the session."""
    from apps.experiment.engine.opening import Manner
    from apps.experiment.engine.run_command import describe
    from apps.experiment.engine.running import resume_session

    manner = Manner(options.clock == "wall", options.lsl, options.screens)
    result = resume_session(options.folder, manner)
    return Answer(result, describe(result))
