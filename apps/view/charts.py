"""Charts, curves, legend keys and panels with a common appearance and low drawing cost.

Not used because each would take longer than the rest of a frame: pyqtgraph's grid, OpenGL, and antialiased wide lines
stroked as one path.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from apps.shared.theme import Theme
from apps.view.qt import QtCore, QtGui, QtWidgets, current_theme, font, label, lay_out, pg, px

AXIS_WIDTH = 56
"""Width of the left axes [pixel on an ordinary screen], equal for all plots so that they are aligned."""

Span = tuple[float, float]
"""Both ends of an axis."""


class Panel(QtWidgets.QFrame):
    """Framed area with a heading; `head` is the row of the heading, `body` the column of all."""

    def __init__(self, heading: str = "") -> None:
        super().__init__()
        self.setObjectName("panel")
        self.head = QtWidgets.QHBoxLayout()
        self.head.setSpacing(8)
        if heading:
            self.head.addWidget(label(heading, bold=True))
        self.body = lay_out(QtWidgets.QVBoxLayout(self), self.head, margins=(10, 7, 8, 7), spacing=4)


class Box(pg.ViewBox):  # type: ignore[misc]
    """View box that shows the range of its panel until the user zooms, and again after a double click.

    The wheel zooms, the left button pans, and the right button scales the axes.

    Attributes
    ----------
    zoomed : bool
        Whether the user has chosen the range.
    """

    def __init__(self) -> None:
        super().__init__(enableMenu=False)
        self.zoomed = False
        self._home: dict[str, Span] = {}
        self._linked: tuple[Box, ...] = ()
        self.sigRangeChangedManually.connect(self._zoom)

    def link(self, others: tuple[Box, ...]) -> None:
        """Link boxes such that all show the same range of the x axis."""
        self._linked = others

    def show_range(self, x: Span | None = None, y: Span | None = None) -> None:
        """Show this range, immediately or after the user has reset the zoom."""
        changed = {name: span for name, span in (("xRange", x), ("yRange", y)) if span is not None}
        if all(self._home.get(name) == span for name, span in changed.items()):
            return
        self._home |= changed
        if not self.zoomed:
            self.setRange(**changed, padding=0)

    @staticmethod
    def agree(one: Box, another: Box) -> None:
        """Make two boxes show the union of their ranges."""
        pairs = {name: (one._home[name], another._home[name]) for name in one._home.keys() & another._home.keys()}
        union = {name: (min(a[0], b[0]), max(a[1], b[1])) for name, (a, b) in pairs.items()}
        for box in (one, another):
            box.show_range(union.get("xRange"), union.get("yRange"))

    def home(self) -> None:
        """Restore the range of the panel in all linked boxes."""
        for box in {self, *self._linked}:
            box.zoomed = False
            if box._home:
                box.setRange(**box._home, padding=0)

    def mouseClickEvent(self, event: Any) -> None:  # noqa: N802
        """Restore the range on a double click (pyqtgraph event handler)."""
        if event.double():
            event.accept()
            self.home()

    def _zoom(self, *_: Any) -> None:
        self.zoomed = True
        for box in self._linked:
            if box is not self:
                box.zoomed = True
                box.setXRange(*self.viewRange()[0], padding=0)


def box_of(chart_: Any) -> Box:
    """Return the view box of a chart."""
    box: Box = chart_.getViewBox()
    return box


def chart(left: str, bottom: str) -> Any:
    """Return a plot widget with two labelled axes whose ranges are set with `Box.show_range`."""
    widget = pg.PlotWidget(viewBox=Box())
    widget.setFrameShape(QtWidgets.QFrame.Shape.NoFrame)
    item = widget.getPlotItem()
    item.disableAutoRange()
    item.hideButtons()
    item.setMenuEnabled(False)
    for side in ("left", "bottom"):
        axis = item.getAxis(side)
        axis.setStyle(tickFont=font(10), tickLength=-4, autoExpandTextSpace=False, tickTextOffset=4)
        axis.setStyle(hideOverlappingLabels=False)
        axis.enableAutoSIPrefix(False)
    item.layout.setContentsMargins(0, px(9), px(16), 0)  # room for the halves of the outermost tick labels
    item.getAxis("left").setWidth(px(AXIS_WIDTH))
    item.getAxis("left").setLabel(left, **{"font-size": f"{font().pointSizeF()}pt"})
    label_below(widget, bottom)
    return widget


def label_below(widget: Any, text: str) -> None:
    """Set the label of the x axis; an empty label takes no space."""
    axis = widget.getPlotItem().getAxis("bottom")
    axis.setLabel(text, **{"font-size": f"{font().pointSizeF()}pt"})
    axis.setHeight(px(40 if text else 22))


def dress_chart(widget: Any, theme: Theme) -> None:
    """Apply the colours of `theme` to a chart."""
    widget.setBackground(theme.panel)
    item = widget.getPlotItem()
    for side in ("left", "bottom"):
        axis = item.getAxis(side)
        axis.setPen(pg.mkPen(theme.border))
        axis.setTickPen(pg.mkPen(theme.faint))
        axis.setTextPen(pg.mkPen(theme.faint))


# --- items of a chart -------------------------------------------------------------------------------------------------

_EVERYWHERE = QtCore.QRectF(-1e4, -1e4, 2e4, 2e4)


class _Curve(pg.PlotCurveItem):  # type: ignore[misc]
    """Curve without computation of its bounds, since ranges are fixed and charts are repainted whole."""

    def boundingRect(self) -> QtCore.QRectF:  # noqa: N802
        """Return an area larger than any chart (called by Qt)."""
        return _EVERYWHERE


def curve(widget: Any) -> Any:
    """Add an empty curve to a chart and return it; its data must be finite."""
    item = _Curve(skipFiniteCheck=True)
    item.setSegmentedLineMode("on")
    widget.addItem(item, ignoreBounds=True)
    return item


def points(widget: Any, size: float | None = None) -> Any:
    """Add a scatter plot of discs of a `size` [pixel on an ordinary screen] to a chart and return it."""
    item = pg.ScatterPlotItem(pxMode=True, **({} if size is None else {"symbol": "o", "size": px(size)}))
    widget.addItem(item, ignoreBounds=True)
    return item


def clear(*items: Any) -> None:
    """Remove the data of curves and scatter plots."""
    for item in items:
        item.setData(np.zeros(0), np.zeros(0))


def pen(colour: str, width: float = 1.0, dashed: bool = False) -> Any:
    """Return a pen whose width does not depend on the zoom [pixel on an ordinary screen]."""
    style = QtCore.Qt.PenStyle.DashLine if dashed else QtCore.Qt.PenStyle.SolidLine
    return pg.mkPen(QtGui.QColor(colour), width=px(8 * width) / 8, style=style)


def brush(colour: str, opacity: float = 1.0) -> QtGui.QBrush:
    """Return a plain brush."""
    paint = QtGui.QColor(colour)
    paint.setAlphaF(opacity)
    return QtGui.QBrush(paint)


# --- legends and texts ------------------------------------------------------------------------------------------------


Sign = Enum("Sign", "LINE WIDE DASH DOT RING BAND ARROW DISC")
"""Shapes of the samples in a legend key."""

Entry = tuple[Sign, str, str]
"""Entry of a legend key: shape, name of a colour of the theme, meaning."""


class Swatch(QtWidgets.QWidget):
    """Sample of a line or symbol in a legend key."""

    def __init__(self, sign: Sign, role: str) -> None:
        super().__init__()
        self._sign, self._role = sign, role
        self._round = sign in (Sign.DOT, Sign.RING, Sign.DISC)
        self.setFixedSize(px(14 if self._round else 17), px(14))

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:  # noqa: N802
        """Draw the sample (Qt event handler)."""
        painter = QtGui.QPainter(self)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        box, colour = QtCore.QRectF(self.rect()), QtGui.QColor(getattr(current_theme(), self._role))
        if self._round:
            radius = px(32 if self._sign is Sign.DOT else 40) / 8
            painter.setPen(QtGui.QPen(colour, px(16) / 8))
            filled = self._sign is not Sign.RING
            painter.setBrush(QtGui.QBrush(colour) if filled else QtCore.Qt.BrushStyle.NoBrush)
            painter.drawEllipse(box.center(), radius, radius)
        elif self._sign is Sign.BAND:
            colour.setAlphaF(0.35)
            painter.fillRect(box.adjusted(2, 0, -2, 0), colour)
        else:
            width = px(8 * {Sign.WIDE: 4.0, Sign.ARROW: 2.5}.get(self._sign, 1.6)) / 8
            stroke = QtGui.QPen(colour, width)
            if self._sign is Sign.DASH:
                stroke.setDashPattern([4.0, 2.5])
            painter.setPen(stroke)
            tip = QtCore.QPointF(box.right() - 2, box.center().y())
            painter.drawLine(QtCore.QPointF(1, tip.y()), tip)
            for side in (-1, 1) if self._sign is Sign.ARROW else ():
                painter.drawLine(tip, tip + QtCore.QPointF(-px(6), side * px(4)))


class Key(QtWidgets.QWidget):
    """Legend key: a row of samples with their meanings."""

    def __init__(self, *entries: Entry) -> None:
        super().__init__()
        row = lay_out(QtWidgets.QHBoxLayout(self), spacing=3)
        self.texts = [label(text, 10, faint=True) for _, _, text in entries]
        for (sign, role, _), words in zip(entries, self.texts, strict=True):
            row.addWidget(Swatch(sign, role))
            row.addWidget(words)
            row.addSpacing(2)
        row.addStretch(1)


class Lines(QtWidgets.QLabel):
    """Text below a chart whose height always equals the height of its lines, wrapped or not.

    An ordinary label with word wrap would distort the division of space between its panel and the adjacent ones.
    """

    def __init__(self, faint: bool = False) -> None:
        super().__init__()
        self.setFont(font(10))
        self.setProperty("faint", faint)

    def set_lines(self, text: str) -> None:
        """Set the text."""
        self.setText(text)
        self._adapt_height()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:  # noqa: N802
        """Adapt the height to the new width (Qt event handler)."""
        super().resizeEvent(event)
        self._adapt_height()

    def hasHeightForWidth(self) -> bool:  # noqa: N802
        """Return False, because the height is set explicitly (called by Qt)."""
        return False

    def _adapt_height(self) -> None:
        height = self.heightForWidth(self.width()) if self.wordWrap() else self.sizeHint().height()
        if height != self.height():
            self.setFixedHeight(height)
