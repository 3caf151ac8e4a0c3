"""The command ``haptics doctor``: find problems of this machine and print the commands that fix them."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.shared.command import Answer, listed, select
from apps.shared.terminal import Line


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these checks; default: all; see --list")
    parser.add_argument("--list", action="store_true", help="list the checks and their methods")
    parser.add_argument(
        "--record",
        metavar="DIR",
        type=Path,
        default=Path("recordings"),
        help="folder for recordings (default: recordings)",
    )
    parser.add_argument(
        "--udev",
        metavar="DEVICE",
        nargs="?",
        const="all",
        help=(
            "only print the udev rules for a USB device, by name or vendor:product (default: all supported "
            "devices and connected sticks)"
        ),
    )


def run(options: argparse.Namespace) -> Answer:
    """Run the checks, or print udev rules."""
    if options.udev is not None:
        return _rules(options.udev)
    from apps.doctor.registry import CHECKS, describe, result, run_one

    names = select("check", options.names, CHECKS)
    if options.list:
        titles = {name: CHECKS[name].summary for name in names}
        return Answer({"checks": titles}, listed(titles))
    from apps.doctor.machine import Machine

    findings = {}
    with Line() as line:
        machine = Machine(record=options.record, show=line.show)
        for name in names:
            line.show(f"looking at {name}")
            findings[name] = run_one(name, CHECKS[name], machine)
    return Answer(result(findings), describe(findings))


def _rules(name: str) -> Answer:
    from apps.doctor.machine import Machine
    from apps.doctor.usb import FAMILIES, named, names, rules, unknown_sticks
    from haptics.settings import unknown_name

    families = (*FAMILIES, *unknown_sticks(Machine())) if name == "all" else named(name)
    if not families:
        raise unknown_name("USB device", name, [*names(), "all"])
    return Answer({"rules": rules(families), "devices": [family.name for family in families]}, rules(families))
