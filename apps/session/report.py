"""Text report at the end of a run: verdict, files, timing, and advice."""

from __future__ import annotations

from typing import Any

from apps.shared.scale import microseconds
from apps.shared.summary import Line, certificate, durations, verdict
from apps.shared.words import wrapped

_COLUMN = 18
_PLAIN = str.maketrans({"\u00a0": " ", "\u2009": "", "µ": "u"})
"""Replacements for terminals that support ASCII only."""


def describe(summary: dict[str, Any]) -> str:
    """Return the report of a run, advice last; `summary` has the keys of the JSON output."""
    lines = [
        *_judged(summary),
        ("recording", str(summary["recording"])),
        ("picture", str(summary["picture"] or "none")),
        *certificate({name: value for name, value in summary.items() if name != "rate_hz"}),
        *_quantiles(summary),
        *(("advice", sentence) for sentence in summary.get("advice", ())),
    ]
    head = f"{summary['device']}, model {summary['model']}, {summary['rate_hz']:g} Hz: {summary['reason']}"
    body = "\n".join(f"  {name:<{_COLUMN}}{value}".translate(_PLAIN) for name, value in lines)
    return wrapped(f"{head}\n{body}", indent=2 + _COLUMN)


def _judged(summary: dict[str, Any]) -> list[Line]:
    """Return the verdict, with each reason on a separate line."""
    judged = verdict(summary)
    if judged is None:
        return []
    return [("verdict", judged.word), *(("because", reason) for reason in judged.reasons)]


def _quantiles(summary: dict[str, Any]) -> list[Line]:
    return [
        (name, ", ".join(f"{word} {microseconds(value)}" for word, value in values.items()))
        for name, values in durations(summary).items()
    ]
