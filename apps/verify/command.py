"""The command ``haptics verify``: an independent check of recordings, with one verdict."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from apps.shared.command import Answer
from apps.shared.terminal import wrapped

BLOCKS = "blocks"
"""Folder of the block recordings in the session of an experiment."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "recording",
        metavar="RECORDING",
        type=Path,
        help="folder of a recording, or of a session of an experiment: each of its blocks",
    )


def run(options: argparse.Namespace) -> Answer:
    """Verify recordings.

    The exit status is 0 only if all checks were possible and passed.
    """
    from apps.verify.check import verify
    from apps.verify.findings import OK, Findings

    folders, blocks = [options.recording], options.recording / BLOCKS
    if blocks.is_dir():
        recorded_blocks = sorted(path for path in blocks.iterdir() if path.is_dir() and not path.name.startswith("."))
        folders = recorded_blocks or folders
    ticks, found = 0, Findings()
    each: list[dict[str, Any]] = []
    for folder in folders:
        recorded, findings = verify(folder)
        ticks += recorded.count
        each.append(
            {
                "recording": str(folder),
                "ticks": recorded.count,
                "verdict": findings.verdict,
                "violated_ticks": findings.violated_ticks,
                "violated_markers": sorted(findings.violated_markers),
            }
        )
        found.add(findings, f"{folder.name}: " if len(folders) > 1 else "")
    result: dict[str, Any] = {
        "recording": str(options.recording),
        "ticks": ticks,
        "violations": [{"rule": one.rule, "tick": one.tick, "words": one.words} for one in found.violations],
        "missing": [{"rule": one.rule, "tick": one.tick, "words": one.words} for one in found.missing],
        "residuals": {
            name: {"ticks": one.ticks, "value": one.value, "bound": one.bound, "unit": one.unit}
            for name, one in found.residuals.items()
            if math.isfinite(one.value) and math.isfinite(one.bound)
        },
        "recordings": each,
        "verdict": found.verdict,
    }
    lines = [f"{ticks} ticks; largest residuals, and what rounding can leave:"]
    for name, one in found.residuals.items():
        lines.append(f"  {name:<24} {one.value:9.2e} of {one.bound:8.2e} {one.unit:<4} ({one.ticks} ticks)")
    for kind, group in (("violated", found.violations), ("missing", found.missing)):
        for finding in group:
            at = f", tick {finding.tick}" if finding.tick is not None else ""
            lines.append(f"{kind}: {finding.rule}{at}: {finding.words}")
    for own in each if len(each) > 1 else ():
        trials = f", in the trials {str(own['violated_markers'])[1:-1]}" if own["violated_markers"] else ""
        lines.append(f"{Path(own['recording']).name}: {own['ticks']} ticks, {own['verdict']}{trials}")
    text = "\n".join([*lines, f"verdict: {found.verdict}"])
    return Answer(result, wrapped(text, 4), status=0 if found.verdict == OK else 1)
