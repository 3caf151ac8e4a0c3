"""Output files of the reproductions, and their rows as JSON and text.

The files are ``ID.png``, ``ID.csv`` and ``summary.md``.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.reproduce.outcome import Bound, Outcome, Row, count_words, tally
from apps.reproduce.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("what", "expected", "ours", "difference", "tolerance", "unit", "source", "met", "holds")
"""Columns of the table. The column ``met`` is empty for guards."""

SUMMARY = "summary.md"

_CLASSES = (
    "paper: the paper prints the number or states the fact. derived: it follows from the paper's equations, in closed "
    "form or from a separate implementation. guard: a bound set after seeing our result, or about what was chosen; it "
    "notices a change and proves nothing, and is not counted as met."
)


@dataclass(frozen=True)
class Result:
    """Reproduction that has been written to disk.

    Attributes
    ----------
    id, title : str
        ID and title.
    rows : sequence of Row
        Comparisons.
    picture, table : Path
        Paths of the files.
    """

    id: str
    title: str
    rows: Sequence[Row]
    picture: Path
    table: Path

    def as_json(self) -> dict[str, Any]:
        """Return the result in the format of the command's JSON output."""
        return {
            "id": self.id,
            "title": self.title,
            "picture": str(self.picture),
            "table": str(self.table),
            "tally": tally(self.rows),
            "rows": [row_as_json(row) for row in self.rows],
        }


def write(name: str, title: str, outcome: Outcome, folder: Path) -> Result:
    """Write picture and table of a reproduction into `folder`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Figure = Figure(figsize=(12, 7), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    outcome.draw(figure)
    figure.supxlabel(count_words(outcome.rows), x=0.995, ha="right", fontsize=9, color=INK)
    picture, table = folder / f"{name}.png", folder / f"{name}.csv"
    figure.savefig(picture)
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in outcome.rows:
            expected = row.expected if isinstance(row.expected, Bound) else float(row.expected)
            numbers = [repr(float(value)) for value in (row.ours, row.difference, row.tolerance)]
            met = "" if row.met is None else str(row.met).lower()
            writer.writerow([row.what, f"{expected}", *numbers, row.unit, row.source, met, str(row.holds).lower()])
    return Result(name, title, outcome.rows, picture, table)


def write_summary(results: Sequence[Result], folder: Path) -> Path:
    """Write one page with all pictures and tables into `folder`."""
    path = folder / SUMMARY
    lines = ["# Reproductions", "", _CLASSES, ""]
    lines += ["| reproduction | | paper | derived | guards that hold |", "|---|---|---|---|---|"]
    for result in results:
        counts = [f"{own['holding']} of {own['count']}" if own["count"] else "" for own in tally(result.rows).values()]
        lines.append(f"| [{result.id}](#{result.id}) | {result.title} | {' | '.join(counts)} |")
    for result in results:
        lines += ["", f"## {result.id}", result.title, "", f"![{result.title}]({result.picture.name})", ""]
        lines += ["| what | expected | ours | tolerance | unit | source | met |", "|---|---|---|---|---|---|---|"]
        for row in result.rows:
            what, met = row.what.replace("|", "\\|"), ("holds" if row.is_guard else "yes") if row.holds else "**no**"
            numbers = f"{row.expected:.6g} | {row.ours:.6g} | {row.tolerance:g}"
            lines.append(f"| {what} | {numbers} | {row.unit} | {row.source} | {met} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def describe(results: Sequence[Result], summary: Path) -> str:
    """Format the results as text, with details of failed rows."""
    width = max(len(result.id) for result in results)
    counts = [count_words(result.rows) for result in results]
    column = max(map(len, counts))
    lines = []
    for result, count in zip(results, counts, strict=True):
        lines.append(f"{result.id:<{width}}  {count:<{column}}  {result.title}")
        for is_guard, words in ((False, "not met"), (True, "guard does not hold")):
            failed = (row for row in result.rows if row.is_guard == is_guard and not row.holds)
            lines += [f"  {words}: {row_sentence(row)}" for row in failed]
    found = tally([row for result in results for row in result.rows])
    numbers = [f"{found[source]['holding']} of {found[source]['count']} {source}" for source in ("paper", "derived")]
    lines.append(f"numbers met: {', '.join(numbers)}")
    guards = found["guard"]
    if guards["count"]:
        lines.append(f"guards: {guards['holding']} of {guards['count']} hold (bounds set by us: they prove nothing)")
    return "\n".join([*lines, f"pictures, tables and summary: {summary}"])


def row_as_json(row: Row) -> dict[str, Any]:
    """Return a row in the format of the command's JSON output, which has no numbers that are not finite."""
    expected: Any = row.expected
    if isinstance(expected, Bound):
        expected = {name: value for name, value in asdict(expected).items() if math.isfinite(value)}
    numbers = {name: float(getattr(row, name)) for name in ("ours", "difference")}
    finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {name: getattr(row, name) for name in COLUMNS} | {"expected": expected} | finite


def row_sentence(row: Row) -> str:
    """Format a row as a sentence."""
    return f"{row.what}: {row.ours:.9g} {row.unit}, expected {row.expected:.9g} (tolerance {row.tolerance:g})"
