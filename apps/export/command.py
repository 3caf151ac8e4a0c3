"""The command ``haptics export``: a recording as CSV, Parquet, MAT or MCAP."""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path
from textwrap import indent

from apps.shared.command import Answer, listed

FORMATS = {
    "csv": "comma-separated values, RFC 4180; what is not a number is left blank",
    "parquet": "Apache Parquet, for pandas and Polars; needs the extra [export]",
    "mat": "MATLAB 5 file, one variable a column",
    "mcap": "MCAP, a message a tick, for Foxglove and PlotJuggler; needs the extra [export]",
}
"""Export formats with their descriptions."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"formats:\n{indent(listed(FORMATS), '  ')}"
    parser.add_argument("recording", metavar="RECORDING", type=Path, help="folder of the recording")
    parser.add_argument("--to", choices=tuple(FORMATS), required=True, help="format of the file")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="file to write")
    parser.set_defaults(command=run)


def run(options: Namespace) -> Answer:
    """Export a recording."""
    from apps.export.writers import Table, write
    from haptics.recording.recording import Recording

    table = Table.of(Recording(options.recording))
    write(table, options.to, options.out)
    result = {
        "recording": str(options.recording),
        "file": str(options.out),
        "format": options.to,
        "ticks": table.length,
        "columns": list(table.columns),
    }
    return Answer(result, f"{table.length} ticks with {len(table.columns)} columns written to {options.out}")
