"""Result of the suite as text, JSON, CSV and picture."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.conformance import cells
from apps.conformance.cells import FRICTION, REFERENCE
from apps.conformance.suite import METRICS, Metric, Result, passes, worst

_KEYS = ("element", "grip", "quantisation_um", "rate_hz", "velocity", "causality")


def by_element(rows: Iterable[Result]) -> dict[str, list[Result]]:
    """Group the rows by renderer, in the order of their first rows."""
    table: dict[str, list[Result]] = {}
    for row in rows:
        table.setdefault(row["element"], []).append(row)
    return table


def reference_row(rows: Sequence[Result]) -> Result | None:
    """Return the row of the reference cell among the `rows` of one renderer; None if missing."""
    wanted = (REFERENCE.grip.name, REFERENCE.quantisation_um, REFERENCE.rate)
    return next((row for row in rows if (row["grip"], row["quantisation_um"], row["rate_hz"]) == wanted), None)


def ranked(rows: Iterable[Result]) -> list[tuple[str, list[Result]]]:
    """Return the renderers with their rows, best first: by exceeded limits, then by the excess."""

    def badness(own: list[Result]) -> tuple[int, float]:
        excesses = [metric.excess(row) for row in own for metric in METRICS]
        return sum(e > 1.0 for e in excesses), sum(math.log(min(max(e, 1.0), 1e12)) for e in excesses)

    return sorted(by_element(rows).items(), key=lambda item: badness(item[1]))


def verdicts(rows: Iterable[Result], raw: Iterable[Result] = ()) -> dict[str, dict[str, Any]]:
    """Return the verdict of each renderer, and its number of cells within the limits.

    The verdict applies to the reference cell.

    ``raw`` is the verdict with the difference of positions as the velocity; None if it is not in `raw`.
    """

    def verdict(row: Result | None) -> dict[str, Any]:
        if row is None:
            return {"passed": None, "failed": []}
        return {"passed": passes(row), "failed": [metric.key for metric in METRICS if metric.excess(row) > 1.0]}

    plain = {row["element"]: row for row in raw}
    return {
        element: {
            **verdict(reference_row(own)),
            "cells": len(own),
            "cells_within_limits": sum(map(passes, own)),
            "raw": verdict(plain[element]) if element in plain else None,
        }
        for element, own in by_element(rows).items()
    }


def result(rows: list[Result], raw: Sequence[Result] = ()) -> dict[str, Any]:
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


def describe(rows: list[Result], raw: Sequence[Result] = ()) -> str:
    """Format the table, best first, with up to three lines per renderer and a star beyond a limit."""
    words = [metric.title.rpartition(" ") for metric in METRICS]
    heads = [
        ("", "", *(first for first, _, _ in words), ""),
        ("", "", *(last for _, _, last in words), ""),
        ("element", "cell", *(metric.unit for metric in METRICS), "verdict"),
        ("", "limit", *map(_limit, METRICS), ""),
    ]
    plain = {row["element"]: row for row in raw}
    body = [line for element, own in ranked(rows) for line in _lines(element, own, plain.get(element))]
    table = [*heads, *body]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    # The first two columns and the last one are text, the others numbers.
    sides = "<<" + ">" * (len(widths) - 3) + "<"
    lines = ["  ".join(map(format, line, map("{}{}".format, sides, widths))).rstrip() for line in table]
    notes = [f"reference cell: {REFERENCE.name}; worst: the worst value of all cells; *: beyond the limit"]
    if raw:
        notes.append("raw: reference cell, velocity the plain difference of positions; elsewhere the default estimator")
    notes.append("limits: of this suite, chosen by this project; where they come from is in docs/conformance.md")
    return "\n".join([*lines[: len(heads)], "-" * max(map(len, lines)), *lines[len(heads) :], *notes])


def _limit(metric: Metric) -> str:
    return f"<= {metric.shown(metric.limit)}" if metric.is_judged else "none"


def _lines(element: str, own: list[Result], plain: Result | None) -> list[tuple[str, ...]]:
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


def write(rows: list[Result], folder: Path, raw: Sequence[Result] = ()) -> dict[str, str]:
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


if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from apps.conformance.subjects import Subject

PICTURE = "conformance.png"

_INK, _GRID = "#222222", "#E6E6E6"
_CLASSES = (
    (1.0, "#B5DDF2", _INK, "within the limit"),
    (10.0, "#F6EC9A", _INK, "up to 10 times the limit"),
    (100.0, "#EFB13A", _INK, "up to 100 times"),
    (float("inf"), "#C24E00", "white", "more"),
)
"""Okabe-Ito colours: blue, yellow, orange, vermilion, distinguishable by colour-blind readers."""

_SHOWN = "#EEEEEE"
"""Background of values without a limit."""

_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#222222")
_CHARACTER = 0.092
"""Width of a character of a name in the picture [inch]."""

_ROW, _HEADS, _LEGEND, _TRACES, _FOOT = 0.36, 1.85, 1.2, 3.0, 0.65
"""Heights in the picture [inch]: a row, everything above the rows, legend with a title, traces, and their axis."""

_SMALLEST = 1.0


def draw(rows: Sequence[Result], subjects: Sequence[Subject], folder: Path, raw: Sequence[Result] = ()) -> str:
    """Draw the table of `rows` and traces of several `subjects`; return the path of the picture.

    The panels show the reference cell, the same cell with the difference of positions as the velocity (`raw`), and the
    worst value over all cells, as far as available.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    table = ranked(rows)
    names = [name for name, _ in table]
    plain = {row["element"]: row for row in raw}
    cell = f"{REFERENCE.grip.name} grip, {REFERENCE.quantisation_um:g} µm, {REFERENCE.rate:g} Hz"
    panels: list[tuple[str, list[Mapping[str, Any] | None]]] = [
        (f"reference cell: {cell}", [reference_row(own) for _, own in table])
    ]
    if raw:
        panels.append(("raw: the same, velocity the plain difference", [plain.get(name) for name in names]))
    if len(table[0][1]) > 1:
        worsts = [{metric.key: worst(metric, own) for metric in METRICS} for _, own in table]
        panels.append((f"the worst of {len(table[0][1])} cells", list(worsts)))
    height = _HEADS + _ROW * len(table) + _LEGEND + _TRACES + _FOOT
    width = 3.0 + 9.0 * len(panels)
    figure = Figure(figsize=(width, height), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    left = (_CHARACTER * max(map(len, names)) + 0.3) / width
    top, middle, bottom = 1.0 - _HEADS / height, (_LEGEND + _TRACES + _FOOT) / height, _FOOT / height
    grid = figure.add_gridspec(1, len(panels), left=left, right=0.99, top=top, bottom=middle, wspace=0.03)
    first = figure.add_subplot(grid[0, 0])
    for column, (words, values) in enumerate(panels):
        axes = first if column == 0 else figure.add_subplot(grid[0, column])
        _heat(axes, names if column == 0 else [""] * len(names), values, words)
    patches = [Patch(facecolor=colour, label=words) for _, colour, _, words in _CLASSES]
    patches.append(Patch(facecolor=_SHOWN, label="not judged"))
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.005), "ncols": 5}
    first.legend(handles=patches, **place, frameon=False, fontsize=10.5)
    below = figure.add_gridspec(1, 1, left=left, right=1.0 - left, top=(_TRACES + _FOOT) / height, bottom=bottom)
    _traces(figure.add_subplot(below[0, 0]), names, subjects)
    title = f"Friction conformance: {FRICTION:g} N asked for, what was rendered"
    figure.text(left, 1.0 - 0.45 / height, title, fontsize=17, color=_INK)
    path = folder / PICTURE
    figure.savefig(path)
    return str(path)


