"""Command ``haptics calibrate``, with one sub-command for each kind of calibration."""

from __future__ import annotations

import argparse
import importlib
from types import ModuleType

from apps.shared.command import Answer

KINDS = {
    "friction": "identify the friction of joints, from recordings or on a device",
    "motor": "identify the gain of motors (PWM, current or voltage to torque), from recordings of driven joints",
    "coupled": "identify the friction of motors that drive several joints together, from recordings",
    "terms": "select the terms of the friction and load of joints, by cross-validation",
    "loops": "compare the hysteresis loop of a joint with that of the session that renders its friction",
    "check": "validate parameters with recordings that they were not identified from",
    "arm": "identify an arm: the handle on its force sensor, and the friction and inertia of its joints",
    "servo": "identify the position servo of an arm: delay, natural frequency and damping, for advice on its sessions",
    "device": "identify a device that takes forces: mass, damping, friction, delay, encoder and stability boundary",
    "joystick": "calibrate a force-feedback stick, which you move as told: metres per count and newtons per level",
    "falcon": "determine the force scale of a Novint Falcon, which lifts a weight as you are told",
}
"""Sub-commands and their summaries, in the imperative.

Each has the functions ``KIND_options`` and ``run_KIND`` in a module of this package.
"""

_MODULES = {"coupled": "friction", "check": "friction", "motor": "friction", "arm": "device", "servo": "device"}
"""Modules of sub-commands that have no module of that name."""


def _module(kind: str) -> ModuleType:
    return importlib.import_module(f"apps.calibrate.{_MODULES.get(kind, kind)}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands to the command's parser."""
    kinds = parser.add_subparsers(required=True, metavar="KIND", dest="kind")
    for name, summary in KINDS.items():
        kind = kinds.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        getattr(_module(name), f"{name}_options")(kind)
        kind.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def run(options: argparse.Namespace) -> Answer:
    """Run the chosen sub-command."""
    answer: Answer = getattr(_module(options.kind), f"run_{options.kind}")(options)
    return answer
