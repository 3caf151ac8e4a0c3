"""Command ``haptics experiment preregister``: write the preregistration of an experiment."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.shared.answer import Answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("file", metavar="FILE.toml", type=Path, help="the experiment")
    parser.add_argument("--power", metavar="FILE.json", type=Path, help="what 'haptics experiment power' printed")
    parser.add_argument("--participants", metavar="N", type=int, help="planned number (default: that of --power)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="new folder for preregistration.md and .json")


def run(options: argparse.Namespace) -> Answer:
    """Collect the decisions and write them as a page."""
    from apps.experiment.design import read_design
    from apps.experiment.exports.folder import new_export, write_json, write_text
    from apps.experiment.preregister.facts import preregistration, read_power
    from apps.experiment.preregister.page import as_markdown
    from haptics.errors import ConfigurationError

    if options.participants is not None and options.participants < 1:
        raise ConfigurationError(f"--participants {options.participants}: must be at least 1.")
    power = None if options.power is None else read_power(options.power)
    facts = preregistration(read_design(options.file), power, options.participants)
    page = as_markdown(facts)
    if options.out is None:
        return Answer(facts, page)
    with new_export(options.out) as folder:
        write_text(folder, "preregistration.md", page)
        write_json(folder, "preregistration.json", facts)
    missing = [*facts["missing"], *([] if facts["participants"] else ["the number of participants"])]
    words = f"\nnot stated yet: {', '.join(missing)}" if missing else ""
    return Answer({**facts, "out": str(options.out)}, f"{options.out / 'preregistration.md'}{words}")
