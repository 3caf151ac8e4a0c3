"""Command ``haptics sweep``: parameter studies in simulated time."""

from __future__ import annotations

import argparse
import contextlib
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from apps.shared.command import Answer
from apps.shared.terminal import Line, bar


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", metavar="FILE.toml", type=Path, help="file of the sweep: session, axes and outcomes")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="folder of the results; an interrupted sweep continues"
    )
    parser.add_argument(
        "--workers", metavar="N", type=int, default=0, help="number of processes; default: one per processor"
    )
    parser.add_argument(
        "--executor", choices=("processes", "threads"), default="processes", help="workers on this machine"
    )
    parser.add_argument("--cluster", metavar="ADDRESS|local", help="address of a Dask scheduler, or local to start one")
    parser.set_defaults(command=run)


def run(options: Namespace) -> Answer:
    """Run the jobs of a sweep that have no result yet, and write its tables and picture."""
    from apps.sweep.design import read_sweep
    from apps.sweep.results import Results, agreement, describe_agreement, draw, write_tables
    from apps.sweep.running import describe_time, run_sweep
    from haptics.errors import ConfigurationError

    if options.workers < 0:
        raise ConfigurationError(f"--workers {options.workers}: must be at least 1.")
    sweep = read_sweep(options.file)
    results = Results(options.out, sweep)
    begun, before = time.monotonic(), len(results.done)
    with contextlib.closing(results), Line() as line:

        def show(done: int, failed: int, total: int) -> None:
            trouble = f", {failed} failed" if failed else ""
            line.show(f"{bar(done / total)} {done}/{total}{trouble}  {describe_time(begun, before, done, total)}")

        failed = run_sweep(sweep, results, options.cluster or options.executor, options.workers, show)
    table, files = write_tables(sweep, results)
    result: dict[str, Any] = {
        "folder": str(options.out),
        "jobs": sweep.count,
        "done": len(results.done),
        "new": len(results.done) - before,
        "failed": failed,
        "results": files[0],
        "files": files,
        "picture": draw(sweep, table, options.out),
        "seconds": round(time.monotonic() - begun, 3),
    }
    failures = results.failures
    lines = [
        f"{result['done']} of {result['jobs']} jobs done, {result['new']} of them now, in {result['seconds']:.1f} s",
        *(f"failed: {words}" for words in failures[:10]),
        *([f"... and {len(failures) - 10} more"] if len(failures) > 10 else []),
        *(f"table: {file}" for file in files),
    ]
    if (found := agreement(sweep, table)) is not None:
        result["bound"] = found
        lines.append(describe_agreement(found))
    if result["picture"]:
        lines.append(f"picture: {result['picture']}")
    return Answer(result, "\n".join(lines))
