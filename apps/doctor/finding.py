"""Result of a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    NOTE = "note"
    """Information; everything works."""
    PROBLEM = "problem"
    """Something does not work, or not well enough for use with a participant."""


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes
    ----------
    severity : Severity
        Severity.
    found : str
        One sentence, without a full stop.
    fix : str
        Shell commands that fix the problem, and comments for manual steps. Empty if there is no problem.
    facts : mapping
        Measured values for programs, if any.
    """

    severity: Severity
    found: str
    fix: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def ok(found: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(Severity.OK, found)


def note(found: str, *fix: str) -> Finding:
    """Return a note; `fix` are the shell lines."""
    return Finding(Severity.NOTE, found, "\n".join(fix))


def problem(found: str, *fix: str) -> Finding:
    """Return a problem; `fix` are the shell lines."""
    return Finding(Severity.PROBLEM, found, "\n".join(fix))
