"""Picture of an item of a form on the participant's screen, and the areas that the mouse can click."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.experiment.screens.messages import FormItem, Picked, Placed
from apps.opengl.drawing import Brush, box, disc, fit
from apps.opengl.plane import Area
from apps.shared.theme import Theme

QUESTION, OPTION, LABEL = 4.6, 3.8, 3.2
"""Largest letter heights of a question, of an option, and of the label of an end, in hundredths of the height."""

_DIGITS = 9
"""Number of options that can be chosen by a digit."""

_ONE_COLUMN = 6
"""Largest number of options in one column."""

_NARROW = 20.0
"""Width of a point, in hundredths of the height, below which every second label is in a lower row."""

_TYPED_SHOWN = 500
"""Number of typed characters that are shown; the beginning of a longer text is left out."""

_UNBROKEN = re.compile(r"\S{30}")
"""Part of a long word, after which a line may be broken."""


@dataclass(frozen=True)
class Target:
    """Area that can be clicked.

    Attributes
    ----------
    area : Area
        The area.
    message : callable
        Function that returns the message of a click, from its horizontal position as a share of the area's width.
    slides : bool
        Whether the pointer may be dragged.
    """

    area: Area
    message: Callable[[float], Any]
    slides: bool = False

    def contains(self, x: float, y: float) -> bool:
        """Return True if a point [pixel] is in the area."""
        area = self.area
        return area.x <= x <= area.x + area.width and area.y <= y <= area.y + area.height

    def at(self, x: float) -> Any:
        """Return the message of a click at a horizontal position [pixel]."""
        return self.message(min(max((x - self.area.x) / self.area.width, 0.0), 1.0))


Paragraphs = Callable[..., None]
"""Function that writes wrapped text: words, area, letter height in hundredths, colour, whether left-aligned."""


def draw_item(
    item: FormItem, brush: Brush, paragraphs: Paragraphs, areas: dict[str, Area], unit: float, theme: Theme
) -> list[Target]:
    """Draw an item of a form and return its targets.

    Parameters
    ----------
    areas : dict
        Areas ``question``, ``answer``, ``hint`` and ``page`` [pixel].
    unit : float
        Hundredth of the height of the window [pixel].
    """
    if item.kind == "page":
        paragraphs(item.text, areas["page"], 4.3, theme.text, left=True)
        _draw_hint(item, brush, areas["hint"], unit, theme)
        return []
    paragraphs(item.text, areas["question"], QUESTION, theme.text)
    _draw_hint(item, brush, areas["hint"], unit, theme)
    if item.kind in ("number", "text"):
        _draw_entry(item, brush, paragraphs, areas["answer"], unit, theme)
        return []
    draw = {"choice": _draw_options, "likert": _draw_points, "analogue": _draw_scale}[item.kind]
    return draw(item, brush, paragraphs, areas["answer"], unit, theme)


def _draw_hint(item: FormItem, brush: Brush, area: Area, unit: float, theme: Theme) -> None:
    """Write the hint, or the alert on a coloured ground, which is readable in both themes."""
    words, colour = (item.alert, theme.on_alarm) if item.alert else (item.hint, theme.faint)
    if words:
        label = brush.text(words, area.middle, 3.4 * unit, colour, bold=bool(item.alert))
        fit(label, 3.4 * unit, area.width - 6 * unit)
        if item.alert:
            width, height = round(label.content_width + 6 * unit), round(area.height)
            brush.picture(box(width, height, 0.0, 0.5 * height), area.middle, theme.notice)


def _draw_entry(item: FormItem, brush: Brush, paragraphs: Paragraphs, area: Area, unit: float, theme: Theme) -> None:
    if item.kind == "number":
        area = Area(area.middle[0] - 22 * unit, area.middle[1] - 8 * unit, 44 * unit, 16 * unit)
    frame = box(round(area.width), round(area.height), 0.4 * unit, 2 * unit)
    brush.picture(frame, area.middle, theme.faint)
    inner = Area(area.x + 2 * unit, area.y + 1.5 * unit, area.width - 4 * unit, area.height - 3 * unit)
    if item.kind == "text":
        shown = item.entry if len(item.entry) <= _TYPED_SHOWN else f"…{item.entry[-_TYPED_SHOWN:]}"
        paragraphs(_UNBROKEN.sub("\\g<0>\u200b", f"{shown}|"), inner, 3.6, theme.text, side="left")
        return
    label = brush.text(f"{item.entry}|", area.middle, 8 * unit, theme.text)
    fit(label, 8 * unit, inner.width)
    if item.unit:
        place = area.x + area.width + 2 * unit, area.middle[1]
        brush.text(item.unit, place, 4.6 * unit, theme.text, anchor="left")


def _draw_options(
    item: FormItem, brush: Brush, paragraphs: Paragraphs, area: Area, unit: float, theme: Theme
) -> list[Target]:
    """Draw the options below each other, in two columns if there are many."""
    columns = 1 if item.points <= _ONE_COLUMN else 2
    rows = -(-item.points // columns)
    width = min(area.width, 100 * unit) if columns == 1 else area.width
    left, cell = area.middle[0] - 0.5 * width, width / columns
    height = min(area.height / rows, 7.5 * unit)
    top = area.middle[1] + 0.5 * rows * height
    targets, written = [], []
    for number, label in enumerate(item.labels):
        column, row = divmod(number, rows)
        one = Area(left + column * cell, top - (row + 1) * height, cell - (unit if columns > 1 else 0), height)
        chosen = number == item.chosen
        size = round(0.56 * height)
        mark = one.x + 0.7 * height, one.middle[1]
        if chosen:
            ground = box(round(one.width), round(0.92 * height), 0.0, unit)
            brush.picture(ground, one.middle, theme.panel)
            brush.picture(disc(round(0.5 * size)), mark, theme.motion, front=True)
        brush.picture(disc(size, max(0.3 * unit, 1.5)), mark, theme.motion if chosen else theme.faint, front=True)
        words = f"{number + 1}   {label}" if number < _DIGITS else label
        room = one.width - 1.5 * height
        share = min(OPTION, 0.62 * height / unit)
        paragraphs(words, Area(one.x + 1.3 * height, one.y, room, height), share, theme.text, side="left")
        written.append(brush.labels[-1])
        targets.append(Target(one, lambda share, number=number: Picked(number)))  # type: ignore[misc]
    _equalise(written)
    return targets


def _draw_points(
    item: FormItem, brush: Brush, paragraphs: Paragraphs, area: Area, unit: float, theme: Theme
) -> list[Target]:
    """Draw the points of a Likert scale in a row, with the labels of the points or of the ends below."""
    width = min(area.width, 24 * unit * item.points)
    left, cell = area.middle[0] - 0.5 * width, width / item.points
    size = round(min(10 * unit, 0.8 * cell))
    y = area.y + area.height - 0.5 * size - unit
    top, rows = y - 0.5 * size - unit, 1 if cell >= _NARROW * unit else 2
    row_height, row_width = (top - area.y) / rows, cell - 0.8 * unit if rows == 1 else 1.35 * cell
    targets, written = [], []
    for number in range(item.points):
        x, chosen = left + (number + 0.5) * cell, number == item.chosen
        cover = disc(size) if chosen else disc(size, max(0.35 * unit, 1.5))
        brush.picture(cover, (x, y), theme.motion if chosen else theme.faint)
        brush.text(str(number + 1), (x, y), 0.42 * size, theme.panel if chosen else theme.text, bold=chosen)
        column = Area(left + number * cell, area.y, cell, area.height)
        if item.labels:
            below = Area(x - 0.5 * row_width, top - (number % rows + 1) * row_height, row_width, row_height)
            paragraphs(item.labels[number], below, LABEL, theme.text)
            written.append(brush.labels[-1])
        targets.append(Target(column, lambda share, number=number: Picked(number)))  # type: ignore[misc]
    _equalise(written)
    if not item.labels:
        _draw_ends(item, paragraphs, Area(left, area.y, width, top - area.y), theme)
    return targets


def _equalise(labels: list[Any]) -> None:
    """Set labels in letters of the same height, so that none of the answers looks more important."""
    least = min((label.font_size for label in labels), default=0.0)
    for label in labels:
        label.font_size = min(label.font_size, least)


def _draw_scale(
    item: FormItem, brush: Brush, paragraphs: Paragraphs, area: Area, unit: float, theme: Theme
) -> list[Target]:
    """Draw a visual analogue scale, with marks if it has steps, and the present position."""
    width = min(area.width - 8 * unit, 120 * unit)
    left, y = area.middle[0] - 0.5 * width, area.y + area.height - 9 * unit
    brush.bar(Area(left, y - 0.25 * unit, width, max(0.5 * unit, 2)), theme.text)
    for number in range(item.points + 1 if item.points else 2):
        x = left + width * number / (item.points or 1)
        half = (3.0 if number in (0, item.points or 1) or 2 * number == item.points else 1.6) * unit
        thick = max(0.25 * unit, 1.5)
        brush.bar(Area(x - 0.5 * thick, y - half, thick, 2 * half), theme.text)
    if item.share is not None:
        mark = box(round(1.6 * unit), round(8 * unit), 0.0, 0.6 * unit)
        brush.picture(mark, (left + width * item.share, y), theme.motion, front=True)
    _draw_ends(item, paragraphs, Area(left, area.y, width, y - 5 * unit - area.y), theme)
    return [Target(Area(left, y - 7 * unit, width, 14 * unit), Placed, slides=True)]


def _draw_ends(item: FormItem, paragraphs: Paragraphs, area: Area, theme: Theme) -> None:
    """Write the labels of both ends below a scale."""
    half = 0.47 * area.width
    for words, x, side in ((item.low, area.x, "left"), (item.high, area.x + area.width - half, "right")):
        if words:
            paragraphs(words, Area(x, area.y, half, area.height), LABEL, theme.text, side=side)
