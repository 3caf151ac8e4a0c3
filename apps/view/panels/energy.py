"""Energy meter: the energy injected by the loop, compared with its limit."""

from __future__ import annotations

import numpy as np

from apps.shared.scale import millijoules
from apps.shared.theme import DARK, Theme
from apps.view.feed import Feed
from apps.view.history import Column, Floats
from apps.view.qt import QtCore, QtGui, QtWidgets, label, px

FALL = 0.4
"""Time constant of the bar's fall after a peak [s]: a peak of one millisecond remains visible."""


def lingering(values: Floats, times: Floats) -> float:
    """Return the largest of `values`, each decayed with time constant `FALL`; zero if empty.

    Parameters
    ----------
    values, times : (n,) float arrays
        A non-negative signal and the times of its values [s], oldest first.
    """
    return float(np.max(values * np.exp((times - times[-1]) / FALL), initial=0.0)) if len(values) else 0.0


_MARK = 2.0
"""Width of the mark [pixel]."""


class _Bar(QtWidgets.QWidget):
    """Slim bar with a mark; both are given as fractions of the full length."""

    def __init__(self) -> None:
        super().__init__()
        self._theme = DARK
        self.filled = self.marked = 0.0
        self.setFixedHeight(px(11))

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self._theme = theme
        self.update()

    def show_parts(self, filled: float, marked: float) -> None:
        """Set the length of the bar and the position of the mark as fractions, where 1 is the limit."""
        self.filled, self.marked = min(filled, 1.0), min(marked, 1.0)
        self.update()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:  # noqa: N802
        """Draw the bar (Qt event handler)."""
        theme = self._theme
        painter = QtGui.QPainter(self)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        frame = QtCore.QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        shape = QtGui.QPainterPath()
        shape.addRoundedRect(frame, 4, 4)
        painter.fillPath(shape, QtGui.QColor(theme.ground))
        painter.setClipPath(shape)
        colour = QtGui.QColor(theme.alarm if self.filled >= 1.0 else theme.motion)
        painter.fillRect(QtCore.QRectF(frame.left(), 0, self.filled * frame.width(), self.height()), colour)
        if self.marked * frame.width() > _MARK:
            mark = frame.left() + self.marked * (frame.width() - _MARK)
            painter.fillRect(QtCore.QRectF(mark, 0, _MARK, self.height()), QtGui.QColor(theme.text))
        painter.setClipping(False)
        painter.setPen(QtGui.QPen(QtGui.QColor(theme.faint), 1.0))
        painter.drawPath(shape)


class EnergyMeter(QtCore.QObject):
    """The injected energy as a number and as a bar whose full length is the limit; two separate widgets."""

    def __init__(self, parent: QtCore.QObject) -> None:
        super().__init__(parent)
        self._limit = 0.1
        self.number = label("", 10)
        self.bar = _Bar()

    def configure(self, limit: float) -> None:
        """Prepare the meter for a run with `limit` [J]."""
        self._limit = limit
        self._show(0.0, 0.0)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.bar.apply(theme)

    def refresh(self, feed: Feed) -> None:
        """Show the energy in `feed`."""
        history = feed.history
        present = lingering(history.column(Column.ENERGY), history.column(Column.TIME))
        self._show(1e-3 * present, feed.counts.largest_energy)

    def _show(self, present: float, largest: float) -> None:
        limit = millijoules(self._limit)
        self.number.setText(f"energy {millijoules(present, self._limit)} of {limit}\u00a0mJ")
        self.bar.show_parts(present / self._limit, largest / self._limit)
        meaning = (
            "energy that the loop injected: what the hand got beyond the element's store; a peak fades slowly.\n"
            f"The mark: the most in this run, {millijoules(largest, self._limit)} mJ. "
            f"Beyond {limit} mJ nothing is given any more."
        )
        for widget in (self.number, self.bar):
            widget.setToolTip(meaning)