def _heat(axes: Axes, names: Sequence[str], rows: Sequence[Mapping[str, Any] | None], title: str) -> None:
    """Draw a panel of the table; a row is None if it is missing."""
    from matplotlib.patches import Rectangle

    for y, row in enumerate(rows):
        for x, metric in enumerate(METRICS):
            if row is None:
                continue
            colour, ink = _SHOWN, _INK
            if metric.is_judged:
                excess = metric.excess(row)
                colour, ink = next((colour, ink) for bound, colour, ink, _ in _CLASSES if excess <= bound)
            axes.add_patch(Rectangle((x, y), 1.0, 1.0, facecolor=colour, edgecolor="white", linewidth=1.5))
            words = metric.shown(row[metric.key])
            axes.text(x + 0.5, y + 0.5, words, ha="center", va="center", fontsize=10.5, color=ink)
    axes.set_xlim(0.0, len(METRICS))
    axes.set_ylim(len(rows), 0.0)
    heads = [
        f"{m.title.replace(' ', chr(10), 1)}\n{m.unit.replace('um', 'µm')}\n{_limit(m).replace('<=', '≤')}"
        for m in METRICS
    ]
    axes.set_xticks(np.arange(len(METRICS)) + 0.5, heads, fontsize=10, color=_INK)
    axes.xaxis.tick_top()
    axes.set_yticks(np.arange(len(rows)) + 0.5, names, fontsize=11.5, color=_INK)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title(title, fontsize=13, color=_INK, pad=14, loc="left")


