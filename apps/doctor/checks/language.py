"""Checks of the locale: decimal commas, and characters that cannot be printed."""

from __future__ import annotations

import codecs
import locale
import sys
from collections.abc import Callable
from typing import Any

from apps.doctor.child import call_in_child
from apps.doctor.finding import Finding, note, ok
from apps.doctor.machine import Machine

_VARIABLES = ("LC_ALL", "LC_NUMERIC", "LANG")


def settle() -> dict[str, Any]:
    """Set the locale of the environment, as Qt does, and return its decimal point.

    Runs in a separate process, because the locale stays set.
    """
    try:
        locale.setlocale(locale.LC_ALL, "")
    except locale.Error as error:
        return {"error": str(error)}
    return {"decimal_point": locale.localeconv()["decimal_point"]}


def _settle() -> dict[str, Any]:
    answer: dict[str, Any] = call_in_child("apps.doctor.checks.language:settle")
    return answer


def numbers(machine: Machine, settle: Callable[[], dict[str, Any]] = _settle) -> Finding:
    """Check the decimal point of the locale."""
    answer = settle()
    asked = next(
        (f"{name}={machine.environment[name]}" for name in _VARIABLES if machine.environment.get(name)), "none"
    )
    if "error" in answer:
        return note(
            f"the locale is not installed ({asked}); programs fall back to different ones",
            "export LC_ALL=C.UTF-8",
        )
    point = answer["decimal_point"]
    if point == ".":
        return ok(f"numbers have a decimal point ({asked})")
    lines = ["export LC_NUMERIC=C.UTF-8"]
    if machine.environment.get("LC_ALL"):
        lines.insert(0, 'export LANG="$LC_ALL"; unset LC_ALL')
    return note(
        f"numbers are written with {point!r} here ({asked}): spreadsheets write tables that our commands refuse, "
        "and C libraries misread numbers",
        *lines,
    )


def encoding_of_output() -> str:
    """Return the encoding of standard output."""
    return getattr(sys.stdout, "encoding", None) or "none"


def encoding(machine: Machine, output: Callable[[], str] = encoding_of_output) -> Finding:
    """Check that all characters can be printed and used in file names."""
    printed, named = output(), sys.getfilesystemencoding()
    poor = [
        f"{what} ({code})"
        for what, code in (("standard output", printed), ("file names", named))
        if not _is_unicode(code)
    ]
    if not poor:
        return ok(f"all letters can be printed ({printed}) and be in file names ({named})")
    return note(f"not every letter can be used: {', '.join(poor)}", "export PYTHONUTF8=1 LANG=C.UTF-8")


def _is_unicode(name: str) -> bool:
    try:
        return codecs.lookup(name).name.startswith("utf")
    except LookupError:
        return False
