"""The result in words and in files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from apps.conformance.cells import REFERENCE
from apps.conformance.limits import METRICS, Metric, Row, passes, worst

_KEYS = ("element", "grip", "quantisation_um", "rate_hz", "causality")


def by_element(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each renderer, in the order of their first rows."""
    table: dict[str, list[Row]] = {}
    for row in rows:
        table.setdefault(row["element"], []).append(row)
    return table


def reference_row(rows: Sequence[Row]) -> Row | None:
    """Return the row in which the limits apply, if it is among `rows` of one renderer."""
    wanted = (REFERENCE.grip.name, REFERENCE.quantisation_um, REFERENCE.rate)
    return next((row for row in rows if (row["grip"], row["quantisation_um"], row["rate_hz"]) == wanted), None)


def ranked(rows: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    """Return the renderers with their rows, the best first: fewest limits exceeded, then least far, in all cells."""

    def badness(own: list[Row]) -> tuple[int, float]:
        excesses = [metric.excess(row) for row in own for metric in METRICS]
        return sum(e > 1.0 for e in excesses), sum(math.log(min(max(e, 1.0), 1e12)) for e in excesses)

    return sorted(by_element(rows).items(), key=lambda item: badness(item[1]))


def verdicts(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Return for each renderer whether it passes in the reference cell, and in how many cells it would."""
    table = {}
    for element, own in by_element(rows).items():
        reference = reference_row(own)
        table[element] = {
            "passed": None if reference is None else passes(reference),
            "failed": [] if reference is None else [m.key for m in METRICS if m.excess(reference) > 1.0],
            "cells": len(own),
            "cells_within_limits": sum(map(passes, own)),
        }
    return table


def result(rows: list[Row]) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    return {
        "rows": rows,
        "limits": {metric.key: metric.limit for metric in METRICS},
        "reference": {
            "grip": REFERENCE.grip.name,
            "quantisation_um": REFERENCE.quantisation_um,
            "rate_hz": REFERENCE.rate,
        },
        "verdicts": verdicts(rows),
    }


def describe(rows: list[Row]) -> str:
    """Return the table for people, the best first, two lines for each renderer; a star is beyond the limit."""
    words = [metric.title.rpartition(" ") for metric in METRICS]
    heads = [
        ("", "", *(first for first, _, _ in words), ""),
        ("", "", *(last for _, _, last in words), ""),
        ("element", "cell", *(metric.unit for metric in METRICS), "verdict"),
        ("", "limit", *(f"<= {metric.shown(metric.limit)}" for metric in METRICS), ""),
    ]
    judged = verdicts(rows)
    body: list[tuple[str, ...]] = []
    for element, own in ranked(rows):
        reference, verdict = reference_row(own), judged[element]
        if reference is not None:
            cells = [_cell(metric, reference[metric.key]) for metric in METRICS]
            body.append((element, "reference", *cells, "pass" if verdict["passed"] else "FAIL"))
        if own == [reference]:
            continue
        cells = [_cell(metric, worst(metric, own)) for metric in METRICS]
        count = f"{verdict['cells_within_limits']} of {verdict['cells']} cells"
        body.append((element if reference is None else "", "worst", *cells, count))
    lines = _aligned([*heads, *body])
    note = f"reference cell: {REFERENCE.name}; worst: the worst value of all cells; *: beyond the limit"
    return "\n".join([*lines[: len(heads)], "-" * max(map(len, lines)), *lines[len(heads) :], note])


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


def write(rows: list[Row], folder: Path) -> dict[str, str]:
    """Write ``conformance.json`` and ``conformance.csv`` into `folder` and return their paths."""
    as_json, as_csv = folder / "conformance.json", folder / "conformance.csv"
    as_json.write_text(json.dumps(result(rows), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    with as_csv.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, (*_KEYS, *(metric.key for metric in METRICS)))
        table.writeheader()
        table.writerows(rows)
    return {"json": str(as_json), "csv": str(as_csv)}
