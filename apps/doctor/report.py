"""Report of the findings as JSON and as text."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

from apps.doctor.finding import Finding, Severity
from apps.doctor.registry import CHECKS

_WIDEST, _NARROWEST = 120, 60
_PASTE = " " * 11
"""Indentation of shell lines."""
_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|[kMG]?B|k?Hz|h|min)\b|%)")
"""Space between a number and its unit, where lines are not broken."""
_TIMING = {"scheduling", "timer"}
"""Checks that are required for a statement about the timing of this machine."""


def result(findings: Mapping[str, Finding]) -> dict[str, Any]:
    """Return the findings for ``--json``.

    ``ready`` is True if there is no problem.
    """
    rows = [
        {
            "name": name,
            "group": CHECKS[name].group,
            "severity": str(finding.severity),
            "found": finding.found,
            "fix": finding.fix,
        }
        for name, finding in findings.items()
    ]
    timer = findings.get("timer")
    return {"findings": rows, "timer": dict(timer.facts) if timer else {}, "ready": not _problems(findings)}


def describe(findings: Mapping[str, Finding]) -> str:
    """Format the findings by group, followed by the verdict."""
    width = min(max(shutil.get_terminal_size((_WIDEST, 24)).columns, _NARROWEST), _WIDEST)
    longest = max(map(len, findings))
    lines: list[str] = []
    heading = ""
    for name, finding in sorted(findings.items(), key=lambda item: _group_order(item[0])):
        if CHECKS[name].group != heading:
            heading = CHECKS[name].group
            lines += ["", heading]
        lines += _entry(f"  {finding.severity:<7}  {name:<{longest}}  ", finding, width)
    if any(finding.fix for finding in findings.values()):
        lines += ["", "The lines below a finding fix it; paste them into a shell."]
    return printable("\n".join([*lines, "", verdict(findings)]).lstrip("\n"))


def _group_order(name: str) -> int:
    groups = list(dict.fromkeys(check.group for check in CHECKS.values()))
    return groups.index(CHECKS[name].group)


def _entry(begin: str, finding: Finding, width: int) -> list[str]:
    indent = " " * len(begin)
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    found = _UNIT.sub("\0", finding.found)
    wrapped = textwrap.wrap(found, width, initial_indent=begin, subsequent_indent=indent, **options)
    return [*(line.replace("\0", " ") for line in wrapped), *(_PASTE + line for line in finding.fix.splitlines())]


def verdict(findings: Mapping[str, Finding]) -> str:
    """Return the last line of the report, the overall verdict."""
    problems = _problems(findings)
    notes = sum(finding.severity is Severity.NOTE for finding in findings.values())
    noted = f" ({_count(notes, 'note')})" if notes else ""
    vital = [name for name in problems if CHECKS[name].vital]
    if vital:
        others = len(problems) - len(vital)
        more = f", and {_count(others, 'more problem')}" if others else ""
        return f"does not work yet: {', '.join(vital)}{more}{noted}"
    if problems:
        return f"works, but {_consequence(problems)}{noted}"
    if not findings.keys() >= _TIMING:
        return f"no problem found in {_count(len(findings), 'check')}{noted}"
    return f"ready for 1 kHz with real-time priority{noted}"


def _consequence(problems: list[str]) -> str:
    if "scheduling" in problems:
        rest = [name for name in problems if name not in _TIMING]
        more = f", and with {_count(len(rest), 'more problem')}: {', '.join(rest)}" if rest else ""
        return f"without real-time priority, so ticks will be late at times{more}"
    if problems == ["timer"]:
        return "ticks come late on this machine: do not hold a real device"
    return f"with {_count(len(problems), 'problem')}: {', '.join(problems)}"


def _problems(findings: Mapping[str, Finding]) -> list[str]:
    return [name for name, finding in findings.items() if finding.severity is Severity.PROBLEM]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def printable(text: str) -> str:
    """Return `text` with backslash escapes for characters that standard output cannot encode."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)
