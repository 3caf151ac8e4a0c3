"""The command ``haptics conformance``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apps.shared.command import Answer, make_folder
from apps.shared.terminal import Line, bar
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.conformance.cells import Cell
    from apps.conformance.subjects import Subject


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--element", metavar="NAME", action="append", default=[], help="only this model (repeatable); default: all"
    )
    parser.add_argument(
        "--peers", action="store_true", help=("also evaluate re-implemented renderers of other projects")
    )
    parser.add_argument(
        "--renderer",
        metavar="FILE.py:FUNCTION",
        action="append",
        default=[],
        help="your own renderer, alone unless --element or --peers is given: FUNCTION(period) returns a function of "
        "position and velocity that returns a force (repeatable)",
    )
    parser.add_argument("--quick", action="store_true", help="use only the reference cell, in which the limits apply")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help=("write the table (JSON, CSV) and the picture to this folder")
    )


def run(options: argparse.Namespace) -> Answer:
    """Judge the selected elements and renderers."""
    from apps.conformance.cells import CELLS, RAW, REFERENCE
    from apps.conformance.report import describe, draw, result, write
    from apps.conformance.subjects import choose, load_renderer
    from apps.conformance.suite import judge_all, run_cell
    from haptics.device import Causality

    subjects: list[Subject] = [load_renderer(place) for place in options.renderer]
    if options.element or options.peers or not subjects:
        subjects = [*choose(options.element, options.peers), *subjects]
    if options.out is not None:
        make_folder(options.out)
    names = [subject.name for subject in subjects]
    for name in names:  # rows are identified by name
        if names.count(name) > 1:
            raise ConfigurationError(f"--renderer: two renderers are called {name}; rename one file or function.")
    cells: Sequence[Cell] = (REFERENCE,) if options.quick else CELLS
    with Line() as line:
        rows = judge_all(
            subjects, cells, lambda done, total, words: line.show(f"{bar(done / total)} {done}/{total}  {words}")
        )
        # the impedances with the difference of positions as the velocity
        raw = [run_cell(subject, RAW) for subject in subjects if subject.causality is Causality.IMPEDANCE]
    found, text = result(rows, raw), describe(rows, raw)
    if options.out is not None:
        found["files"] = {**write(rows, options.out, raw), "picture": draw(rows, subjects, options.out, raw)}
        text += "\n" + "\n".join(f"{what:<8} {path}" for what, path in found["files"].items())
    return Answer(found, text)
