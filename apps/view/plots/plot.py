"""Base class of the plots: panels with zoom, cursors, and export to files."""

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
"""Columns of the data shown: name with unit, as in `haptics.recording.columns`, to an (n,) array."""

ACTIONS: dict[str, str] = {
    "copy": "Copy picture",
    "png": "Save picture (PNG)",
    "svg": "Save drawing (SVG)",
    "csv": "Save shown data (CSV)",
}
"""Actions on a plot, with their labels."""


class Plot(Panel):
    """Base class of the plots.

    Attributes
    ----------
    title, about : str
        Title, and a description for users.
    name : str
        Name in settings of the window and in file names.
    charts : list
        Charts, from top to bottom.
    history : History
        History drawn last.
    cursors : Cursors or None
        Cursors of the plot, if it has any.
    chosen : signal (title)
        Another plot was selected for this place.
    asked : signal (action)
        One of `ACTIONS` was requested.
    enlarged : signal (bool)
        The plot was requested alone (True), or with the other plots again (False).
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
        """Add the buttons common to all plots.

        Must be called after all other widgets were added to the heading.
        """
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

    def measure(self, cursors: Cursors) -> None:
        """Add the cursors, whose readings are shown below the charts."""
        self.cursors = cursors
        self.body.addWidget(cursors)

    def home(self) -> None:
        """Show the whole range again."""
        for shown in self.charts:
            shown.getViewBox().home()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        if self.cursors is not None:
            self.cursors.apply(theme)

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        self.info = info
        self.home()

    def show_scene(self, scene: Scene | None) -> None:
        """Update the plot for the scene now in force; `show_values` is called afterwards."""
        self.info = dataclasses.replace(self.info, scene=scene)

    def show_values(self, values: Mapping[str, float]) -> None:
        """Update the plot for the values now in force (parameter key to value)."""

    def refresh(self, feed: Feed) -> None:
        """Draw the rows of `feed`."""
        self.history = feed.history
        if len(self.history):
            self.draw(self.history)

    def draw(self, history: History) -> None:
        """Draw the rows of `history`, which is not empty."""

    def readings(self) -> Sequence[Reading]:
        """Return the curves that line cursors can read."""
        return ()

    def refresh_texts(self, feed: Feed) -> None:
        """Show the newest values; called less often than `refresh` so that they remain readable."""
        if self.cursors is not None:
            self.cursors.read()

    def table(self, history: History) -> Table:
        """Return the data shown as columns of equal length, for a file."""
        raise NotImplementedError


def box_of(shown: Any) -> Box:
    """Return the view box of a chart."""
    box: Box = shown.getViewBox()
    return box


def least_height(shown: Any, pixels: int) -> None:
    """Set the minimum height of a chart [pixel on an ordinary screen]."""
    shown.setMinimumHeight(px(pixels))


def ages(history: History) -> Floats:
    """Return the time of each row relative to the newest row of the window [s]."""
    return np.asarray(history.column(Column.TIME) - history.newest(Column.TIME))


def main_axis(x: Floats, y: Floats, previous: Floats) -> Floats:
    """Return the direction, (2,), of the largest variance of motion along (x, y).

    Its sign follows `previous`, which is returned if there is no motion.
    """
    if len(x) < 2:
        return previous
    (xx, xy), (_, yy) = np.cov(x, y)
    if not xx + yy > 0:
        return previous
    angle = 0.5 * np.arctan2(2 * xy, xx - yy)
    axis = np.array([np.cos(angle), np.sin(angle)])
    return axis if axis @ previous >= 0 else -axis
