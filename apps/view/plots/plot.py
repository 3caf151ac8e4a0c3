"""What every plot is: a panel that shows rows, can be zoomed, measured with cursors, and written to a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from apps.front_ends.run import RunInfo
from apps.shared.theme import Theme
from apps.view.feed import Feed
from apps.view.history import Column, Floats, History
from apps.view.panels.charts import Box, Panel
from apps.view.plots.cursors import Cursors, Reading
from apps.view.qt import QtCore, QtWidgets, px

if TYPE_CHECKING:
    from haptics.scenes import Scene

Table = Mapping[str, Floats]
"""Columns of what is shown: name with unit, as in `haptics.recording.flat`, to an (n,) array."""

ACTIONS: dict[str, str] = {
    "copy": "Copy picture",
    "png": "Save picture (PNG)",
    "svg": "Save drawing (SVG)",
    "csv": "Save shown data (CSV)",
}
"""What can be done with a plot, and what that is called."""


class Plot(Panel):
    """A plot.

    Attributes
    ----------
    title, about : str
        What it is called, and what it shows, in a sentence for people.
    name : str
        Its name in settings of the window and in names of files.
    charts : list
        Its charts, from top to bottom.
    history : History
        Whose rows were drawn last.
    cursors : Cursors or None
        Its cursors, if it has any.
    chosen : signal (title)
        Another plot is wanted in its place.
    asked : signal (action)
        One of `ACTIONS` is wanted.
    enlarged : signal (bool)
        It is wanted alone, or with the others again.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""

    chosen = QtCore.Signal(str)
    asked = QtCore.Signal(str)
    enlarged = QtCore.Signal(bool)

    def __init__(self) -> None:
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

    def finish(self) -> None:
        """Add the buttons that all plots have; to be called when all else is in the heading."""
        self.head.addStretch(1)
        self.size_button = QtWidgets.QToolButton()
        self.size_button.setText("⤢")
        self.size_button.setCheckable(True)
        self.size_button.setToolTip("show this plot alone, and again with the others")
        self.size_button.setAccessibleName("enlarge")
        self.size_button.toggled.connect(self.enlarged)
        self.menu_button = QtWidgets.QToolButton()
        self.menu_button.setText("⋯")
        self.menu_button.setToolTip("copy or save the picture, save the data that is shown, show the whole range")
        self.menu_button.setAccessibleName("more")
        self.menu_button.setPopupMode(QtWidgets.QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu_button.setMenu(self._menu())
        for button in (self.size_button, self.menu_button):
            button.setProperty("slim", True)
            button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
            self.head.addWidget(button)
        for shown in self.charts:
            shown.setToolTip(f"{self.about}\nWheel: zoom. Left button: move. Double click: whole range.")

    def _menu(self) -> QtWidgets.QMenu:
        menu = QtWidgets.QMenu(self)
        for action, words in ACTIONS.items():
            menu.addAction(words).triggered.connect(lambda _=False, name=action: self.asked.emit(name))
        menu.addSeparator()
        menu.addAction("Whole range").triggered.connect(self.home)
        return menu

    def offer(self, titles: list[str]) -> None:
        """Let a person choose among plots in this place; none leaves only the name of this one."""
        self.choice.clear()
        self.choice.addItems(titles)
        self.choice.setCurrentText(self.title)
        # As wide as its own title: what stands beside it has more need of the room than the longest of the others.
        view, metrics = self.choice.view(), self.choice.fontMetrics()
        view.setMinimumWidth(max(metrics.horizontalAdvance(title) for title in titles) + px(30))
        self.choice.setFixedWidth(metrics.horizontalAdvance(self.title) + px(38))

    def _choose(self) -> None:
        title = self.choice.currentText()
        self.choice.setCurrentText(self.title)
        if title != self.title:
            self.chosen.emit(title)

    def measure(self, cursors: Cursors) -> None:
        """Take the cursors; their readings stand below the charts."""
        self.cursors = cursors
        self.body.addWidget(cursors)

    def home(self) -> None:
        """Show the whole range again."""
        for shown in self.charts:
            shown.getViewBox().home()

    def apply(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        if self.cursors is not None:
            self.cursors.apply(theme)

    def configure(self, info: RunInfo) -> None:
        """Show another run, empty."""
        self.info = info
        self.home()

    def show_scene(self, scene: Scene | None) -> None:
        """Show what follows from another scene that is in force from now on; `show_values` comes after it."""
        self.info = dataclasses.replace(self.info, scene=scene)

    def show_values(self, values: Mapping[str, float]) -> None:
        """Show what follows from numbers that are in force from now on (parameter key to value)."""

    def refresh(self, feed: Feed) -> None:
        """Draw the rows of `feed`."""
        self.history = feed.history
        if len(self.history):
            self.draw(self.history)

    def draw(self, history: History) -> None:
        """Draw the rows of `history`, of which there are some."""

    def readings(self) -> Sequence[Reading]:
        """Return what cursors that are lines can read."""
        return ()

    def refresh_texts(self, feed: Feed) -> None:
        """Show the newest numbers; called less often than `refresh` so that they can be read."""
        if self.cursors is not None:
            self.cursors.read()

    def table(self, history: History) -> Table:
        """Return what is shown as columns of equal length, for a file."""
        raise NotImplementedError


def box_of(shown: Any) -> Box:
    """Return the area of a chart."""
    box: Box = shown.getViewBox()
    return box


def least_height(shown: Any, pixels: int) -> None:
    """Let a chart never be lower than this [pixel on an ordinary screen]."""
    shown.setMinimumHeight(px(pixels))


def ages(history: History) -> Floats:
    """Return when each row was, seconds before the newest one of the window."""
    return np.asarray(history.column(Column.TIME) - history.newest(Column.TIME))


def main_axis(x: Floats, y: Floats, previous: Floats) -> Floats:
    """Return the direction, (2,), of most of the motion along (x, y); the sign is that of the `previous` one.

    Where nothing moves the previous direction is kept.
    """
    if len(x) < 2:
        return previous
    (xx, xy), (_, yy) = np.cov(x, y)
    if not xx + yy > 0:
        return previous
    angle = 0.5 * np.arctan2(2 * xy, xx - yy)
    axis = np.array([np.cos(angle), np.sin(angle)])
    return axis if axis @ previous >= 0 else -axis
