"""The command ``haptics reproduce``: the papers' figures and tables, compared with our results."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.shared.command import Answer, listed, make_folder
from apps.shared.terminal import Line, bar

FOLDER = "reproductions"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("ids", metavar="ID", nargs="*", help="which ones, or 'all' (default); see --list")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path(FOLDER), help=f"folder for the files (default: {FOLDER})"
    )
    parser.add_argument("--list", action="store_true", help="list the IDs and what they are")


def run(options: argparse.Namespace) -> Answer:
    """Compute the requested reproductions, write their files and compare the results."""
    from apps.reproduce.registry import chosen

    names = chosen(options.ids)
    return _list(names) if options.list else _reproduce(names, options.out)


def _list(names: list[str]) -> Answer:
    from apps.reproduce.registry import load

    titles = {name: load(name).TITLE for name in names}
    return Answer({"reproductions": [{"id": name, "title": title} for name, title in titles.items()]}, listed(titles))


def _reproduce(names: list[str], folder: Path) -> Answer:
    from apps.reproduce.registry import load
    from apps.reproduce.report import describe, write, write_summary

    make_folder(folder)
    results = []
    with Line() as line:
        for done, name in enumerate(names):
            line.show(f"{bar(done / len(names))} {done + 1} of {len(names)}: {name}")
            module = load(name)
            results.append(write(name, module.TITLE, module.reproduce(), folder))
    summary = write_summary(results, folder)
    missed = sum(len(result.missed) for result in results)
    broken = sum(len(result.broken) for result in results)
    answer = {
        "reproductions": [result.as_json() for result in results],
        "all_met": missed == 0,
        "all_guards_hold": broken == 0,
        "summary": str(summary),
    }
    everything = [row for result in results for row in result.rows]
    guards = sum(row.is_guard for row in everything)
    errors = [f"{missed} of {len(everything) - guards} numbers are not met."] if missed else []
    errors += [f"{broken} of {guards} guards do not hold."] if broken else []
    return Answer(answer, describe(results, summary), status=1 if errors else 0, error=" ".join(errors))
