"""Command ``haptics experiment``, with one sub-command for each kind of work."""

from __future__ import annotations

import argparse
import importlib

from apps.shared.answer import Answer

WORK: dict[str, tuple[str, str]] = {
    "run": ("apps.experiment.engine.run_command", "run a session of an experiment"),
    "resume": ("apps.experiment.engine.resume_command", "go on with a session that was interrupted"),
    "export": ("apps.experiment.exports.command", "write the data of sessions as other programs read them"),
    "power": ("apps.experiment.power.command", "plan how many participants an experiment needs, with simulated ones"),
    "preregister": ("apps.experiment.preregister.command", "say what the file of an experiment fixes beforehand"),
    "report": ("apps.experiment.report.command", "write a report: participants and group, figures, methods"),
    "pack": ("apps.experiment.packing.command", "make the recordings of sessions smaller, without loss"),
    "decode": ("apps.experiment.journal.decode_command", "open the sealed codes of blind sessions that have ended"),
}
"""Module, with ``add_options`` and ``run``, and summary of each sub-command.

The modules are imported for every command line. They import large dependencies only where these are used.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands to the command's parser."""
    kinds = parser.add_subparsers(required=True, metavar="SUB", dest="work")
    for name, (module, summary) in WORK.items():
        own = kinds.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        importlib.import_module(module).add_options(own)
        own.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def run(options: argparse.Namespace) -> Answer:
    """Run the chosen sub-command."""
    module, _ = WORK[options.work]
    answer: Answer = importlib.import_module(module).run(options)
    return answer
