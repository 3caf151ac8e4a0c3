"""The reference of the command line, from the output of ``--help``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from unittest import mock

from apps.cli import make_parser

_INTRODUCTION = """# The command line

Made from what `haptics COMMAND --help` says. `--set TABLE.NAME=VALUE` takes any of the [settings](settings.md).
Exit status: 0 done; 2 the request is wrong; 3 no such device, or it could not be opened; 4 a device, or the disk for
the recording, failed during the run (the safe output was reached, the recording kept); 130 interrupted.

With `--json` standard output is one JSON object and nothing else; words for people go to standard error.
"""


def command_line_page() -> str:
    """Return the page of all commands and their options."""
    with mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}):
        return "\n".join([_INTRODUCTION, *_sections(make_parser())])


def _sections(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## {parser.prog}\n\n```text\n{parser.format_help().rstrip()}\n```\n"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _sections(subparser)
