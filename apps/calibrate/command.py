"""The command ``haptics calibrate``: one sub-command for each thing that can be calibrated."""

from __future__ import annotations

import argparse
import importlib

from apps.shared.answer import Answer

KINDS = {
    "friction": "the friction of joints, from recordings of them",
    "motor": "what motors give for their PWM, current or voltage, from recordings of joints that they drive",
    "coupled": "the friction of motors that drive joints together, from recordings of the joints",
    "terms": "which terms the friction and load of joints have, chosen by what they predict",
    "check": "parameters that were found, by recordings they were not found from",
    "arm": "an arm: what its force sensor carries, and the friction and inertia of its joints",
    "joystick": "a force-feedback stick: counts to metres, newtons to levels, guided by hand and eye",
}
"""Each has a module of its own here, with ``add_options`` and ``run``."""

_VERBS = {"check": "Check", "motor": "Find", "terms": "Find"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands to the command's parser."""
    kinds = parser.add_subparsers(required=True, metavar="KIND", dest="kind")
    for name, summary in KINDS.items():
        own = kinds.add_parser(name, help=summary, description=f"{_VERBS.get(name, 'Calibrate')} {summary}.")
        importlib.import_module(f"apps.calibrate.{name}").add_options(own)
        own.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def run(options: argparse.Namespace) -> Answer:
    """Calibrate."""
    answer: Answer = importlib.import_module(f"apps.calibrate.{options.kind}").run(options)
    return answer
