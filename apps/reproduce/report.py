"""The files a reproduction leaves, ``ID.png``, ``ID.csv`` and one ``summary.md``, and its rows as JSON and as text."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.reproduce.outcome import Bound, Outcome, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("what", "expected", "ours", "difference", "tolerance", "unit", "source", "met")
"""Columns of the table."""

SUMMARY = "summary.md"


@dataclass(frozen=True)
class Result:
    """A reproduction that has been written to disk.

    Attributes
    ----------
    id, title : str
        Which one.
    rows : sequence of Row
        Its comparisons.
    picture, table : Path
        Where it is.
    """

    id: str
    title: str
    rows: Sequence[Row]
    picture: Path
    table: Path

    @property
    def missed(self) -> list[Row]:
        """The rows that are not met."""
        return [row for row in self.rows if not row.met]

    def as_json(self) -> dict[str, Any]:
        """Return it as the command's JSON shows it."""
        return {
            "id": self.id,
            "title": self.title,
            "picture": str(self.picture),
            "table": str(self.table),
            "rows": [_row_as_json(row) for row in self.rows],
        }


def write(name: str, title: str, outcome: Outcome, folder: Path) -> Result:
    """Write picture and table of one reproduction into `folder`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Figure = Figure(figsize=(12, 7), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    outcome.draw(figure)
    picture, table = folder / f"{name}.png", folder / f"{name}.csv"
    figure.savefig(picture)
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_cells(row) for row in outcome.rows)
    return Result(name, title, outcome.rows, picture, table)


def write_summary(results: Sequence[Result], folder: Path) -> Path:
    """Write one page with every picture and table into `folder`."""
    path = folder / SUMMARY
    lines = ["# Reproductions", "", *_contents(results)]
    for result in results:
        lines += ["", f"## {result.id}", result.title, "", f"![{result.title}]({result.picture.name})", ""]
        lines += ["| what | expected | ours | tolerance | unit | source | met |", "|---|---|---|---|---|---|---|"]
        lines += [_markdown(row) for row in result.rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def describe(results: Sequence[Result], summary: Path) -> str:
    """Return the results in words, what is not met in full."""
    width = max(len(result.id) for result in results)
    lines = []
    for result in results:
        met = len(result.rows) - len(result.missed)
        lines.append(f"{result.id:<{width}}  {met} of {len(result.rows)} met   {result.title}")
        lines += [f"  not met: {_sentence(row)}" for row in result.missed]
    return "\n".join([*lines, f"pictures, tables and summary: {summary}"])


def _contents(results: Sequence[Result]) -> list[str]:
    lines = ["| reproduction | | rows met |", "|---|---|---|"]
    for result in results:
        met = len(result.rows) - len(result.missed)
        lines.append(f"| [{result.id}](#{result.id}) | {result.title} | {met} of {len(result.rows)} |")
    return lines


def _row_as_json(row: Row) -> dict[str, Any]:
    return {
        "what": row.what,
        "expected": _bound_as_json(row.expected) if isinstance(row.expected, Bound) else row.expected,
        "ours": _finite(row.ours),
        "difference": _finite(row.difference),
        "tolerance": row.tolerance,
        "unit": row.unit,
        "source": row.source,
        "met": row.met,
    }


def _bound_as_json(bound: Bound) -> dict[str, float]:
    ends = {"minimum": bound.minimum, "maximum": bound.maximum}
    return {name: value for name, value in ends.items() if math.isfinite(value)}


def _finite(value: float) -> float | None:
    """Return a number that JSON can hold."""
    return float(value) if math.isfinite(value) else None


def _cells(row: Row) -> list[str]:
    expected = str(row.expected) if isinstance(row.expected, Bound) else repr(float(row.expected))
    numbers = [repr(float(value)) for value in (row.ours, row.difference, row.tolerance)]
    return [row.what, expected, *numbers, row.unit, row.source, str(row.met).lower()]


def _markdown(row: Row) -> str:
    expected = str(row.expected) if isinstance(row.expected, Bound) else f"{row.expected:.6g}"
    what = row.what.replace("|", "\\|")
    met = "yes" if row.met else "**no**"
    return f"| {what} | {expected} | {row.ours:.6g} | {row.tolerance:g} | {row.unit} | {row.source} | {met} |"


def _sentence(row: Row) -> str:
    expected = str(row.expected) if isinstance(row.expected, Bound) else f"{row.expected:.9g}"
    return f"{row.what}: {row.ours:.9g} {row.unit}, expected {expected} (tolerance {row.tolerance:g})"
