"""Result of the suite as text, JSON and CSV."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from apps.conformance.cells import REFERENCE
from apps.conformance.limits import METRICS, Metric, Row, passes, worst

_KEYS = ("element", "grip", "quantisation_um", "rate_hz", "velocity", "causality")


def by_element(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group the rows by renderer, in the order of their first rows."""
    table: dict[str, list[Row]] = {}
    for row in rows:
        table.setdefault(row["element"], []).append(row)
    return table


def reference_row(rows: Sequence[Row]) -> Row | None:
    """Return the row of the reference cell among the `rows` of one renderer; None if missing."""
    wanted = (REFERENCE.grip.name, REFERENCE.quantisation_um, REFERENCE.rate)
    return next((row for row in rows if (row["grip"], row["quantisation_um"], row["rate_hz"]) == wanted), None)


def ranked(rows: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    """Return the renderers with their rows, best first: by exceeded limits, then by the excess."""

    def badness(own: list[Row]) -> tuple[int, float]:
        excesses = [metric.excess(row) for row in own for metric in METRICS]
        return sum(e > 1.0 for e in excesses), sum(math.log(min(max(e, 1.0), 1e12)) for e in excesses)

    return sorted(by_element(rows).items(), key=lambda item: badness(item[1]))


def verdicts(rows: Iterable[Row], raw: Iterable[Row] = ()) -> dict[str, dict[str, Any]]:
    """Return the verdict of each renderer, and its number of cells within the limits.

    The verdict applies to the reference cell.

    ``raw`` is the verdict with the difference of positions as the velocity; None if it is not in `raw`.
    """
    table = {}
    plain = {row["element"]: row for row in raw}
    for element, own in by_element(rows).items():
        table[element] = {
            **_verdict(reference_row(own)),
            "cells": len(own),
            "cells_within_limits": sum(map(passes, own)),
            "raw": _verdict(plain[element]) if element in plain else None,
        }
    return table


def _verdict(row: Row | None) -> dict[str, Any]:
    if row is None:
        return {"passed": None, "failed": []}
    return {"passed": passes(row), "failed": [metric.key for metric in METRICS if metric.excess(row) > 1.0]}


def result(rows: list[Row], raw: Sequence[Row] = ()) -> dict[str, Any]:
    """Return the content of the ``--json`` output."""
    return {
        "rows": rows,
        "raw_rows": list(raw),
        "limits": {metric.key: metric.limit for metric in METRICS if metric.is_judged},
        "reference": {
            "grip": REFERENCE.grip.name,
            "quantisation_um": REFERENCE.quantisation_um,
            "rate_hz": REFERENCE.rate,
        },
        "verdicts": verdicts(rows, raw),
    }


def describe(rows: list[Row], raw: Sequence[Row] = ()) -> str:
    """Format the table, best first, with up to three lines per renderer and a star beyond a limit."""
    words = [metric.title.rpartition(" ") for metric in METRICS]
    heads = [
        ("", "", *(first for first, _, _ in words), ""),
        ("", "", *(last for _, _, last in words), ""),
        ("element", "cell", *(metric.unit for metric in METRICS), "verdict"),
        ("", "limit", *(metric.limit_shown for metric in METRICS), ""),
    ]
    plain = {row["element"]: row for row in raw}
    body = [line for element, own in ranked(rows) for line in _lines(element, own, plain.get(element))]
    lines = _aligned([*heads, *body])
    notes = [f"reference cell: {REFERENCE.name}; worst: the worst value of all cells; *: beyond the limit"]
    if raw:
        notes.append("raw: reference cell, velocity the plain difference of positions; elsewhere the default estimator")
    notes.append("limits: of this suite, chosen by this project; where they come from is in docs/conformance.md")
    return "\n".join([*lines[: len(heads)], "-" * max(map(len, lines)), *lines[len(heads) :], *notes])


def _lines(element: str, own: list[Row], plain: Row | None) -> list[tuple[str, ...]]:
    """Return the lines of one renderer: reference cell, raw, and the worst value if there are more cells."""
    reference = reference_row(own)
    lines = []
    for cell, row in (("reference", reference), ("raw", plain)):
        if row is not None:
            verdict = "pass" if passes(row) else "FAIL"
            lines.append((cell, *(_cell(metric, row[metric.key]) for metric in METRICS), verdict))
    if own != [reference]:
        count = f"{sum(map(passes, own))} of {len(own)} cells"
        lines.append(("worst", *(_cell(metric, worst(metric, own)) for metric in METRICS), count))
    return [(element if k == 0 else "", *line) for k, line in enumerate(lines)]


def _cell(metric: Metric, value: float | None) -> str:
    return metric.shown(value) + ("*" if metric.excess({metric.key: value}) > 1.0 else " ")


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    last = len(widths) - 1
    return [
        "  ".join(
            text.ljust(width) if column < 2 or column == last else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]


def write(rows: list[Row], folder: Path, raw: Sequence[Row] = ()) -> dict[str, str]:
    """Write ``conformance.json`` and ``conformance.csv`` into `folder` and return their paths.

    In the CSV file, the rows of `raw` follow the others and differ in their column ``velocity``.
    """
    as_json, as_csv = folder / "conformance.json", folder / "conformance.csv"
    as_json.write_text(json.dumps(result(rows, raw), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    with as_csv.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, (*_KEYS, *(metric.key for metric in METRICS)))
        table.writeheader()
        table.writerows([*rows, *raw])
    return {"json": str(as_json), "csv": str(as_csv)}
