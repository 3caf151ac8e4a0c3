"""Comparison of friction model kinds on a recording, as table lines and as an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibration.terms.comparison import Compared

_HEAD = ("kind", "rms error / rms torque", "by that of the first", "expected by cross-validation")


def table(kinds: Sequence[Compared]) -> list[str]:
    """Return the lines of a table with one row for each kind of model."""
    rows = [_HEAD, *(_row(one) for one in kinds)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    notes = ["", *(one.note for one in kinds)]
    return [
        "    " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=True)), note]).rstrip()
        for row, note in zip(rows, notes, strict=True)
    ]


def as_object(one: Compared) -> dict[str, Any]:
    """Return the comparison of a kind of model for ``--json``."""
    return {
        **vars(one.error),
        "ratio_to_first": None if one.ratio is None else dict(zip(("value", "low", "high"), one.ratio, strict=True)),
        "note": one.note,
    }


def _row(one: Compared) -> tuple[str, ...]:
    error, score = one.error, one.cross_validated
    return (
        one.kind,
        f"{error.value:.3f} [{error.low:.3f}, {error.high:.3f}]",
        "" if one.ratio is None else "{:.2f} [{:.2f}, {:.2f}]".format(*one.ratio),
        "" if score is None else f"{score.value:.3f} [{score.low:.3f}, {score.high:.3f}]",
    )
