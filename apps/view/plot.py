"""Base class of the plots: panels with a legend, zoom, cursors, and export to files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from apps.front_ends.run import RunInfo
from apps.shared.theme import Theme, blend
from apps.view.charts import Entry, Key, Lines, Panel, box_of, brush, dress_chart, pen
from apps.view.feed import Feed
from apps.view.history import Column, Floats, History
from apps.view.qt import QtCore, QtWidgets, current_theme, pg, px, tool_button

Table = Mapping[str, Floats]
"""Columns of the data shown: name with unit, as in `haptics.records`, to an (n,) array."""

ACTIONS: dict[str, str] = {
    "copy": "Copy picture",
    "png": "Save picture (PNG)",
    "svg": "Save drawing (SVG)",
    "csv": "Save shown data (CSV)",
}
"""Actions on a plot, with their labels."""

NAMES = ("A", "B")
"""Names of the cursors."""

_PLACES = (1 / 3, 2 / 3)
"""Initial positions of the cursors, as fractions of the axis."""

_ROOMY = 300
"""Minimum height of a panel [pixel on an ordinary screen] for readings as a table instead of a line."""

_BAR = "\u2060|\u2060"
"""Separator of two values that prevents a line break."""


# --- cursors ----------------------------------------------------------------------------------------------------------


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


class Cursors(Lines):
    """Two cursors over a plot that read the values of its curves and their differences, with units.

    Parameters
    ----------
    charts : sequence
        Charts with the cursors; the charts of a plot share the x axis.
    axis : (name, unit)
        Name and unit of the x axis.
    read : callable, optional
        Returns the curves shown at present. Without it, a cursor is a point whose two coordinates are read.
    up : (name, unit), optional
        Name and unit of the y axis, for points.
    """

    def __init__(
        self,
        charts: Sequence[Any],
        axis: tuple[str, str],
        read: Callable[[], Sequence[Reading]] | None = None,
        up: tuple[str, str] = ("", ""),
    ) -> None:
        super().__init__()
        self._charts, self._axis, self._read, self._up = list(charts), axis, read, up
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
            for item, chart in zip(row, self._charts, strict=False):
                item.setVisible(on)
                (left, right), (low, high) = chart.getViewBox().viewRange()
                in_sight = left < item.pos().x() < right and (self._read is not None or low < item.pos().y() < high)
                if on and (new or not in_sight):
                    self.move_to(number, left + _PLACES[number] * (right - left), low + _PLACES[number] * (high - low))
        self.setVisible(on)
        if on:
            self.apply(current_theme())
            self.read()

    def move_to(self, number: int, x: float, y: float = 0.0) -> None:
        """Move cursor 0 or 1."""
        for item in self._items[number]:
            item.setPos((x, y) if self._read is None else x)
        self.read()

    def _make(self, number: int) -> list[Any]:
        """Return a point on the only chart, or a line on every chart, of which the first has a label."""
        items: list[Any] = []
        for chart in self._charts:
            if self._read is None:
                item = pg.TargetItem(size=16, movable=True, label=NAMES[number])
                item.sigPositionChanged.connect(lambda *_: self.read())
            else:
                named = {} if items else {"label": NAMES[number], "labelOpts": {"position": 0.8, "movable": True}}
                item = pg.InfiniteLine(angle=90, movable=True, **named)
                item.sigPositionChanged.connect(lambda moved: self._follow(number, float(moved.pos().x())))
            item.setZValue(20)
            chart.addItem(item, ignoreBounds=True)
            items.append(item)
        return items

    def _follow(self, number: int, x: float) -> None:
        """Move the lines of one cursor to the same position in all charts."""
        for item in self._items[number] if number < len(self._items) else ():
            if item.pos().x() != x:
                item.setPos(x)
        self.read()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        for number, row in enumerate(self._items):
            for item in row:
                item.setPen(pen(theme.text, 1.5, dashed=number == 1))
                item.setHoverPen(pen(theme.alarm if theme.name == "dark" else theme.stick, 2))
                if self._read is None:
                    item.setBrush(None)
                    item.setHoverBrush(None)
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
        if not roomy:
            parts = (
                f"{name} {_number(a, 3)}{_BAR}{_number(b, 3)} ({_number(_difference(a, b), 3)}) {unit}"
                for name, unit, (a, b) in table
            )
            joined = " &nbsp;".join(part.replace(" ", "&nbsp;") for part in parts)
            self.set_lines(f"<b>A|B (B\u2212A):</b> {joined}")
            return
        head = "".join(f"<td align='right'>&nbsp;&nbsp;<b>{name}</b> [{unit}]</td>" for name, unit, _ in table)
        lines = [f"<tr><td></td>{head}</tr>"]
        columns = [(a, b, _difference(a, b)) for _, _, (a, b) in table]
        for name, row in zip((*NAMES, "B\u2212A"), zip(*columns, strict=True), strict=True):
            cells = "".join(f"<td align='right'>{_number(value)}</td>" for value in row)
            lines.append(f"<tr><td><b>{name}</b></td>{cells}</tr>")
        self.set_lines(f"<table cellspacing='0' cellpadding='1'>{''.join(lines)}</table>")


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else b - a


def _number(value: float | None, digits: int = 4) -> str:
    """Format a value; a missing value (None) is shown as a dash."""
    if value is None:
        return "&ndash;"
    text = f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}" if abs(value) < 1e5 else f"{value:.3e}"
    return text.replace("-", "\u2212")


# --- plots ------------------------------------------------------------------------------------------------------------


class Plot(Panel):
    """Base class of the plots. Subclasses call `add_charts` at the end of their construction.

    Attributes
    ----------
    title, about : str
        Title, and a description for users.
    name : str
        Name in settings of the window and in file names.
    entries : tuple of Entry
        Legend key in the heading.
    columns : tuple of (name, Column)
        Columns of the table of the data shown (`table`), unless it is overridden.
    key : Key
        Legend key.
    charts : list
        Charts, from top to bottom.
    history : History
        History drawn last.
    cursors : Cursors or None
        Cursors of the plot, if it has any.
    chosen : signal (title)
        Another plot was selected for this place.
    requested : signal (action)
        One of `ACTIONS` was requested.
    enlarged : signal (bool)
        The plot was requested alone (True), or with the other plots again (False).
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    entries: ClassVar[tuple[Entry, ...]] = ()
    columns: ClassVar[tuple[tuple[str, Column], ...]] = ()

    chosen = QtCore.Signal(str)
    requested = QtCore.Signal(str)
    enlarged = QtCore.Signal(bool)

    def __init__(self, key_below: bool = False) -> None:
        super().__init__()
        self.charts: list[Any] = []
        self.cursors: Cursors | None = None
        self.info = RunInfo()
        self.history = History(2)
        self.head.setSpacing(px(4))
        self.choice = QtWidgets.QComboBox()
        self.choice.setAccessibleName("plot shown here")
        self.choice.setToolTip(self.about)
        self.choice.activated.connect(self._choose)
        self.head.addWidget(self.choice)
        self.key = Key(*self.entries)
        self._key_below = key_below
        if not key_below:
            self.head.addWidget(self.key)
        self._strokes: list[tuple[Any, str, float, float, bool]] = []
        self._fills: list[tuple[Any, str, float]] = []

    def add_charts(self, *charts: tuple[Any, int, int], below: Sequence[QtWidgets.QWidget] = ()) -> None:
        """Add charts, each with its minimum height [pixel on an ordinary screen] and its stretch, and widgets `below`.

        Also add the buttons common to all plots, so that the heading must be complete. The charts zoom together.
        """
        self.charts = [chart for chart, _, _ in charts]
        boxes = tuple(box_of(chart) for chart in self.charts)
        for chart, least, stretch in charts:
            if len(boxes) > 1:
                box_of(chart).link(boxes)
            chart.setMinimumHeight(px(least))
            chart.setToolTip(f"{self.about}\nWheel: zoom. Left button: move. Double click: whole range.")
            self.body.addWidget(chart, stretch)
        for widget in (*below, *((self.key,) if self._key_below else ())):
            self.body.addWidget(widget)
        self.head.addStretch(1)
        tip = "show this plot alone, and again with the others"
        self.size_button = tool_button("⤢", tip, "enlarge", checkable=True)
        self.size_button.toggled.connect(self.enlarged)
        tip = "copy or save the picture, save the data that is shown, show the whole range"
        self.menu_button = tool_button("⋯", tip, "more")
        self.menu_button.setPopupMode(QtWidgets.QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QtWidgets.QMenu(self)
        for action, words in ACTIONS.items():
            menu.addAction(words).triggered.connect(lambda _=False, name=action: self.requested.emit(name))
        menu.addSeparator()
        menu.addAction("Whole range").triggered.connect(self.home)
        self.menu_button.setMenu(menu)
        for button in (self.size_button, self.menu_button):
            button.setProperty("slim", True)
            self.head.addWidget(button)

    def add_cursors(self, cursors: Cursors) -> None:
        """Add the cursors, whose readings are shown below the charts."""
        self.cursors = cursors
        self.body.addWidget(cursors)

    def switch_cursors(self, on: bool) -> None:
        """Show or hide the cursors, if the plot has any."""
        if self.cursors is not None:
            self.cursors.switch(on)

    def add_stroke(self, item: Any, role: str, width: float = 1.0, share: float = 1.0, dashed: bool = False) -> None:
        """Draw an item with the colour `role` of the theme, blended with the background if `share` is less than 1."""
        self._strokes.append((item, role, width, share, dashed))

    def add_fill(self, item: Any, role: str, opacity: float = 1.0) -> None:
        """Fill an item with the colour `role` of the theme."""
        self._fills.append((item, role, opacity))

    def offer(self, titles: list[str]) -> None:
        """Set the titles of the selectable plots; an empty list leaves only the title of this plot."""
        self.choice.clear()
        self.choice.addItems(titles)
        self.choice.setCurrentText(self.title)
        # The list is as wide as the present title, because the adjacent widgets need the space more than longer titles.
        view, metrics = self.choice.view(), self.choice.fontMetrics()
        view.setMinimumWidth(max(metrics.horizontalAdvance(title) for title in titles) + px(30))
        self.choice.setFixedWidth(metrics.horizontalAdvance(self.title) + px(38))

    def _choose(self) -> None:
        title = self.choice.currentText()
        self.choice.setCurrentText(self.title)
        if title != self.title:
            self.chosen.emit(title)

    def home(self) -> None:
        """Show the whole range again."""
        for chart in self.charts:
            box_of(chart).home()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        for chart in self.charts:
            dress_chart(chart, theme)
        for item, role, width, share, dashed in self._strokes:
            colour = getattr(theme, role)
            item.setPen(pen(colour if share == 1.0 else blend(colour, theme.panel, share), width, dashed))
        for item, role, opacity in self._fills:
            item.setBrush(brush(getattr(theme, role), opacity))

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        self.info = info
        self.home()

    def prepare(self, info: RunInfo, values: Mapping[str, float], cursors: bool) -> None:
        """Show a run in progress with the values now in force, in the current theme."""
        self.configure(info)
        self.show_values(values)
        self.apply(current_theme())
        self.switch_cursors(cursors)

    def change(self, info: RunInfo) -> None:
        """Update the plot for another scene, law or model of the same run; `show_values` is called afterwards."""
        self.info = info

    def show_values(self, values: Mapping[str, float]) -> None:
        """Update the plot for the values now in force (parameter key to value)."""

    def refresh(self, feed: Feed) -> None:
        """Draw the rows of `feed`."""
        self.history = feed.history
        if len(self.history):
            self.draw(self.history)

    def draw(self, history: History) -> None:
        """Draw the rows of `history`, which is not empty."""

    def refresh_texts(self, feed: Feed) -> None:
        """Show the newest values; called less often than `refresh` so that they remain readable."""
        if self.cursors is not None:
            self.cursors.read()

    def table(self, history: History) -> Table:
        """Return the data shown as columns of equal length, for a file."""
        return {name: history.column(column) for name, column in self.columns}
