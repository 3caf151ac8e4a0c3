"""Arrangement of the plots in the window: the plane, and places for selectable plots."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from apps.front_ends.run import RunInfo
from apps.shared.theme import DARK, Theme
from apps.view.feed import Feed
from apps.view.plots.plot import Plot
from apps.view.qt import QtCore, QtWidgets

if TYPE_CHECKING:
    from haptics.scenes import Scene

_LEFT, _RIGHT = (17, 10), (12, 10)
"""Relative heights of the upper and lower places at the left and at the right."""

_PLACES = 3
"""Number of places for selectable plots: one below the plane and two at the right."""


class Places(QtWidgets.QWidget):
    """Arrangement with the plane above a plot at the left, and two plots at the right.

    Parameters
    ----------
    plane : Plot
        Plot with a fixed place at the upper left.
    kinds : sequence of classes
        Selectable plots, each created when it is first shown. Initially, the first is below the plane, and the next two
        are at the right.
    end : QWidget
        Widget that takes the lowest place at the right while it is visible.

    Attributes
    ----------
    shown : list of Plot
        Plots in the places.
    changed : signal
        Another plot is shown and has not been drawn yet.
    asked : signal (plot, action)
        An action on a plot was requested, see `plots.plot.ACTIONS`.
    """

    changed = QtCore.Signal()
    asked = QtCore.Signal(object, str)

    def __init__(self, plane: Plot, kinds: Sequence[type[Plot]], end: QtWidgets.QWidget) -> None:
        super().__init__()
        self.kinds = {kind.title: kind for kind in kinds}
        self._theme = DARK
        self._info = RunInfo()
        self._values: dict[str, float] = {}
        self._cursors = False
        self._alone: Plot | None = None
        self._occupied = False
        self._plane = plane
        self.built: dict[str, Plot] = {}
        self._listen(plane)
        self.places = [QtWidgets.QVBoxLayout() for _ in range(_PLACES)]
        self.shown = [self.plot(title) for title in list(self.kinds)[:_PLACES]]
        self._lay_out(end)

    def _listen(self, plot: Plot) -> None:
        plot.chosen.connect(lambda title: self.choose(plot, title))
        plot.asked.connect(lambda action: self.asked.emit(plot, action))
        plot.enlarged.connect(lambda on: self.enlarge(plot if on else None))

    def plot(self, title: str) -> Plot:
        """Return the plot with `title`; create it on first use."""
        if title not in self.built:
            plot = self.built[title] = self.kinds[title]()
            plot.setParent(self)
            plot.hide()
            plot.offer(list(self.kinds))
            self._listen(plot)
        return self.built[title]

    def _lay_out(self, end: QtWidgets.QWidget) -> None:
        left, right = QtWidgets.QVBoxLayout(), QtWidgets.QVBoxLayout()
        left.addWidget(self._plane, _LEFT[0])
        left.addLayout(self.places[0], _LEFT[1])
        for place, share in zip(self.places[1:], _RIGHT, strict=True):
            right.addLayout(place, share)
        right.addWidget(end)
        self._sides = QtWidgets.QHBoxLayout(self)
        self._sides.setContentsMargins(0, 0, 0, 0)
        for column in (left, right):
            column.setSpacing(6)
            self._sides.addLayout(column, 1)
        self._sides.setSpacing(6)
        for place, plot in zip(self.places, self.shown, strict=True):
            place.addWidget(plot)
            plot.show()

    @property
    def visible(self) -> list[Plot]:
        """The visible plots."""
        return [plot for plot in (self._plane, *self.shown) if not plot.isHidden()]

    def choose(self, here: Plot, title: str) -> None:
        """Show the plot with `title` in the place of `here`; if it is already shown, the two are exchanged."""
        wanted, place = self.plot(title), self.shown.index(here)
        if wanted in self.shown:
            other = self.shown.index(wanted)
            self.shown[other] = here
            self.places[other].addWidget(here)
        else:
            self.places[place].removeWidget(here)
            here.hide()
        self.shown[place] = wanted
        self.places[place].addWidget(wanted)
        wanted.configure(self._info)
        wanted.show_values(self._values)
        wanted.apply(self._theme)
        self._switch(wanted)
        self.enlarge(wanted if self._alone is here else self._alone)

    def make_room(self, on: bool) -> None:
        """Reserve the lowest place at the right for the card at the end of a run, or return it to its plot."""
        self._occupied = on
        self.enlarge(None)

    def enlarge(self, plot: Plot | None) -> None:
        """Show one plot alone, or all plots if None."""
        self._alone = plot
        taken = self.shown[2:] if self._occupied and plot is None else []
        for other in (self._plane, *self.shown):
            other.setVisible((plot is None and other not in taken) or other is plot)
            with QtCore.QSignalBlocker(other.size_button):
                other.size_button.setChecked(other is plot)
        at_left = plot in (None, self._plane, self.shown[0])
        self._sides.setStretch(0, 1 if at_left else 0)
        self._sides.setStretch(1, 1 if plot is None or not at_left else 0)
        self.changed.emit()

    def switch_cursors(self, on: bool) -> None:
        """Show or hide the cursors of all plots."""
        self._cursors = on
        for plot in self.visible:
            self._switch(plot)

    def _switch(self, plot: Plot) -> None:
        if plot.cursors is not None:
            plot.cursors.switch(self._cursors)

    def home(self) -> None:
        """Show the whole range of all plots."""
        for plot in (self._plane, *self.shown):
            plot.home()

    def configure(self, info: RunInfo) -> None:
        """Clear all plots and prepare them for a run."""
        self._info = info
        for plot in (self._plane, *self.shown):
            plot.configure(info)

    def show_scene(self, scene: Scene | None) -> None:
        """Update all plots for the scene now in force."""
        self._info = dataclasses.replace(self._info, scene=scene)
        for plot in self.shown:
            plot.show_scene(scene)
            plot.show_values(self._values)

    def show_values(self, values: Mapping[str, float]) -> None:
        """Update all plots for the values now in force (parameter key to value)."""
        self._values = dict(values)
        for plot in self.shown:
            plot.show_values(values)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self._theme = theme
        for plot in (self._plane, *self.shown):
            plot.apply(theme)

    def refresh(self, feed: Feed) -> None:
        """Draw the rows of `feed` in the visible plots."""
        for plot in self.visible:
            plot.refresh(feed)

    def refresh_texts(self, feed: Feed) -> None:
        """Update the numbers of the visible plots."""
        for plot in self.visible:
            plot.refresh_texts(feed)
