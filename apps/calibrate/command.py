"""The command ``haptics calibrate``: one sub-command for each thing that can be calibrated."""

from __future__ import annotations

import argparse
import importlib

from apps.answer import Answer

KINDS = {
    "joystick": "a force-feedback stick: counts to metres, newtons to levels, guided by hand and eye",
}
"""Each has a module of its own here, with ``add_options`` and ``run``."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands to the command's parser."""
    kinds = parser.add_subparsers(required=True, metavar="KIND", dest="kind")
    for name, summary in KINDS.items():
        own = kinds.add_parser(name, help=summary, description=f"Calibrate {summary}.")
        importlib.import_module(f"apps.calibrate.{name}").add_options(own)
        own.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def run(options: argparse.Namespace) -> Answer:
    """Calibrate."""
    answer: Answer = importlib.import_module(f"apps.calibrate.{options.kind}").run(options)
    return answer
