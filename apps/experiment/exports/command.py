"""Command ``haptics experiment export``: convert the data of sessions to other formats."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from apps.shared.answer import Answer

FORMATS = {
    "csv": "apps.experiment.exports.wide_csv:export_csv",
    "psignifit": "apps.experiment.exports.psignifit:export_psignifit",
    "bids": "apps.experiment.exports.bids:export_bids",
    "psych-ds": "apps.experiment.exports.psych_ds:export_psych_ds",
}
"""Export function of each format."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+", help="folder of a session, or one above it")
    parser.add_argument("--to", metavar="FORMAT", choices=FORMATS, required=True, help=f"one of {', '.join(FORMATS)}")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="new folder, or that of an earlier export"
    )


def run(options: argparse.Namespace) -> Answer:
    """Export the sessions."""
    from apps.experiment.exports.folder import new_export
    from apps.experiment.exports.sessions import read_sessions

    module, _, name = FORMATS[options.to].partition(":")
    sessions = read_sessions(options.folders)
    with new_export(options.out) as folder:
        getattr(importlib.import_module(module), name)(folder, sessions)
    trials = sum(len(session.rows) for session in sessions)
    result = {
        "out": str(options.out),
        "format": options.to,
        "sessions": len(sessions),
        "participants": len({session.place.participant for session in sessions}),
        "trials": trials,
    }
    return Answer(result, f"{len(sessions)} sessions, {trials} rows: {options.out}")