def _traces(axes: Axes, order: Sequence[str], subjects: Sequence[Subject]) -> None:
    """Plot the displacement under the fluctuating load for several subjects, from the best to the worst.

    There are as many as colours: models C and LuGre if available, others evenly spaced. The displacement since the
    settling is averaged over the cycle before each tick.
    """
    named = {subject.name: subject for subject in subjects}
    wanted = {name for name in ("C", "lugre") if name in order}
    others = [name for name in order if name not in wanted]
    count = min(len(_LINES) - len(wanted), len(others))
    places = np.linspace(0, len(others) - 1, count).round().astype(int) if count else np.zeros(0, int)
    wanted |= {others[k] for k in places}
    cycle = round(REFERENCE.rate / cells.FLUCTUATION_FREQUENCY)
    ends = []
    for colour, name in zip(_LINES, [name for name in order if name in wanted], strict=False):
        rows = named[name].run(REFERENCE, cells.FLUCTUATION)
        if rows is None:
            continue
        total = np.cumsum(np.vstack((np.zeros((cycle, 2)), rows["position"])), axis=0)
        mean = (total[cycle:] - total[:-cycle]) / cycle
        way = 1e6 * np.hypot(*(mean - mean[round(cells.SETTLING * REFERENCE.rate) - 1]).T)
        t = np.arange(len(way)) / REFERENCE.rate - cells.SETTLING
        shown = t >= 0.0
        axes.plot(t[shown], np.maximum(way[shown], _SMALLEST), color=colour, linewidth=1.6)
        ends.append((float(max(way[-1], _SMALLEST)), name, colour))
    axes.set_yscale("log")
    axes.set_xlim(0.0, cells.FLUCTUATION_DURATION)
    axes.grid(True, color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel("time [s]", fontsize=11)
    axes.set_ylabel("way [µm]", fontsize=11)
    axes.set_title(
        "carried away by a load that never exceeds 0.9 of the friction (2 N + 1.6 N at 3 Hz, reference cell; "
        f"below {_SMALLEST:g} µm drawn at {_SMALLEST:g} µm)",
        fontsize=12,
        loc="left",
        color=_INK,
    )
    low, high = np.log10(axes.get_ylim())
    least, below = 0.075, -np.inf  # minimum distance of the names at the ends of the lines
    for end, name, colour in sorted(ends):
        at = max((np.log10(end) - low) / (high - low), below + least)
        axes.text(1.01, at, name, transform=axes.transAxes, color=colour, fontsize=11, va="center")
        below = at
