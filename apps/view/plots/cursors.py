"""Two cursors over a plot that read the values of its curves and their differences, with units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.shared.theme import DARK, Theme
from apps.view.history import Floats
from apps.view.panels.charts import Lines, pen
from apps.view.qt import QtCore, pg, px

NAMES = ("A", "B")
_PLACES = (1 / 3, 2 / 3)
"""Initial positions of the cursors, as fractions of the axis."""

_ROOMY = 300
"""Minimum height of a panel [pixel on an ordinary screen] for readings as a table instead of a line."""


@dataclass(frozen=True)
class Reading:
    """A quantity that cursors can read.

    Attributes
    ----------
    name, unit : str
        Its name and unit.
    x, y : (n,) float arrays
        A curve, read at the sample nearest to the cursor. Empty for a coordinate of the cursor itself.
    """

    name: str
    unit: str
    x: Floats
    y: Floats

    def at(self, place: float) -> float | None:
        """Return the value of the sample nearest to `place`; None without a curve."""
        if not len(self.x):
            return None
        after = int(np.clip(np.searchsorted(self.x, place), 1, max(len(self.x) - 1, 1)))
        nearest = after if after < len(self.x) and self.x[after] - place < place - self.x[after - 1] else after - 1
        return float(self.y[nearest])


Rows = list[tuple[str, str, list[float | None]]]
"""Name, unit, and values at A and B of each reading."""

_BAR = "\u2060|\u2060"
"""Separator of two values that prevents a line break."""

Read = Callable[[], Sequence[Reading]]
"""Returns the curves shown at present."""


class Cursors(Lines):
    """Two cursors and their readings.

    Parameters
    ----------
    charts : sequence
        Charts with the cursors; the charts of a plot share the x axis.
    axis : (name, unit)
        Name and unit of the x axis.
    read : callable, optional
        Returns the curves. Without it, a cursor is a point whose two coordinates are read.
    up : (name, unit), optional
        Name and unit of the y axis, for points.
    """

    def __init__(
        self,
        charts: Sequence[Any],
        axis: tuple[str, str],
        read: Read | None = None,
        up: tuple[str, str] = ("", ""),
    ) -> None:
        super().__init__()
        self._charts, self._axis, self._read, self._up = list(charts), axis, read, up
        self._theme = DARK
        self._items: list[list[Any]] = []
        self.setTextFormat(QtCore.Qt.TextFormat.RichText)
        self.setTextInteractionFlags(QtCore.Qt.TextInteractionFlag.NoTextInteraction)
        self.hide()

    @property
    def on(self) -> bool:
        """Whether the cursors are shown."""
        return bool(self._items) and self._items[0][0].isVisible()

    @property
    def places(self) -> list[tuple[float, float]]:
        """Positions of the cursors in units of the axes."""
        return [(float(row[0].pos().x()), float(row[0].pos().y())) for row in self._items]

    def switch(self, on: bool) -> None:
        """Show the cursors within the visible range, or hide them."""
        new = on and not self._items
        if new:
            self._items = [self._make(number) for number in range(len(NAMES))]
        for number, row in enumerate(self._items):
            for item, shown in zip(row, self._charts, strict=False):
                item.setVisible(on)
                if on and (new or not self._in_sight(item, shown)):
                    self.move_to(number, *self._first_place(number, shown))
        self.setVisible(on)
        if on:
            self.apply(self._theme)
            self.read()

    def move_to(self, number: int, x: float, y: float = 0.0) -> None:
        """Move cursor 0 or 1."""
        for item in self._items[number]:
            item.setPos((x, y) if self._read is None else x)
        self.read()

    def _make(self, number: int) -> list[Any]:
        if self._read is None:
            return [self._point(number)]
        return [self._line(number, shown) for shown in self._charts]

    def _line(self, number: int, shown: Any) -> Any:
        first = shown is self._charts[0]
        options = {"position": 0.8, "movable": True}
        line = pg.InfiniteLine(
            angle=90, movable=True, label=NAMES[number] if first else None, labelOpts=options if first else None
        )
        line.sigPositionChanged.connect(lambda moved: self._follow(number, float(moved.pos().x())))
        line.setZValue(20)
        shown.addItem(line, ignoreBounds=True)
        return line

    def _point(self, number: int) -> Any:
        point = pg.TargetItem(size=16, movable=True, label=NAMES[number])
        point.sigPositionChanged.connect(lambda *_: self.read())
        point.setZValue(20)
        self._charts[0].addItem(point, ignoreBounds=True)
        return point

    def _follow(self, number: int, x: float) -> None:
        """Move the lines of one cursor to the same position in all charts."""
        for item in self._items[number] if number < len(self._items) else ():
            if item.pos().x() != x:
                item.setPos(x)
        self.read()

    def _in_sight(self, item: Any, shown: Any) -> bool:
        (left, right), (low, high) = shown.getViewBox().viewRange()
        inside = left < item.pos().x() < right
        return bool(inside if self._read is not None else inside and low < item.pos().y() < high)

    @staticmethod
    def _first_place(number: int, shown: Any) -> tuple[float, float]:
        (left, right), (low, high) = shown.getViewBox().viewRange()
        return left + _PLACES[number] * (right - left), low + _PLACES[number] * (high - low)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self._theme = theme
        for number, row in enumerate(self._items):
            for item in row:
                item.setPen(pen(theme.text, 1.5, dashed=number == 1))
                if self._read is None:
                    item.setBrush(None)
                    item.setHoverBrush(None)
                item.setHoverPen(pen(theme.alarm if theme.name == "dark" else theme.stick, 2))
                if self._read is None:
                    item.label().setColor(theme.text)
                elif item is row[0]:
                    item.label.setColor(theme.text)

    def rows(self) -> Rows:
        """Return name, unit and the values at A and B of all readings; the axis comes first."""
        across, up = ([place[k] for place in self.places] for k in (0, 1))
        found: Rows = [(*self._axis, list(across))]
        if self._read is None:
            return [*found, (*self._up, list(up))]
        return found + [(curve.name, curve.unit, [curve.at(x) for x in across]) for curve in self._read()]

    def read(self) -> None:
        """Update the readings."""
        if not self.on:
            return
        table = self.rows()
        parent = self.parentWidget()
        roomy = parent is not None and parent.height() >= px(_ROOMY)
        self.setWordWrap(not roomy)
        self.set_lines(_as_table(table) if roomy else _as_line(table))


def _as_table(table: Rows) -> str:
    """Format the readings as a table with a column for each quantity."""
    head = "".join(f"<td align='right'>&nbsp;&nbsp;<b>{name}</b> [{unit}]</td>" for name, unit, _ in table)
    lines = [f"<tr><td></td>{head}</tr>"]
    for number, name in enumerate(NAMES):
        cells = "".join(_cell(values[number]) for _, _, values in table)
        lines.append(f"<tr><td><b>{name}</b></td>{cells}</tr>")
    cells = "".join(_cell(_difference(*values)) for _, _, values in table)
    lines.append(f"<tr><td><b>B\u2212A</b></td>{cells}</tr>")
    return f"<table cellspacing='0' cellpadding='1'>{''.join(lines)}</table>"


def _as_line(table: Rows) -> str:
    """Format the readings compactly in a line."""
    parts = (
        f"{name} {_number(a, 3)}{_BAR}{_number(b, 3)} ({_number(_difference(a, b), 3)}) {unit}".replace(" ", "&nbsp;")
        for name, unit, (a, b) in table
    )
    return "<b>A|B (B\u2212A):</b> " + " &nbsp;".join(parts)


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else b - a


def _cell(value: float | None) -> str:
    return f"<td align='right'>{_number(value)}</td>"


def _number(value: float | None, digits: int = 4) -> str:
    """Format a value; a missing value (None) is shown as a dash."""
    if value is None:
        return "&ndash;"
    text = f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}" if abs(value) < 1e5 else f"{value:.3e}"
    return text.replace("-", "\u2212")
