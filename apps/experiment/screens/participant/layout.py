"""Layout of the participant's screen, in pixels from the lower left corner.

Needs no pyglet.
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.opengl.plane import Area

TITLE = 6.6
"""Letter height of titles, in hundredths of the window height."""

TEXT = 4.3
"""Letter height of text, in hundredths of the window height.

These are 13 mm on a screen of 300 mm, which is easily readable at 1 m.
"""

LEAST_TEXT = 2.4
"""Minimum letter height, in hundredths of the window height.

A text that needs smaller letters is too long.
"""


@dataclass(frozen=True)
class Layout:
    """Areas of a window.

    `unit` is a hundredth of its height [pixel].
    """

    unit: float
    window: Area
    title: Area
    lead: Area
    text: Area
    heading: Area
    below: Area
    field: Area
    left: Area
    right: Area
    hint: Area
    keys: Area
    bar: Area


def arrange(width: int, height: int) -> Layout:
    """Return the layout of a window of the given size [pixel]."""
    unit = height / 100
    margin = 5 * unit
    inside = width - 2 * margin
    side = min(26 * unit, 0.2 * width)

    def band(bottom: float, top: float) -> Area:
        return Area(margin, bottom * unit, inside, (top - bottom) * unit)

    rows = band(31, 79)
    bar = min(80 * unit, inside)
    return Layout(
        unit=unit,
        window=Area(0, 0, width, height),
        title=band(88, 98),
        lead=band(80, 88),
        text=band(31, 87),
        heading=band(58, 72),
        below=band(31, 57),
        field=Area(margin + side, rows.y, inside - 2 * side, rows.height),
        left=Area(margin, rows.y, side, rows.height),
        right=Area(width - margin - side, rows.y, side, rows.height),
        hint=band(23.5, 29.5),
        keys=band(4.5, 22),
        bar=Area(0.5 * (width - bar), 1.4 * unit, bar, 1.4 * unit),
    )


def in_a_row(widths: list[float], gap: float, area: Area) -> list[float]:
    """Return the left edges of boxes with the given widths, in a row centred in an area."""
    edges = []
    x = area.middle[0] - 0.5 * (sum(widths) + gap * (len(widths) - 1))
    for width in widths:
        edges.append(x)
        x += width + gap
    return edges
