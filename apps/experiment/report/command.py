"""Command ``haptics experiment report``: analyse sessions and write an HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.shared.answer import Answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+", help="folder of a session, or one above it")
    parser.add_argument("--out", metavar="FILE.html", type=Path, required=True, help="report to write")
    parser.add_argument(
        "--percent",
        metavar="P",
        type=float,
        action="append",
        help="percentage of correct answers at which differences are read off (default: the file's analysis.percent, "
        "or 75, or what its staircases aim at)",
    )


def run(options: argparse.Namespace) -> Answer:
    """Analyse every session and write the report."""
    from apps.experiment.report.analysis import analyse, staircase_percent
    from apps.experiment.report.group import analyse_group
    from apps.experiment.report.page import report
    from apps.experiment.report.sessions import read_experiment
    from apps.experiment.report.settings import AnalysisSettings
    from apps.experiment.report.words import methods
    from apps.experiment.stimulus import measure
    from haptics.errors import ConfigurationError
    from haptics.files import write_atomically

    if not options.out.parent.is_dir():  # said before the analysis, which takes a while
        raise ConfigurationError(f"{options.out}: cannot be written (there is no folder {options.out.parent}).")
    experiment = read_experiment(options.folders, measure)
    table = experiment.table("analysis")
    percent = options.percent or ([] if table.get("percent") else staircase_percent(experiment))
    settings = AnalysisSettings.of(table, percent)
    people = [analyse(experiment, person, settings) for person in experiment.people]
    group = analyse_group(experiment, people, settings)
    write_atomically(options.out, report(experiment, people, group, settings))
    result = {
        "experiment": experiment.name,
        "task": experiment.task_name,
        "axis": experiment.axis,
        "simulated": experiment.simulated,
        "methods": methods(experiment, people, settings),
        "participants": [one.as_dict() for one in people],
        "group": group.as_dict(),
        "report": str(options.out),
    }
    return Answer(result, _text(result, len(people)))


def _text(result: dict[str, object], count: int) -> str:
    who = f"{count} participant{'s' if count != 1 else ''}"
    return f"{result['experiment']}: {who}, report in {result['report']}"
