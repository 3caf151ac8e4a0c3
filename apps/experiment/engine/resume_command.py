"""``haptics experiment resume``: a session that was interrupted goes on where it was."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.shared.answer import Answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the session (ses-01), or its journal")
    parser.add_argument("--lsl", action="store_true", help="stream ticks and records by the Lab Streaming Layer")


def run(options: argparse.Namespace) -> Answer:
    """Go on with the session."""
    from apps.experiment.engine.run_command import describe
    from apps.experiment.engine.running import resume_session

    result = resume_session(options.folder, lsl=options.lsl)
    return Answer(result, describe(result))
