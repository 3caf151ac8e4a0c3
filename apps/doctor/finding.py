"""What a check finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; everything works."""
    PROBLEM = "problem"
    """Something does not work, or not well enough for a hand."""


@dataclass(frozen=True)
class Finding:
    """What one check has found.

    Attributes
    ----------
    severity : Severity
        How much it matters.
    found : str
        One sentence, without a full stop.
    fix : str
        Lines for a shell that mend it; what no command can do is a comment. Empty if all is well.
    facts : mapping
        Numbers for programs, if there are any.
    """

    severity: Severity
    found: str
    fix: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def ok(found: str) -> Finding:
    """All is well."""
    return Finding(Severity.OK, found)


def note(found: str, *fix: str) -> Finding:
    """Worth knowing; `fix` are the lines."""
    return Finding(Severity.NOTE, found, "\n".join(fix))


def problem(found: str, *fix: str) -> Finding:
    """Something is missing; `fix` are the lines."""
    return Finding(Severity.PROBLEM, found, "\n".join(fix))
