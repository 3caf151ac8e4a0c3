"""The command ``haptics verify``: an independent check of a recording, with one verdict."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from apps.shared.answer import Answer
from apps.shared.words import wrapped


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("recording", metavar="RECORDING", type=Path, help="folder of the recording")


def run(options: argparse.Namespace) -> Answer:
    """Verify a recording; the exit status is 0 only if everything could be checked, and fits."""
    from apps.verify.check import verify
    from apps.verify.findings import OK

    recorded, findings = verify(options.recording)
    result: dict[str, Any] = {
        "recording": str(options.recording),
        "ticks": recorded.count,
        "violations": [vars(one) for one in findings.violations],
        "missing": [vars(one) for one in findings.missing],
        "residuals": {
            name: {"ticks": one.ticks, "value": one.value, "bound": one.bound, "unit": one.unit}
            for name, one in findings.residuals.items()
            if one.share < float("inf")
        },
        "verdict": findings.verdict,
    }
    lines = [f"{recorded.count} ticks; largest residuals, of what rounding can leave:"]
    for name, one in findings.residuals.items():
        lines.append(f"  {name:<22} {one.value:9.2e} of {one.bound:8.2e} {one.unit:<4} ({one.ticks} ticks)")
    for kind, found in (("violated", findings.violations), ("missing", findings.missing)):
        for finding in found:
            at = f", tick {finding.tick}" if finding.tick is not None else ""
            lines.append(f"{kind}: {finding.rule}{at}: {finding.words}")
    lines.append(f"verdict: {findings.verdict}")
    return Answer(result, wrapped("\n".join(lines), 4), status=0 if findings.verdict == OK else 1)
